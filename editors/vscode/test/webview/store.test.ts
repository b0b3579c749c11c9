import { describe, expect, test, vi } from "vitest";
import type { Shown, ToView } from "../../src/shared/messages";
import type { Host, Notice } from "../../src/webview/host";
import { createStore } from "../../src/webview/model/store";
import { bare, isDurable, recording, settled, watched } from "./recordings";

/** A host that answers what the test says, when the test says so; frames pass by `draw`. */
function setUp(state: unknown = null) {
  const frames: (() => void)[] = [];
  const asked: { name: string; params: unknown; answer(result: unknown): Promise<void>; fail(error: Error): Promise<void> }[] = [];
  let listener: (notice: Notice) => void = () => {};
  let saved: unknown = state;
  const host: Host = {
    call: (name, params) => new Promise((resolve, reject) => {
      asked.push({ name, params, answer: async (result) => { resolve(result as never); await settle(); }, fail: async (error) => { reject(error); await settle(); } });
    }),
    listen: (given) => { listener = given; },
    load: () => saved,
    save: (given) => { saved = given; },
  };
  const store = createStore(host, (work) => frames.push(work));
  const draw = () => { for (const work of frames.splice(0)) work(); };
  return { store, asked, frames, draw, say: (notice: ToView) => listener(notice as Notice), saved: () => saved as Record<string, unknown> };
}

const settle = () => new Promise<void>((resolve) => setTimeout(resolve));
const SURROUNDINGS = {} as never;

describe("the store", () => {
  const it = recording("demo");
  const events = it.events;
  const read = it.reads[0]!;
  const shown = (at: number): Shown => ({ snapshot: read.snapshot, history: events.slice(0, at).filter(isDurable), changes: [] });

  async function begun() {
    const all = setUp();
    const start = all.store.begin();
    await all.asked[0]!.answer({ surroundings: SURROUNDINGS, shown: shown(read.at) });
    await start;
    return all;
  }

  test("tells the host which session it showed before", async () => {
    const { store, asked } = setUp({ sessionId: "s_before" });
    void store.begin();
    expect(asked[0]).toMatchObject({ name: "ready", params: { sessionId: "s_before" } });
  });

  test("keeps which session it shows", async () => {
    const { saved } = await begun();
    expect(saved()).toMatchObject({ sessionId: it.sessionId });
  });

  test("folds all events of a frame in one step", async () => {
    const { store, say, draw, frames } = await begun();
    const before = store.session.value;
    for (const event of events.slice(read.at)) say({ type: "events", sessionId: it.sessionId, events: [event] });
    expect(frames).toHaveLength(1);
    expect(store.session.value).toBe(before);
    draw();
    expect(settled(store.session.value!)).toEqual(settled(watched(it, events)));
  });

  test("reads the session anew where an event was lost, and takes what came meanwhile behind it", async () => {
    const { store, asked, say, draw } = await begun();
    const durable = events.slice(read.at).filter(isDurable);
    say({ type: "events", sessionId: it.sessionId, events: durable.slice(1, 3) });
    draw();
    expect(asked.at(-1)).toMatchObject({ name: "open", params: { sessionId: it.sessionId } });
    say({ type: "events", sessionId: it.sessionId, events: durable.slice(3) });
    draw();
    expect(asked.filter((call) => call.name === "open")).toHaveLength(1);
    // The answer is of a moment in which the lost event was known, and later ones were not.
    const upTo = durable[1]!.seq!;
    const history = events.filter((note) => isDurable(note) && note.seq! <= upTo && note.sessionId === it.sessionId);
    const messages = it.snapshot.messages.slice(0, read.snapshot.messages.length);
    await asked.at(-1)!.answer({ snapshot: { ...read.snapshot, messages, seq: upTo, pending: [] }, history, changes: [] });
    draw();
    expect(store.session.value!.gap).toBe(false);
    expect(bare(store.session.value!)).toEqual(bare(watched(it, events)));
  });

  test("takes events also where no frame is drawn, as in a view that is hidden", async () => {
    vi.stubGlobal("requestAnimationFrame", () => 0);
    vi.stubGlobal("cancelAnimationFrame", () => undefined);
    const asked: ((result: unknown) => void)[] = [];
    let tell: (notice: Notice) => void = () => {};
    const store = createStore({ call: () => new Promise((resolve) => asked.push(resolve as never)), listen: (listener) => { tell = listener; }, load: () => null, save: () => {} });
    const start = store.begin();
    asked[0]!({ surroundings: SURROUNDINGS, shown: shown(read.at) });
    await start;
    tell({ type: "events", sessionId: it.sessionId, events: events.slice(read.at) });
    await vi.waitFor(() => expect(settled(store.session.value!)).toEqual(settled(watched(it, events))));
    vi.unstubAllGlobals();
  });

  test("does not go back to a session with a gap where the user is leaving it, and tells no failure of a choice that another one followed", async () => {
    const { store, asked, say, draw } = await begun();
    const other = recording("answer");
    const first = store.attempt("open", { sessionId: "one" });
    const second = store.attempt("open", { sessionId: other.sessionId });
    say({ type: "events", sessionId: it.sessionId, events: events.slice(read.at).filter(isDurable).slice(1, 3) });
    draw();
    expect(asked.filter((call) => call.name === "open").map((call) => call.params)).toEqual([{ sessionId: "one" }, { sessionId: other.sessionId }]);
    await asked.at(-2)!.fail(Object.assign(new Error("Another session was opened meanwhile."), { kind: "cancelled" }));
    await asked.at(-1)!.answer({ snapshot: other.snapshot, changes: [] });
    expect(await first).toBeUndefined();
    store.show((await second)!);
    draw();
    expect(store.failure.value).toBeNull();
    expect(bare(store.session.value!)).toEqual(bare(watched(other, other.events)));
  });

  test("says so where reading anew fails, and tries again with the next event", async () => {
    const { store, asked, say, draw } = await begun();
    const durable = events.slice(read.at).filter(isDurable);
    say({ type: "events", sessionId: it.sessionId, events: durable.slice(1, 2) });
    draw();
    await asked.at(-1)!.fail(new Error("The daemon is gone."));
    expect(store.failure.value).toEqual({ message: "The daemon is gone." });
    say({ type: "events", sessionId: it.sessionId, events: durable.slice(2, 3) });
    draw();
    expect(asked.filter((call) => call.name === "open")).toHaveLength(2);
  });

  test("takes no events of a session that is not shown any more", async () => {
    const { store, say, draw } = await begun();
    const other = recording("answer");
    say({ type: "events", sessionId: it.sessionId, events: events.slice(read.at) });
    say({ type: "session", shown: { snapshot: other.snapshot, changes: [] } });
    draw();
    expect(store.session.value!.session.sessionId).toBe(other.sessionId);
    expect(bare(store.session.value!)).toEqual(bare(watched(other, other.events)));
  });

  test("asks for the page before only once at a time, and drops it where another session is shown by then", async () => {
    const { store, asked } = setUp();
    const start = store.begin();
    const { messages } = it.snapshot;
    await asked[0]!.answer({ surroundings: SURROUNDINGS, shown: { snapshot: { ...it.snapshot, messages: messages.slice(4), hasMore: true }, changes: [] } });
    await start;
    const first = store.earlier();
    const second = store.earlier();
    expect(asked.filter((call) => call.name === "earlier")).toHaveLength(1);
    expect(asked.at(-1)!.params).toEqual({ sessionId: it.sessionId, before: store.session.value!.oldest });
    await asked.at(-1)!.answer({ messages: messages.slice(0, 4), hasMore: false });
    expect(await Promise.all([first, second])).toEqual([true, true]);
    expect(bare(store.session.value!)).toEqual(bare(watched(it, events)));
    expect(await store.earlier()).toBe(false);
  });
});
