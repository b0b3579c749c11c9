import { expect, test } from "vitest";
import { promptsIn, undo } from "../../src/host/undo";
import type { Event, EventNotification } from "../../src/shared/wire";
import { PlayedDaemon } from "./wire";

const start = (promptId: string): EventNotification => ({ sessionId: "s", promptId, seq: 1, time: "", event: { type: "agent_start" } as Event });
const rewound = (promptId: string, more: object = {}): EventNotification =>
  ({ sessionId: "s", seq: 1, time: "", event: { type: "session_rewound", promptId, scope: "both", files: [], removedMessageIds: [], ...more } as Event });

test("a prompt that was taken back is none any more, and is one again when that is undone", () => {
  const three = [start("a"), start("b"), start("c")];
  expect(promptsIn(three)).toEqual(["a", "b", "c"]);
  expect(promptsIn([...three, rewound("b")])).toEqual(["a"]);
  expect(promptsIn([...three, rewound("b"), rewound("b", { undo: true })])).toEqual(["a", "b", "c"]);
  expect(promptsIn([...three, rewound("c", { scope: "files" })])).toEqual(["a", "b", "c"]);
});

test("the last prompt is sought from the end, further back where it is not there", async () => {
  const daemon = new PlayedDaemon();
  daemon.known.set("agentd/session/get", () => ({ seq: 5000 }));
  const looked: number[] = [];
  daemon.known.set("agentd/session/attach", ({ afterSeq }: { afterSeq: number }) => {
    looked.push(afterSeq);
    return { kind: "replay", events: looked.length < 2 ? [] : [start("old")] };
  });
  let asked: unknown;
  daemon.known.set("agentd/session/rewind", (params) => {
    asked = params;
    return { files: [] };
  });
  await undo(daemon, { sessionId: "s" });
  expect(looked).toEqual([4500, 1000]);
  expect(asked).toEqual({ sessionId: "s", promptId: "old", scope: "both" });
});

test("a session without a prompt says so", async () => {
  const daemon = new PlayedDaemon();
  daemon.known.set("agentd/session/get", () => ({ seq: 1 }));
  daemon.known.set("agentd/session/attach", () => ({ kind: "replay", events: [] }));
  await expect(undo(daemon, { sessionId: "s" })).rejects.toMatchObject({ kind: "promptNotFound" });
});
