/** What the real daemon told (`npm run fixtures`), for the tests of the view. */
import { readdirSync, readFileSync } from "node:fs";
import type { EventNotification, SessionGetResult } from "../../src/shared/wire";
import { emptyView } from "../../src/webview/model/empty";
import { apply } from "../../src/webview/model/reduce";
import type { Entry, SessionView, Tool } from "../../src/webview/model/view";

export interface Recording {
  name: string;
  sessionId: string;
  events: EventNotification[];
  reads: { at: number; snapshot: SessionGetResult }[];
  snapshot: SessionGetResult;
}

const folder = new URL("../fixtures/", import.meta.url);
export const recordings: Recording[] = readdirSync(folder).sort().map((file) => ({
  name: file.replace(".json", ""), ...JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Omit<Recording, "name">,
}));

export function recording(name: string): Recording {
  return recordings.find((one) => one.name === name)!;
}

/** The view of a session that was watched from its first event on. */
export function watched({ snapshot }: Recording, events: readonly EventNotification[]): SessionView {
  const { usage: _, ...session } = snapshot.session;
  return events.reduce(apply, { ...emptyView({ ...session, title: "" }), state: "idle" });
}

/** The sub-agents of a recording, as the daemon keeps them. */
export function kept({ events, sessionId }: Pick<Recording, "events" | "sessionId">): SessionGetResult[] {
  const own = new Map<string, EventNotification[]>();
  for (const note of events) if (note.sessionId !== sessionId) own.set(note.sessionId, [...(own.get(note.sessionId) ?? []), note]);
  return [...own.values()].map((notes) => {
    const [begin] = notes.flatMap(({ event }) => (event.type === "session_changed" ? [event.session] : []));
    return {
      session: { ...begin!, state: "idle" }, messages: notes.flatMap(({ event }) => (event.type === "message_end" ? [event.message] : [])),
      hasMore: false, pending: [], queue: [], todo: [], seq: Math.max(...notes.map((note) => note.seq ?? 0)),
    };
  });
}

export function isDurable(note: EventNotification): boolean {
  return note.seq !== undefined;
}

/** The entries without what only those know who saw a command print: its output in colour. */
export function settled(view: SessionView): readonly Entry[] {
  return view.entries.map((entry) => withTools(entry, (tool) => ({ ...tool, output: [], offsets: {} })));
}

/** The entries without what messages alone do not tell: what they share with a snapshot. */
export function bare(view: SessionView): Entry[] {
  return view.entries.filter((entry) => entry.type === "user" || entry.type === "assistant").map((entry) => ({
    ...withTools(entry, (tool) => ({
      ...tool, output: [], offsets: {}, title: undefined, kind: "other", locations: [], startedAt: undefined, durationMs: undefined, rejected: false,
    })),
    promptId: undefined,
  }) as Entry);
}

function withTools(entry: Entry, change: (tool: Tool) => Tool): Entry {
  if (entry.type !== "assistant") return entry;
  return { ...entry, blocks: entry.blocks.map((block) => (block.type === "tool" ? { ...block, tool: change(block.tool) } : block)) };
}
