/** What is too much of something: it is cut to what helps, all of it can be had, and the page goes on. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { FromView } from "../../src/shared/messages";
import type { AssistantMessage, EventNotification } from "../../src/shared/wire";
import { fromEnd, hasBrowser, log, view } from "./page";
import { big, note, streamed } from "./sessions";

declare const preview: { calls: FromView[]; say(message: unknown): void };

const say = (page: Page, events: EventNotification[]) => page.evaluate((all) => preview.say({ type: "events", sessionId: "big", events: all }), events);
const said = (content: AssistantMessage["content"], seq = 2) => note({ type: "message_end", message: {
  role: "assistant", messageId: "x", provider: "p", model: "m", stopReason: "stop", timestamp: "2026-11-30T12:00:00.000Z", content,
} }, seq);
const grows = (offset: number, delta: string) => note({ type: "message_update", messageId: "x", update: { kind: "text", index: 0, offset, delta } });
const elements = (page: Page) => page.locator('[data-message-id="x"] *').count();

describe.skipIf(!hasBrowser)("too much of something", { timeout: 60_000 }, () => {
  const open = view({ pair: big(2) });
  const pair = () => open("recording=pair&snapshot=bare");

  test("of an answer of a million characters the end is in the page, and more of it on request", async () => {
    const page = await pair();
    const text = `The very first words.\n\n${Array.from({ length: 6_000 }, (_, line) => `Paragraph ${line} with **weight** and \`code\`, so that it has some length. ${"word ".repeat(18)}\n\n`).join("")}The last words.`;
    expect(text.length).toBeGreaterThan(900_000);
    await say(page, [said([{ type: "text", text }])]);
    await log(page).getByText("The last words.").waitFor();
    expect(await elements(page)).toBeLessThan(5_000);
    expect(await log(page).getByText("The very first words.").count()).toBe(0);
    await log(page).getByRole("button", { name: /Show what is before this/ }).click();
    await expect.poll(() => log(page).getByText("The very first words.").count(), { timeout: 30_000 }).toBe(1);
    await page.close();
  });

  test("a long block that grows is whole at every moment, and is what it would be at once in the end", async () => {
    const page = await pair();
    const text = "It goes on **and** on `forever` without an end. ".repeat(900);
    await say(page, [note({ type: "agent_start", prompt: { model: "scripted/big", mode: "ask" } }, 2), note({ type: "message_start", message: { role: "assistant", messageId: "x" } }, 3)]);
    for (let at = 0; at < text.length; at += 4_321) {
      const upTo = Math.min(text.length, at + 4_321);
      await say(page, [grows(at, text.slice(at, upTo))]);
      const plain = (all: string) => all.replace(/[*`\s]/g, "");
      await expect.poll(async () => plain(await page.locator('[data-message-id="x"] .markdown').innerText())).toBe(plain(text.slice(0, upTo)));
    }
    await say(page, [said([{ type: "text", text }], 4)]);
    await expect.poll(() => page.locator('[data-message-id="x"] .unparsed').count()).toBe(0);
    expect(await page.locator('[data-message-id="x"] strong').count()).toBe(900);
    await page.close();
  });

  for (const language of ["ts", ""]) {
    test(`of a long ${language || "plain"} code block that grows only the end is touched, and it is what it would be at once`, async () => {
      const page = await pair();
      const code = Array.from({ length: 1_600 }, (_, line) => `const value${line} = other(${line}); // *line*\n${line % 3 === 0 ? "\n" : ""}`).join("");
      const text = `\`\`\`${language}\n${code}\`\`\`\n`;
      const place = page.locator('[data-message-id="x"] code');
      await say(page, [note({ type: "agent_start", prompt: { model: "scripted/big", mode: "ask" } }, 2), note({ type: "message_start", message: { role: "assistant", messageId: "x" } }, 3)]);
      const lengths: number[] = [];
      for (let at = 0; at < text.length; at += 1_777) {
        const upTo = Math.min(text.length - 4, at + 1_777);
        if (at > 0) await place.evaluate((element) => {
          const all = element.childNodes;
          new MutationObserver((records, observer) => {
            observer.disconnect();
            const removed = records.some((each) => each.removedNodes.length > 0);
            Object.assign(window, { touched: removed ? -1 : records.reduce((sum, { target }) => sum + (target instanceof Text ? target.length : 0), 0) });
          }).observe(element, { childList: true, characterData: true, subtree: true });
          Object.assign(window, { touched: 0, parts: all.length });
        });
        await say(page, [grows(at, text.slice(at, upTo))]);
        await expect.poll(() => place.textContent()).toBe(text.slice(language.length + 4, upTo));
        if (at > 0) lengths.push(await page.evaluate(() => (window as unknown as { touched: number }).touched));
      }
      expect(Math.max(...lengths)).toBeLessThan(6_000);
      expect(lengths.filter((each) => each < 0).length).toBeLessThan(language === "" ? 1 : 12);
      expect(await place.innerText()).toBe(text.slice(language.length + 4, -4));
      await say(page, [said([{ type: "text", text }], 4)]);
      await expect.poll(() => page.locator('[data-message-id="x"] .lines').count()).toBe(0);
      expect(await place.textContent()).toBe(code);
      expect(await page.locator('[data-message-id="x"] .hljs-keyword').count()).toBe(language === "" ? 0 : 1_600);
      await page.close();
    });
  }

  test("of a code block of a million characters the end is in the page, as code", async () => {
    const page = await pair();
    const code = Array.from({ length: 20_000 }, (_, line) => `const value${line} = other(${line}); // *line*\n`).join("");
    await say(page, [said([{ type: "text", text: `Look:\n\n\`\`\`ts\n${code}\`\`\`\n\nThat was *it*.` }])]);
    await log(page).getByText("That was it.").waitFor();
    expect(code.endsWith((await page.locator('[data-message-id="x"] code').textContent())!)).toBe(true);
    expect(await page.locator('[data-message-id="x"] .code-language').allInnerTexts()).toEqual(["ts"]);
    expect(await page.locator('[data-message-id="x"] em').count()).toBe(1);
    await page.close();
  });

  test("a picture of twenty megabytes that is written as a text costs no more than a long text", async () => {
    const page = await pair();
    await page.evaluate((event) => {
      const [block] = (event.event as { message: AssistantMessage }).message.content as [{ text: string }];
      block.text = `![x](data:image/png;base64,${"iVBORw0KGgo".repeat(1_900_000)})`;
      preview.say({ type: "events", sessionId: "big", events: [event] });
    }, said([{ type: "text", text: "" }]));
    await log(page).getByRole("button", { name: /Show what is before this/ }).waitFor();
    expect((await page.locator('[data-message-id="x"] .markdown').innerText()).length).toBeLessThan(101_000);
    await page.close();
  });

  test("of five thousand calls in one message the first and the last are in the page, and all on request", async () => {
    const page = await pair();
    await say(page, [said(Array.from({ length: 5_000 }, (_, index) => ({ type: "tool_call", id: `c${index}`, name: "bash", arguments: { command: `make ${index}` } })))]);
    await log(page).getByText("make 4999").waitFor();
    expect(await log(page).locator("[data-tool-call-id]").count()).toBe(120);
    expect(await log(page).getByRole("button", { name: "Show 4880 more" }).count()).toBe(1);
    await page.close();
  });

  test("a view that is hidden in the midst of an answer has all of it when it is shown again, and is at its end", async () => {
    const page = await pair();
    const events = streamed(600);
    await say(page, events.slice(0, 100));
    await page.locator('[data-message-id="s1"]').waitFor();
    // As VS Code hides a view: no frame is drawn.
    await page.evaluate(() => {
      document.documentElement.style.display = "none";
      const frame = window.requestAnimationFrame;
      window.requestAnimationFrame = () => 0;
      Object.assign(window, { show: () => {
        window.requestAnimationFrame = frame;
        document.documentElement.style.display = "";
      } });
    });
    await say(page, events.slice(100));
    await page.evaluate(() => (window as unknown as { show(): void }).show());
    await page.locator(".live").waitFor({ state: "detached" });
    await expect.poll(() => fromEnd(page)).toBeLessThan(4);
    await expect.poll(() => page.locator('[data-message-id="s1"]').innerText()).toContain("Answer 27");
    await page.close();
  });
});
