/** The view of a session as it is told at once: its messages, what a running prompt has said, and its last events. */
import type { Shown } from "../../shared/messages";
import type { EventNotification, Partial as LivePart, SessionGetResult } from "../../shared/wire";
import { emptyView } from "./empty";
import { entriesOf, isMessage } from "./entries";
import { grown, withResult, withTool } from "./messages";
import { apply } from "./reduce";
import { asked, resulted } from "./tools";
import type { AssistantEntry, Entry, SessionView } from "./view";

/**
 * `before`: what was shown until now. Where it is the same session the sub-agents in it go on, and so do the pages that
 * the user had read of it.
 */
export function viewOf({ snapshot, history }: Shown, before: SessionView | null): SessionView {
  const past = fold(snapshot, history ?? []);
  const known = new Set(past.entries.map((entry) => entry.id));
  const older = entriesOf(snapshot.messages, known);
  const entries = [...older.entries, ...past.entries];
  const same = before?.session.sessionId === snapshot.session.sessionId ? before : null;
  const view: SessionView = {
    ...past,
    session: snapshot.session, seq: snapshot.seq, gap: false, state: snapshot.session.state, entries, loose: older.loose,
    oldest: entries.find(isMessage)?.id, hasMore: snapshot.hasMore,
    pending: snapshot.pending, queue: snapshot.queue, todo: snapshot.todo,
    run: snapshot.session.state === "idle" ? null : past.run,
    children: same?.children ?? {},
  };
  return withPending(withPartial(same ? withEarlier(view, same) : view, snapshot.partial));
}

/** With what was shown in front of the first message that is here. */
function withEarlier(view: SessionView, before: SessionView): SessionView {
  const known = new Set(view.entries.map((entry) => entry.id));
  const at = before.entries.findIndex((entry) => entry.id === view.oldest);
  let entries: readonly Entry[] = before.entries.slice(0, Math.max(at, 0)).filter((entry) => !known.has(entry.id));
  if (!entries.some(isMessage)) return view;
  const loose = view.loose.filter((result) => {
    const filed = withResult(entries, result, resulted);
    entries = filed ?? entries;
    return filed === undefined;
  });
  const { hasMore, oldest } = before;
  return { ...view, entries: [...entries, ...view.entries], loose: [...before.loose, ...loose], hasMore, oldest };
}

/** With sub-agents as they were read. One of which all that was read is known already stays as it is. */
export function adopted(view: SessionView, children: readonly SessionGetResult[]): SessionView {
  const fresh = children.filter(({ session: { sessionId }, seq }) => {
    const known = view.children[sessionId];
    return known === undefined || seq > known.seq || (known.hasMore && seq === known.seq);
  });
  if (fresh.length === 0) return view;
  const read = fresh.map((snapshot) => [snapshot.session.sessionId, viewOf({ snapshot, changes: [] }, null)] as const);
  return { ...view, children: { ...view.children, ...Object.fromEntries(read) } };
}

/** The events behind a place where something begins: half a run would be told wrong. */
function fold(snapshot: SessionGetResult, history: readonly EventNotification[]): SessionView {
  const own = history.filter((note) => note.seq !== undefined && note.sessionId === snapshot.session.sessionId && note.seq <= snapshot.seq);
  const start = own[0]?.seq === 1 ? 0 : own.findIndex((note) => note.event.type === "agent_start");
  const events = start < 0 ? [] : own.slice(start);
  let view = { ...emptyView(snapshot.session), seq: (events[0]?.seq ?? 1) - 1 };
  for (const note of events) view = apply(view, note);
  return view;
}

/** What a running prompt has said that no durable event holds. */
function withPartial(view: SessionView, partial: LivePart | undefined): SessionView {
  if (!partial) return view;
  let entries = view.entries;
  const { message } = partial;
  if (message) {
    const at = entries.findLastIndex((entry) => entry.id === message.messageId);
    const known = entries[at];
    let open: AssistantEntry = known?.type === "assistant" ? known : {
      type: "assistant", id: message.messageId, promptId: view.run?.promptId, model: view.run?.model ?? "", provider: undefined,
      blocks: [], done: false, stopReason: undefined, errorMessage: undefined, time: view.session.updatedAt,
    };
    message.content.forEach((block, index) => {
      open = grown(open, deltaOf(block as PartialBlock, index));
    });
    entries = at < 0 ? [...entries, open] : entries.with(at, open);
  }
  for (const { toolCallId, output } of partial.tools) {
    entries = withTool(entries, toolCallId, (tool) => ({
      ...tool, state: tool.state === "ready" ? "running" : tool.state,
      output: output === "" ? [] : [{ channel: tool.name === "task" ? "progress" : "stdout", text: output, missed: 0 }],
    })) ?? entries;
  }
  return { ...view, entries };
}

type PartialBlock = { type: "text" | "thinking"; text: string } | { type: "tool_call"; id: string; name: string; rawArguments?: string };

function deltaOf(block: PartialBlock, index: number) {
  if (block.type !== "tool_call") return { kind: block.type, index, offset: 0, delta: block.text };
  return { kind: block.type, index, offset: 0, delta: block.rawArguments ?? "", toolCallId: block.id, toolName: block.name };
}

function withPending(view: SessionView): SessionView {
  let entries = view.entries;
  for (const question of view.pending) entries = withTool(entries, question.toolCallId, (tool) => asked(tool, question)) ?? entries;
  return { ...view, entries };
}
