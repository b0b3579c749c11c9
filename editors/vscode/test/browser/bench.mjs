/**
 * What a long session costs, beside what the browser takes for the least that could be done: `npm run bench`.
 * Ratios, as machines differ; nothing here passes or fails.
 */
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { serve } from "../preview/server.mjs";

const { outputFiles } = await build({ entryPoints: [new URL("sessions.ts", import.meta.url).pathname], bundle: true, format: "esm", write: false });
const { big, streamed, told, LONG } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
const { address, stop } = await serve({ recordings: { big: big(2000), small: big(2) } });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

const open = async (query, id) => {
  const page = await browser.newPage({ viewport: { width: 430, height: 900 } });
  const begun = performance.now();
  await page.goto(`${address}?${query}`);
  await page.locator(`[data-message-id="${id}"]`).waitFor();
  return { page, took: performance.now() - begun };
};
const spent = async (page) => {
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  return async () => Object.fromEntries((await client.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value * 1000]));
};
/** Milliseconds of script, style and layout that `work` takes of the page. */
const cost = async (page, work) => {
  const read = await spent(page);
  const before = await read();
  await work();
  const after = await read();
  const of = (name) => after[name] - before[name];
  return { script: of("ScriptDuration"), layout: of("LayoutDuration") + of("RecalcStyleDuration"), task: of("TaskDuration") };
};
const shown = ({ script, layout, task }) => `script ${script.toFixed(0)} ms, style and layout ${layout.toFixed(0)} ms, all ${task.toFixed(0)} ms`;

// In batches of eight, one for each frame: what a fast model says, as the host passes it on.
const stream = (page, events, batch = 8) => page.evaluate(async ([all, step]) => {
  for (let at = 0; at < all.length; at += step) {
    window.preview.say({ type: "events", sessionId: "big", events: all.slice(at, at + step) });
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}, [events, batch]);
// Into one text; or each into a paragraph of its own, as a long one is laid out anew with every word.
const floor = (page, events, batch = 8, isApart = false) => page.evaluate(async ([all, step, apart]) => {
  const box = document.body.appendChild(document.createElement("pre"));
  box.style.cssText = "position: fixed; inset: 0; overflow: auto; white-space: pre-wrap";
  const text = box.appendChild(new Text(""));
  for (let at = 0; at < all.length; at += step) {
    window.postMessage(all.slice(at, at + step), "*");
    for (const { event } of all.slice(at, at + step)) {
      if (apart) box.appendChild(document.createElement("p")).append(event.update?.delta ?? "");
      else text.appendData(event.update?.delta ?? "");
    }
    box.scrollTop = box.scrollHeight;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}, [events, batch, isApart]);

const events = streamed(5000);
const blank = await browser.newPage({ viewport: { width: 430, height: 900 } });
const least = await cost(blank, () => floor(blank, events));
const { page: small } = await open("recording=small&snapshot=bare", "m1");
const inSmall = await cost(small, () => stream(small, events));
const { page: large, took } = await open("recording=big&snapshot=bare", "m1999");
const inLarge = await cost(large, () => stream(large, events));
const scroll = await cost(large, () => large.evaluate(async () => {
  const box = document.querySelector(".scroll");
  for (let step = 0; step < 300; step++) {
    box.scrollTop -= 300;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}));
const per = (value) => `${(value.task / events.length).toFixed(3)} ms for each`;
console.log(`5,000 pieces as plain text (floor)     ${shown(least)}; ${per(least)}`);
console.log(`5,000 pieces into a small session      ${shown(inSmall)}; ${per(inSmall)}; ${(inSmall.task / least.task).toFixed(1)} times the floor`);
console.log(`5,000 pieces into 2,000 messages       ${shown(inLarge)}; ${per(inLarge)}; ${(inLarge.task / inSmall.task).toFixed(2)} times the small one`);
console.log(`2,000 messages, open to the last one   ${took.toFixed(0)} ms, ${await large.locator("*").count()} elements in the page`);
console.log(`scrolling them, each of 300 steps      ${(scroll.task / 300).toFixed(1)} ms`);

// A message of a million characters, in 400 pieces: what one piece costs may depend on what grows, not on what is there.
const LENGTH = 1_000_000;
const PIECES = 400;
for (const [name, text] of Object.entries(LONG)) {
  const pieces = told(text(LENGTH), PIECES);
  const first = told(text(LENGTH).slice(0, LENGTH / 10), PIECES / 10);
  const plain = await browser.newPage({ viewport: { width: 430, height: 900 } });
  const bare = await cost(plain, () => floor(plain, pieces, 1, true));
  const { page: tenth } = await open("recording=small&snapshot=bare", "m1");
  const little = await cost(tenth, () => stream(tenth, first, 1));
  const { page: whole } = await open("recording=small&snapshot=bare", "m1");
  const all = await cost(whole, () => stream(whole, pieces, 1));
  console.log(`${name}, a million characters`.padEnd(39) + `${shown(all)}; floor ${bare.task.toFixed(0)} ms, ${(all.task / bare.task).toFixed(2)} times it; a piece costs ${(all.task / 10 / little.task).toFixed(2)} times one of the first tenth`);
  for (const each of [plain, tenth, whole]) await each.close();
}
await browser.close();
await stop();
