import { existsSync } from "node:fs";
import { scenario } from "../driver/scenario.mjs";
import { all } from "../driver/processes.mjs";
import { expect, until } from "../driver/until.mjs";

const TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

/** A window in which agentd was missing, and was installed by one click. */
async function installed(stage, files = {}) {
  const window = await stage.open({ files });
  const chat = await window.chat({ ready: false });
  await chat.frame.getByText("was not found on the machine of the workspace").first().waitFor();
  await chat.button("Install agentd").click();
  await chat.ready();
  return { window, chat };
}

/** Has the model call for a command, and gives the question for it. */
async function calls(stage, chat, command) {
  await chat.send("Run it.");
  (await stage.model.asked()).calls("bash", { command }).ends();
  await chat.permission.waitFor();
}

async function edits(stage, chat, old_string, new_string) {
  await chat.send("Shout.");
  (await stage.model.asked()).calls("read_file", { file_path: "a.txt" }).ends();
  (await stage.model.asked()).calls("edit_file", { file_path: "a.txt", old_string, new_string }).ends();
  await chat.permission.getByLabel(/^Changes in/).first().waitFor();
  await chat.allow();
  (await stage.model.asked()).ends("It is louder.");
  await chat.idle();
}

scenario("in a container agentd is installed by one click; mode auto is refused with the reason, and ask works", async (stage) => {
  const { chat } = await installed(stage);
  expect(!existsSync(stage.path()), "the workspace is on this machine as well");
  const mode = chat.frame.getByRole("combobox", { name: "Mode", exact: true });
  await chat.choose("Mode", "Auto");
  await chat.send("Run it.");
  const refusal = chat.frame.getByText("Mode auto needs a sandbox for commands, and there is none: /usr/bin/bwrap does not work here");
  await refusal.first().waitFor();
  await chat.frame.getByText("this kernel's Landlock will not do").first().waitFor();
  await until("Ask is offered in its place", async () => (await mode.innerText()).includes("Ask"));
  expect((await chat.prompt.inputValue()) === "Run it.", "the prompt is lost");
  await chat.prompt.press("Enter");
  (await stage.model.asked()).calls("bash", { command: "pwd; uname -n; id -un" }).ends();
  await chat.permission.getByText("uname -n").first().waitFor();
  await chat.allow();
  const told = await stage.model.asked();
  expect(told.heard("tool").includes(`${stage.path()}\nelsewhere\n${stage.user}`), `the command said ${told.heard("tool")}`);
  told.ends("It ran.");
  await chat.shows("It ran.");
  await chat.idle();
  await mode.click();
  const auto = chat.frame.getByRole("option", { name: "Auto" });
  expect((await auto.getAttribute("aria-disabled")) === "true", "Auto can be chosen again");
});

scenario("in a container an edit is undone, and another one is taken back from the list of changed files", async (stage) => {
  const { window, chat } = await installed(stage, { "a.txt": TEXT });
  await window.openFile("a.txt");
  await window.typeAt("a.txt", 1, " typed");
  await edits(stage, chat, "three", "THREE");
  await window.shows("a.txt", "THREE");
  expect(stage.read("a.txt") === TEXT, "the file on disk was changed");
  await window.undo("a.txt");
  await window.shows("a.txt", "three");
  await window.shows("a.txt", "one typed");
  await edits(stage, chat, "nine", "NINE");
  await window.shows("a.txt", "NINE");
  await chat.button("Revert all").click();
  await window.shows("a.txt", "nine");
  await window.shows("a.txt", "one typed");
});

scenario("the daemon and its command end with their container", async (stage) => {
  const { chat } = await installed(stage);
  await calls(stage, chat, "echo it began; sleep 2718.28");
  await chat.allow();
  await until("the command runs", () => stage.processes().some(({ command }) => command === "sleep 2718.28"));
  expect(stage.daemons().length === 1, "there is not one daemon");
  const [first, ...others] = stage.processes();
  process.kill(first.pid, "SIGKILL");
  const lives = () => all().filter((one) => [first, ...others].some(({ pid, command }) => one.pid === pid && one.command === command));
  await until("all of the container has ended", () => lives().length === 0, { seen: () => JSON.stringify(lives()) });
});
