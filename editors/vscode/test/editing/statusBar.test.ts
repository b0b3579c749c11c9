import { describe, expect, test, vi } from "vitest";
import type { Event, EventNotification } from "../../src/shared/wire";

vi.mock("vscode", () => ({})); // Only the fold is looked at; the item itself is tried in VS Code.
const { activitiesAfter } = await import("../../src/host/editing/statusBar");

const told = (sessionId: string, event: object): EventNotification => ({ sessionId, time: "", event: event as Event });
const all = (...events: EventNotification[]) => Object.fromEntries(events.reduce(activitiesAfter, new Map<string, readonly string[]>()));

describe("the state in the status bar", () => {
  test("a session runs from its start to its end", () => {
    expect(all(told("a", { type: "agent_start" }), told("b", { type: "agent_start" }), told("a", { type: "agent_end" }))).toEqual({ b: [] });
  });

  test("a session waits until the last of its questions is answered", () => {
    const asked = ["1", "2"].map((requestId) => told("a", { type: "permission_requested", requestId }));
    const answered = (requestId: string) => told("a", { type: "permission_resolved", requestId });
    expect(all(told("a", { type: "agent_start" }), ...asked, answered("1"))).toEqual({ a: ["2"] });
    expect(all(told("a", { type: "agent_start" }), ...asked, answered("1"), answered("2"))).toEqual({ a: [] });
  });

  test("the same map comes back where nothing is new", () => {
    const before = new Map([["a", []]]);
    expect(activitiesAfter(before, told("a", { type: "turn_start" }))).toBe(before);
  });
});
