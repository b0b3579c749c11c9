import { describe, expect, test, vi } from "vitest";
import { after, counted, emptyRecord, firstOpen, said, type SessionRecord } from "../../src/host/editing/record";
import type { Event, EventNotification, FileChange } from "../../src/shared/wire";

vi.mock("vscode", () => ({ Uri: { parse: (text: string) => text } }));

const A = "file:///w/a.txt";
const B = "file:///w/b.txt";

function told(promptId: string | undefined, event: object): EventNotification {
  return { sessionId: "s", ...(promptId ? { promptId } : {}), seq: 1, time: "2026-01-01T00:00:00.000Z", event: event as Event };
}

const edit = (promptId: string, ...files: Partial<FileChange>[]) => told(promptId, {
  type: "tool_execution_end", toolCallId: "c", toolName: "edit_file", durationMs: 1,
  result: { isError: false, details: { type: "edit", files: (files.length > 0 ? files : [{}]).map((each) => ({ uri: A, action: "changed", patch: "", additions: 1, deletions: 0, ...each })) } },
});
const changed = (promptId: string, ...uris: string[]) =>
  told(promptId, { type: "files_changed", files: uris.map((uri) => ({ uri, action: "changed" })) });
const start = (promptId: string) => told(promptId, { type: "agent_start", prompt: { model: "m", mode: "ask" } });
const rewound = (promptId: string, uris: string[], more: object = {}) => told(undefined, {
  type: "session_rewound", promptId, scope: "files", removedMessageIds: [], files: uris.map((uri) => ({ uri, action: "changed" })), ...more,
});
const all = (...events: EventNotification[]): SessionRecord => events.reduce(after, emptyRecord("s"));
const states = (record: SessionRecord) => record.changes.map((each) => [each.promptId, each.uri, each.state]);

describe("the record of changes", () => {
  test("an edit is listed while its prompt still runs, and edits of one file add up", () => {
    const [change] = all(start("p"), edit("p", { action: "created" }), edit("p", { additions: 2, deletions: 1 })).changes;
    expect(change).toMatchObject({ action: "created", additions: 3, deletions: 1, state: "open" });
  });

  test("an edit that failed is not listed", () => {
    const failed = edit("p");
    (failed.event as { result: { isError: boolean } }).result.isError = true;
    expect(all(failed).changes).toEqual([]);
  });

  test("what a command changed comes with the end of the run", () => {
    expect(states(all(start("p"), edit("p"), changed("p", A, B)))).toEqual([["p", A, "open"], ["p", B, "open"]]);
  });

  test("an event heard twice changes nothing but the count, which the daemon's diff sets right", () => {
    const record = all(edit("p"), edit("p"), changed("p", A), changed("p", A));
    const diff = { patch: "", files: [{ uri: A, action: "changed" as const, additions: 1, deletions: 0 }] };
    expect(counted(record, "p", diff).changes).toMatchObject([{ additions: 1 }]);
  });

  test("a file that is in the end as it was before is no change", () => {
    expect(counted(all(edit("p"), changed("p", A)), "p", { patch: "", files: [] }).changes).toEqual([]);
  });

  test("a rewind reverts what the prompt and those behind it did to the files it restored, and no other", () => {
    const record = all(start("1"), edit("1"), start("2"), edit("2"), edit("2", { uri: B }), start("3"), edit("3"), rewound("2", [A]));
    expect(states(record)).toEqual([["1", A, "open"], ["2", A, "reverted"], ["2", B, "open"], ["3", A, "reverted"]]);
  });

  test("undoing a rewind opens what it reverted", () => {
    expect(states(all(start("1"), edit("1"), rewound("1", [A]), rewound("1", [A], { undo: true })))).toEqual([["1", A, "open"]]);
  });

  test("a file with a conflict stays open, and going back in the conversation alone changes no file", () => {
    const conflict = told(undefined, {
      type: "session_rewound", promptId: "1", scope: "files", removedMessageIds: [], files: [{ uri: A, action: "changed", conflict: "edited since" }],
    });
    expect(states(all(start("1"), edit("1"), conflict))).toEqual([["1", A, "open"]]);
    expect(states(all(start("1"), edit("1"), rewound("1", [A], { scope: "conversation" })))).toEqual([["1", A, "open"]]);
  });

  test("what is accepted is no longer compared, and a later edit of the prompt opens it again", () => {
    const record = said(all(start("1"), edit("1")), "1", undefined, "accepted");
    expect(firstOpen(record, A)).toBeUndefined();
    expect(firstOpen(after(record, edit("1")), A)?.promptId).toBe("1");
  });

  test("a file is compared with what was before the first prompt whose change is open", () => {
    const record = all(start("1"), start("2"), edit("2"), edit("1"));
    expect(firstOpen(record, A)?.promptId).toBe("1");
    expect(firstOpen(said(record, "1", A, "accepted"), A)?.promptId).toBe("2");
  });
});
