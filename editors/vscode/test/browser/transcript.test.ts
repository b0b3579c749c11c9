import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { FromView, ToView } from "../../src/shared/messages";
import { kept, recording } from "../webview/recordings";
import { fromEnd, hasBrowser, log, view } from "./page";
import { big, note, streamed } from "./sessions";

declare const axe: { run(where: Element, options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
declare const preview: { calls: FromView[]; say(message: ToView): void };

const say = (page: Page, message: unknown) => page.evaluate((what) => preview.say(what as ToView), message);
const calls = (page: Page, name: string) => page.evaluate((wanted) => preview.calls.filter((call) => call.call === wanted).map((call) => call.params), name);

/** Behind so many events of a recording a prompt has ended. */
const endOf = (name: string, promptId: string) => recording(name).events.findIndex((note) => note.event.type === "agent_end" && note.promptId === promptId) + 1;

describe.skipIf(!hasBrowser)("the conversation in a browser", { timeout: 60_000 }, () => {
  const open = view({
    big: big(2000), pair: big(2), told: { ...recording("agents"), answers: { children: { children: kept(recording("agents")) } } },
  });

  test("every message is an article that names itself, and the log is not read word by word", async () => {
    const page = await open("recording=answer");
    await page.getByRole("heading", { name: "What I found" }).waitFor();
    expect(await page.getByRole("article").evaluateAll((all) => all.map((one) => [one.getAttribute("data-role"), Boolean(one.getAttribute("data-message-id"))])))
      .toEqual([["user", true], ["assistant", true]]);
    expect(await log(page).getAttribute("aria-live")).toBe("off");
    await page.close();
  });

  test("a screen reader is told an answer once it is there", async () => {
    const page = await open("recording=answer&speed=400");
    await page.getByRole("status").filter({ hasText: "The mean is computed with" }).waitFor({ state: "attached" });
    await page.close();
  });

  test.each([["answer", "dark"], ["demo", "light"], ["failures", "contrast"], ["agents", "dark"], ["permissions", "light"]])("nothing in %s (%s) hinders those who use other means than their eyes and a mouse", async (name, theme) => {
    const page = await open(`recording=${name}&theme=${theme}`);
    await page.getByRole("article").first().waitFor();
    await page.evaluate(readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"));
    const found = await page.evaluate(async () => {
      const { violations } = await axe.run(document.querySelector(".transcript")!, { rules: { region: { enabled: false } } });
      return violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ").slice(0, 400)}`);
    });
    expect(found).toEqual([]);
    await page.close();
  });

  test("Markdown is shown without the HTML in it, and links are opened by the host", async () => {
    const page = await open("recording=answer");
    await page.getByRole("link", { name: "the documentation" }).click();
    await expect.poll(() => calls(page, "openLink")).toEqual([{ url: "https://docs.python.org/3/library/statistics.html" }]);
    expect(await log(page).locator("img").count()).toBe(0);
    expect(await log(page).getByText("<b>No HTML</b>").count()).toBe(1);
    await page.close();
  });

  test("a link to a file opens it, at its line", async () => {
    const page = await open("recording=pair&snapshot=bare");
    await say(page, { type: "events", sessionId: "big", events: [note({ type: "message_end", message: { role: "assistant", messageId: "x", provider: "p", model: "m", stopReason: "stop",
      timestamp: "2026-11-30T12:00:00.000Z", content: [{ type: "text", text: "[one](a.ts:3) [two](src/b.ts#L4) [three](file:///c.ts)" }] } }, 2)] });
    for (const name of ["one", "two", "three"]) await page.getByRole("link", { name }).click();
    await expect.poll(() => calls(page, "openFile")).toEqual([
      { uri: "file:///home/user/project/a.ts", line: 2 }, { uri: "file:///home/user/project/src/b.ts", line: 3 }, { uri: "file:///c.ts" },
    ]);
    await page.close();
  });

  test("code is copied and inserted whole", async () => {
    const page = await open("recording=answer");
    await page.getByRole("button", { name: "Copy code" }).click();
    await page.getByRole("button", { name: "Insert at cursor" }).click();
    await expect.poll(() => calls(page, "insertAtCursor")).toHaveLength(1);
    const [copied] = await calls(page, "copy") as { text: string }[];
    expect(copied!.text).toMatch(/^def average[^]*true division\n$/);
    await page.close();
  });

  test("a card tells its state, and shows on request what it came to", async () => {
    const page = await open("recording=permissions");
    const cards = page.locator("[data-tool-call-id]");
    await expect.poll(() => cards.evaluateAll((all) => all.map((one) => one.getAttribute("data-state")))).toEqual(["refused", "done"]);
    await cards.first().getByRole("button").first().click();
    await cards.first().getByText("Use the tests only.").waitFor();
    await page.close();
  });

  test("an edit is a diff, and opens in the editor's own", async () => {
    const page = await open("recording=demo");
    const card = page.locator('[data-tool-call-id][data-state="done"]').filter({ hasText: "Edit calculator.py" });
    await card.getByText("return total(numbers) / len(numbers)").waitFor();
    await card.getByRole("button", { name: "Open diff" }).click();
    await expect.poll(() => calls(page, "openDiff")).toEqual([expect.objectContaining({ promptId: "repair", uri: expect.stringContaining("calculator.py") })]);
    await page.close();
  });

  test("what needs a key offers to set it, and an interrupted run goes on", async () => {
    const failed = await open(`recording=failures&upTo=${endOf("failures", "auth")}`);
    await failed.getByRole("button", { name: "Set key" }).click();
    await expect.poll(() => calls(failed, "action")).toEqual([{ name: "setKey", argument: "scripted" }]);
    await failed.close();
    const page = await open("recording=recovery");
    await log(page).getByText("Interrupted").waitFor();
    await page.getByRole("button", { name: "Go on" }).click();
    await expect.poll(() => calls(page, "goOn")).toHaveLength(1);
    await page.close();
  });

  test("sub-agents are nested in the call that runs them", async () => {
    const page = await open("recording=agents");
    await page.getByRole("button", { name: /Sub-agents/ }).click();
    await page.getByRole("button", { name: /list the tests/ }).last().click();
    await page.getByRole("group", { name: /Sub-agent list the tests/ }).getByText("There are two tests.").waitFor();
    await page.close();
  });

  test("sub-agents that were not seen are read once their call is opened", async () => {
    const page = await open("recording=told&snapshot=bare");
    await page.getByRole("button", { name: /Sub-agents/ }).waitFor();
    expect(await calls(page, "children")).toEqual([]);
    await page.getByRole("button", { name: /Sub-agents/ }).click();
    await page.getByRole("button", { name: /list the tests/ }).last().click();
    await page.getByRole("group", { name: "Sub-agent list the tests, done" }).getByText("There are two tests.").waitFor();
    expect(await calls(page, "children")).toHaveLength(1);
    await page.close();
  });

  test("of 2,000 messages only those in sight are in the page, and it begins at the end", async () => {
    const page = await open("recording=big&snapshot=bare");
    await page.locator('[data-message-id="m1999"]').waitFor();
    expect(await fromEnd(page)).toBeLessThan(4);
    expect(await page.getByRole("article").count()).toBeLessThan(40);
    await page.close();
  });

  test("it follows what comes while the user is at its end", async () => {
    const page = await open("recording=big&snapshot=bare");
    await page.locator('[data-message-id="m1999"]').waitFor();
    const events = streamed(400);
    for (let at = 0; at < events.length; at += 20) await say(page, { type: "events", sessionId: "big", events: events.slice(at, at + 20) });
    await page.locator('[data-message-id="s1"]').waitFor();
    await expect.poll(() => fromEnd(page)).toBeLessThan(4);
    expect(await page.getByRole("button", { name: "Jump to latest" }).count()).toBe(0);
    await page.close();
  });

  test("what comes changes its own message in the page, and no other", async () => {
    const page = await open("recording=big&snapshot=bare");
    await page.locator('[data-message-id="m1999"]').waitFor();
    const events = streamed(200);
    await say(page, { type: "events", sessionId: "big", events: events.slice(0, 20) });
    await page.locator('[data-message-id="s1"]').waitFor();
    await page.evaluate(() => {
      const touched = new Set<string>();
      Object.assign(window, { touched });
      new MutationObserver((all) => {
        for (const { target } of all) touched.add((target instanceof Element ? target : target.parentElement!).closest("[data-message-id]")?.getAttribute("data-message-id") ?? "");
      }).observe(document.querySelector(".rows")!, { subtree: true, childList: true, characterData: true, attributes: true });
    });
    await say(page, { type: "events", sessionId: "big", events: events.slice(20) });
    await page.locator(".live").waitFor({ state: "detached" });
    // Outside of messages: which rows there are, and the last line of what goes on.
    expect(await page.evaluate(() => [...(window as unknown as { touched: Set<string> }).touched].filter(Boolean))).toEqual(["s1"]);
    await page.close();
  });

  test("of much output the end is in the page, and all of it on request", async () => {
    const page = await open("recording=pair&snapshot=bare");
    const text = Array.from({ length: 900 }, (_, index) => `line ${index}\n`).join("");
    await say(page, { type: "events", sessionId: "big", events: [
      note({ type: "message_start", message: { role: "assistant", messageId: "a" } }, 2),
      note({ type: "message_end", message: { role: "assistant", messageId: "a", provider: "p", model: "m", stopReason: "tool_use", timestamp: "2026-11-30T12:00:00.000Z",
        content: [{ type: "tool_call", id: "c", name: "bash", arguments: { command: "make" } }] } }, 3),
      note({ type: "tool_execution_start", toolCallId: "c", toolName: "bash", arguments: { command: "make" }, title: "make", kind: "execute", locations: [] }, 4),
      note({ type: "tool_execution_update", toolCallId: "c", update: { channel: "stdout", offset: 0, delta: text } }),
    ] });
    const card = page.locator('[data-tool-call-id="c"][data-state="running"]');
    await card.getByText("line 899").waitFor();
    expect(await card.getByText("line 100", { exact: true }).count()).toBe(0);
    await card.getByRole("button", { name: "Show all 900 lines" }).click();
    await expect.poll(() => card.getByText("line 100", { exact: true }).count()).toBe(1);
    await page.close();
  });

  test("whatever is said, nothing of it runs, loads or styles", async () => {
    const page = await open("recording=pair&snapshot=bare");
    const hostile = '<img src=x onerror="window.ran=1"> <svg/onload=window.ran=1> [a](javascript:window.ran=1) [b](<java\tscript:window.ran=1>) '
      + '[c](data:text/html,<script>1</script>) ![d](https://example.com/d.png) [e](command:workbench.action.quit) `<b onclick=1>`\n\n```html"><script>window.ran=1</script>\n'
      + '</code></pre><script>window.ran=1</script>\n```\n\n- ```js" onload="x\n  <style>*{display:none}</style>\n  ```\n\n| <i style=x> |\n|:-:|\n| x |\n';
    const message = (id: string, content: object[]) => note({ type: "message_end", message: { role: "assistant", messageId: id, content, provider: "p", model: "m", stopReason: "stop", timestamp: "2026-11-30T12:00:00.000Z" } } as never, 2);
    await say(page, { type: "events", sessionId: "big", events: [message("x", [{ type: "text", text: hostile }, { type: "thinking", text: hostile }])] });
    const said = page.locator('[data-message-id="x"]');
    await said.getByRole("table").waitFor();
    expect(await said.evaluate((root) => [...root.querySelectorAll("*")].flatMap((one) => [
      ...(/^(script|style|img|svg|iframe|object|form|input)$/i.test(one.tagName) ? [one.outerHTML] : []),
      ...[...one.attributes].filter(({ name, value }) => /^on|^style$|^src/.test(name) || (name === "href" && !/^https?:$/.test((one as HTMLAnchorElement).protocol))).map(({ name, value }) => `${one.tagName} ${name}=${value}`),
    ]))).toEqual([]);
    expect(await page.evaluate(() => "ran" in window)).toBe(false);
    await page.close();
  });

  test("pictures are shown as they were sent, and nothing that is a document", async () => {
    const page = await open("recording=pair&snapshot=bare");
    const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await say(page, { type: "events", sessionId: "big", events: [
      note({ type: "message_start", message: { role: "user", messageId: "u" } }, 2),
      note({ type: "message_end", message: { role: "user", messageId: "u", timestamp: "2026-11-30T12:00:00.000Z", content: [
        { type: "image", mimeType: "image/png", data: dot }, { type: "image", mimeType: "image/svg+xml", data: dot }, { type: "text", text: "What is this?" },
      ] } }, 3),
    ] });
    const said = page.locator('[data-message-id="u"]');
    await expect.poll(() => said.getByRole("img").evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth))).toEqual([1]);
    await said.getByText("An image of type image/svg+xml").waitFor();
    await page.close();
  });

  test("it stays where the user reads while more comes, and a button leads to the end", async () => {
    const page = await open("recording=big&snapshot=bare");
    await page.locator('[data-message-id="m1999"]').waitFor();
    await log(page).hover();
    await page.mouse.wheel(0, -3000);
    await page.getByRole("button", { name: "Jump to latest" }).waitFor();
    await page.waitForFunction(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
    const seen = () => page.evaluate(() => {
      const box = document.querySelector(".scroll")!.getBoundingClientRect();
      const found = document.elementFromPoint(box.x + 100, box.y + 200)?.closest("[data-message-id]");
      return [found?.getAttribute("data-message-id"), Math.round(found?.getBoundingClientRect().y ?? 0)];
    });
    await expect.poll(async () => (await seen())[0]).toBeTruthy();
    const before = await seen();
    await say(page, { type: "events", sessionId: "big", events: streamed(200) });
    await page.waitForFunction(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
    expect(await seen()).toEqual(before);
    await page.getByRole("button", { name: "Jump to latest" }).click();
    await expect.poll(() => fromEnd(page)).toBeLessThan(4);
    await page.close();
  });

  test("who scrolls to the beginning gets what was before, and what they read stays where it is", async () => {
    const page = await open("recording=big&snapshot=bare&page=60");
    await page.locator('[data-message-id="m1999"]').waitFor();
    await log(page).hover();
    const drawn = () => page.waitForFunction(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
    await log(page).evaluate((box) => { box.scrollTop = 2400; });
    await drawn();
    expect(await calls(page, "earlier")).toEqual([]);
    const place = (id: string) => page.locator(`[data-message-id="${id}"]`).evaluate((one) => Math.round(one.getBoundingClientRect().y));
    let [seen, before] = ["", 0];
    while ((await calls(page, "earlier")).length === 0) {
      seen = await page.evaluate(() => document.elementFromPoint(100, 250)!.closest("[data-message-id]")?.getAttribute("data-message-id") ?? "m1950");
      before = await place(seen);
      await page.mouse.wheel(0, -60);
      await drawn();
    }
    await expect.poll(() => log(page).evaluate((box) => box.scrollTop)).toBeGreaterThan(3000);
    await drawn();
    expect(Math.abs((await place(seen)) - before - 60)).toBeLessThan(8);
    await expect.poll(async () => {
      await log(page).evaluate((box) => { box.scrollTop = 0; });
      return page.locator('[data-message-id="m0"]').count();
    }, { timeout: 30_000 }).toBe(1);
    expect(await page.getByText("Loading earlier messages…").count()).toBe(0);
    await page.close();
  });

  test("words are found in the whole conversation, not only in what is drawn", async () => {
    const page = await open("recording=big&snapshot=bare");
    await page.locator('[data-message-id="m1999"]').waitFor();
    await log(page).press("Control+f");
    const field = page.getByRole("textbox", { name: "Find in conversation" });
    await field.fill("question 140");
    await page.getByRole("search").getByText("6 of 6").waitFor();
    await field.press("Enter");
    await page.getByRole("search").getByText("1 of 6").waitFor();
    await page.locator('[data-message-id="m140"]').waitFor();
    await expect.poll(() => page.evaluate(() => CSS.highlights.get("found-here")?.size)).toBe(1);
    await field.press("Shift+Enter");
    await page.locator('[data-message-id="m1408"]').waitFor();
    await field.press("Escape");
    expect(await page.getByRole("search").count()).toBe(0);
    expect(await page.evaluate(() => CSS.highlights.get("found")?.size)).toBe(0);
    await page.close();
  });

  test("where the user was is where they are after a reload, and what they opened is open", async () => {
    const page = await open("recording=big&snapshot=bare");
    await page.locator('[data-message-id="m1999"]').waitFor();
    await log(page).hover();
    await page.mouse.wheel(0, -5000);
    const first = () => page.evaluate(() => {
      const top = document.querySelector(".scroll")!.getBoundingClientRect().y;
      const row = [...document.querySelectorAll("[data-message-id]")].find((one) => one.getBoundingClientRect().bottom > top + 1);
      return [row?.getAttribute("data-message-id"), Math.round((row?.getBoundingClientRect().y ?? 0) / 4)];
    });
    await expect.poll(() => page.evaluate(() => (JSON.parse(sessionStorage.getItem("state") ?? "{}") as { place?: unknown }).place)).toBeTruthy();
    const before = await first();
    await page.reload();
    await page.getByRole("article").first().waitFor();
    await expect.poll(first).toEqual(before);
    expect(await page.evaluate(() => preview.calls[0])).toMatchObject({ call: "ready", params: { sessionId: "big" } });
    await page.close();
  });

  test("a thought is folded, and open while it comes once the user wished it so", async () => {
    const page = await open("recording=answer&upTo=12");
    const thought = page.getByRole("button", { name: "Thinking" });
    await thought.waitFor();
    expect(await thought.getAttribute("aria-expanded")).toBe("false");
    await thought.click();
    await page.reload();
    await page.getByRole("button", { name: "Thinking", expanded: true }).waitFor();
    await page.close();
  });
});
