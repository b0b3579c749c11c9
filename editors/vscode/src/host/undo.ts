/** The last prompt of a session, which is what "undo" takes back. */
import type { Params } from "../shared/messages";
import type { AttachResult, EventNotification, SessionGetResult, SessionRewindResult } from "../shared/wire";
import type { Wire } from "./daemon";
import { HostError } from "./handlers";

const FIRST_LOOK = 500;

/** The prompts that a stretch of events leaves in the conversation, oldest first. */
export function promptsIn(events: EventNotification[]): string[] {
  let prompts: string[] = [];
  let cut: string[] = [];
  for (const { promptId, event } of events) {
    if (event.type === "agent_start" && promptId !== undefined) {
      prompts.push(promptId);
      cut = [];
    } else if (event.type === "session_rewound" && event.scope !== "files") {
      if (event.undo) {
        prompts = [...prompts, ...cut];
        cut = [];
        continue;
      }
      const at = prompts.indexOf(event.promptId);
      cut = at < 0 ? prompts : prompts.slice(at);
      prompts = at < 0 ? [] : prompts.slice(0, at);
    }
  }
  return prompts;
}

/**
 * Takes back, files and conversation: all from prompt `promptId` on, else the last prompt; with `redo` the last taking
 * back. Fails with a HostError where there is none.
 */
export async function undo(client: Wire, { sessionId, promptId, redo }: Params<"undo">): Promise<SessionRewindResult> {
  if (redo) return client.request<SessionRewindResult>("agentd/session/rewind", { sessionId, undo: true });
  const target = promptId ?? (await lastPrompt(client, sessionId));
  return client.request<SessionRewindResult>("agentd/session/rewind", { sessionId, promptId: target, scope: "both" });
}

/** Reads the events from their end: most often the last few hold it. */
async function lastPrompt(client: Wire, sessionId: string): Promise<string> {
  const { seq } = await client.request<SessionGetResult>("agentd/session/get", { sessionId, limit: 1 });
  for (let look = FIRST_LOOK; ; look *= 8) {
    const afterSeq = Math.max(0, seq - look);
    const result = await client.request<AttachResult>("agentd/session/attach", { sessionId, afterSeq });
    const last = promptsIn((result.events ?? []) as unknown as EventNotification[]).at(-1);
    if (last !== undefined) return last;
    if (afterSeq === 0 || result.kind === "snapshot") break;
  }
  throw new HostError("There is no prompt to take back in this session.", { kind: "promptNotFound" });
}
