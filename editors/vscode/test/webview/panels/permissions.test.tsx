// @vitest-environment happy-dom
import { cleanup, fireEvent, screen, within } from "@testing-library/preact";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { PermissionSubject } from "../../../src/shared/wire";
import { Composer } from "../../../src/webview/composer/composer";
import { sorted } from "../../../src/webview/panels/options";
import { Permissions } from "../../../src/webview/panels/permissions";
import { piecesOf } from "../../../src/webview/panels/visible";
import { draw, question, refuse, settle, shown, type Answers } from "../kit";

afterEach(cleanup);

const region = () => screen.getByRole("region", { name: "Permission" });
const button = (words: string) => within(region()).getByRole("button", { name: (name) => name.includes(words) });

async function asked(pending = [question()], answers: Answers = {}) {
  return draw(<><Permissions /><Composer /></>, { shown: shown({ pending }, { state: "waiting" }), answers });
}

const subject = (one: PermissionSubject) => asked([question({ subject: one })]);

describe("a question", () => {
  it("shows the command whole, where it would run and why outside the sandbox", async () => {
    const command = `for i in 1 2; do\n  ${"echo long ".repeat(200)}\ndone`;
    await subject({ type: "command", command, cwd: "/shop/very deep", reason: "It needs the network." });
    expect(within(region()).getByLabelText("Command").textContent).toBe(command);
    expect(region().textContent).toContain("/shop/very deep");
    expect(region().textContent).toContain("It needs the network.");
  });

  it("shows a change whole, with the way into the diff editor", async () => {
    const patch = "--- a/a.ts\n+++ b/a.ts\n@@ -1,2 +1,2 @@\n-old line\n+new line\n same\n";
    const { host, user } = await subject({ type: "edit", uri: "file:///shop/src/a.ts", patch });
    const rows = within(region()).getAllByRole("row").map((row) => row.textContent);
    expect(rows).toEqual(["1−old line", "1+new line", "2same"]);
    await user.click(button("Open in diff editor"));
    expect(host.asked("previewPatch")).toEqual([{ uri: "file:///shop/src/a.ts", patch }]);
  });

  it("shows the address, the file, a tool's arguments and what it does not know", async () => {
    await asked([
      question({ requestId: "a", subject: { type: "fetch", url: "https://example.com/a?b=c" } }),
      question({ requestId: "b", subject: { type: "read", uri: "file:///shop/.env" } }),
      question({ requestId: "c", subject: { type: "mcp", server: "hub", tool: "create", arguments: { title: "New" } } }),
      question({ requestId: "d", subject: { type: "teleport", where: "Mars" } as never }),
    ]);
    for (const words of ["https://example.com/a?b=c", "/shop/.env", "hub · create", '"title": "New"', '"where": "Mars"']) expect(region().textContent).toContain(words);
  });

  it("spells out what cannot be seen and what turns text, and interprets no markup", async () => {
    await subject({ type: "command", command: "rm a\u202etxt.\x1b[8m <b>x</b>\u200b", cwd: "/shop" });
    expect(within(region()).getByLabelText("Command").textContent).toBe("rm a\\u202etxt.\\x1b[8m <b>x</b>\\u200b");
  });

  it("says of each answer how far it reaches and what it covers", async () => {
    await asked();
    expect(button("Allow for this session").textContent).toContain("In this session: npm test with any arguments");
    expect(button("Allow once").textContent).toContain("Only this time");
  });

  it("is answered by its buttons, once", async () => {
    const { host } = await asked([question()], { permission: () => new Promise(() => {}) });
    fireEvent.click(button("Allow for this session"));
    await settle();
    fireEvent.click(button("Allow once"));
    await settle();
    expect(host.asked("permission")).toEqual([{ requestId: "r1", optionId: "allow_always" }]);
  });

  it("is answered by number, but not while words are written", async () => {
    const { host, user } = await asked();
    button("Allow once").focus();
    await user.keyboard("3");
    expect(host.asked("permission")).toEqual([{ requestId: "r1", optionId: "reject_once" }]);
    await settle();
    fireEvent.click(screen.getByText(/Reject and say/));
    await settle();
    await user.keyboard("1");
    expect(host.asked("permission")).toHaveLength(1);
  });

  it("is rejected with words for the model", async () => {
    const { host, user } = await asked();
    await user.click(screen.getByText(/Reject and say/));
    await user.keyboard("use make{Enter}");
    await settle();
    expect(host.asked("permission")).toEqual([{ requestId: "r1", optionId: "reject_once", feedback: "use make" }]);
  });

  it("can be answered again where the answer was not taken", async () => {
    await asked([question()], { permission: () => refuse({ kind: "permissionClosed" }) });
    fireEvent.click(button("Allow once"));
    await settle();
    expect(button("Allow once")).toHaveProperty("disabled", false);
  });

  it("takes no answer for one that it does not know", () => {
    const options = sorted([
      { optionId: "r", label: "No", kind: "reject_once", scope: "once" }, { optionId: "x", label: "?", kind: "maybe" as never, scope: "once" },
      { optionId: "w", label: "Here", kind: "allow_always", scope: "workspace" }, { optionId: "o", label: "Yes", kind: "allow_once", scope: "once" },
    ]);
    expect(options.map((option) => option.optionId)).toEqual(["o", "w", "r"]);
  });
});

describe("several questions", () => {
  it("are a list, the oldest first, those of sub-agents named", async () => {
    await asked([question(), question({ requestId: "r2", title: "Tests: run npm test", child: { sessionId: "s2", toolCallId: "x" } })]);
    const cards = within(region()).getAllByRole("article");
    expect(cards.map((card) => /\d of \d/.exec(card.textContent!)![0])).toEqual(["1 of 2", "2 of 2"]);
    expect(cards[1]!.textContent).toContain("Tests: run npm test");
  });
});

describe("the focus", () => {
  it("stays with who is writing; the question is told aloud once and Alt+A leads to it", async () => {
    const { store } = await asked([]);
    const box = screen.getByRole("textbox", { name: "Prompt" });
    box.focus();
    store.show(shown({ pending: [question()] }, { state: "waiting" }));
    await settle();
    expect(document.activeElement).toBe(box);
    const told = screen.getAllByRole("alert").find((one) => one.textContent!.includes("Run npm test"))!;
    expect(told.textContent).toBe("agentd asks: Run npm test. Alt+A leads there.");
    fireEvent.keyDown(box, { code: "KeyA", altKey: true, key: "å" });
    expect(document.activeElement).toBe(button("Allow once"));
  });

  it("goes on to the next question, and back to the prompt box after the last", async () => {
    const { store } = await asked([question(), question({ requestId: "r2" })]);
    fireEvent.keyDown(document.body, { code: "KeyA", altKey: true });
    store.show(shown({ pending: [question({ requestId: "r2" })] }, { state: "waiting" }));
    await settle();
    expect(document.activeElement).toBe(button("Allow once"));
    store.show(shown({ pending: [] }, { state: "running" }));
    await settle();
    expect(document.activeElement).toBe(screen.getByRole("textbox", { name: "Prompt" }));
  });
});

describe("text that is spelled out", () => {
  it("holds nothing unseen, and is the text itself where nothing is", () => {
    const character = fc.oneof(fc.constantFrom("\u202e", "\u2066", "\x1b", "\x00", "\u200b", "\ufeff", "\u{e0041}", "\ud800", "\r", "\n", "\t"), fc.string({ unit: "binary", minLength: 1, maxLength: 1 }));
    fc.assert(fc.property(fc.array(character).map((all) => all.join("")), (text) => {
      const pieces = piecesOf(text);
      const said = pieces.map((piece) => piece.text).join("");
      expect(said).not.toMatch(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      if (!pieces.some((piece) => piece.odd)) expect(said).toBe(text);
    }));
  });
});
