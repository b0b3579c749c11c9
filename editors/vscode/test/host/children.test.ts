import { expect, test } from "vitest";
import { childrenOf } from "../../src/host/children";
import { PlayedDaemon } from "./wire";

const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, "0")}:00.000Z`;
const session = (sessionId: string, minute: number, parent?: { sessionId: string; toolCallId: string }) =>
  ({ sessionId, workspaceUri: "file:///w", createdAt: at(minute), updatedAt: at(minute), ...(parent ? { parent } : {}) });

test("the sub-agents of one call are found over pages, in their order, and none is looked for before their parent began", async () => {
  const daemon = new PlayedDaemon();
  const all = [session("new", 50), session("b", 40, { sessionId: "p", toolCallId: "c" }), session("x", 39, { sessionId: "p", toolCallId: "other" }),
    session("y", 38, { sessionId: "q", toolCallId: "c" }), session("a", 37, { sessionId: "p", toolCallId: "c" }), session("p", 30), session("old", 5), session("older", 4)];
  const pages: (string | undefined)[] = [];
  daemon.known.set("agentd/session/get", ({ sessionId }: { sessionId: string }) => ({ session: all.find((one) => one.sessionId === sessionId) }));
  daemon.known.set("agentd/session/list", ({ cursor, children, workspaceUri }: { cursor?: string; children: boolean; workspaceUri: string }) => {
    pages.push(cursor);
    expect([children, workspaceUri]).toEqual([true, "file:///w"]);
    const from = Number(cursor ?? 0);
    return { sessions: all.slice(from, from + 2), nextCursor: String(from + 2) };
  });
  expect((await childrenOf(daemon, "p", "c")).map((each) => each.session.sessionId)).toEqual(["a", "b"]);
  expect(pages).toEqual([undefined, "2", "4", "6"]);
});
