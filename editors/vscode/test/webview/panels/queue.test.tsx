// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, within } from "@testing-library/preact";
import { afterEach, describe, expect, it } from "vitest";
import type { QueuedPrompt, Session } from "../../../src/shared/wire";
import { QueuePanel } from "../../../src/webview/panels/queue";
import { draw, refuse, settle, shown, type Answers } from "../kit";

afterEach(cleanup);

const queued = (promptId: string, text: string, more: Partial<QueuedPrompt> = {}): QueuedPrompt => ({
  promptId, kind: "queue", prompt: [{ type: "text", text }], queuedAt: "2026-11-30T18:00:00.000Z", ...more,
});
const QUEUE = [queued("a", "First"), queued("b", "Second"), queued("c", "Third")];
const panel = async (queue = QUEUE, state: Session["state"] = "running", answers: Answers = {}) => draw(<QueuePanel />, { shown: shown({ queue }, { state }), answers });
const line = (words: string) => screen.getByText(words).closest("li")!;
const words = (text: string) => screen.getByText(text).closest("button")!;

describe("the queue", () => {
  it("is not there where nothing waits", async () => {
    await panel([]);
    expect(screen.queryByRole("region", { name: "Queue" })).toBeNull();
  });

  it("shows what waits in its order, steers as such", async () => {
    await panel([queued("s", "Stop that", { kind: "steer" }), ...QUEUE]);
    const region = screen.getByRole("region", { name: "Queue" });
    expect(within(region).getAllByRole("listitem").map((one) => one.querySelector(".queue-words")!.textContent)).toEqual(["steerStop that", "2First", "3Second", "4Third"]);
  });

  it("changes a prompt in place and keeps what is attached to it", async () => {
    const file = { type: "resource", uri: "file:///shop/a.ts" } as const;
    const { host, user } = await panel([queued("a", "First", { prompt: [{ type: "text", text: "First" }, file] })]);
    await user.click(words("First"));
    const box = screen.getByRole("textbox", { name: "Queued prompt" });
    expect(document.activeElement).toBe(box);
    await user.type(box, ", please{Enter}");
    await settle();
    expect(host.asked("queue")).toEqual([{ sessionId: "s1", op: "edit", promptId: "a", prompt: [{ type: "text", text: "First, please" }, file] }]);
    expect(screen.queryByRole("textbox")).toBeNull();
  });

  it("leaves a prompt as it was on Escape, and the change in its box where it is refused", async () => {
    const { host, user } = await panel(QUEUE, "running", { queue: () => refuse() });
    await user.click(words("First"));
    await user.type(screen.getByRole("textbox"), "x{Escape}");
    await settle();
    expect(host.asked("queue")).toEqual([]);
    await user.click(words("First"));
    await user.type(screen.getByRole("textbox"), " changed{Enter}");
    await settle();
    expect((screen.getByRole("textbox") as HTMLTextAreaElement).value).toBe("First changed");
  });

  it("moves by keys and not beyond its ends", async () => {
    const { host } = await panel();
    fireEvent.keyDown(words("Second"), { key: "ArrowUp", altKey: true });
    fireEvent.keyDown(words("Second"), { key: "ArrowDown", altKey: true });
    fireEvent.keyDown(words("First"), { key: "ArrowUp", altKey: true });
    await settle();
    expect(host.asked("queue").reverse()).toEqual([{ sessionId: "s1", op: "move", promptId: "b", index: 0 }, { sessionId: "s1", op: "move", promptId: "b", index: 2 }]);
  });

  it("moves by drag", async () => {
    const { host } = await panel();
    fireEvent(line("Third"), new Event("dragstart", { bubbles: true }));
    await settle();
    fireEvent(line("First"), new Event("drop", { bubbles: true, cancelable: true }));
    await settle();
    expect(host.asked("queue")).toEqual([{ sessionId: "s1", op: "move", promptId: "c", index: 0 }]);
  });

  it("gives a prompt up by its button or Delete", async () => {
    const { host } = await panel();
    fireEvent.click(screen.getByRole("button", { name: "Remove First" }));
    fireEvent.keyDown(words("Second"), { key: "Delete" });
    await settle();
    expect(host.asked("queue").map((params) => [params.op, params.promptId]).reverse()).toEqual([["remove", "a"], ["remove", "b"]]);
  });

  it("runs one or all where it stands since a restart", async () => {
    const { host } = await panel(QUEUE, "idle");
    fireEvent.click(screen.getByRole("button", { name: "Run all" }));
    fireEvent.click(screen.getAllByRole("button", { name: "Run now" })[1]!);
    await settle();
    expect(host.asked("queue").reverse()).toEqual([{ sessionId: "s1", op: "run" }, { sessionId: "s1", op: "run", promptId: "b" }]);
  });
});
