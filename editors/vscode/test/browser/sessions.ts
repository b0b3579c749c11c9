/** Sessions as large as they get, made up: for what only size brings out. */
import type { EventNotification, Message, Session, SessionGetResult } from "../../src/shared/wire";

const TIME = "2026-11-30T12:00:00.000Z";
export const SESSION: Session = {
  sessionId: "big", workspaceUri: "file:///home/user/project", title: "Big", model: "scripted/big", mode: "ask", state: "idle",
  createdAt: TIME, updatedAt: TIME, messageCount: 0, seq: 1,
};

const ANSWER = (n: number) => `Answer **${n}** with some \`code\` and a list:\n\n- first of ${n}\n- second\n\n`
  + (n % 3 === 0 ? `\`\`\`ts\nexport function f${n}(value: number): string {\n  // line\n${"  value += 1;\n".repeat(n % 20)}  return String(value);\n}\n\`\`\`\n\n` : "")
  + "It goes on for a while, so that heights differ. ".repeat(n % 13);

/** `messages` messages, by turns of the user and the model. */
export function big(messages: number): { sessionId: string; events: EventNotification[]; snapshot: SessionGetResult } {
  const all: Message[] = Array.from({ length: messages }, (_, index): Message => index % 2 === 0
    ? { role: "user", messageId: `m${index}`, content: [{ type: "text", text: `Question ${index}` }], timestamp: TIME }
    : { role: "assistant", messageId: `m${index}`, content: [{ type: "text", text: ANSWER(index) }], provider: "scripted", model: "big", stopReason: "stop", timestamp: TIME });
  return {
    sessionId: "big", events: [],
    snapshot: { session: { ...SESSION, messageCount: messages }, messages: all, hasMore: false, pending: [], queue: [], todo: [], seq: 1 },
  };
}

export const note = (event: EventNotification["event"], seq?: number): EventNotification =>
  ({ sessionId: "big", promptId: "p", time: TIME, event, ...(seq === undefined ? {} : { seq }) });

/** A run whose answer comes in so many pieces. */
export function streamed(pieces: number, from = 2): EventNotification[] {
  let offset = 0;
  const text = Array.from({ length: Math.ceil(pieces / 60) }, (_, part) => ANSWER(part * 3)).join("\n");
  const size = Math.max(1, Math.floor(text.length / pieces));
  const updates = Array.from({ length: pieces }, (_, index) => {
    const delta = index === pieces - 1 ? text.slice(offset) : text.slice(offset, offset + size);
    const update = note({ type: "message_update", messageId: "s1", update: { kind: "text", index: 0, offset, delta } });
    offset += delta.length;
    return update;
  });
  return [
    note({ type: "agent_start", prompt: { model: "scripted/big", mode: "ask" } }, from),
    note({ type: "turn_start", turn: 1 }, from + 1),
    note({ type: "message_start", message: { role: "assistant", messageId: "s1" } }, from + 2),
    ...updates,
    note({ type: "message_end", message: { role: "assistant", messageId: "s1", content: [{ type: "text", text }], provider: "scripted", model: "big", stopReason: "stop", timestamp: TIME } }, from + 3),
    note({ type: "turn_end", turn: 1, messageId: "s1", stopReason: "stop", toolResultIds: [] }, from + 4),
    note({ type: "agent_end", stopReason: "stop", messageId: "s1", messageIds: ["s1"], turns: 1 }, from + 5),
  ];
}
