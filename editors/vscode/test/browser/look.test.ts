/** What the browser makes of the parts around the conversation: accessible, inside its width, and led by keys. */
import axe from "axe-core";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import type { FromView } from "../../src/shared/messages";
import { hasBrowser, view } from "./page";
import { scenes } from "./scenes";
// @ts-expect-error a script without types
import { themes as all } from "../preview/themes.mjs";

const themes = all as Record<string, { kind: string }>;

declare const preview: { calls: FromView[] };
declare const window: { axe: { run(context: object, options: object): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } };

const prompt = (page: Page) => page.getByRole("textbox", { name: "Prompt" });

/** What axe finds, as words. */
async function faults(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => window.axe.run({ include: [["body"]] }, { resultTypes: ["violations"] }));
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
}

/** Elements that stick out of the page at its right side. */
const outside = (page: Page) => page.evaluate(() => {
  const scrolls = (element: Element | null): boolean => element !== null && (/auto|scroll|hidden|clip/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  return [...document.querySelectorAll("#app *")].filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.right > innerWidth + 0.5 && !scrolls(element.parentElement) && !element.classList.contains("visually-hidden");
  }).map((element) => element.outerHTML.slice(0, 120));
});

/** The same page in another theme. */
async function wear(page: Page, theme: string): Promise<void> {
  await page.evaluate((name) => new Promise((resolve) => {
    const sheet = document.querySelector<HTMLLinkElement>("link[href^='theme.css']")!;
    const href = `theme.css?theme=${name}`;
    if (sheet.getAttribute("href") === href) return resolve(null); // it would not be loaded again
    sheet.onload = resolve;
    sheet.href = href;
  }), theme);
  await page.evaluate((kind) => { document.body.className = kind; }, themes[theme]!.kind);
}

/** What can be opened in a scene, each looked at by axe as well. */
const OPENED: [scene: string, open: (page: Page) => Promise<void>][] = [
  ["idle", (page) => page.getByRole("combobox", { name: "Model" }).click()],
  ["idle", (page) => page.getByRole("combobox", { name: "Mode", exact: true }).click()],
  ["idle", (page) => page.getByRole("combobox", { name: "Session" }).click()],
  ["idle", (page) => page.getByRole("button", { name: /^Usage/ }).click()],
  ["idle", (page) => page.getByRole("button", { name: "Attach" }).click()],
  ["idle", (page) => page.getByRole("button", { name: "More actions" }).click()],
  ["idle", (page) => page.getByRole("region", { name: "Changed files" }).getByRole("button", { expanded: false }).first().click()],
  ["running", (page) => page.getByRole("button", { name: /^Edit Use/ }).click()],
  ["command", (page) => page.getByText("Reject and say what to do").click()],
  ["idle", async (page) => {
    await prompt(page).pressSequentially("see @s");
    await page.getByRole("option").first().waitFor();
  }],
  ["running", (page) => prompt(page).pressSequentially("more")],
  ["refused", async (page) => {
    await prompt(page).fill("x");
    await prompt(page).press("Enter");
    await page.getByText("There is no key for anthropic.").waitFor();
  }],
];

describe.skipIf(!hasBrowser)("around the conversation, in a browser", { timeout: 120_000 }, () => {
  const open = view(scenes);
  const look = (name: string, theme = "dark", width = 400) => open(`recording=${name}&snapshot=bare&theme=${theme}`, { width, height: 900 });

  test.each(Object.keys(scenes))("the screen %s has no fault that axe knows in any theme, and nothing sticks out of it at any width", async (name) => {
    const page = await look(name);
    await page.locator(".composer, .screen").first().waitFor();
    for (const theme of ["dark", "light", "contrast", "contrastLight"]) {
      await wear(page, theme);
      expect(await faults(page), theme).toEqual([]);
    }
    for (const width of [220, 300, 900]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await outside(page), `${width}`).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), `${width}`).toBeLessThanOrEqual(width);
    }
    await page.close();
  });

  test.each(OPENED.map(([name, way], index) => [name, index, way] as const))("what opens in the screen %s (%i) has no fault that axe knows", async (name, _, way) => {
    const page = await look(name);
    await way(page);
    expect(await faults(page)).toEqual([]);
    expect(await outside(page)).toEqual([]);
    await page.close();
  });

  test("everything in a running session can be reached by Tab, and shows that it has the focus", async () => {
    const page = await look("running");
    await prompt(page).waitFor();
    const wanted = await page.locator("button:visible:enabled, textarea:visible, [role=combobox]:visible").count();
    const seen = new Set<string>();
    for (let step = 0; step < wanted + 20; step++) {
      await page.keyboard.press("Tab");
      const found = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement | null;
        if (!element || element === document.body) return null;
        const style = getComputedStyle(element);
        const marked = style.outlineStyle !== "none" || element.matches("textarea, input") || element.closest(".composer-card") !== null;
        return { key: `${element.tagName} ${element.getAttribute("aria-label") ?? element.textContent} ${[...document.querySelectorAll("*")].indexOf(element)}`, marked };
      });
      if (!found) continue;
      expect(found.marked, found.key).toBe(true);
      seen.add(found.key);
    }
    expect(seen.size).toBeGreaterThanOrEqual(wanted);
    await page.close();
  });

  test("a question leaves the focus where it is, and Alt+A leads to it", async () => {
    const page = await look("command");
    await prompt(page).click();
    await page.keyboard.press("Alt+a");
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain("Allow once");
    await page.keyboard.press("2");
    await expect.poll(() => page.evaluate(() => preview.calls.filter((call) => call.call === "permission").map((call) => call.params)))
      .toEqual([{ requestId: "r1", optionId: "allow_always" }]);
    await page.close();
  });

  test("the box grows with its text and the end that is written stays in sight", async () => {
    const page = await look("idle");
    const before = (await prompt(page).boundingBox())!.height;
    await prompt(page).fill(Array.from({ length: 6 }, (_, line) => `line ${line}`).join("\n"));
    expect((await prompt(page).boundingBox())!.height).toBeGreaterThan(before + 60);
    await prompt(page).fill(Array.from({ length: 80 }, (_, line) => `line ${line}`).join("\n"));
    await prompt(page).press("End");
    await prompt(page).press("x");
    const scroll = page.locator(".prompt-scroll");
    await expect.poll(() => scroll.evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight))).toBeLessThan(30);
    expect((await page.locator(".composer").boundingBox())!.height).toBeLessThan(450);
    await page.close();
  });

  test("files dropped anywhere on the view are attached, and VS Code does not take the pointer from it meanwhile", async () => {
    const page = await look("idle");
    await prompt(page).waitFor();
    const heard = await page.evaluate(() => {
      const names: string[] = [];
      for (const name of ["dragenter", "dragover"]) addEventListener(name, () => names.push(name)); // as VS Code listens
      const data = new DataTransfer();
      const bytes = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (byte) => byte.charCodeAt(0));
      data.items.add(new File([bytes], "shot.png", { type: "image/png" }));
      for (const name of ["dragenter", "dragover"]) document.querySelector(".slot-main")!.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer: data }));
      return names;
    });
    expect(heard).toEqual([]);
    await page.getByText("Drop to attach").waitFor();
    await page.evaluate(() => {
      const data = new DataTransfer();
      data.setData("application/vnd.code.uri-list", "file:///home/me/shop/a.ts");
      document.querySelector(".slot-main")!.dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
    });
    await expect.poll(() => page.evaluate(() => preview.calls.filter((call) => call.call === "attach").map((call) => call.params))).toEqual([{ uris: ["file:///home/me/shop/a.ts"] }]);
    expect(await page.getByText("Drop to attach").count()).toBe(0);
    await page.close();
  });

  test("words that are dropped on another field than the prompt are that field's", async () => {
    const page = await look("idle");
    await page.getByRole("combobox", { name: "Session" }).click();
    await page.getByRole("searchbox", { name: "Find sessions" }).waitFor();
    const taken = await page.evaluate(() => ["[role=searchbox]", ".prompt"].map((field) => {
      const data = new DataTransfer();
      data.setData("text/plain", "dragged words");
      const drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data });
      return !document.querySelector(field)!.dispatchEvent(drop);
    }));
    expect(taken).toEqual([false, true]);
    await page.close();
  });

  test("a draft with an image is there again after a reload", async () => {
    const page = await look("idle");
    const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
    await prompt(page).fill("Look at this");
    await page.getByLabel("Image files").setInputFiles({ name: "shot.png", mimeType: "image/png", buffer: png });
    await page.getByRole("img").or(page.locator(".attachment-picture")).first().waitFor();
    await expect.poll(() => page.evaluate(() => sessionStorage.getItem("state"))).toMatch(/Look at this.*"kept:/);
    await page.reload();
    await page.locator("img.attachment-picture").waitFor();
    expect(await prompt(page).inputValue()).toBe("Look at this");
    expect(await page.locator("img.attachment-picture").evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1);
    await page.close();
  });
});
