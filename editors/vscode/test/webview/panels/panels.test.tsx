// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, within } from "@testing-library/preact";
import { afterEach, describe, expect, it } from "vitest";
import type { Change } from "../../../src/shared/messages";
import { filesOf, revertsOf } from "../../../src/webview/panels/changes-model";
import { Panels } from "../../../src/webview/panels/panels";
import { draw, question, refuse, settle, shown, type Answers } from "../kit";

afterEach(cleanup);

const change = (promptId: string, path: string, more: Partial<Change> = {}): Change => ({
  sessionId: "s1", promptId, uri: `file:///shop/${path}`, path, action: "changed", additions: 2, deletions: 1, state: "open", ...more,
});
const panels = async (changes: Change[], answers: Answers = {}, over: Parameters<typeof shown> = [{}, {}]) => draw(<Panels />, { shown: { ...shown(...over), changes }, answers });
const region = (name: string) => screen.getByRole("region", { name });
const unfold = async (name: string) => {
  fireEvent.click(within(region(name)).getAllByRole("button")[0]!);
  await settle();
};

describe("changed files", () => {
  it("are one line for each, with what all prompts did to it", () => {
    const files = filesOf([change("p1", "a.ts", { action: "created" }), change("p1", "b.ts"), change("p2", "a.ts", { additions: 5 })]);
    expect(files.map(({ path, action, additions, state }) => [path, action, additions, state])).toEqual([["a.ts", "created", 7, "open"], ["b.ts", "changed", 2, "open"]]);
  });

  it("count what is open only", () => {
    const [file] = filesOf([change("p1", "a.ts", { state: "accepted", additions: 9 }), change("p2", "a.ts")]);
    expect([file!.additions, file!.changes.map((one) => one.promptId)]).toEqual([2, ["p2"]]);
  });

  it("go back to before the first prompt that changed them, in as few calls as can be", () => {
    const one = filesOf([change("p1", "a.ts"), change("p1", "b.ts")]);
    expect(revertsOf(one, one)).toEqual([{ promptId: "p1" }]);
    expect(revertsOf([one[0]!], one)).toEqual([{ promptId: "p1", uri: "file:///shop/a.ts" }]);
    const two = filesOf([change("p1", "a.ts"), change("p2", "a.ts"), change("p2", "b.ts"), change("p2", "c.ts", { state: "accepted" })]);
    expect(revertsOf(two, two)).toEqual([{ promptId: "p1" }, { promptId: "p2", uri: "file:///shop/b.ts" }]);
  });

  it("are accepted, looked at and taken back one by one", async () => {
    const { host, user } = await panels([change("p1", "src/a.ts"), change("p2", "src/a.ts")], { revert: () => ({ files: [] }) });
    await unfold("Changed files");
    await user.click(within(region("Changed files")).getByRole("button", { name: /Changed: a.ts/ }));
    await user.click(screen.getByRole("button", { name: "Accept src/a.ts" }));
    await user.click(screen.getByRole("button", { name: "Revert src/a.ts" }));
    await settle();
    const uri = "file:///shop/src/a.ts";
    expect(host.asked("openDiff")).toEqual([{ sessionId: "s1", promptId: "p1", uri }]);
    expect(host.asked("accept").map((params) => params.promptId).sort()).toEqual(["p1", "p2"]);
    expect(host.asked("revert")).toEqual([{ sessionId: "s1", promptId: "p1" }]);
  });

  it("say what was not taken back and why", async () => {
    const { user } = await panels([change("p1", "a.ts")], { revert: () => ({ files: [{ uri: "file:///shop/a.ts", action: "changed", conflict: "You have changed it since." }] }) });
    await user.click(screen.getByRole("button", { name: "Revert all" }));
    await settle();
    await unfold("Changed files");
    expect(screen.getByText(/You have changed it since/).textContent).toBe("a.ts: You have changed it since.");
  });

  it("are not taken back while a prompt runs, and are gone once all are decided", async () => {
    const { host } = await panels([change("p1", "a.ts")], {}, [{}, { state: "running" }]);
    expect(screen.getByRole("button", { name: "Revert all" })).toHaveProperty("disabled", true);
    host.tell({ type: "changes", sessionId: "s1", changes: [change("p1", "a.ts", { state: "accepted" })] });
    await settle();
    expect(screen.queryByRole("region", { name: "Changed files" })).toBeNull();
  });
});

describe("the to-do list", () => {
  const items = (...states: ("pending" | "in_progress" | "completed")[]) => states.map((status, index) => ({ id: String(index), text: `Step ${index}`, status }));

  it("says how far it is and what is being done", async () => {
    await panels([], {}, [{ todo: items("completed", "in_progress", "pending") }, { state: "running" }]);
    expect(within(region("To-do")).getAllByRole("button")[0]!.textContent).toBe("Step 11/3");
    expect(screen.getByRole("progressbar", { name: "To-do items done" }).getAttribute("aria-valuenow")).toBe("1");
    expect(within(region("To-do")).getAllByRole("listitem").map((one) => one.textContent)).toEqual(["Done: Step 0", "In progress: Step 1", "To do: Step 2"]);
  });

  it("goes when all is done and nothing runs", async () => {
    await panels([], {}, [{ todo: items("completed") }, {}]);
    expect(screen.queryByRole("region", { name: "To-do" })).toBeNull();
  });

  it("stays folded as the user left it, and folds for a question only", async () => {
    const { store, page } = await panels([], {}, [{ todo: items("pending") }, { state: "running" }]);
    expect(screen.getByText("Step 0")).toBeTruthy();
    store.show(shown({ todo: items("pending"), pending: [question()] }, { state: "waiting" }));
    await settle();
    expect(screen.queryByText("Step 0")).toBeNull();
    store.show(shown({ todo: items("pending") }, { state: "running" }));
    await settle();
    expect(screen.getByText("Step 0")).toBeTruthy();
    await unfold("To-do");
    page.unmount();
    expect(store.memory.kept("panel.To-do", true).value).toBe(false);
  });
});

describe("other sessions", () => {
  it("are told while they run or wait, and opened by a click", async () => {
    const { host, store, user } = await panels([], { open: ({ sessionId }) => shown({}, { sessionId }) });
    host.tell({ type: "others", sessions: [{ sessionId: "s2", title: "Docs", state: "running" }, { sessionId: "s3", title: "Upgrade", state: "waiting" }, { sessionId: "s4", title: "Old", state: "idle" }] });
    await settle();
    if (!screen.queryByText("Upgrade")) await unfold("Other sessions");
    expect(within(region("Other sessions")).getAllByRole("listitem").map((one) => one.textContent)).toEqual(["Upgradewaits for you", "Docsrunning"]);
    await user.click(screen.getByText("Upgrade"));
    await settle();
    expect(store.session.value!.session.sessionId).toBe("s3");
  });
});

describe("a call that failed", () => {
  it("says why until the user has seen it", async () => {
    const { user, store } = await panels([change("p1", "a.ts")], { accept: () => refuse({ message: "The disk is full.", hint: "Make room." }) });
    await user.click(screen.getByRole("button", { name: "Accept all" }));
    await settle();
    expect(screen.getByText(/The disk is full/)).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Dismiss" }));
    expect(store.failure.value).toBeNull();
  });
});

describe("a daemon that is gone", () => {
  it("is told in the conversation with its reason and the way on", async () => {
    const { host, store, user } = await panels([]);
    host.tell({ type: "surroundings", surroundings: { ...store.surroundings.value!, connection: { state: "failed", reason: "It ended with code 2.", hint: "See the log." } } });
    await settle();
    expect(screen.getByText(/It ended with code 2/)).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Restart" }));
    expect(host.asked("action")).toEqual([{ name: "restart" }]);
  });
});
