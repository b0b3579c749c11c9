import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

/** A wheel of the released name whose program is the agentd under test; it needs nothing of an index. */
function wheel(stage, python) {
  const path = join(stage.folder, "agentd_lsp-0.1.0-py3-none-any.whl");
  const script = `
import sys, zipfile
info = "agentd_lsp-0.1.0.dist-info/"
files = {
  "agentd_under_test.py": "import os, sys\\ndef main():\\n    os.execv(%r, [%r, '-m', 'agentd', *sys.argv[1:]])\\n" % (sys.argv[2], sys.argv[2]),
  info + "METADATA": "Metadata-Version: 2.1\\nName: agentd-lsp\\nVersion: 0.1.0\\n",
  info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
  info + "entry_points.txt": "[console_scripts]\\nagentd = agentd_under_test:main\\n",
}
with zipfile.ZipFile(sys.argv[1], "w") as whl:
    for name, text in files.items():
        whl.writestr(name, text)
    whl.writestr(info + "RECORD", "".join(f"{name},,\\n" for name in [*files, info + "RECORD"]))
`;
  execFileSync("python3", ["-c", script, path, python]);
  return path;
}

scenario("where agentd is missing it is installed by one click, in a place of its own", async (stage) => {
  const [python] = stage.command();
  const window = await stage.open({ machine: { "agentd.command": [], "agentd.installSource": wheel(stage, python) } });
  const chat = await window.chat({ ready: false });
  await chat.frame.getByText("was not found").first().waitFor();
  await chat.button("Install agentd").click();
  await chat.send("Are you there?");
  (await stage.model.asked()).ends("I am.");
  await chat.shows("I am.");
});

scenario("a key is given to the provider, and stands in no log, however much is logged", async (stage) => {
  const key = "sk-test-0123456789abcdef";
  const window = await stage.open({ machine: { "agentd.trace": "verbose" } });
  const chat = await window.chat();
  await window.command("agentd: Set API Key…", { asks: true });
  const { page } = window;
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "live" }).first().click();
  const input = page.locator(".quick-input-widget input[type=password]");
  await input.fill(key);
  await input.press("Enter");
  await until("the key is kept", async () => (await page.locator(".statusbar").innerText()).includes("key for live is kept"));
  await chat.send("Hello?");
  const turn = await stage.model.asked();
  expect(turn.headers.authorization === `Bearer ${key}`, `the provider got ${turn.headers.authorization}`);
  turn.ends("Hello.");
  await chat.shows("Hello.");
  await window.command("agentd: Restart agentd");
  await chat.idle();
  await chat.send("Again?");
  const again = await stage.model.asked();
  expect(again.headers.authorization === `Bearer ${key}`, "a daemon that is started anew has no key");
  again.ends("Again.");
  await chat.shows("Again.");
  await until("the traffic is logged", () => stage.logs().includes("agentd/prompt"));
  expect(!stage.logs().includes(key), "the key is in the log");
  await window.command("agentd: Delete API Key…", { asks: true });
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "live" }).first().click();
});

scenario("a workspace cannot say what is run, though it is trusted", async (stage) => {
  const window = await stage.open({
    files: { ".vscode/settings.json": JSON.stringify({ "agentd.command": ["/bin/false"], "agentd.installSource": "theirs", "agentd.trace": "verbose" }) },
  });
  const chat = await window.chat();
  await chat.send("Hello?");
  (await stage.model.asked()).ends("Hello.");
  await chat.shows("Hello.");
});

scenario("the report of agentd doctor opens in an editor", async (stage) => {
  const window = await stage.open();
  await window.chat();
  await window.command("agentd: Doctor");
  await until("the report is there", async () =>
    (await window.page.locator(".editor-instance .view-lines").allInnerTexts()).join("").replaceAll("\u00a0", " ").includes("configuration"));
});

inNewest("a daemon that ends over and over is given up, and its last words are told", async (stage) => {
  const window = await stage.open({ machine: { "agentd.command": ["/bin/sh", "-c", "echo 'no room for me' >&2; exit 3"] } });
  const chat = await window.chat({ ready: false });
  await chat.frame.getByText("no room for me").first().waitFor();
  await chat.frame.getByText("exit code 3").first().waitFor();
  const starts = () => stage.logs().split("agentd ended: exit code 3").length - 1;
  expect(starts() === 5, `it was started ${starts()} times`);
});
