import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Completion } from "../../../src/shared/messages";
import { Completer, type Suggestions } from "../../../src/webview/composer/completer";
import { filter, marksIn } from "../../../src/webview/composer/matching";
import { triggerAt } from "../../../src/webview/composer/trigger";

const file = (label: string): Completion => ({ kind: "file", label, insert: `@${label}` });

function setUp() {
  const asked: { query: string; answer: (items: Completion[]) => void; fail: (error: unknown) => void }[] = [];
  const shown: (Suggestions | null)[] = [];
  const completer = new Completer(
    (_, query) => new Promise((answer, fail) => asked.push({ query, answer, fail })),
    (suggestions) => shown.push(suggestions),
  );
  const type = (text: string) => completer.at(triggerAt(text, text.length));
  return { completer, asked, type, last: () => shown.at(-1) ?? null, labels: () => shown.at(-1)?.items.map((item) => item.label) };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("completions while one types", () => {
  it("are asked for once, after a pause", async () => {
    const { asked, type } = setUp();
    for (const text of ["@", "@s", "@sr"]) type(text);
    await vi.advanceTimersByTimeAsync(500);
    expect(asked.map((one) => one.query)).toEqual(["sr"]);
  });

  it("show no answer to a question that was left behind", async () => {
    const { asked, type, labels } = setUp();
    type("@a");
    await vi.advanceTimersByTimeAsync(500);
    type("@ab");
    await vi.advanceTimersByTimeAsync(500);
    asked[1]!.answer([file("ab.ts")]);
    await vi.advanceTimersByTimeAsync(0);
    asked[0]!.answer([file("stale.ts")]);
    await vi.advanceTimersByTimeAsync(0);
    expect(labels()).toEqual(["ab.ts"]);
  });

  it("show meanwhile what still fits of the last answer", async () => {
    const { asked, type, labels, last } = setUp();
    type("@a");
    await vi.advanceTimersByTimeAsync(500);
    asked[0]!.answer([file("src/a.ts"), file("src/abc.ts")]);
    await vi.advanceTimersByTimeAsync(0);
    type("@ab");
    expect(labels()).toEqual(["src/abc.ts"]);
    expect(last()!.loading).toBe(true);
  });

  it("go away at the end of the word, and an answer that comes then shows nothing", async () => {
    const { asked, type, last } = setUp();
    type("@a");
    await vi.advanceTimersByTimeAsync(500);
    type("@a ");
    asked[0]!.answer([file("a.ts")]);
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toBeNull();
  });

  it("stay away for the word in which they were dismissed, and come for the next one", async () => {
    const { completer, asked, type, last } = setUp();
    type("@a");
    completer.dismiss();
    type("@ab");
    await vi.advanceTimersByTimeAsync(500);
    expect([asked.length, last()]).toEqual([0, null]);
    type("@ab ");
    type("@ab @c");
    await vi.advanceTimersByTimeAsync(500);
    expect(asked.map((one) => one.query)).toEqual(["c"]);
  });

  it("say why there are none", async () => {
    const { asked, type, last } = setUp();
    type("@a");
    await vi.advanceTimersByTimeAsync(500);
    asked[0]!.fail({ kind: "host", message: "No folder is open." });
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toMatchObject({ items: [], loading: false, error: "No folder is open." });
  });
});

describe("a match", () => {
  it("is of characters in order, marked where they are, the best first", () => {
    expect(filter(["src/contest.ts", "readme.md", "src/test.ts"], "test", (label) => label)).toEqual(["src/test.ts", "src/contest.ts"]);
    expect(marksIn("src/test.ts", "tes")).toEqual([[4, 7]]);
    expect(marksIn("src/a.ts", "sa")).toEqual([[0, 1], [4, 5]]);
    expect(marksIn("src/a.ts", "")).toEqual([]);
  });
});
