// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, within } from "@testing-library/preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Surroundings } from "../../../src/shared/messages";
import type { Session } from "../../../src/shared/wire";
import { Header } from "../../../src/webview/header/header";
import { ago } from "../../../src/webview/header/listing";
import { ModePicker } from "../../../src/webview/header/mode";
import { ModelPicker } from "../../../src/webview/header/model";
import { draw, SESSION, settle, shown, SURROUNDINGS, type Answers } from "../kit";

afterEach(cleanup);

const combobox = (name: string) => screen.getByRole("combobox", { name });
const options = () => screen.getAllByRole("option").map((option) => option.textContent);
const pickers = async (around: Partial<Surroundings> = {}, first = shown()) => draw(<><ModePicker /><ModelPicker /></>, { around, shown: first });

describe("the mode picker", () => {
  it("says what each mode means and offers only what is to be had", async () => {
    const { user } = await pickers({ modes: ["plan", "ask", "edit"] });
    await user.click(combobox("Mode"));
    const words = options();
    expect(words.map((text) => /^(Plan|Ask|Edit|Auto|Full)/.exec(text!)![0])).toEqual(["Plan", "Ask", "Edit", "Auto"]);
    expect(words[1]).toContain("Asks before each edit and command.");
    expect(screen.getAllByRole("option")[3]!.getAttribute("aria-disabled")).toBe("true");
    expect(screen.getAllByRole("option")[1]!.getAttribute("aria-selected")).toBe("true");
  });

  it("offers full where it is permitted", async () => {
    const { user, host } = await pickers({ modes: ["plan", "ask", "edit", "auto", "full"] });
    await user.click(combobox("Mode"));
    await user.click(screen.getByRole("option", { name: /^Full/ }));
    expect(host.asked("choose")).toEqual([{ sessionId: "s1", mode: "full" }]);
  });

  it("is gone through by keys and gives the focus back", async () => {
    const { user, host } = await pickers();
    combobox("Mode").focus();
    await user.keyboard("{ArrowDown}{ArrowDown}{Enter}");
    expect(host.asked("choose")).toEqual([{ sessionId: "s1", mode: "edit" }]);
    expect(document.activeElement).toBe(combobox("Mode"));
    await user.keyboard("{Enter}p{Escape}");
    expect(host.asked("choose")).toHaveLength(1);
    expect([screen.queryByRole("listbox"), document.activeElement]).toEqual([null, combobox("Mode")]);
  });

  it("sets what new sessions begin with where none is shown", async () => {
    const made = await draw(<ModePicker />, { around: { defaultMode: "plan" } });
    expect(combobox("Mode").textContent).toBe("Plan");
    await made.user.click(combobox("Mode"));
    await made.user.click(screen.getByRole("option", { name: /^Ask/ }));
    expect(made.host.asked("choose")).toEqual([{ mode: "ask" }]);
  });
});

describe("the model picker", () => {
  it("lists models by provider, those that cannot be used with the reason and the way to a key", async () => {
    const { user, host } = await pickers();
    await user.click(combobox("Model"));
    expect(options()).toEqual(["large200k context · thinks · sees images", "bigNo key for openai.", "Set a key for OpenAI…"]);
    await user.click(screen.getByRole("option", { name: /^big/ }));
    expect(host.asked("choose")).toEqual([]);
    await user.click(screen.getByRole("option", { name: /^Set a key/ }));
    expect(host.asked("action")).toEqual([{ name: "setKey", argument: "openai" }]);
  });

  it("finds one among many by words", async () => {
    const many = Array.from({ length: 30 }, (_, at) => ({ ...SURROUNDINGS.models[0]!, id: `p/model-${at}`, name: `model-${at}` }));
    const { user, host } = await pickers({ models: many });
    await user.click(combobox("Model"));
    expect(document.activeElement).toBe(screen.getByRole("searchbox", { name: "Filter" }));
    await user.keyboard("17{Enter}");
    expect(host.asked("choose")).toEqual([{ sessionId: "s1", model: "p/model-17" }]);
  });

  it("sets how hard the model thinks", async () => {
    const { user, host } = await pickers({}, shown({}, { effort: "low" }));
    expect(combobox("Model").textContent).toBe("large · low");
    await user.click(combobox("Model"));
    await user.click(screen.getByRole("radio", { name: "high" }));
    expect(host.asked("choose")).toEqual([{ sessionId: "s1", effort: "high" }]);
  });

  it("says that there is none", async () => {
    await draw(<ModelPicker />, { around: { defaultModel: null } });
    expect(combobox("Model").textContent).toBe("No model");
  });
});

const LIST: Session[] = [SESSION, { ...SESSION, sessionId: "s2", title: "Docs", state: "running" }, { ...SESSION, sessionId: "s3", title: "", lockedBy: 77 }];
const listing: Answers = { sessions: ({ cursor }) => (cursor ? { sessions: [{ ...SESSION, sessionId: "s9", title: "Old" }] } : { sessions: LIST, nextCursor: "c" }) };
const lines = () => within(screen.getByRole("list", { name: "Sessions" })).getAllByRole("listitem").map((one) => one.querySelector(".session-words")!.firstElementChild!.textContent);

async function sessions(answers: Answers = {}) {
  const made = await draw(<Header />, { shown: shown(), answers: { ...listing, ...answers } });
  await made.user.click(combobox("Session"));
  await settle();
  return made;
}

describe("the session picker", () => {
  it("names the shown session and lists all, with their states, page by page", async () => {
    const { user, host } = await sessions();
    expect(combobox("Session").textContent).toBe("Fix the test");
    expect(lines()).toEqual(["Fix the test", "Docs", "New session"]);
    expect(screen.getByText(/^running ·/)).toBeTruthy();
    expect(screen.getByText(/open elsewhere/)).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Earlier sessions" }));
    await settle();
    expect(host.asked("sessions")[0]).toEqual({ cursor: "c" });
    expect(lines()).toHaveLength(4);
  });

  it("finds sessions by words and drops an answer that comes late", async () => {
    const late: { answer?: () => void } = {};
    const { user, host } = await sessions();
    host.answers.sessions = ({ query }) => (query === "d"
      ? new Promise((resolve) => (late.answer = () => resolve({ sessions: LIST })))
      : { sessions: [LIST[1]!] });
    const box = screen.getByRole("searchbox", { name: "Find sessions" });
    await user.type(box, "d");
    await vi.waitFor(() => expect(late.answer).toBeTruthy(), { timeout: 2000 });
    await user.type(box, "oc");
    await vi.waitFor(() => expect(lines()).toEqual(["Docs"]), { timeout: 2000 });
    late.answer!();
    await settle();
    expect(lines()).toEqual(["Docs"]);
  });

  it("opens a session by keys and closes", async () => {
    const { user, store } = await sessions({ open: ({ sessionId }) => shown({}, { sessionId }) });
    await user.keyboard("{ArrowDown}{ArrowDown}{Enter}");
    await settle();
    expect(store.session.value!.session.sessionId).toBe("s2");
    expect(screen.queryByRole("dialog")).toBeNull();
  });

  it("renames in place, forks, exports and deletes after the question was answered", async () => {
    const { user, host } = await sessions({ delete: () => ({ deleted: true }), fork: () => shown({}, { sessionId: "f1" }) });
    await user.click(screen.getByRole("button", { name: "Rename Docs" }));
    await user.clear(screen.getByRole("textbox", { name: "Title" }));
    await user.keyboard("Notes{Enter}");
    await settle();
    expect(host.asked("rename")).toEqual([{ sessionId: "s2", title: "Notes" }]);
    await user.click(screen.getByRole("button", { name: "Export Notes" }));
    await user.click(screen.getByRole("button", { name: "Delete Notes" }));
    await settle();
    expect(host.asked("exportMarkdown")).toEqual([{ sessionId: "s2" }]);
    expect(lines()).toEqual(["Fix the test", "New session"]);
    await user.click(screen.getByRole("button", { name: "Fork Fix the test" }));
    await settle();
    expect(combobox("Session").textContent).toBe("Fix the test");
    expect(host.asked("fork")).toEqual([{ sessionId: "s1" }]);
  });

  it("says why the list could not be read", async () => {
    await sessions({ sessions: () => Promise.reject(new Error("The disk is gone.")) });
    expect(screen.getByRole("status").textContent).toBe("The disk is gone.");
  });
});

describe("the header", () => {
  it("begins a new session", async () => {
    const { user, host } = await draw(<Header />, { shown: shown() });
    await user.click(screen.getByRole("button", { name: "New session" }));
    expect(host.asked("newSession")).toEqual([{}]);
  });

  it("lets the folder of the next session be chosen where there are several", async () => {
    const folders = [{ uri: "file:///shop", name: "shop" }, { uri: "file:///api", name: "api" }];
    const { user, host } = await draw(<Header />, { around: { folders } });
    await user.click(combobox("Folder"));
    await user.click(screen.getByRole("option", { name: /^api/ }));
    expect(host.asked("choose")).toEqual([{ folder: "file:///api" }]);
  });

  it("shows how full the context window is and offers to compact it once it fills", async () => {
    const usage = (contextTokens: number) => ({ input: 1, output: 2, cacheRead: 0, cacheWrite: 0, reasoning: 0, total: 3, contextTokens, contextWindow: 1000, cost: { total: 1.5, currency: "USD" as const } });
    const { user, host, store } = await draw(<Header />, { shown: shown({}, { usage: usage(200) }) });
    expect(screen.getByRole("button", { name: /^Usage/ }).getAttribute("aria-label")).toBe("Usage: context window 20 % full, $1.50");
    expect(screen.queryByRole("button", { name: "Compact" })).toBeNull();
    store.show(shown({}, { usage: usage(850) }));
    await settle();
    await user.click(screen.getByRole("button", { name: "Compact" }));
    expect(host.asked("compact")).toEqual([{ sessionId: "s1" }]);
    await user.click(screen.getByRole("button", { name: /^Usage/ }));
    expect(screen.getByRole("dialog", { name: "Usage" }).textContent).toContain("850 of 1k tokens, 85 %");
  });

  it("tells in a conversation of Restricted Mode and of problems", async () => {
    const { user, host, store } = await draw(<Header />, { shown: shown(), around: { trusted: false, problems: [{ severity: "error", message: "Broken." }, { severity: "info", message: "Fine." }] } });
    await user.click(screen.getByRole("button", { name: "Restricted Mode" }));
    expect(host.asked("action")).toEqual([{ name: "manageTrust" }]);
    await user.click(screen.getByRole("button", { name: "1 problem of the set-up" }));
    expect(store.setUp.value).toBe(true);
  });
});

describe("a time", () => {
  it("is told as people do", () => {
    const now = new Date(2026, 10, 30, 15, 0).getTime();
    const at = (...parts: [number, number, number, number, number]) => ago(new Date(...parts).toISOString(), now);
    expect([at(2026, 10, 30, 15, 0), at(2026, 10, 30, 14, 55), at(2026, 10, 30, 9, 0), at(2026, 10, 29, 23, 59), at(2026, 10, 12, 9, 0), at(2025, 10, 12, 9, 0)])
      .toEqual(["now", "5 min", "6 h", "yesterday", "12 Nov", "12 Nov 2025"]);
  });
});
