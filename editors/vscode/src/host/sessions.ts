/** Sessions: to list, open, name, fork, remove and pass on. */
import * as vscode from "vscode";
import type { Shown, ToView } from "../shared/messages";
import type {
  Session, SessionCompactResult, SessionExportResult, SessionGetResult, SessionListResult, SessionResult,
} from "../shared/wire";
import { supported } from "./chat";
import { childrenOf } from "./children";
import type { Wire } from "./daemon";
import type { Folders } from "./folders";
import type { Handlers } from "./handlers";
import { listSessions } from "./listing";
import type { Others } from "./others";
import { unlinked } from "./plain";
import type { Choices } from "./settings";
import type { ShownSession } from "./shown";
import { undo } from "./undo";

export interface SessionsParts {
  client: Wire;
  shown: ShownSession;
  others: Others;
  folders: Folders;
  choices: Choices;
  post(message: ToView): void;
  /** A session is gone, and with it what files were before its prompts. */
  deleted(sessionId: string): void;
  /** What new sessions begin with, or where, is something else now. */
  chosen(): void;
  /** agentd cannot do here what it was asked for: what it can do is asked for anew. */
  unsupported(): Promise<void>;
}

export type SessionCalls =
  "choose" | "newSession" | "sessions" | "open" | "earlier" | "children" | "rename" | "fork" | "delete" | "compact" | "exportMarkdown" | "undo";

export function sessionHandlers(parts: SessionsParts): Pick<Handlers, SessionCalls> {
  const { client, shown, folders, others } = parts;
  return {
    async choose({ sessionId, folder, ...chosen }) {
      if (sessionId !== undefined) {
        await supported(parts, client.request("agentd/session/update", { sessionId, ...chosen }));
        return {};
      }
      if (folder !== undefined) folders.choose(folder);
      await parts.choices.choose(chosen);
      parts.chosen();
      return {};
    },
    newSession({ folder }) {
      if (folder !== undefined) folders.choose(folder);
      shown.clear(); // it is made with its first prompt
      others.tell();
      parts.chosen();
      return {};
    },
    async sessions({ cursor, query }) {
      const page = (workspaceUri: string, at: string | undefined, limit: number) =>
        client.request<SessionListResult>("agentd/session/list", { workspaceUri, limit, ...(at === undefined ? {} : { cursor: at }) });
      const result = await listSessions(page, folders.listed, { cursor, query });
      for (const session of result.sessions) others.learn(session);
      return result;
    },
    async open({ sessionId }) {
      return learned(others, await shown.open(sessionId));
    },
    async earlier({ sessionId, before }) {
      const { messages, hasMore } = await client.request<SessionGetResult>("agentd/session/get", { sessionId, before });
      return { messages, hasMore };
    },
    async children({ sessionId, toolCallId }) {
      return { children: await childrenOf(client, sessionId, toolCallId) };
    },
    async rename({ sessionId, title }) {
      await client.request("agentd/session/update", { sessionId, title });
      return {};
    },
    async fork(params) {
      const { session } = await client.request<SessionResult>("agentd/session/fork", params);
      return learned(others, await shown.open(session.sessionId));
    },
    async delete({ sessionId }) {
      const { session } = await client.request<SessionGetResult>("agentd/session/get", { sessionId, limit: 1 });
      if (!(await confirmed(session))) return { deleted: false };
      await client.request("agentd/session/delete", { sessionId });
      others.forget(sessionId);
      parts.deleted(sessionId);
      if (shown.id === sessionId) shown.clear();
      return { deleted: true };
    },
    async compact(params) {
      const { outcome } = await client.request<SessionCompactResult>("agentd/session/compact", params);
      return { outcome };
    },
    async exportMarkdown(params) {
      const { text } = await client.request<SessionExportResult>("agentd/session/export", params);
      const document = await vscode.workspace.openTextDocument({ language: "markdown", content: text });
      await vscode.window.showTextDocument(document, { preview: false });
      return {};
    },
    async undo(params) {
      const { files } = await undo(client, params);
      return { files };
    },
  };
}

function learned(others: Others, told: Shown): Shown {
  others.learn(told.snapshot.session);
  others.tell();
  return told;
}

/** The one place where the user is held up: what is deleted is gone for good. */
async function confirmed(session: Session): Promise<boolean> {
  const yes = "Delete";
  const running = session.state === "idle" ? "" : " It is stopped first.";
  const answer = await vscode.window.showWarningMessage(
    `Delete the session "${unlinked(session.title)}"?`, { modal: true, detail: `Its messages are gone for good; files stay as they are.${running}` }, yes,
  );
  return answer === yes;
}
