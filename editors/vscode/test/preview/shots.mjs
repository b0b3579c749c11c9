/** Pictures of the view, to be looked at: `node test/preview/shots.mjs FOLDER [recording] [theme]`. */
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

const [folder, recording, theme] = process.argv.slice(2);
const { address, stop } = await serve();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const name of recording ? [recording] : ["demo", "answer", "output", "failures", "permissions", "waiting", "agents", "recovery"]) {
  for (const look of theme ? [theme] : ["dark"]) {
    const page = await browser.newPage({ viewport: { width: 430, height: 900 }, deviceScaleFactor: 1.5 });
    page.on("console", (message) => { if (message.type() === "error") console.log(name, message.text()); });
    page.on("pageerror", (error) => console.log(name, String(error)));
    await page.goto(`${address}?recording=${name}&theme=${look}${process.env.QUERY ?? ""}`);
    await page.waitForSelector("[data-message-id]");
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${folder}/${name}-${look}.png` });
    await page.close();
  }
}
await browser.close();
await stop();
