import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Events } from "../../src/host/events";
import { ShownSession } from "../../src/host/shown";
import type { ToView } from "../../src/shared/messages";
import { PlayedDaemon } from "./wire";

let daemon: PlayedDaemon;
let shown: ShownSession;
let posted: ToView[];
let told: string[];

beforeEach(() => {
  vi.useFakeTimers();
  daemon = new PlayedDaemon();
  posted = [];
  told = [];
  const events = new Events(daemon);
  const memory = { get: (_: string, other: unknown) => other, update: async () => undefined, keys: () => [] };
  shown = new ShownSession({
    client: daemon, events, post: (message) => posted.push(message), changes: () => [], tell: (text) => told.push(text), memory: memory as never,
    held: (session) => told.push(`held: ${session.sessionId}`),
  });
});
afterEach(() => void vi.useRealTimers());

const notice = (text: string) => ({ type: "notice", severity: "info", message: text });
const snapshot = (sessionId: string, seq: number) =>
  ({ session: { sessionId }, messages: [], hasMore: false, pending: [], queue: [], todo: [], seq });
const note = (sessionId: string, seq: number) => ({ sessionId, seq, time: "", event: notice(String(seq)) });

/** Lets the session be read: by its events behind `from`, and a snapshot at `seq`. */
async function readOf(sessionId: string, seq: number, events = [note(sessionId, seq)]): Promise<void> {
  (await daemon.next("agentd/session/get")).answer(snapshot(sessionId, seq));
  (await daemon.next("agentd/session/attach")).answer({ kind: "replay", events, seq });
  (await daemon.next("agentd/session/attach")).answer({ kind: "snapshot", snapshot: snapshot(sessionId, seq), seq });
}

const shownEvents = () => posted.flatMap((each) => (each.type === "events" ? each.events.map((event) => event.seq) : []));

test("what follows a snapshot is told once, in order, many at once", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  expect((await opening).history?.map((event) => event.seq)).toEqual([5]);
  for (const seq of [4, 5, 6, 6, 7]) daemon.event("s", seq, notice(String(seq)));
  daemon.event("other", 1, notice("elsewhere"));
  expect(posted).toEqual([]);
  vi.advanceTimersByTime(16);
  expect(shownEvents()).toEqual([6, 7]);
  expect(posted.length).toBe(1);
});

test("of a session whose reading takes its time the last page is shown first, and what else belongs to it once it is known", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 5));
  const history = await daemon.next("agentd/session/attach");
  const whole = await daemon.next("agentd/session/attach");
  await vi.advanceTimersByTimeAsync(60);
  expect(await opening).toMatchObject({ snapshot: { seq: 5 }, changes: [] });
  expect(posted).toEqual([]);
  daemon.event("s", 6, notice("6"));
  history.answer({ kind: "replay", events: [note("s", 5), note("s", 6)], seq: 6 });
  whole.answer({ kind: "snapshot", snapshot: snapshot("s", 6), seq: 6 });
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toMatchObject([{ type: "session", shown: { snapshot: { seq: 6 }, history: [{ seq: 5 }, { seq: 6 }] } }]);
  daemon.event("s", 7, notice("7"));
  vi.advanceTimersByTime(16);
  expect(shownEvents()).toEqual([7]);
});

test("a session whose daemon ends while the rest of it is read is told whole by the next one", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 5));
  const asked = [await daemon.next("agentd/session/attach"), await daemon.next("agentd/session/attach")];
  await vi.advanceTimersByTimeAsync(60);
  await opening;
  for (const each of asked) each.fail(Object.assign(new Error("It ended."), { data: { kind: "ended" } }));
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toEqual([]);
  const again = shown.again();
  await readOf("s", 6);
  await again;
  expect(posted).toMatchObject([{ type: "session", shown: { snapshot: { seq: 6 } } }]);
});

test("what is read of a session for which the user has left another is not shown when it comes", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 5));
  const asked = [await daemon.next("agentd/session/attach"), await daemon.next("agentd/session/attach")];
  await vi.advanceTimersByTimeAsync(60);
  await opening;
  const other = shown.open("t");
  await readOf("t", 1);
  await other;
  asked[0]!.answer({ kind: "replay", events: [], seq: 5 });
  asked[1]!.answer({ kind: "snapshot", snapshot: snapshot("s", 5), seq: 5 });
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toEqual([]);
  expect(shown.id).toBe("t");
});

test("what happens while a session is read is in its history, and told no second time", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 5));
  const history = await daemon.next("agentd/session/attach");
  daemon.event("s", 6, notice("6"));
  history.answer({ kind: "replay", events: [note("s", 5), note("s", 6)], seq: 6 });
  const whole = await daemon.next("agentd/session/attach");
  daemon.event("s", 7, notice("7"));
  whole.answer({ kind: "snapshot", snapshot: snapshot("s", 7), seq: 7 });
  expect((await opening).history?.map((event) => event.seq)).toEqual([5, 6, 7]);
  daemon.event("s", 8, notice("8"));
  vi.advanceTimersByTime(16);
  expect(shownEvents()).toEqual([8]);
});

test("of two sessions that are opened at once the last one stays, whichever is read first", async () => {
  const first = shown.open("a");
  const refused = expect(first).rejects.toMatchObject({ kind: "cancelled" });
  (await daemon.next("agentd/session/get")).answer(snapshot("a", 1));
  const slow = await daemon.next("agentd/session/attach");
  const slower = await daemon.next("agentd/session/attach");
  const second = shown.open("b");
  await readOf("b", 1);
  await second;
  slow.answer({ kind: "replay", events: [], seq: 1 });
  slower.answer({ kind: "snapshot", snapshot: snapshot("a", 1), seq: 1 });
  await refused;
  expect(shown.id).toBe("b");
});

test("a new daemon is asked for what came behind the last event, and only that is told", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  await opening;
  const again = shown.again();
  const attach = await daemon.next("agentd/session/attach");
  expect(attach.params).toEqual({ sessionId: "s", afterSeq: 5 });
  attach.answer({ kind: "replay", events: [note("s", 6), note("s", 7)], seq: 7 });
  await again;
  vi.advanceTimersByTime(16);
  expect(shownEvents()).toEqual([6, 7]);
});

test("where a new daemon cannot replay, the session is told whole", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  await opening;
  const again = shown.again();
  (await daemon.next("agentd/session/attach")).answer({ kind: "snapshot", snapshot: snapshot("s", 9), seq: 9 });
  await readOf("s", 9);
  await again;
  expect(posted).toMatchObject([{ type: "session", shown: { snapshot: { seq: 9 } } }]);
});

test("events that are missing lead to a reading anew, after which nothing is", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  await opening;
  daemon.event("s", 8, notice("8"));
  await readOf("s", 8);
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toMatchObject([{ type: "session", shown: { snapshot: { seq: 8 } } }]);
  daemon.event("s", 9, notice("9"));
  vi.advanceTimersByTime(16);
  expect(shownEvents()).toEqual([9]);
});

test("what happens behind the snapshot while the history is still on its way is told", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 5));
  const history = await daemon.next("agentd/session/attach");
  (await daemon.next("agentd/session/attach")).answer({ kind: "snapshot", snapshot: snapshot("s", 5), seq: 5 });
  await Promise.resolve();
  daemon.event("s", 6, notice("6"));
  daemon.event("child", 1, { type: "session_changed", session: { sessionId: "child", parent: { sessionId: "s", toolCallId: "c" } } });
  daemon.event("other", 1, notice("elsewhere"));
  history.answer({ kind: "replay", events: [note("s", 5), note("s", 6)], seq: 6 });
  expect((await opening).snapshot.seq).toBe(5);
  daemon.event("s", 7, notice("7"));
  vi.advanceTimersByTime(16);
  const events = posted.flatMap((each) => (each.type === "events" ? each.events : []));
  expect(events.map((event) => [event.sessionId, event.seq])).toEqual([["s", 6], ["child", 1], ["s", 7]]);
});

test("what happens while a new daemon is asked for the rest is told", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  await opening;
  const again = shown.again();
  const attach = await daemon.next("agentd/session/attach");
  daemon.event("s", 6, notice("6"));
  attach.answer({ kind: "replay", events: [note("s", 6)], seq: 6 });
  await readOf("s", 6);
  await again;
  expect(posted).toMatchObject([{ type: "session", shown: { snapshot: { seq: 6 } } }]);
});

test("a session of which only the last page could be read is followed from there", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 5));
  const asked = [await daemon.next("agentd/session/attach"), await daemon.next("agentd/session/attach")];
  await vi.advanceTimersByTimeAsync(60);
  await opening;
  for (const each of asked) each.fail(Object.assign(new Error("The journal cannot be read."), { data: { kind: "storage" } }));
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual(["The journal cannot be read."]);
  daemon.event("s", 6, notice("6"));
  vi.advanceTimersByTime(16);
  expect(shownEvents()).toEqual([6]);
});

test("a session that another process holds is shown as it can be read", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 3));
  const locked = Object.assign(new Error("It is in use by process 7."), { data: { kind: "sessionLocked", pid: 7 } });
  for (const _ of ["history", "snapshot"]) (await daemon.next("agentd/session/attach")).fail(locked);
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 3));
  expect((await opening).snapshot.seq).toBe(3);
  expect(shown.isHeld).toBe(true);
});

test("a session that another process lets go is gone on with, and where it does not the user is told once", async () => {
  const opening = shown.open("s");
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 3));
  for (const _ of ["history", "snapshot"]) (await daemon.next("agentd/session/attach")).fail(Object.assign(new Error("held"), { data: { kind: "sessionLocked" } }));
  (await daemon.next("agentd/session/get")).answer(snapshot("s", 3));
  await opening;
  for (let look = 0; look < 14; look++) {
    await vi.advanceTimersByTimeAsync(5000);
    (await daemon.next("agentd/session/get")).answer({ session: { sessionId: "s", lockedBy: 7 }, seq: 3 });
    await vi.advanceTimersByTimeAsync(0);
  }
  expect(told).toEqual(["held: s"]);
  await vi.advanceTimersByTimeAsync(5000);
  (await daemon.next("agentd/session/get")).answer({ session: { sessionId: "s" }, seq: 4 });
  await readOf("s", 4);
  await vi.advanceTimersByTimeAsync(0);
  expect(posted).toMatchObject([{ type: "session", shown: { snapshot: { seq: 4 } } }]);
  expect(shown.isHeld).toBe(false);
});

test("a session that is gone after a restart is shown no more", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  await opening;
  const again = shown.again();
  (await daemon.next("agentd/session/attach")).fail(Object.assign(new Error("There is no such session."), { data: { kind: "sessionNotFound" } }));
  await again;
  expect(posted).toEqual([{ type: "session", shown: null }]);
  expect(told).toEqual(["There is no such session."]);
});

test("what sub-agents of the shown session do is told, what others do is not", async () => {
  const opening = shown.open("s");
  await readOf("s", 5);
  await opening;
  daemon.event("child", 1, { type: "session_changed", session: { sessionId: "child", parent: { sessionId: "s", toolCallId: "c" } } });
  daemon.event("child", 2, notice("of the child"));
  daemon.event("stranger", 1, { type: "session_changed", session: { sessionId: "stranger", parent: { sessionId: "x", toolCallId: "c" } } });
  vi.advanceTimersByTime(16);
  const events = posted.flatMap((each) => (each.type === "events" ? each.events : []));
  expect(events.map((event) => [event.sessionId, event.seq])).toEqual([["child", 1], ["child", 2]]);
});
