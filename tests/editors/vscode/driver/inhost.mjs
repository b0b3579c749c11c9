/** Tests that run in the extension host, beside the extension as it is built: VS Code's own way of testing one. */
import { within } from "./until.mjs";

const MARK = "in-host test: ";
const SECONDS = 360;

/** Runs all; gives `{results: [{name, ok, error?}], log}`. */
export async function inHost(house, { extension, tests, workspace }) {
  const { url } = house.server;
  const remote = (path) => `vscode-remote://${new URL(url).host}${path}`;
  const payload = JSON.stringify([
    ["extensionDevelopmentPath", remote(extension)], ["extensionTestsPath", remote(tests)],
    ["skipWelcome", "true"], ["skipReleaseNotes", "true"],
  ]);
  const page = await house.browser.newPage();
  const results = [];
  const log = [];
  try {
    let ended;
    const end = new Promise((done) => (ended = done));
    await page.exposeFunction("codeAutomationLog", (_, said) => {
      for (const line of said.filter((one) => typeof one === "string")) {
        const at = line.indexOf(MARK);
        if (at < 0) log.push(line);
        else results.push(JSON.parse(line.slice(at + MARK.length)));
      }
    });
    await page.exposeFunction("codeAutomationExit", (code) => ended(code));
    const query = `?folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(payload)}`;
    await page.goto(url + query);
    await within("the tests in the extension host end", end, SECONDS).catch((error) => log.push(error.message));
    return { results, log: log.join("\n") };
  } finally {
    await page.close();
  }
}
