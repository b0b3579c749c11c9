const assert = require("node:assert/strict");
const { readdirSync, readFileSync } = require("node:fs");
const vscode = require("vscode");
const { asked, call, opened, run, say, session, test, until } = require("./tests.cjs");

const DAEMON = ["prompt", "fix", "edit", "explain", "test", "cancel", "approve", "reject", "showTranscript", "showDiff",
  "undo", "newSession", "setModel", "setMode"];

test("the extension activates by itself, and every command of the daemon can be run", async () => {
  const extension = vscode.extensions.getExtension("agentd.agentd");
  await until("the extension is active", () => extension.isActive);
  const known = () => vscode.commands.getCommands(true);
  await until("the daemon's commands are there", async () => (await known()).includes("agentd.prompt"));
  const ids = await known();
  for (const name of DAEMON) assert.ok(ids.includes(`agentd.${name}`), `agentd.${name} is missing`);
  for (const { command } of extension.packageJSON.contributes.commands) {
    assert.match(command, /^agentd\.ui\./);
    assert.ok(ids.includes(command), `${command} is contributed and not there`);
  }
});

test("the extension and its daemon run where the workspace is", async () => {
  const { extensionKind, extensionUri } = vscode.extensions.getExtension("agentd.agentd");
  assert.equal(extensionKind, vscode.ExtensionKind.Workspace);
  assert.notEqual(vscode.env.remoteName, undefined); // this window is one of a server
  assert.equal(extensionUri.scheme, "file");
  assert.equal(vscode.workspace.workspaceFolders[0].uri.scheme, "file");
  const ours = () => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && parentOf(pid) === process.pid).map((pid) => commandOf(pid));
  await until("the daemon is this extension host's own process", () => ours().some((command) => command.includes("-m agentd")), ours);
});

function parentOf(pid) {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))[1]);
  } catch {
    return null; // it has ended
  }
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

test("a comment line is offered as a code action, and done", async () => {
  const work = await session("full", say("It is a list."));
  const document = await opened("a.py", "# agentd: explain this\nx = []\n");
  const action = await until("the action is offered", async () => {
    const range = new vscode.Range(0, 3, 0, 3);
    const actions = await run("vscode.executeCodeActionProvider", document.uri, range);
    return actions.find(({ title }) => title === "agentd: explain this");
  });
  await run(action.command.command, ...action.command.arguments);
  await until("the model is asked", () => asked(work).length === 1);
  assert.match(asked(work)[0], /explain this/);
});

test("the model is told which file is in front and what is selected in it", async () => {
  const work = await session("full", say("I see."));
  const document = await opened("front.py", "one\ntwo\nthree\n");
  vscode.window.activeTextEditor.selection = new vscode.Selection(1, 0, 1, 3);
  await until("the selection is told", async () => vscode.window.activeTextEditor.selection.end.character === 3);
  await run("agentd.prompt", "what is it?");
  await until("the model is asked", () => asked(work).length === 1);
  assert.ok(asked(work)[0].includes(document.uri.path.split("/").at(-1)), asked(work)[0]);
});

test("what a review found stands at its lines, and goes with an empty report", async () => {
  const document = await opened("found.py", "a = b - c\n");
  const finding = { file_path: document.uri.fsPath, line: 1, severity: "error", message: "wrong sign" };
  const found = () => vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source === "agentd");
  await session("full", call("report_findings", { findings: [finding] }), say("one"),
    call("report_findings", { findings: [] }), say("none"));
  await run("agentd.prompt", "review it");
  await until("the finding is shown", () => found().length === 1, found);
  assert.equal(found()[0].message, "wrong sign");
  assert.equal(found()[0].range.start.line, 0);
  await run("agentd.prompt", "again");
  await until("the finding is gone", () => found().length === 0, found);
});
