import { expect, test, vi } from "vitest";
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
  Uri: { parse: (text: string) => text },
  workspace: { asRelativePath: (uri: string) => uri.replace("file:///w/", "") },
}));

const URI = "file:///w/a.txt";
const told = [
  { sessionId: "s", seq: 1, promptId: "p", event: { type: "agent_start" } },
  { sessionId: "s", seq: 2, promptId: "p", event: { type: "files_changed", files: [{ uri: URI, action: "changed" }] } },
];

function changesWith(answers: Record<string, unknown>) {
  const asked: [string, unknown][] = [];
  const request = async (method: string, params: unknown) => {
    asked.push([method, params]);
    return answers[method];
  };
  const kept = { get: () => [], update: async () => undefined };
  return { asked, changes: new Changes({ request } as never, kept as never, () => undefined) };
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
  expect(asked.filter(([method]) => method === "agentd/session/attach")).toEqual([["agentd/session/attach", { sessionId: "s", afterSeq: 0 }]]);
});

test("what began before this window looked is known too, though a prompt of the session began in it", async () => {
  const { changes } = changesWith(answers);
  changes.note({ sessionId: "s", seq: 3, promptId: "q", time: "", event: { type: "agent_start" } } as never);
  await changes.catchUp("s");
  expect(changes.open(URI)).toEqual({ sessionId: "s", promptId: "p" });
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
