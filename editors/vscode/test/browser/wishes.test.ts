/** What a system wishes of all its pages: colours of its own choice, and nothing that moves. */
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { hasBrowser, log, view } from "./page";
import { scenes } from "./scenes";
import { big, streamed } from "./sessions";

declare const preview: { say(message: unknown): void };

const prompt = (page: Page) => page.getByRole("textbox", { name: "Prompt" });
const styleOf = (page: Page, selector: string) => page.locator(selector).first().evaluate((element) => {
  const { outlineStyle, outlineWidth, outlineColor, borderColor, backgroundColor, opacity, textDecorationLine, color, borderLeftStyle } = getComputedStyle(element);
  return { outline: outlineStyle === "none" ? "none" : `${outlineWidth} ${outlineColor}`, borderColor, backgroundColor, opacity, line: textDecorationLine, color, left: borderLeftStyle };
});

describe.skipIf(!hasBrowser)("with the system's own colours", { timeout: 60_000 }, () => {
  const open = view({ ...scenes, pair: big(2) });
  const forced = async (query: string) => {
    const page = await open(query);
    await page.emulateMedia({ forcedColors: "active", colorScheme: "dark" });
    return page;
  };

  test("everything that has the focus says so by a line, in every screen", async () => {
    for (const scene of ["running", "command", "keys"]) {
      const page = await forced(`recording=${scene}&snapshot=bare`);
      await prompt(page).waitFor();
      const wanted = await page.locator("button:visible:enabled, textarea:visible, [role=combobox]:visible").count();
      const seen = new Set<string>();
      for (let step = 0; step < wanted + 20; step++) {
        await page.keyboard.press("Tab");
        const found = await page.evaluate(() => {
          const element = document.activeElement as HTMLElement | null;
          if (!element || element === document.body) return null;
          const line = getComputedStyle(element.closest(".prompt") ? element.closest(".composer-card")! : element);
          return { key: element.outerHTML.slice(0, 200), line: line.outlineStyle === "none" ? 0 : parseFloat(line.outlineWidth) };
        });
        if (!found) continue;
        expect(found.line, `${scene}: ${found.key}`).toBeGreaterThan(0);
        seen.add(found.key);
      }
      expect(seen.size, scene).toBeGreaterThan(10);
      await page.close();
    }
  });

  test("what is chosen differs from what is not, and what can be clicked from what is only said", async () => {
    const page = await forced("recording=idle&snapshot=bare");
    await page.getByRole("combobox", { name: "Model" }).click();
    const chosen = await styleOf(page, ".effort-choice.chosen");
    const other = await styleOf(page, ".effort-choice:not(.chosen)");
    expect(chosen.backgroundColor).not.toBe(other.backgroundColor);
    expect((await styleOf(page, ".choice.active")).outline).not.toBe("none");
    expect((await styleOf(page, ".choice:not(.active)")).outline).toBe("none");
    await page.keyboard.press("Escape");
    await page.close();
    const asked = await forced("recording=command&snapshot=bare");
    await asked.getByText("Reject and say what to do").waitFor();
    expect((await styleOf(asked, ".feedback-open")).line).toBe("underline");
    expect((await styleOf(asked, "button[aria-label='Revert all']")).opacity).toBe("1");
    expect((await styleOf(asked, ".progress span")).backgroundColor).not.toBe((await styleOf(asked, ".progress")).backgroundColor);
    await asked.close();
  });

  test("lines that were added and taken away are told apart without their colours", async () => {
    const page = await forced("recording=demo");
    await log(page).locator(".diff-rows .removed").first().waitFor();
    expect([(await styleOf(page, ".diff-rows .added td")).left, (await styleOf(page, ".diff-rows .removed td")).left, (await styleOf(page, ".diff-rows .context td")).left])
      .toEqual(["solid", "dotted", "none"]);
    await page.close();
  });
});

describe.skipIf(!hasBrowser)("where nothing shall move", { timeout: 60_000 }, () => {
  const open = view({ ...scenes, pair: big(2) });
  const moving = (page: Page) => page.evaluate(() => document.getAnimations().filter(({ playState }) => playState === "running").length);
  const goesOn = async (page: Page) => {
    await page.evaluate((events) => preview.say({ type: "events", sessionId: "big", events }), streamed(400).slice(0, 60));
    await page.locator(".live").waitFor();
  };

  test("nothing does by the system's wish, and the time is told in whole seconds", async () => {
    const page = await open("recording=pair&snapshot=bare");
    await goesOn(page);
    expect(await moving(page)).toBeGreaterThan(0);
    expect(await page.locator(".live .elapsed").textContent()).toMatch(/^[\d.]+ s$/);
    await page.close();
    const still = await open("recording=pair&snapshot=bare");
    await still.emulateMedia({ reducedMotion: "reduce" });
    await goesOn(still);
    expect(await moving(still)).toBe(0);
    expect(await still.locator(".live .elapsed").textContent()).toMatch(/^\d+\.0 s$|^\d+ s$/);
    await still.close();
  });

  test("nothing does by VS Code's own setting", async () => {
    const page = await open("recording=pair&snapshot=bare");
    await page.evaluate(() => document.body.classList.add("vscode-reduce-motion"));
    await goesOn(page);
    expect(await moving(page)).toBe(0);
    await page.close();
    const starting = await open("recording=starting&snapshot=bare");
    await starting.emulateMedia({ reducedMotion: "reduce" });
    await starting.locator(".screen, .callout").first().waitFor();
    expect(await moving(starting)).toBe(0);
    await starting.close();
  });
});
