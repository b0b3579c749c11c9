import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { accepted, placesOf } from "../../src/host/editing/attribution";
import { mergedRecords, type SessionRecord } from "../../src/host/editing/record";
import { alone } from "../../src/host/editing/sharedFile";
import { TrackStore, type Kept } from "../../src/host/editing/trackStore";

vi.mock("vscode", () => import("./vscode"));

const BEFORE = "1\n2\n3\n4\n5\n6\n7\n";
const AFTER = "1\nTWO\n3\nFOUR\n5\nSIX\n7\n";
const KEPT: Kept = {
  uri: "file:///w/a.txt", sessionId: "s", promptId: "p", isNew: false, isSure: true, isAccepted: false, isSettled: false,
  seqs: { s: 4 }, base: BEFORE, seen: AFTER,
};

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "windows-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** The store of a window on the workspace. */
async function opened(at = folder): Promise<{ store: TrackStore; heard: string[]; log: string[] }> {
  const heard: string[] = [];
  const log: string[] = [];
  const store = new TrackStore(at, (line) => log.push(line), (uri) => heard.push(uri));
  await store.loaded;
  return { store, heard, log };
}

let ids = 0;
/** Accepts the place at a line of the text without the agent's work. */
function accepting(store: TrackStore, line: number): void {
  const track = store.get(KEPT.uri)!;
  const place = { line, old: BEFORE.split(/(?<=\n)/)[line]!, now: AFTER.split(/(?<=\n)/)[line]! };
  store.put({ ...track, ...accepted(track, place), isAccepted: true, accepted: [...(track.accepted ?? []), { id: `${++ids}`, ...place }] });
}

const offered = (track: Kept | undefined) => track && placesOf(track, AFTER).map((each) => each.newStart);

async function two(): Promise<[Awaited<ReturnType<typeof opened>>, Awaited<ReturnType<typeof opened>>]> {
  const one = await opened();
  one.store.put(KEPT);
  await one.store.keep();
  return [one, await opened()];
}

describe("two windows on one workspace", () => {
  test("keep what was accepted in either of them, and both know it", async () => {
    const [one, other] = await two();
    accepting(one.store, 1);
    accepting(other.store, 5);
    await one.store.keep();
    await other.store.keep();
    expect(offered(other.store.get(KEPT.uri))).toEqual([3]);
    expect(other.heard).toEqual([KEPT.uri]);
    await one.store.look();
    expect(offered(one.store.get(KEPT.uri))).toEqual([3]);
    expect(one.heard).toEqual([KEPT.uri]);
    expect(offered((await opened()).store.get(KEPT.uri))).toEqual([3]);
  });

  test("keep it also where they write at the same time, again and again", async () => {
    const before = Array.from({ length: 40 }, (_, line) => `${line}\n`);
    const text = (of: (line: number) => boolean) => before.map((line, at) => (of(at) ? `new ${line}` : line)).join("");
    const one = await opened();
    one.store.put({ ...KEPT, base: text(() => false), seen: text((at) => at % 2 === 0) });
    await one.store.keep();
    const other = await opened();
    await Promise.all([one, other].map(async ({ store }, number) => {
      for (let line = 2 * number; line < 40; line += 4) {
        const place = { line, old: `${line}\n`, now: `new ${line}\n` };
        const track = store.get(KEPT.uri)!;
        store.put({ ...track, ...accepted(track, place), accepted: [...(track.accepted ?? []), { id: `${line}`, ...place }] });
        await store.keep();
      }
    }));
    const { store, log } = await opened();
    expect(store.get(KEPT.uri)!.base).toBe(text((at) => at % 2 === 0));
    expect([log, one.log, other.log]).toEqual([[], [], []]);
    expect(readdirSync(folder).length).toBe(1);
  });

  test("go by who knows more of what the agent did, and forget nothing that was accepted", async () => {
    const [one, other] = await two();
    const more = `${AFTER}eight\n`;
    one.store.put({ ...KEPT, seen: more, seqs: { s: 9 } });
    await one.store.keep();
    // To the other window, in which no prompt runs, that was the user.
    other.store.put({ ...KEPT, base: `${BEFORE}eight\n`, seen: more });
    accepting(other.store, 1);
    await other.store.keep();
    const track = (await opened()).store.get(KEPT.uri)!;
    expect(placesOf(track, more).map((each) => each.newStart)).toEqual([3, 5, 7]);
  });

  test("are not held up by one that ended while it wrote", async () => {
    const [one] = await two();
    const lock = join(folder, "lock");
    writeFileSync(lock, "");
    utimesSync(lock, new Date(0), new Date(0));
    accepting(one.store, 1);
    await one.store.keep();
    expect(offered((await opened()).store.get(KEPT.uri))).toEqual([3, 5]);
  });

  test("write anew what a power cut left empty, and the files behind it", async () => {
    const { store, log } = await opened();
    const uris = [KEPT.uri, "file:///w/b.txt"];
    for (const uri of uris) store.put({ ...KEPT, uri });
    await store.keep();
    for (const name of readdirSync(folder)) writeFileSync(join(folder, name), "");
    for (const uri of uris) store.put({ ...KEPT, uri, base: "other\n" });
    await store.keep();
    expect((await opened()).store.all().map(({ uri, base }) => [uri, base]).sort()).toEqual(uris.map((uri) => [uri, "other\n"]));
    expect(log).toEqual([]);
  });

  test("write later what could not be written", async () => {
    const inTheWay = join(folder, "file");
    writeFileSync(inTheWay, "");
    const { store, log } = await opened(join(inTheWay, "review"));
    store.put(KEPT);
    await store.keep();
    expect(log.length).toBe(1);
    rmSync(inTheWay);
    await store.keep();
    expect((await opened(join(inTheWay, "review"))).store.get(KEPT.uri)).toEqual(KEPT);
  });

  test("write one after the other", async () => {
    expect(await mostAtOnce(8)).toBe(1);
  });

  test("write one after the other also where all of them find a lock that was left", async () => {
    const lock = join(folder, "lock");
    for (let round = 0; round < 20; round++) {
      writeFileSync(lock, "");
      utimesSync(lock, new Date(0), new Date(0));
      expect(await mostAtOnce(6)).toBe(1);
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  test("leave the lock to who has it by then", async () => {
    const lock = join(folder, "lock");
    const slow = held(lock);
    await slow.inside;
    const next = held(lock);
    utimesSync(lock, new Date(0), new Date(0)); // the machine has slept
    await next.inside;
    await slow.ends();
    expect(existsSync(lock)).toBe(true);
    await next.ends();
    expect(existsSync(lock)).toBe(false);
  });
});

/** How many of several works under one lock are at it at once, at most. */
async function mostAtOnce(count: number): Promise<number> {
  let [inside, most] = [0, 0];
  await Promise.all(Array.from({ length: count }, () => alone(join(folder, "lock"), async () => {
    most = Math.max(most, ++inside);
    await new Promise((resolve) => setTimeout(resolve, 2));
    inside--;
  })));
  return most;
}

/** A work under a lock that goes on until it is told to end. */
function held(lock: string): { inside: Promise<void>; ends(): Promise<void> } {
  let [begun, over] = [(): void => undefined, (): void => undefined];
  const inside = new Promise<void>((resolve) => (begun = resolve));
  const ended = new Promise<void>((resolve) => (over = resolve));
  const all = alone(lock, () => (begun(), ended));
  return { inside, ends: () => (over(), all) };
}

describe("what was decided of files in two windows", () => {
  const record = (states: Record<string, "open" | "accepted" | "reverted">, more: Partial<SessionRecord> = {}): SessionRecord => ({
    sessionId: "s", prompts: ["p"], ...more,
    changes: Object.entries(states).map(([uri, state]) => ({ promptId: "p", uri, action: "changed", additions: 1, deletions: 0, state })),
  });
  const states = ([one]: SessionRecord[]) => Object.fromEntries(one!.changes.map(({ uri, state }) => [uri, state]));

  test("is put together, whoever writes last", () => {
    const before = record({ a: "open", b: "open", c: "accepted" });
    const mine = record({ a: "accepted", b: "open", c: "open" });
    const theirs = record({ a: "open", b: "reverted", c: "accepted" });
    expect(states(mergedRecords([before], [mine], [theirs]))).toEqual({ a: "accepted", b: "reverted", c: "open" });
    expect(states(mergedRecords([before], [theirs], [mine]))).toEqual({ a: "accepted", b: "reverted", c: "open" });
  });

  test("is of all sessions that either knows, without what was forgotten here", () => {
    const [s, t, u] = ["s", "t", "u"].map((sessionId) => record({ a: "open" }, { sessionId }));
    const names = (records: SessionRecord[]) => records.map(({ sessionId }) => sessionId).sort();
    expect(names(mergedRecords([s!], [s!, t!], [s!, u!]))).toEqual(["s", "t", "u"]);
    expect(names(mergedRecords([s!, t!], [s!], [s!, t!, u!]))).toEqual(["s", "u"]);
  });

  test("is not of a session that was forgotten in the other one, unless that had no room or more happened here", () => {
    const [s, t] = ["s", "t"].map((sessionId) => record({ a: "open" }, { sessionId }));
    const names = (records: SessionRecord[]) => records.map(({ sessionId }) => sessionId).sort();
    expect(names(mergedRecords([s!, t!], [s!, t!], [s!]))).toEqual(["s"]);
    expect(names(mergedRecords([s!, t!], [s!, t!], [s!], true))).toEqual(["s", "t"]);
    expect(names(mergedRecords([s!, t!], [s!, record({ a: "open", b: "open" }, { sessionId: "t" })], [s!]))).toEqual(["s", "t"]);
    expect(names(mergedRecords([s!], [s!, t!], [s!]))).toEqual(["s", "t"]);
  });

  test("no word of either is lost, in whatever they differ", () => {
    const state = fc.constantFrom("open", "accepted", "reverted") as fc.Arbitrary<"open" | "accepted" | "reverted">;
    fc.assert(fc.property(fc.array(fc.tuple(state, state, state), { minLength: 1, maxLength: 6 }), (rows) => {
      const of = (at: 0 | 1 | 2) => record(Object.fromEntries(rows.map((row, file) => [`f${file}`, row[at]])));
      const both = states(mergedRecords([of(0)], [of(1)], [of(2)]));
      rows.forEach(([was, mine, theirs], file) => {
        expect(both[`f${file}`]).toBe(mine !== was ? mine : theirs);
      });
    }));
  });
});
