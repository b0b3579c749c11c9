// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, within } from "@testing-library/preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Completion, Surroundings } from "../../../src/shared/messages";
import { Composer } from "../../../src/webview/composer/composer";
import { draw, refuse, settle, shown, type Answers } from "../kit";

afterEach(cleanup);

const RUNNING = () => shown({}, { state: "running" });
const started: Answers = { prompt: () => ({ sessionId: "s1", outcome: "started" }) };
const prompt = () => screen.getByRole("textbox", { name: "Prompt" }) as HTMLTextAreaElement;
const button = (name: string) => screen.getByRole("button", { name });

async function composer(answers: Answers = started, first = shown(), around: Partial<Surroundings> = {}) {
  const made = await draw(<Composer />, { answers, shown: first, around });
  const type = async (text: string) => {
    await made.user.type(prompt(), text);
    await settle();
  };
  return { ...made, type, sent: () => made.host.asked("prompt").map(({ prompt: blocks, whenBusy }) => [blocks, whenBusy]).reverse() };
}

const text = (words: string) => [{ type: "text", text: words }];

describe("Enter", () => {
  it("sends, and Shift+Enter begins a new line", async () => {
    const { type, sent } = await composer();
    await type("one{Shift>}{Enter}{/Shift}two");
    expect(prompt().value).toBe("one\ntwo");
    await type("{Enter}");
    expect(sent()).toEqual([[text("one\ntwo"), "queue"]]);
    expect(prompt().value).toBe("");
  });

  it("sends nothing while an input method composes", async () => {
    const { sent } = await composer();
    fireEvent.input(prompt(), { target: { value: "にほん" } });
    fireEvent.keyDown(prompt(), { key: "Enter", isComposing: true });
    fireEvent.keyDown(prompt(), { key: "Enter", keyCode: 229 });
    await settle();
    expect(sent()).toEqual([]);
    fireEvent.keyDown(prompt(), { key: "Enter" });
    await settle();
    expect(sent()).toHaveLength(1);
  });

  it("steers while a prompt runs and Alt+Enter queues, or the other way round as the user set it", async () => {
    const { type, sent, store, host } = await composer(started, RUNNING());
    await type("a{Enter}");
    await type("b{Alt>}{Enter}{/Alt}");
    host.tell({ type: "surroundings", surroundings: { ...store.surroundings.value!, whenRunning: "queue" } });
    await settle();
    await type("c{Enter}");
    await type("d{Alt>}{Enter}{/Alt}");
    expect(sent()).toEqual([[text("a"), "steer"], [text("b"), "queue"], [text("c"), "queue"], [text("d"), "steer"]]);
  });

  it("sends while agentd starts: the prompt waits for it", async () => {
    const { type, sent } = await composer(started, shown(), { connection: { state: "starting" } });
    await type("early{Enter}");
    expect([sent(), prompt().value]).toEqual([[[text("early"), "queue"]], ""]);
  });

  it("sends nothing where agentd does not run, and the text stays", async () => {
    const { type, sent } = await composer(started, shown(), { connection: { state: "failed", reason: "gone" } });
    await type("early{Enter}");
    expect([sent(), prompt().value]).toEqual([[], "early"]);
    expect(button("Send")).toHaveProperty("disabled", true);
  });
});

describe("the buttons", () => {
  it("are Send alone while nothing runs, and Stop, Steer and Queue while something does", async () => {
    const { type, host, store } = await composer(started, shown());
    await type("more");
    expect(button("Send")).toHaveProperty("disabled", false);
    store.show(RUNNING());
    await settle();
    expect(screen.queryByRole("button", { name: "Send" })).toBeNull();
    expect(button("Steer").title).toContain("(Enter)");
    expect(button("Queue").title).toContain("(Alt+Enter)");
    fireEvent.click(button("Stop"));
    await settle();
    expect(host.asked("cancel")).toEqual([{ sessionId: "s1" }]);
  });

  it("interrupt by a menu", async () => {
    const { type, sent, user } = await composer(started, RUNNING());
    await type("now this");
    await user.click(button("More ways to send"));
    await user.click(screen.getByRole("menuitem", { name: /Interrupt/ }));
    await settle();
    expect(sent()).toEqual([[text("now this"), "interrupt"]]);
  });

  it("stop by Escape only in an empty box", async () => {
    const { type, host } = await composer(started, RUNNING());
    await type("x{Escape}");
    expect(host.asked("cancel")).toEqual([]);
    await type("{Backspace}{Escape}");
    expect(host.asked("cancel")).toHaveLength(1);
  });
});

const FILES: Completion[] = [
  { kind: "file", label: "src/a.ts", insert: "@src/a.ts ", attachment: { label: "src/a.ts", block: { type: "resource", uri: "file:///shop/src/a.ts" } } },
  { kind: "folder", label: "src/sub/", insert: "@src/sub ", attachment: { label: "src/sub", block: { type: "resource", uri: "file:///shop/src/sub" } } },
  { kind: "selection", label: "selection", insert: "", attachment: { label: "b.ts:1-2", block: { type: "resource", uri: "file:///shop/b.ts", range: { start: { line: 0, character: 0 }, end: { line: 1, character: 2 } } } } },
];
const completing: Answers = { ...started, complete: ({ trigger }) => (trigger === "@" ? FILES : [{ kind: "command", label: "/help", insert: "/help " }]) };
const options = () => screen.queryAllByRole("option").map((option) => option.textContent);
const activeOption = () => document.getElementById(prompt().getAttribute("aria-activedescendant") ?? "")?.textContent;
const until = (check: () => void) => vi.waitFor(check, { timeout: 2000 });

describe("completion", () => {
  it("is a list under the caret that keys go through while the focus stays in the box", async () => {
    const { type } = await composer(completing);
    await type("see @s");
    await until(() => expect(options()).toEqual(["src/a.ts", "src/sub/", "selection"]));
    expect(screen.getByRole("listbox").id).toBe(prompt().getAttribute("aria-controls"));
    expect(activeOption()).toBe("src/a.ts");
    await type("{ArrowDown}");
    expect(activeOption()).toBe("src/sub/");
    await type("{ArrowUp}{ArrowUp}");
    expect(activeOption()).toBe("selection");
    expect(document.activeElement).toBe(prompt());
  });

  it("puts the file's name into the text and the file beside it", async () => {
    const { type, sent } = await composer(completing);
    await type("see @s");
    await until(() => expect(options()).toHaveLength(3));
    await type("{Enter}");
    expect(prompt().value).toBe("see @src/a.ts ");
    expect(screen.getByRole("button", { name: "Remove src/a.ts" })).toBeTruthy();
    await type("now{Enter}");
    expect(sent()).toEqual([[[{ type: "text", text: "see @src/a.ts now" }, FILES[0]!.attachment!.block], "queue"]]);
  });

  it("looks into a folder by Tab", async () => {
    const { type, host } = await composer(completing);
    await type("@s");
    await until(() => expect(options()).toHaveLength(3));
    await type("{ArrowDown}{Tab}");
    expect(prompt().value).toBe("@src/sub/");
    await until(() => expect(host.asked("complete")[0]).toEqual({ trigger: "@", query: "src/sub/" }));
  });

  it("goes away by Escape and leaves the text", async () => {
    const { type } = await composer(completing);
    await type("@s");
    await until(() => expect(options()).toHaveLength(3));
    await type("{Escape}");
    expect([options(), prompt().value]).toEqual([[], "@s"]);
  });

  it("writes a command out, and Enter sends it as one", async () => {
    const { type, sent } = await composer(completing);
    await type("/he");
    await until(() => expect(options()).toHaveLength(1));
    await type("{Tab}");
    expect(prompt().value).toBe("/help ");
    await type("{Enter}");
    expect(sent()).toEqual([[[{ type: "command", name: "help", arguments: "" }], "queue"]]);
  });
});

describe("attachments", () => {
  const PNG = new File([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])], "shot.png", { type: "image/png" });

  // The page of the tests makes drag events without data.
  const drop = (dataTransfer: object) => fireEvent(prompt(), Object.assign(new Event("drop", { bubbles: true, cancelable: true }), { dataTransfer }));

  it("come by paste, with a picture, and go by their button or key", async () => {
    await composer();
    const data = { files: [PNG], types: ["Files"], getData: () => "" };
    fireEvent.paste(prompt(), { clipboardData: data });
    await until(() => expect(document.querySelector("img")?.src).toMatch(/^data:image\/png;base64,/));
    fireEvent.click(button("Remove shot.png"));
    await settle();
    expect(screen.queryByRole("list", { name: "Attachments" })).toBeNull();
  });

  it("leave pasted text alone, also where a picture of it comes along", async () => {
    await composer();
    const taken = !fireEvent.paste(prompt(), { clipboardData: { files: [PNG], types: ["text/plain", "Files"], getData: () => "words" } });
    expect(taken).toBe(false);
  });

  it("say what is no image, and the box stays", async () => {
    await composer();
    drop({ files: [new File(["x"], "notes.txt")], types: ["Files"], getData: () => "" });
    await until(() => expect(screen.getByText(/notes.txt is no PNG/)).toBeTruthy());
  });

  it("come from the explorer by their addresses", async () => {
    const { host } = await composer({ ...started, attach: ({ uris }) => uris.map((uri) => ({ label: uri, block: { type: "resource", uri } })) });
    drop({ files: [], types: [], getData: (type: string) => (type === "application/vnd.code.uri-list" ? "file:///shop/a.ts\r\nfile:///shop/b.ts" : "") });
    await until(() => expect(within(screen.getByRole("list", { name: "Attachments" })).getAllByRole("listitem")).toHaveLength(2));
    expect(host.asked("attach")).toEqual([{ uris: ["file:///shop/a.ts", "file:///shop/b.ts"] }]);
  });
});

describe("history", () => {
  it("comes with Up in an empty box and goes with Down", async () => {
    const { type } = await composer();
    await type("{ArrowUp}");
    expect(prompt().value).toBe("Why does it fail?");
    await type("{ArrowDown}");
    expect(prompt().value).toBe("");
  });

  it("leaves Up to the text that is being written", async () => {
    const { type } = await composer();
    await type("mine{ArrowUp}");
    expect(prompt().value).toBe("mine");
  });
});

describe("a refused prompt", () => {
  it("stands in the box with the reason, without the place in the request, and a way on", async () => {
    const { type, host, user, sent } = await composer({ prompt: () => refuse({ kind: "invalidParams", message: "/prompt/0/name: There is no command \"/hlep\".", hint: "See /help." }) });
    await type("/hlep{Enter}");
    expect(prompt().value).toBe("/hlep");
    const alert = screen.getByText('There is no command "/hlep".');
    expect(alert.closest("[role=alert]")).toBeTruthy();
    host.answers.prompt = started.prompt!;
    await user.click(button("Send as text"));
    await settle();
    expect(sent().at(-1)).toEqual([text("/hlep"), "queue"]);
    expect(screen.queryByText("See /help.")).toBeNull();
  });

  it("offers to set a key where that is missing", async () => {
    const { type, host, user } = await composer({ prompt: () => refuse({ kind: "authRequired", message: "No key." }) });
    await type("x{Enter}");
    await user.click(button("Set a key…"));
    expect(host.asked("action")).toEqual([{ name: "setKey", argument: "anthropic" }]);
  });
});
