/** Between the host and the chat view: answers its calls and tells it what happens. There may be no view at all. */
import * as vscode from "vscode";
import type { CallName, FromView, ToView } from "../shared/messages";
import { toCallError, type Handlers } from "./handlers";
import { page } from "./view";

export const VIEW = "agentd.ui.chat";
const OPEN_MS = 15_000;

export class Bridge implements vscode.WebviewViewProvider, vscode.Disposable {
  private view: vscode.WebviewView | null = null;
  /** Whether the page has said `ready` and was answered: before that it knows nothing that a notice could change. */
  private isOpen = false;
  private handlers: Handlers | null = null;
  private readonly seen = new vscode.EventEmitter<boolean>();
  private readonly opened = new vscode.EventEmitter<void>();
  /** Called before anything but events is posted, so that order stays. */
  private flush: () => void = () => undefined;

  constructor(private readonly extension: vscode.Uri, private readonly log: vscode.LogOutputChannel) {
    this.onOpened = this.opened.event;
  }

  /** Whether the user can see the chat at the moment. */
  get isVisible(): boolean {
    return this.isOpen && this.view?.visible === true;
  }

  readonly onVisible = this.seen.event;
  /** A page has begun, and knows what the answer to `ready` says. */
  readonly onOpened: vscode.Event<void>;

  serve(handlers: Handlers, flush: () => void): void {
    this.handlers = handlers;
    this.flush = flush;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.isOpen = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, "dist")] };
    view.webview.onDidReceiveMessage((message: unknown) => void this.take(view, message));
    view.onDidChangeVisibility(() => this.seen.fire(this.isVisible));
    view.onDidDispose(() => {
      if (this.view !== view) return;
      this.view = null;
      this.isOpen = false;
      this.seen.fire(false);
    });
    view.webview.html = page(view.webview, this.extension);
  }

  /** Tells the view, where there is one that listens; one that comes later is told all by the answer to `ready`. */
  post(message: ToView): void {
    if (!this.isOpen || this.view === null) return;
    if (message.type !== "events") this.flush();
    this.send(this.view, message);
  }

  /**
   * Brings the chat to the front: its field in focus, or the focus where it is. Gives when the view listens, so that
   * what is posted then arrives; where it does not come to that, after a while.
   */
  async reveal(where: "focus" | "beside" = "focus"): Promise<void> {
    await vscode.commands.executeCommand(`${VIEW}.focus`, { preserveFocus: where === "beside" });
    if (!this.isOpen) await this.listening();
    if (where === "focus") this.post({ type: "focus" });
  }

  private listening(): Promise<void> {
    return new Promise((resolve) => {
      const over = () => {
        clearTimeout(late);
        opened.dispose();
        resolve();
      };
      const opened = this.opened.event(over);
      const late = setTimeout(over, OPEN_MS);
    });
  }

  dispose(): void {
    this.seen.dispose();
    this.opened.dispose();
  }

  private async take(view: vscode.WebviewView, message: unknown): Promise<void> {
    const said = message as Partial<FromView> | null;
    if (typeof said?.id !== "number" || typeof said.call !== "string" || this.handlers === null) {
      this.log.warn("The view said something that is no call.");
      return;
    }
    if (said.call === "ready") this.isOpen = false; // the page begins anew
    let reply: ToView;
    try {
      reply = { type: "answer", id: said.id, result: await this.call(said.call, said.params) };
    } catch (error) {
      const told = toCallError(error);
      if (told.kind === "host" || told.kind === "internal") this.log.error(`${said.call}: ${text(error)}`);
      else this.log.debug(`${said.call}: ${told.kind}: ${told.message}`);
      reply = { type: "failure", id: said.id, error: told };
    }
    if (this.view !== view) return; // another one was made meanwhile
    if (said.call === "ready") this.isOpen = reply.type === "answer";
    else this.flush();
    this.send(view, reply);
    if (said.call !== "ready" || !this.isOpen) return;
    this.opened.fire();
    this.seen.fire(this.isVisible);
  }

  private async call(name: CallName, params: unknown): Promise<unknown> {
    const handlers = this.handlers;
    if (handlers === null || !Object.hasOwn(handlers, name)) throw new Error(`There is no call "${name}".`);
    const handler = handlers[name] as (params: unknown) => unknown;
    return handler(typeof params === "object" && params !== null ? params : {});
  }

  private send(view: vscode.WebviewView, message: ToView): void {
    view.webview.postMessage(message).then(undefined, (error: unknown) => this.log.debug(`The view is gone: ${text(error)}`));
  }
}

function text(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
