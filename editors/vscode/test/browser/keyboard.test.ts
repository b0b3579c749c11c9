/** From the first word to the answer, the queue and other sessions, by keys alone. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { FromView } from "../../src/shared/messages";
import { recording } from "../webview/recordings";
import { hasBrowser, view } from "./page";
import { scenes, type Scene } from "./scenes";

declare const preview: { calls: FromView[] };

const asked = (page: Page, name: string) => page.evaluate((wanted) => preview.calls.filter((call) => call.call === wanted).map((call) => call.params), name);
/** Tab, until the focus is on what has the name. */
async function tabTo(page: Page, name: RegExp, key = "Tab"): Promise<void> {
  for (let step = 0; step < 60; step++) {
    await page.keyboard.press(key);
    const label = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
    if (name.test(label)) return;
  }
  throw new Error(`${key} does not lead to ${name}.`);
}

describe.skipIf(!hasBrowser)("by keys alone", { timeout: 60_000 }, () => {
  const { running } = scenes as { running: Scene };
  const other = { snapshot: { ...running.snapshot, session: { ...running.snapshot.session, sessionId: "s4", title: "Upgrade to Node 24" } }, changes: [] };
  const open = view({ ...scenes, running: { ...running, answers: { ...running.answers, open: other } } });

  test("a prompt is written and sent, a question answered with words, a waiting prompt changed and another session opened", async () => {
    const page = await open("recording=command&snapshot=bare", { width: 300, height: 900 });
    await page.getByRole("textbox", { name: "Prompt" }).waitFor();
    await tabTo(page, /^Prompt$/);
    await page.keyboard.type("Also look at the tests");
    await page.keyboard.press("Enter");
    await expect.poll(() => asked(page, "prompt")).toEqual([expect.objectContaining({ sessionId: "s1", whenBusy: "steer", prompt: [{ type: "text", text: "Also look at the tests" }] })]);

    await page.keyboard.press("Alt+a");
    await tabTo(page, /Reject and say what to do/);
    await page.keyboard.press("Enter");
    await page.keyboard.type("Use the other runner.");
    await page.keyboard.press("Enter");
    await expect.poll(() => asked(page, "permission")).toEqual([{ requestId: "r1", optionId: "reject_once", feedback: "Use the other runner." }]);
    await page.close();
  });

  test("a waiting prompt is changed, and another session opened", async () => {
    const page = await open("recording=running&snapshot=bare", { width: 300, height: 900 });
    await page.getByRole("textbox", { name: "Prompt" }).waitFor();
    await tabTo(page, /Use waitFor/);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("Use waitUntil");
    await page.keyboard.press("Enter");
    await expect.poll(() => asked(page, "queue")).toEqual([expect.objectContaining({ op: "edit", promptId: "q1", prompt: [{ type: "text", text: "Use waitUntil" }] })]);
    await tabTo(page, /^Session$/, "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("list", { name: "Sessions" }).getByText("Upgrade to Node 24").waitFor();
    await tabTo(page, /Upgrade to Node 24/);
    await page.keyboard.press("Enter");
    await expect.poll(() => asked(page, "open")).toEqual([{ sessionId: "s4" }]);
    await page.getByRole("combobox", { name: "Session" }).filter({ hasText: "Upgrade to Node 24" }).waitFor();
    await page.close();
  });

  test("nothing that was said sticks out of a narrow view", async () => {
    const found = ["answer", "demo", "failures", "agents", "permissions", "output", "compaction", "waiting"];
    for (const name of found) {
      const page = await open(`recording=${name}`, { width: 220, height: 900 });
      await page.locator(`[data-message-id]`).first().waitFor();
      expect(await page.evaluate(() => document.querySelector(".scroll")!.scrollWidth <= document.querySelector(".scroll")!.clientWidth), name).toBe(true);
      await page.close();
    }
    expect(found.every((name) => recording(name))).toBe(true);
  });
});
