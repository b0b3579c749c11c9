/**
 * The fold: a session's view and the next event give the next view. An event that was seen already (by its `seq`)
 * changes nothing; one that comes too early marks a gap, and nothing durable is taken from then on.
 */
import type { Event, EventNotification, Message, SessionRewound } from "../../shared/wire";
import { emptyView } from "./empty";
import { entriesOf, isMessage } from "./entries";
import { grown, opened, userEntry, whole, withResult, withTool } from "./messages";
import { filled, spent, titled } from "./session";
import { answered, asked, ended, printed, resulted, started } from "./tools";
import type { Entry, Run, SessionView } from "./view";

export function apply(view: SessionView, note: EventNotification): SessionView {
  if (note.sessionId !== view.session.sessionId) return applyToChild(view, note);
  if (note.seq === undefined) return live(view, note.event);
  if (note.seq <= view.seq || view.gap) return view;
  if (note.seq !== view.seq + 1) return { ...view, gap: true };
  return { ...durable(view, note), seq: note.seq };
}

/** A sub-agent's session begins with the event that names its parent. Others are none of ours. */
function applyToChild(view: SessionView, note: EventNotification): SessionView {
  const known = view.children[note.sessionId];
  if (!known) {
    if (note.event.type !== "session_changed" || note.event.session.parent?.sessionId !== view.session.sessionId) return view;
    return withChild(view, note.sessionId, { ...emptyView(note.event.session), seq: note.seq ?? 0 });
  }
  // What was missed of a child is read once somebody looks at it (`adopted`): until then it is told in the parent.
  const near = note.seq !== undefined && note.seq > known.seq + 1 ? { ...known, seq: note.seq - 1, hasMore: true } : known;
  const after = apply(near, note);
  return after === known ? view : withChild(view, note.sessionId, after);
}

function withChild(view: SessionView, id: string, child: SessionView): SessionView {
  return { ...view, children: { ...view.children, [id]: child } };
}

function live(view: SessionView, event: Event): SessionView {
  if (event.type === "message_update") {
    const at = view.entries.findLastIndex((entry) => entry.id === event.messageId);
    const entry = view.entries[at];
    if (entry?.type !== "assistant") return view;
    const after = grown(entry, event.update);
    return after === entry ? view : { ...calm(view), entries: view.entries.with(at, after) };
  }
  if (event.type === "tool_execution_update") {
    return withEntries(view, withTool(view.entries, event.toolCallId, (tool) => printed(tool, event.update)));
  }
  return view;
}

function withEntries(view: SessionView, entries: readonly Entry[] | undefined): SessionView {
  return entries === undefined || entries === view.entries ? view : { ...view, entries };
}

function durable(view: SessionView, note: EventNotification): SessionView {
  const { event, time, promptId, seq } = note;
  switch (event.type) {
    case "session_changed": {
      // It tells what was chosen; what follows from the events stays as they made it.
      const { title, usage } = view.session;
      return { ...view, session: { ...event.session, title: event.session.title || title, ...(usage ? { usage } : {}) } };
    }
    case "agent_start": return begun(view, { promptId: promptId ?? "", startedAt: time, model: event.prompt.model, turn: 0, retry: null, files: [] });
    case "turn_start": return withRun(view, { turn: event.turn });
    case "message_start": {
      if (view.entries.some((entry) => entry.id === event.message.messageId)) return view;
      const entry = opened(event.message, promptId, time);
      return entry ? append(event.message.role === "assistant" ? calm(view) : view, entry) : view;
    }
    case "message_end": return messageEnded(view, event.message, promptId);
    case "message_reset": return replaced(view, event.messageId, (entry) => (entry.type === "assistant" ? { ...entry, blocks: [] } : entry));
    case "tool_execution_start": return withEntries(view, withTool(view.entries, event.toolCallId, (tool) => started(tool, event, time)));
    case "tool_execution_end": return withEntries(view, withTool(view.entries, event.toolCallId, (tool) => ended(tool, event)));
    case "permission_requested": {
      const { type: _, ...question } = event;
      const pending = [...view.pending.filter((other) => other.requestId !== question.requestId), question];
      return withEntries({ ...view, pending, state: "waiting" }, withTool(view.entries, question.toolCallId, (tool) => asked(tool, question)));
    }
    case "permission_resolved": return resolved(view, event.requestId, event.toolCallId, event.outcome);
    case "turn_end": return calm({ ...view, session: filled(view.session, event.usage) });
    case "retry": {
      const { type: _, ...told } = event;
      return withRun(view, { retry: { ...told, time } });
    }
    case "todo_changed": return { ...view, todo: event.items };
    case "queue_changed": return { ...view, queue: event.queue };
    case "files_changed": return withRun(view, { files: event.files });
    case "agent_end": return over(view, note);
    case "compaction_start": return { ...view, compacting: { reason: event.reason, tokensBefore: event.tokensBefore } };
    case "compaction_end": return append({ ...view, compacting: null }, {
      type: "compaction", id: `e${seq}`, outcome: event.outcome, tokensBefore: event.tokensBefore,
      tokensAfter: event.tokensAfter, error: event.error, time,
    });
    case "session_rewound": return rewound(view, event, `e${seq}`, time);
    case "notice": return append(view, { type: "notice", id: `e${seq}`, severity: event.severity, message: event.message, time });
    default: return view;
  }
}

function append(view: SessionView, entry: Entry): SessionView {
  return { ...view, entries: [...view.entries, entry], oldest: view.oldest ?? (isMessage(entry) ? entry.id : undefined) };
}

function replaced(view: SessionView, id: string, change: (entry: Entry) => Entry): SessionView {
  const at = view.entries.findLastIndex((entry) => entry.id === id);
  return at < 0 ? view : { ...view, entries: view.entries.with(at, change(view.entries[at]!)) };
}

function messageEnded(view: SessionView, message: Message, promptId: string | undefined): SessionView {
  if (message.role === "tool_result") return withEntries(view, withResult(view.entries, message, resulted));
  const at = view.entries.findLastIndex((entry) => entry.id === message.messageId);
  const open = view.entries[at];
  const entry = message.role === "user"
    ? userEntry(message, promptId)
    : whole(message, promptId, open?.type === "assistant" ? open : undefined);
  const named = message.role === "user" ? { ...view, session: titled(view.session, message) } : view;
  return at < 0 ? append(named, entry) : { ...named, entries: view.entries.with(at, entry) };
}

function begun(view: SessionView, run: Run): SessionView {
  return { ...view, run, state: "running" };
}

function withRun(view: SessionView, change: Partial<Run>): SessionView {
  return view.run ? { ...view, run: { ...view.run, ...change } } : view;
}

/** The model speaks, so it is no longer tried again. */
function calm(view: SessionView): SessionView {
  return view.run?.retry ? withRun(view, { retry: null }) : view;
}

function resolved(view: SessionView, requestId: string, toolCallId: string, outcome: string): SessionView {
  const question = view.pending.find((other) => other.requestId === requestId);
  const pending = view.pending.filter((other) => other !== question);
  const state = pending.length > 0 ? "waiting" : view.run ? "running" : "idle";
  const stillAsked = pending.some((other) => other.toolCallId === toolCallId);
  const entries = stillAsked ? view.entries
    : withTool(view.entries, toolCallId, (tool) => answered(tool, outcome, question?.child !== undefined));
  return withEntries({ ...view, pending, state }, entries);
}

function over(view: SessionView, { event, time, promptId, seq }: EventNotification): SessionView {
  if (event.type !== "agent_end") return view;
  const began = view.run?.promptId === promptId ? view.run : null;
  const ended: Entry = {
    type: "run", id: `e${seq}`, promptId, model: began?.model ?? view.session.model, stopReason: event.stopReason, turns: event.turns,
    durationMs: began ? Math.max(0, Date.parse(time) - Date.parse(began.startedAt)) : undefined,
    usage: event.usage, error: event.error, files: began?.files ?? [], time,
  };
  return append({ ...view, session: spent(view.session, event.usage), run: null, state: "idle", pending: [] }, ended);
}

/** A rewind takes the end of the conversation away; undoing it brings that back, whole. */
function rewound(view: SessionView, event: SessionRewound, id: string, time: string): SessionView {
  const mark: Entry = {
    type: "rewound", id, promptId: event.promptId, scope: event.scope, undo: event.undo ?? false,
    messages: event.undo ? (event.restoredMessageIds?.length ?? 0) : event.removedMessageIds.length, files: event.files, time,
  };
  const restored = new Set(event.restoredMessageIds ?? []);
  if (restored.size > 0) {
    const back = view.rewound.filter((entry) => entry.type !== "rewound");
    // Not taken away before our eyes: only reading the session anew can tell what comes back.
    if (!back.some((entry) => restored.has(entry.id))) return { ...view, gap: true };
    return { ...view, entries: [...view.entries.filter((entry) => entry.type !== "rewound"), ...back, mark], rewound: [] };
  }
  const removed = new Set(event.removedMessageIds);
  const cut = removed.size > 0 ? view.entries.findIndex((entry) => removed.has(entry.id)) : -1;
  if (cut < 0) return append(view, mark);
  const kept = view.entries.slice(0, cut);
  const left = { ...view, entries: [...kept, mark], rewound: view.entries.slice(cut), oldest: kept.find(isMessage)?.id };
  return left.oldest === undefined && view.hasMore ? { ...left, gap: true } : left;
}

/** The page of messages before the first that is here. */
export function prepend(view: SessionView, messages: readonly Message[], hasMore: boolean): SessionView {
  const known = new Set(view.entries.map((entry) => entry.id));
  const older = entriesOf([...messages, ...view.loose], known);
  const entries = [...older.entries, ...view.entries];
  return { ...view, entries, loose: older.loose, hasMore: hasMore && messages.length > 0, oldest: entries.find(isMessage)?.id };
}
