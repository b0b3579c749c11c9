/**
 * Plays scenarios in a browser: one JSON object a line on stdin, each answered by one on stdout. `{play, module,
 * folder}` plays a scenario of a module, which is named as seen from `scenarios`; `{inHost: {extension, tests,
 * workspace}}` runs the tests in the extension host. `AGENTD_DRIVE` says where everything is. Ends with its stdin.
 */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { inHost } from "./inhost.mjs";
import { Model } from "./model.mjs";
import { scenarios } from "./scenario.mjs";
import { Stage } from "./stage.mjs";
import { within } from "./until.mjs";

const SCENARIO_SECONDS = 180;
const ACTION_MS = 45000;

const places = JSON.parse(process.env.AGENTD_DRIVE);
const modules = createRequire(`${places.modules}/`);
const { chromium } = modules("playwright-core");

async function play(house, { play: name, module, folder }) {
  await import(new URL(`../scenarios/${module}`, import.meta.url));
  const stage = new Stage(house, folder);
  try {
    const value = await within(`${name} ends`, scenarios.get(name)(stage), SCENARIO_SECONDS);
    return { ok: true, value };
  } catch (error) {
    return { ok: false, error: error.stack };
  } finally {
    await stage.keep();
    await stage.clear();
  }
}

const profile = mkdtempSync(join(tmpdir(), "agentd-chromium-"));
const model = new Model();
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
const house = { ...places, model, modelUrl: await model.start(), axe };
house.browser = await chromium.launchPersistentContext(profile, {
  executablePath: places.browser,
  headless: true,
  viewport: { width: 1280, height: 800 },
  deviceScaleFactor: places.scale ?? 1,
  permissions: ["clipboard-read", "clipboard-write"],
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  ],
});
house.browser.setDefaultTimeout(ACTION_MS);
house.browser.setDefaultNavigationTimeout(ACTION_MS);
try {
  for await (const line of createInterface({ input: process.stdin })) {
    let answer;
    try {
      const order = JSON.parse(line);
      answer = order.inHost ? await inHost(house, order.inHost) : await play(house, order);
    } catch (error) {
      answer = { ok: false, error: error.stack };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
} finally {
  await house.browser.close();
  model.stop();
  rmSync(profile, { recursive: true, force: true });
}
