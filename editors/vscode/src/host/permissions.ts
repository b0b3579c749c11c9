/**
 * Questions of the daemon: may this tool call run?
 *
 * The view shows them by what is told of the session (`permission_requested`, `pending`) and answers by a call. Where
 * the user cannot see the view, a notification asks. The first answer counts.
 */
import * as vscode from "vscode";
import type { PermissionAnswer, PermissionRequest } from "../shared/wire";
import type { Wire } from "./daemon";
import { HostError, toCallError, type Handlers } from "./handlers";
import { holdsLink, visible } from "./plain";

/** What a notification can show whole; longer ones are looked at in the chat. */
const SHORT = 160;
export const ANSWER = "agentd.ui.answer";

export interface PermissionParts {
  client: Wire;
  isVisible(): boolean;
  onVisible: vscode.Event<boolean>;
  shownSessionId(): string | null;
  /** Brings a session to the front. */
  show(sessionId: string): Promise<void>;
  log: vscode.LogOutputChannel;
}

interface Open {
  request: PermissionRequest;
  answer(answer: PermissionAnswer): void;
  /** Ends the notification, where there is one. */
  hide: (() => void) | null;
}

export class Permissions implements vscode.Disposable {
  private readonly open = new Map<string, Open>();
  private readonly sources: vscode.Disposable[];

  constructor(private readonly parts: PermissionParts) {
    this.sources = [
      parts.client.onRequest<PermissionRequest, PermissionAnswer>("agentd/permission/request", (request, token) => this.ask(request, token)),
      parts.onVisible(() => this.notify()),
      vscode.commands.registerCommand(ANSWER, (requestId: string, optionId?: string) => this.clicked(requestId, optionId)),
    ];
  }

  get handlers(): Pick<Handlers, "permission"> {
    return {
      permission: async ({ requestId, optionId, feedback }) => {
        await this.respond(requestId, optionId, feedback);
        return {};
      },
    };
  }

  /** How many questions stand open. */
  get count(): number {
    return this.open.size;
  }

  /** Another session is shown: what was in sight may not be any more. */
  look(): void {
    this.notify();
  }

  dispose(): void {
    for (const source of this.sources) source.dispose();
    for (const each of [...this.open.values()]) each.answer({ cancelled: true });
  }

  private ask(request: PermissionRequest, token: vscode.CancellationToken): Promise<PermissionAnswer> {
    return new Promise((resolve) => {
      const { requestId } = request;
      const answer = (answer: PermissionAnswer) => {
        const open = this.open.get(requestId);
        if (open?.request !== request) return; // it was answered
        this.open.delete(requestId);
        open.hide?.();
        withdrawn.dispose();
        resolve(answer);
      };
      this.open.set(requestId, { request, answer, hide: null });
      const withdrawn = token.onCancellationRequested(() => answer({ cancelled: true }));
      if (token.isCancellationRequested) answer({ cancelled: true });
      else this.notify();
    });
  }

  /** An answer from anywhere. A question that came by no request of this connection is answered by a request of ours. */
  private async respond(requestId: string, optionId: string, feedback?: string): Promise<void> {
    const said = { optionId, ...(feedback === undefined || feedback.trim() === "" ? {} : { feedback }) };
    const open = this.open.get(requestId);
    if (open === undefined) {
      await this.parts.client.request("agentd/permission/respond", { requestId, ...said });
      return;
    }
    if (!open.request.options.some((option) => option.optionId === optionId)) {
      throw new HostError(`"${optionId}" is no answer to this question.`, { kind: "invalidParams" });
    }
    open.answer(said);
  }

  /** Shows a notification for each question that the user cannot see, and takes back those of others. */
  private notify(): void {
    for (const open of this.open.values()) {
      const inSight = this.parts.isVisible() && open.request.sessionId === this.parts.shownSessionId();
      if (inSight) {
        open.hide?.();
        open.hide = null;
      } else {
        open.hide ??= this.showNotification(open.request);
      }
    }
  }

  /** A notification that we can end: one with buttons would stay when the question is answered elsewhere. */
  private showNotification(request: PermissionRequest): () => void {
    let hide: () => void = () => undefined;
    const hidden = new Promise<void>((resolve) => (hide = resolve));
    // One that can be cancelled is unfolded at once, so that all of the question and its answers are in sight.
    const options = { location: vscode.ProgressLocation.Notification, title: notificationText(request), cancellable: true };
    void vscode.window.withProgress(options, (_, token) => {
      token.onCancellationRequested(hide);
      return hidden;
    });
    return hide;
  }

  private async clicked(requestId: string, optionId?: string): Promise<void> {
    const open = this.open.get(requestId);
    try {
      if (optionId !== undefined) await this.respond(requestId, optionId);
      else if (open !== undefined) await this.parts.show(open.request.sessionId);
    } catch (error) {
      this.parts.log.warn(`The answer came too late: ${toCallError(error).message}`);
    }
  }
}

/** The question with its answers as links. Answers are offered only where all that is asked for can be seen. */
export function notificationText(request: PermissionRequest): string {
  const asked = wholeQuestion(request);
  const link = (label: string, ...args: string[]) =>
    `[${label}](command:${ANSWER}?${encodeURIComponent(JSON.stringify([request.requestId, ...args])).replace(/[()]/g, (c) => (c === "(" ? "%28" : "%29"))})`;
  const review = link("Open the chat");
  if (asked === null) return `agentd: ${harmless(request)} ${review}`;
  const answers = request.options
    .filter((option) => option.kind === "allow_once" || option.kind === "reject_once")
    .map((option) => link(option.kind === "allow_once" ? "Allow once" : "Reject", option.optionId));
  return `agentd: ${asked} ${[...answers, review].join(" · ")}`;
}

/** All of what would happen, where it is short and plain enough for a line. */
function wholeQuestion({ subject, child }: PermissionRequest): string | null {
  if (child !== undefined) return null;
  let text: string;
  if (subject.type === "command" && subject.reason === undefined) text = `Run in ${subject.cwd}: ${subject.command}`;
  else if (subject.type === "read") text = `Read ${subject.uri}, which may hold secrets?`;
  else return null;
  const shown = visible(text);
  // what has to be spelled out is looked at where there is room for it, and no part of it may become a link
  return shown === text && shown.length <= SHORT && !holdsLink(shown) ? shown : null;
}

function harmless({ subject }: PermissionRequest): string {
  switch (subject.type) {
    case "command": return "a command waits for your permission.";
    case "edit": return "a change to a file waits for your permission.";
    case "read": return "reading a file waits for your permission.";
    case "fetch": return "fetching an address waits for your permission.";
    default: return "a tool waits for your permission.";
  }
}
