import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { EventNotification, Usage } from "../../src/shared/wire";
import { grow } from "../../src/webview/model/growing";
import { prepend, apply } from "../../src/webview/model/reduce";
import { adopted, viewOf } from "../../src/webview/model/snapshot";
import { bare, isDurable, kept, recording, recordings, settled, watched, type Recording } from "./recordings";

const shown = (snapshot: Recording["snapshot"], history?: EventNotification[]) =>
  viewOf({ snapshot, changes: [], ...(history ? { history } : {}) }, null);

describe.each(recordings)("a session as it was recorded: $name", { timeout: 60_000 }, (it) => {
  const own = it.events.filter((note) => note.sessionId === it.sessionId);

  test("watching it from the first event on ends in what the daemon says it is", () => {
    const view = watched(it, it.events);
    expect(view.gap).toBe(false);
    expect(bare(view)).toEqual(bare(shown(it.snapshot)));
    expect(view.seq).toBe(it.snapshot.seq);
    expect(view.todo).toEqual(it.snapshot.todo);
    expect(view.queue).toEqual(it.snapshot.queue);
    expect(view.pending).toEqual(it.snapshot.pending);
    expect(view.state).toBe(it.snapshot.session.state);
    expect(view.session.title).toBe(it.snapshot.session.title);
    // What a summary took is told only by the session itself.
    if (it.name !== "compaction") expect(view.session.usage && rounded(view.session.usage)).toEqual(it.snapshot.session.usage && rounded(it.snapshot.session.usage));
  });

  test("replaying its durable events gives what was seen live", () => {
    expect(settled(watched(it, own.filter(isDurable)))).toEqual(settled(watched(it, own)));
  });

  test("a snapshot from its middle and what followed give what was seen live", () => {
    for (const { at, snapshot } of it.reads) {
      const history = it.events.slice(0, at).filter(isDurable);
      const begun = shown(snapshot, history);
      const known = watched(it, it.events.slice(0, at));
      expect(settled(begun).map(untimed)).toEqual(settled(known).map(untimed));
      expect(begun.state).toBe(known.state);
      const whole = it.events.slice(at).reduce(apply, begun);
      expect(whole.gap).toBe(false);
      expect(settled(whole)).toEqual(settled(watched(it, it.events)));
      const bareOnly = it.events.slice(at).reduce(apply, shown(snapshot));
      if (!bareOnly.gap) expect(bare(bareOnly)).toEqual(bare(watched(it, it.events)));
    }
  });

  test("live updates may be dropped, merged and repeated, and durable ones repeated: it ends the same", () => {
    fc.assert(fc.property(disturbed(it.events), (events) => {
      const view = watched(it, events);
      expect(view.gap).toBe(false);
      expect(settled(view)).toEqual(settled(watched(it, it.events)));
    }), { numRuns: 40 });
  });

  test("merged live updates are seen as the single ones are, at every moment", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: it.events.length }), (upTo) => {
      const events = it.events.slice(0, upTo);
      expect(watched(it, merged(events)).entries).toEqual(watched(it, events).entries);
    }), { numRuns: 30 });
  });

  test("a live update that comes twice, or in part again, adds nothing, at every moment", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: it.events.length }), fc.double({ min: 0, max: 1, noNaN: true }), (upTo, part) => {
      const events = it.events.slice(0, upTo);
      const twice = events.flatMap((note) => [note, ...again(note, part)]);
      expect(watched(it, twice).entries).toEqual(watched(it, events).entries);
    }), { numRuns: 30 });
  });

  test("live updates that come after the end of what they are of change nothing", () => {
    const whole = watched(it, it.events);
    const late = it.events.filter((note) => !isDurable(note) && note.sessionId === it.sessionId);
    expect(late.reduce(apply, whole).entries).toEqual(whole.entries);
  });

  test("a lost durable event is noticed, and reading the session anew heals it", () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: own.filter(isDurable).length - 2 }), (lost) => {
      const durable = own.filter(isDurable);
      const view = watched(it, durable.filter((_, index) => index !== lost));
      expect(view.gap).toBe(true);
      expect(view.seq).toBe(durable[lost]!.seq! - 1);
      expect(viewOf({ snapshot: it.snapshot, changes: [], history: durable }, view).gap).toBe(false);
    }), { numRuns: 15 });
  });

  test("an event touches nothing but its own entry", () => {
    let view = watched(it, []);
    for (const note of it.events) {
      const next = apply(view, note);
      const changed = next.entries.filter((entry, index) => entry !== view.entries[index]);
      if (note.event.type !== "session_rewound") expect(changed.length).toBeLessThanOrEqual(1);
      view = next;
    }
  });

  test("pages that were read of a session stay when its last page is told again, with the results that come in it", () => {
    const whole = shown(it.snapshot);
    const { messages } = it.snapshot;
    for (let from = 0; from < messages.length; from++) {
      const page = { ...it.snapshot, messages: messages.slice(from), hasMore: from > 0 };
      for (const before of [whole, shown({ ...it.snapshot, messages: messages.slice(0, from + 1), pending: [] })]) {
        const again = viewOf({ snapshot: page, changes: [] }, before);
        if (messages[from]!.role !== "tool_result") expect([again.entries, again.hasMore, again.loose]).toEqual([whole.entries, false, []]);
        const other = { ...page, session: { ...page.session, sessionId: "other" } };
        expect(viewOf({ snapshot: other, changes: [] }, before).entries).toEqual(shown(page).entries);
      }
    }
  });

  test("pages of earlier messages, put before, give the whole", () => {
    for (const size of [1, 2, 3, 5]) {
      const { messages } = it.snapshot;
      let from = Math.max(0, messages.length - size);
      let view = shown({ ...it.snapshot, messages: messages.slice(from), hasMore: from > 0 });
      while (from > 0) {
        const start = Math.max(0, from - size);
        view = prepend(view, messages.slice(start, from), start > 0);
        from = start;
      }
      expect(view.hasMore).toBe(false);
      expect(bare(view)).toEqual(bare(shown(it.snapshot)));
      expect(view.loose).toEqual([]);
    }
  });
});

function rounded(usage: Usage): Usage {
  return usage.cost ? { ...usage, cost: { ...usage.cost, total: Number(usage.cost.total.toFixed(9)) } } : usage;
}

/** The time of an open message is that of its start, which a snapshot does not tell. */
function untimed<T extends { time: string }>(entry: T): T {
  return { ...entry, time: "" };
}

/** The end of a live update once more, as a piece that overlaps. */
function again(note: EventNotification, part: number): EventNotification[] {
  const { event } = note;
  if (event.type !== "message_update" && event.type !== "tool_execution_update") return [];
  const from = Math.floor(part * event.update.delta.length);
  const update = { ...event.update, offset: event.update.offset + from, delta: event.update.delta.slice(from) };
  return [{ ...note, event: { ...event, update } as EventNotification["event"] }];
}

function disturbed(events: EventNotification[]): fc.Arbitrary<EventNotification[]> {
  return fc.array(fc.constantFrom("keep", "keep", "drop", "repeat", "again"), { minLength: events.length, maxLength: events.length })
    .map((fates) => merged(events.flatMap((note, index) => {
      const fate = fates[index];
      if (fate === "drop" && !isDurable(note)) return [];
      if (fate === "repeat") return [note, note];
      // What was seen before comes again, out of its place.
      if (fate === "again" && index > 0 && isDurable(events[index - 1]!)) return [note, events[index - 1]!];
      return [note];
    })));
}

/** Neighbours of one block or channel as one, as the daemon merges them for a slow client. */
function merged(events: readonly EventNotification[]): EventNotification[] {
  const all: EventNotification[] = [];
  for (const note of events) {
    const last = all.at(-1);
    const joined = last && last.sessionId === note.sessionId ? join(last, note) : null;
    if (joined) all[all.length - 1] = joined;
    else all.push(note);
  }
  return all;
}

function join(first: EventNotification, second: EventNotification): EventNotification | null {
  const [a, b] = [first.event, second.event];
  if (a.type === "message_update" && b.type === "message_update" && a.messageId === b.messageId && a.update.index === b.update.index
    && a.update.offset + a.update.delta.length === b.update.offset) {
    return { ...second, event: { ...b, update: { ...a.update, ...b.update, offset: a.update.offset, delta: a.update.delta + b.update.delta } } };
  }
  if (a.type === "tool_execution_update" && b.type === "tool_execution_update" && a.toolCallId === b.toolCallId && a.update.channel === b.update.channel
    && a.update.offset + a.update.delta.length === b.update.offset) {
    return { ...second, event: { ...b, update: { ...a.update, delta: a.update.delta + b.update.delta } } };
  }
  return null;
}

describe("text that comes in pieces", () => {
  test("is whole however the pieces overlap, and what was missed is counted", () => {
    fc.assert(fc.property(fc.string({ minLength: 1, maxLength: 60 }), fc.array(fc.tuple(fc.nat(60), fc.nat(20))), (text, cuts) => {
      let [said, length] = ["", 0];
      for (const [start, size] of cuts) {
        const offset = Math.min(start, length);
        const grown = grow(length, offset, text.slice(offset, offset + size));
        expect(grown.missed).toBe(0);
        [said, length] = [said + grown.added, grown.length];
      }
      expect(said).toBe(text.slice(0, length));
    }));
    expect(grow(4, 9, "abc")).toEqual({ added: "abc", missed: 5, length: 12 });
  });
});

describe("what an event means", () => {
  test("a call that stands open for an answer waits also where only a snapshot tells it", () => {
    const [read] = recording("permissions").reads;
    const tools = shown(read!.snapshot).entries.flatMap((entry) => (entry.type === "assistant" ? entry.blocks : []));
    expect(tools.flatMap((block) => (block.type === "tool" ? [block.tool.state] : []))).toEqual(["waiting", "ready"]);
  });

  test("a rejected call is refused, and one that a cancel met is stopped", () => {
    const states = (name: string) => watched(recording(name), recording(name).events).entries
      .flatMap((entry) => (entry.type === "assistant" ? entry.blocks : [])).flatMap((block) => (block.type === "tool" ? [block.tool.state] : []));
    expect(states("permissions")).toEqual(["refused", "done"]);
    expect(states("output")).toEqual(["failed", "stopped"]);
    expect(states("recovery")).toEqual(["unknown"]);
  });

  test("a run that its daemon's death closed ends as interrupted", () => {
    const view = watched(recording("recovery"), recording("recovery").events);
    expect(view.entries.at(-1)).toMatchObject({ type: "run", stopReason: "interrupted" });
    expect(view.state).toBe("idle");
  });

  test("a retried answer begins again from empty", () => {
    const it = recording("failures");
    const at = it.events.findIndex((note) => note.event.type === "message_reset");
    const before = watched(it, it.events.slice(0, at)).entries.at(-1);
    const after = watched(it, it.events.slice(0, at + 1)).entries.at(-1);
    expect(before).toMatchObject({ type: "assistant", blocks: [{ text: "Let me " }] });
    expect(after).toMatchObject({ type: "assistant", blocks: [] });
    const retry = it.events.findIndex((note) => note.event.type === "retry");
    expect(watched(it, it.events.slice(0, retry + 1)).run?.retry).toMatchObject({ attempt: expect.any(Number) });
    expect(watched(it, it.events).run).toBeNull();
  });

  test("sub-agents are views of their own below the call that runs them", () => {
    const it = recording("agents");
    const view = watched(it, it.events);
    const call = view.entries.flatMap((entry) => (entry.type === "assistant" ? entry.blocks : [])).find((block) => block.type === "tool");
    const children = Object.values(view.children);
    expect(children.map((child) => child.session.title).sort()).toEqual(["list the tests", "read the module"]);
    expect(children.every((child) => child.session.parent?.toolCallId === (call?.type === "tool" && call.tool.id))).toBe(true);
    expect(children.map((child) => child.entries.at(-1)?.type)).toEqual(["run", "run"]);
  });

  test("sub-agents that were not seen are the same once they are read, and what comes behind that is taken once", () => {
    const it = recording("agents");
    const seen = watched(it, it.events);
    const told = kept(it);
    const view = adopted(viewOf({ snapshot: it.snapshot, changes: [] }, null), told);
    expect(Object.keys(view.children).sort()).toEqual(Object.keys(seen.children).sort());
    for (const [id, child] of Object.entries(view.children)) expect(bare(child)).toEqual(bare(seen.children[id]!));
    expect(it.events.filter((note) => note.sessionId !== it.sessionId).reduce(apply, view).children).toEqual(view.children);
    expect(adopted(view, told)).toBe(view);
  });

  test("a sub-agent some of whose events were missed is whole again once it is read", () => {
    const it = recording("agents");
    const seen = watched(it, it.events);
    const [id] = Object.keys(seen.children) as [string];
    const missed = it.events.filter((note) => note.sessionId !== id || note.seq === undefined || note.seq < 3 || note.seq > 6);
    const view = watched(it, missed);
    expect(view.children[id]!.hasMore).toBe(true);
    expect(bare(view.children[id]!)).not.toEqual(bare(seen.children[id]!));
    expect(bare(adopted(view, kept(it)).children[id]!)).toEqual(bare(seen.children[id]!));
  });

  test("what a rewind took away comes back where it is undone, with its run", () => {
    const it = recording("waiting");
    const [gone, back] = it.events.flatMap((note, index) => (note.event.type === "session_rewound" ? [index] : []));
    const whole = watched(it, it.events.slice(0, gone)).entries;
    const without = watched(it, it.events.slice(0, gone! + 1)).entries;
    const restored = watched(it, it.events.slice(0, back! + 1)).entries;
    expect(without.length).toBeLessThan(whole.length);
    expect(without.at(-1)?.type).toBe("rewound");
    expect(restored.slice(0, -1)).toEqual(whole);
  });
});
