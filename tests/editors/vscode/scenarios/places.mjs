import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect } from "../driver/until.mjs";

scenario("in Restricted Mode nothing of the workspace counts, and trust makes it count at once", async (stage) => {
  stage.configure({ mode: "edit" });
  const window = await stage.open({
    trusted: false,
    files: { "AGENTS.md": "Always answer in rhymes.\n", ".vscode/settings.json": '{"agentd.model": "scripted/theirs"}' },
  });
  const chat = await window.chat();
  await chat.send("Hello?");
  const turn = await stage.model.asked();
  expect(!JSON.stringify(turn.body).includes("in rhymes"), "the workspace's instructions were read");
  turn.ends("Hello.");
  await chat.shows("Hello.");
  await chat.idle();
  await window.trust();
  await chat.send("And now?");
  const trusted = await stage.model.asked();
  expect(JSON.stringify(trusted.body).includes("in rhymes"), "the workspace's instructions were not read");
  trusted.ends("Fine, and how?");
  await chat.shows("Fine, and how?");
});

/** A window with several folders. VS Code may take a workspace file for an empty one, and stays at that: it is loaded again. */
async function withFolders(stage, options) {
  const window = await stage.open(options);
  for (let tries = 3; ; tries--) {
    const chat = await window.chat();
    try {
      await chat.frame.getByRole("combobox", { name: "Folder", exact: true }).waitFor({ timeout: 10000 });
      return { window, chat };
    } catch (error) {
      if (tries === 0) throw error;
      await window.reload();
    }
  }
}

inNewest("with several folders a session begins in the one that is chosen", async (stage) => {
  for (const name of ["first", "second"]) mkdirSync(stage.path(name), { recursive: true });
  const workspace = join(stage.folder, "both.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: ["first", "second"].map((name) => ({ path: stage.path(name) })) }));
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const { chat } = await withFolders(stage, { workspace, files: { "second/only-here.txt": "x\n" } });
  await chat.choose("Folder", "second");
  await chat.send("What is in here?");
  (await stage.model.asked()).calls("list_directory", { path: "." }).ends();
  const next = await stage.model.asked();
  expect(next.heard("tool").includes("only-here.txt"), `the model saw ${next.heard("tool")}`);
  next.ends("A file.");
  await chat.shows("A file.");
});

inNewest("two windows on one workspace work side by side, and neither takes the other's session", async (stage) => {
  const first = await stage.open();
  const second = await stage.open();
  const [one, two] = [await first.chat(), await second.chat()];
  await one.send("First window.");
  const turn = await stage.model.asked();
  turn.says("Held ");
  await one.shows("Held");
  await two.send("Second window.");
  (await stage.model.asked()).ends("Free.");
  await two.shows("Free.");
  turn.ends("no more.");
  await one.shows("Held no more.");
  expect(!(await two.text()).includes("Held"), "the second window shows the first one's session");
  expect(!(await one.text()).includes("Free."), "the first window shows the second one's session");
});

scenario("a folder that is removed from the window ends what runs in it, and what was said stays", async (stage) => {
  for (const name of ["first", "second"]) mkdirSync(stage.path(name), { recursive: true });
  const workspace = join(stage.folder, "both.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: ["first", "second"].map((name) => ({ path: stage.path(name) })) }));
  const { window, chat } = await withFolders(stage, { workspace });
  await chat.choose("Folder", "second");
  await chat.send("Work.");
  const turn = await stage.model.asked();
  turn.says("Held ");
  await chat.shows("Held");
  await window.command("Workspaces: Remove Folder from Workspace", { asks: true });
  await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "second" }).first().click();
  await turn.hungUp;
  await chat.shows("Stopped");
  await chat.shows("Held");
  await chat.beginSession();
  await chat.send("And here?");
  const next = await stage.model.asked();
  expect(next.heard("system").includes(stage.path("first")), `the model heard of ${next.heard("system")}`);
  next.ends("Here.");
  await chat.shows("Here.");
});
