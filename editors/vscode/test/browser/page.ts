/** A browser with the view in it, for the tests: skipped where there is none. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
// @ts-expect-error a script without types
import { serve } from "../preview/server.mjs";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const hasBrowser = existsSync(CHROMIUM);

/** Gives `open(query)`: a page of the view. What the page's policy forbids and what fails in it is an error of the test. */
export function view(recordings: Record<string, unknown> = {}): (query: string, size?: { width: number; height: number }) => Promise<Page> {
  let browser: Browser;
  let context: BrowserContext; // one for all: what the pages are made of is read and compiled once
  let server: { address: string; stop(): Promise<void> };
  beforeAll(async () => {
    server = await serve({ recordings }) as typeof server;
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    context = await browser.newContext();
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  return async (query, size = { width: 430, height: 800 }) => {
    const page = await context.newPage();
    await page.setViewportSize(size);
    page.setDefaultTimeout(15_000);
    page.on("pageerror", (error) => { throw error; });
    page.on("console", (message) => {
      if (message.type() === "error") throw new Error(`In the page: ${message.text()}`);
    });
    await page.goto(`${server.address}?${query}`);
    await page.waitForFunction(() => "preview" in window);
    return page;
  };
}

export const log = (page: Page) => page.getByRole("log", { name: "Conversation" });

/** How far the end is from what is seen, in pixels. */
export const fromEnd = (page: Page) => log(page).evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
