import { existsSync } from "node:fs";
import { above, environmentOf } from "../driver/processes.mjs";
import { inNewest, scenario } from "../driver/scenario.mjs";
import { expect, until } from "../driver/until.mjs";

const TEXT = "one\ntwo\nthree\nfour\nfive\n";
const OURS = /^(AGENTD|XDG|VSCODE|ELECTRON|PYTEST|VIRTUAL_ENV)/;

async function once(chat, ...texts) {
  for (const text of texts) {
    const count = async () => (await chat.text()).split(text).length - 1;
    await until(`${text} is shown once`, async () => (await count()) === 1, { seen: () => chat.text() });
  }
}

/** Has the model shout one word of the file, which it has read. */
async function shouts(stage, chat) {
  await chat.send("Shout.");
  (await stage.model.asked()).calls("read_file", { file_path: "a.txt" }).ends();
  return stage.model.asked();
}

scenario("over SSH a daemon of the login streams, asks, runs a command and changes an unsaved editor", async (stage) => {
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  expect(!existsSync(stage.path()), "the workspace is on this machine as well");
  await chat.send("Where are you?");
  const turn = await stage.model.asked();
  turn.says("I look, ");
  await chat.shows("I look,");
  turn.calls("bash", { command: "pwd; uname -n; id -un" }).ends("and I say.");
  await chat.permission.getByText("uname -n").first().waitFor();
  await chat.allow();
  const told = await stage.model.asked();
  expect(told.heard("tool").includes(`${stage.path()}\nelsewhere\n${stage.user}`), `the command said ${told.heard("tool")}`);
  told.ends("Elsewhere.");
  await chat.idle();

  await window.openFile("a.txt");
  await window.typeAt("a.txt", 1, " typed");
  (await shouts(stage, chat)).calls("edit_file", { file_path: "a.txt", old_string: "three", new_string: "THREE" }).ends();
  await chat.permission.getByLabel(/^Changes in/).first().waitFor();
  await chat.allow();
  (await stage.model.asked()).ends("It is louder.");
  await chat.shows("It is louder.");
  await window.shows("a.txt", "THREE");
  expect(stage.read("a.txt") === TEXT, "the file on disk was changed");
  await window.undo("a.txt");
  await window.shows("a.txt", "three");
  await window.shows("a.txt", "one typed");

  const [daemon] = stage.daemons();
  const parents = above(daemon);
  expect(parents.some((command) => command.startsWith("sshd: ")), `the daemon is below ${parents.join("\n")}`);
  const given = environmentOf(daemon);
  expect(given.HOME === "/home/dev" && given.SSH_CONNECTION?.startsWith("127.0.0.1 "), JSON.stringify(given));
  expect(given.FROM_PROFILE === "yes", "VS Code did not ask the login's shell for its environment");
  const foreign = Object.keys(given).filter((name) => OURS.test(name));
  expect(foreign.length === 0, `the daemon was given ${foreign.join(", ")}`);
});

scenario("a connection that is cut and made again loses nothing of a prompt that goes on, and shows nothing twice", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Make it.");
  const turn = await stage.model.asked();
  turn.says("Before the cut, ");
  await chat.shows("Before the cut,");
  const [daemon] = stage.daemons();
  await stage.connection.cut();
  turn.says("in the midst of it. ").calls("list_directory", { path: "." }).ends();
  const unseen = await stage.model.asked();
  unseen.says("I ask.").calls("bash", { command: "echo made >> made" }).ends();
  expect(!(await chat.text()).includes("in the midst"), "the connection was not cut");
  await stage.connection.make();
  await chat.permission.getByText("echo made >> made").first().waitFor();
  await once(chat, "Make it.", "Before the cut, in the midst of it.", "I ask.");
  await chat.allow();
  (await stage.model.asked()).ends("It is made.");
  await chat.idle();
  await once(chat, "Make it.", "Before the cut, in the midst of it.", "I ask.", "It is made.");
  expect(stage.read("made") === "made\n", "the command ran twice");
  expect(stage.daemons().join() === `${daemon}`, "it is another daemon");
});

inNewest("an edit that agentd gave up while the connection was cut is not made when it is there again", async (stage) => {
  stage.configure({ mode: "edit", trusted: [stage.path()] });
  const window = await stage.open({ files: { "a.txt": TEXT } });
  const chat = await window.chat();
  await window.openFile("a.txt");
  await window.typeAt("a.txt", 1, " typed");
  const turn = await shouts(stage, chat);
  await stage.connection.cut();
  turn.calls("edit_file", { file_path: "a.txt", old_string: "three", new_string: "LATE" }).ends();
  const told = await stage.model.asked();
  expect(told.heard("tool").includes("was not changed"), `the model heard ${told.heard("tool")}`);
  await stage.connection.make();
  told.says("I look again.");
  await chat.shows("I look again.");
  told.calls("read_file", { file_path: "a.txt" }).ends();
  const again = await stage.model.asked();
  expect(again.heard("tool").includes("three"), `the model read ${again.heard("tool")}`);
  again.calls("edit_file", { file_path: "a.txt", old_string: "three", new_string: "THREE" }).ends();
  (await stage.model.asked()).ends("It is louder.");
  await chat.shows("It is louder.");
  await window.shows("a.txt", "one typed\ntwo\nTHREE\nfour");
  await window.undo("a.txt");
  await window.shows("a.txt", "one typed\ntwo\nthree\nfour");
});

inNewest("when VS Code's server is killed over there, no daemon and no command of one is left", async (stage) => {
  const window = await stage.open();
  const chat = await window.chat();
  await chat.send("Wait.");
  (await stage.model.asked()).calls("bash", { command: "echo it began; sleep 3141.5" }).ends();
  await chat.permission.waitFor();
  await chat.allow();
  const named = (pattern) => stage.processes().filter(({ command }) => pattern.test(command));
  await until("the command runs", () => named(/^sleep 3141.5/).length === 1);
  const [server] = named(/server-main\.js .*--start-server/);
  process.kill(server.pid, "SIGKILL");
  await until("all of it has ended", () => stage.daemons().length === 0 && named(/^sleep 3141.5|server-main/).length === 0,
    { seen: () => JSON.stringify(stage.processes()) });
});
