import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { Changes } from "../../src/host/editing/changes";

vi.mock("vscode", () => ({
  EventEmitter: class {
    private readonly listeners = new Set<(value: unknown) => void>();
    readonly event = (listener: (value: unknown) => void) => this.listeners.add(listener);
    fire(value: unknown): void {
      this.listeners.forEach((each) => each(value));
    }
    dispose(): void {}
  },
  Uri: { parse: (text: string) => decodeURIComponent(text) },
  workspace: { asRelativePath: (uri: string) => uri.replace("file:///w/", "") },
}));

const folder = mkdtempSync(join(tmpdir(), "changes-"));
let files = 0;
afterAll(() => rmSync(folder, { recursive: true }));

const URI = "file:///w/a.txt";
const told = [
  { sessionId: "s", seq: 1, promptId: "p", event: { type: "agent_start" } },
  { sessionId: "s", seq: 2, promptId: "p", event: { type: "files_changed", files: [{ uri: URI, action: "changed" }] } },
];

function changesWith(answers: Record<string, unknown>, parentOf?: (sessionId: string) => string | null) {
  const asked: [string, unknown][] = [];
  const request = async (method: string, params: unknown) => {
    asked.push([method, params]);
    return answers[method];
  };
  return { asked, changes: new Changes({ request } as never, join(folder, `${++files}.json`), () => undefined, parentOf) };
}

const answers = {
  "agentd/session/attach": { kind: "replay", events: told },
  "agentd/session/diff": { files: [{ uri: URI, action: "changed", additions: 3, deletions: 2 }] },
  "agentd/session/rewind": { files: [{ uri: URI, conflict: "It changed since." }] },
};

test("what a session of an earlier process changed is known from its events, in the daemon's count, and asked for once", async () => {
  const { asked, changes } = changesWith(answers);
  await changes.catchUp("s");
  expect(changes.of("s")).toEqual([
    { sessionId: "s", promptId: "p", uri: URI, path: "a.txt", action: "changed", additions: 3, deletions: 2, state: "open" },
  ]);
  await changes.catchUp("s");
  expect(asked.filter(([method]) => method === "agentd/session/attach").map(([, params]) => params))
    .toEqual([{ sessionId: "s", afterSeq: 0 }, { sessionId: "s", afterSeq: 2 }]);
});

test("what happens before the rest of a session is known counts once", async () => {
  const edit = (seq: number) => ({
    sessionId: "s", seq, promptId: "q", time: "", event: { type: "tool_execution_end", result: { details: { type: "edit", files: [{ uri: URI, action: "changed", additions: 3, deletions: 0 }] } } },
  });
  const begun = { sessionId: "s", seq: 3, promptId: "q", event: { type: "agent_start" } };
  const elsewhere = { ...answers };
  const { asked, changes } = changesWith(elsewhere);
  await changes.catchUp("s");
  const missed: unknown[] = [];
  changes.onMissed(({ seq }) => missed.push(seq));
  changes.note(edit(5) as never);
  elsewhere["agentd/session/attach"] = { kind: "replay", events: [begun, edit(4), edit(5)] as never };
  await changes.catchUp("s");
  expect(changes.of("s").find(({ promptId }) => promptId === "q")).toMatchObject({ additions: 6 });
  expect(missed).toEqual([3, 4]);
  await changes.catchUp("s");
  expect(asked.at(-1)).toEqual(["agentd/session/attach", { sessionId: "s", afterSeq: 5 }]);
});

test("what was decided is kept again once its file could not be read", async () => {
  const file = join(folder, `${files + 1}.json`);
  writeFileSync(file, "");
  const { changes } = changesWith(answers);
  await changes.catchUp("s");
  changes.accept({ sessionId: "s", promptId: "p", uri: URI });
  await changes.keep();
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject([{ sessionId: "s", changes: [{ uri: URI, state: "accepted" }] }]);
});

test("what the session did elsewhere meanwhile is asked for, and what was said of the rest stands", async () => {
  const elsewhere = { ...answers };
  const { changes } = changesWith(elsewhere);
  await changes.catchUp("s");
  changes.accept({ sessionId: "s", promptId: "p", uri: URI });
  const missed: unknown[] = [];
  changes.onMissed(({ seq }) => missed.push(seq));
  elsewhere["agentd/session/attach"] = { kind: "replay", events: [
    { sessionId: "s", seq: 3, promptId: "q", event: { type: "agent_start" } },
    { sessionId: "s", seq: 4, promptId: "q", event: { type: "files_changed", files: [{ uri: URI, action: "changed" }] } },
  ] };
  await changes.catchUp("s");
  expect(changes.of("s").map(({ promptId, state }) => [promptId, state])).toEqual([["p", "accepted"], ["q", "open"]]);
  expect(missed).toEqual([3, 4]);
});

test("what a sub-agent changes is its parent's change, as the daemon has it", () => {
  const { changes } = changesWith(answers, (sessionId) => (sessionId === "child" ? "s" : null));
  changes.note({ sessionId: "s", seq: 1, promptId: "p", time: "", event: { type: "agent_start" } } as never);
  const details = { type: "edit", files: [{ uri: URI, action: "changed", patch: "", additions: 1, deletions: 1 }] };
  changes.note({ sessionId: "child", seq: 1, promptId: "c", time: "", event: { type: "agent_start" } } as never);
  changes.note({ sessionId: "child", seq: 2, promptId: "c", time: "", event: { type: "tool_execution_end", result: { isError: false, details } } } as never);
  expect(changes.open(URI)).toEqual({ sessionId: "s", promptId: "p", uri: URI });
  expect(changes.of("child")).toEqual([]);
});

test("a file is the same one, however its address is written", () => {
  const { changes } = changesWith(answers);
  const odd = "file:///w/a%20(1)%2B%5Bb%5D.txt";
  changes.note({ sessionId: "s", seq: 1, promptId: "p", time: "", event: { type: "files_changed", files: [{ uri: odd, action: "changed" }] } } as never);
  expect(changes.open("file:///w/a%20%281%29%2B%5Bb%5D.txt")).toEqual({ sessionId: "s", promptId: "p", uri: odd });
});

test("what began before this window looked is known too, though a prompt of the session began in it", async () => {
  const { changes } = changesWith(answers);
  changes.note({ sessionId: "s", seq: 3, promptId: "q", time: "", event: { type: "agent_start" } } as never);
  await changes.catchUp("s");
  expect(changes.open(URI)).toEqual({ sessionId: "s", promptId: "p", uri: URI });
});

test("of two sessions that changed a file the first one stays first, whatever else is heard of it", () => {
  const { changes } = changesWith(answers);
  for (const sessionId of ["s", "other"]) {
    changes.note({ sessionId, seq: 1, promptId: "p", time: "", event: { type: "files_changed", files: [{ uri: URI, action: "changed" }] } } as never);
  }
  changes.note({ sessionId: "s", seq: 2, promptId: "p", time: "", event: { type: "turn_end" } } as never);
  expect(changes.open(URI)?.sessionId).toBe("s");
  expect(changes.open(URI, "other")?.sessionId).toBe("other");
});

test("a deleted session's changes are gone, and that is told", async () => {
  const { changes } = changesWith(answers);
  await changes.catchUp("s");
  const heard: string[] = [];
  changes.onDidChange((sessionId) => heard.push(sessionId));
  changes.forget("s");
  expect(changes.open(URI)).toBeUndefined();
  expect(heard).toEqual(["s"]);
  changes.dispose();
});

test("a file that could not be reverted comes with its reason, and stays open", async () => {
  const { asked, changes } = changesWith(answers);
  await changes.catchUp("s");
  expect(await changes.revert({ sessionId: "s", promptId: "p" })).toEqual({ files: [{ uri: URI, conflict: "It changed since." }] });
  expect(asked.at(-1)).toEqual(["agentd/session/rewind", { sessionId: "s", promptId: "p", scope: "files", uris: [URI] }]);
  changes.note({ sessionId: "s", seq: 4, time: "", event: { type: "session_rewound", scope: "files", promptId: "p", files: [{ uri: URI, conflict: "It changed since." }] } } as never);
  expect(changes.of("s").map((each) => each.state)).toEqual(["open"]);
  changes.dispose();
});
