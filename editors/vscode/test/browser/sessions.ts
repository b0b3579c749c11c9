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
  return told(Array.from({ length: Math.ceil(pieces / 60) }, (_, part) => ANSWER(part * 3)).join("\n"), pieces, from);
}

/** A run whose answer is this text, in so many pieces. */
export function told(text: string, pieces: number, from = 2): EventNotification[] {
  let offset = 0;
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

/** Texts of at least so many characters, each of them hard in its own way while it grows. */
export const LONG: Record<string, (length: number) => string> = {
  "many blocks": (length) => repeated(length, (n) => `${ANSWER(n)}\n\n`),
  "one fence": (length) => `\`\`\`ts\n${repeated(length, (n) => `export const value${n} = "${n}" + other(${n}); // line\n`)}\`\`\`\n`,
  "one paragraph": (length) => repeated(length, (n) => `It goes **on** and \`on\`, ${n} times. `),
  "one list": (length) => repeated(length, (n) => `- item ${n} with \`code\`\n`),
  "one line": (length) => "x".repeat(length),
};

function repeated(length: number, part: (n: number) => string): string {
  const parts: string[] = [];
  for (let n = 0, all = 0; all < length; n++) all += parts[parts.push(part(n)) - 1]!.length;
  return parts.join("");
}
