import { expect, test } from "vitest";
import { listSessions, type ReadPage } from "../../src/host/listing";
import type { Session } from "../../src/shared/wire";

/** Folders of sessions that are read by pages of ten, as the daemon does. */
function daemon(folders: Record<string, number[]>): ReadPage {
  return async (folder, cursor) => {
    const all = folders[folder] ?? [];
    const from = cursor === undefined ? 0 : Number(cursor);
    const sessions = all.slice(from, from + 10).map((minute) => ({
      sessionId: `${folder}${minute}`, title: minute % 7 === 0 ? "the seventh" : `no ${minute}`,
      updatedAt: `2026-01-01T00:00:00.${String(minute).padStart(4, "0")}Z`,
    }) as Session);
    return { sessions, ...(from + 10 < all.length ? { nextCursor: String(from + 10) } : {}) };
  };
}

const down = (from: number, step: number, count: number) => Array.from({ length: count }, (_, index) => from - index * step);

async function all(read: ReadPage, folders: string[], query?: string): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 20; pages++) {
    const result = await listSessions(read, folders, { cursor, query });
    ids.push(...result.sessions.map((session) => session.sessionId));
    cursor = result.nextCursor;
    if (cursor === undefined) return ids;
  }
  throw new Error("it has no end");
}

test("the sessions of two folders come as one list, newest first, each once over all pages", async () => {
  const folders = { a: down(400, 3, 87), b: down(399, 2, 61) };
  const ids = await all(daemon(folders), ["a", "b"]);
  const wanted = [...folders.a.map((at) => ["a", at] as const), ...folders.b.map((at) => ["b", at] as const)];
  wanted.sort(([, one], [, other]) => other - one);
  expect(ids.length).toBe(148);
  expect(new Set(ids)).toEqual(new Set(wanted.map(([folder, at]) => `${folder}${at}`)));
  expect(ids.map((id) => Number(id.slice(1)))).toEqual(wanted.map(([, at]) => at));
});

test("one folder whose last page is full has no page behind it", async () => {
  expect((await all(daemon({ a: down(50, 1, 50) }), ["a"])).length).toBe(50);
});

test("a search finds what is far down", async () => {
  const ids = await all(daemon({ a: down(700, 1, 300) }), ["a"], "SEVENTH the");
  expect(ids.length).toBe(down(700, 1, 300).filter((at) => at % 7 === 0).length);
});

test("a folder without sessions is an empty list", async () => {
  expect(await all(daemon({}), ["a"])).toEqual([]);
});
