/** Prompts: to begin, steer, queue and stop them. */
import { randomUUID } from "node:crypto";
import type { CancelResult, ContentBlock, PromptAccepted, QueuedPrompt, SessionResult } from "../shared/wire";
import type { ToView } from "../shared/messages";
import type { Wire } from "./daemon";
import type { Folders } from "./folders";
import { HostError, toCallError, type Handlers } from "./handlers";
import type { Beginning } from "./settings";
import type { ShownSession } from "./shown";

export interface ChatParts {
  client: Wire;
  shown: ShownSession;
  folders: Folders;
  /** What a new session begins with. */
  beginning(): Beginning;
  /** agentd cannot do here what it was asked for: what it can do is asked for anew. */
  unsupported(): Promise<void>;
  post(message: ToView): void;
  /** Tells the daemon where the user looks. */
  tellFocus(): void;
}

interface Prompt {
  promptId: string;
  prompt: ContentBlock[];
  whenBusy?: "queue" | "steer" | "interrupt" | "reject";
}

export type ChatCalls = "prompt" | "goOn" | "cancel" | "queue";

export function chatHandlers(parts: ChatParts): Pick<Handlers, ChatCalls> {
  const { client } = parts;
  return {
    async prompt({ sessionId, ...said }) {
      parts.tellFocus();
      const accepted = sessionId === undefined ? await inNewSession(parts, said) : await send(client, sessionId, said);
      const restored = (accepted.restored ?? []).map((each) => each.prompt);
      return { sessionId: accepted.sessionId, outcome: accepted.outcome, ...(restored.length > 0 ? { restored } : {}) };
    },
    async goOn({ sessionId }) {
      await send(client, sessionId, { promptId: randomUUID(), prompt: [] });
      return {};
    },
    async cancel(params) {
      const result = await client.request<CancelResult>("agentd/cancel", params);
      return { restored: (result.restored ?? []).map((each: QueuedPrompt) => each.prompt) };
    },
    async queue(params) {
      await client.request("agentd/queue/update", params);
      return {};
    },
  };
}

/** A session is made with its first prompt; where that is refused there is none again. */
async function inNewSession(parts: ChatParts, said: Prompt): Promise<PromptAccepted> {
  const { client, shown, folders } = parts;
  const params = { workspaceUri: folders.forNew, ...parts.beginning() };
  const { session } = await supported(parts, client.request<SessionResult>("agentd/session/new", params));
  parts.post({ type: "session", shown: shown.begin(session) });
  try {
    return await send(client, session.sessionId, said);
  } catch (error) {
    if (toCallError(error).kind !== "ended") {
      if (shown.id === session.sessionId) shown.clear();
      await client.request("agentd/session/delete", { sessionId: session.sessionId }).catch(() => undefined);
    }
    throw error;
  }
}

/** What agentd answers. Where that is that it cannot do so here, what can be chosen is another before this fails. */
export async function supported<R>(parts: { unsupported(): Promise<void> }, answer: Promise<R>): Promise<R> {
  try {
    return await answer;
  } catch (error) {
    if (toCallError(error).kind === "unsupported") await parts.unsupported();
    throw error;
  }
}

/** The same prompt may be sent twice: agentd runs it once. So it is, where the first daemon ended over it. */
async function send(client: Wire, sessionId: string, said: Prompt): Promise<PromptAccepted> {
  const params = { sessionId, ...said, wait: "accepted" };
  try {
    return await client.request<PromptAccepted>("agentd/prompt", params);
  } catch (error) {
    if (!(error instanceof HostError) || error.kind !== "ended") throw error;
    return client.request<PromptAccepted>("agentd/prompt", params);
  }
}
