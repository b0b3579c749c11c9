const assert = require("node:assert/strict");
const { existsSync, mkdirSync, readFileSync, rmSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");
const { asked, call, opened, root, run, say, session, test, type, until } = require("./tests.cjs");

const read = (document) => call("read_file", { file_path: document.uri.fsPath });
const edit = (document, from, to) =>
  call("edit_file", { file_path: document.uri.fsPath, old_string: from, new_string: to });

test("an edit lands in the unsaved document, and its undo leaves what was typed", async () => {
  const document = await opened("a.txt", "one\ntwo\nthree\n");
  await type(document, 0, 3, ", typed");
  await session("full", read(document), edit(document, "three", "THREE"), say("done"));
  await run("agentd.prompt", "shout");
  await until("the edit is there", () => document.getText().includes("THREE"), () => document.getText());
  assert.equal(document.getText(), "one, typed\ntwo\nTHREE\n");
  assert.equal(document.isDirty, true);
  assert.equal(readFileSync(document.uri.fsPath, "utf8"), "one\ntwo\nthree\n");
  await vscode.window.showTextDocument(document);
  await run("undo");
  assert.equal(document.getText(), "one, typed\ntwo\nthree\n");
  await run("redo");
  assert.equal(document.getText(), "one, typed\ntwo\nTHREE\n");
});

test("several places of one edit change together, with one step to take them back", async () => {
  const document = await opened("many.txt", "a\nx\nb\nx\nc\n");
  await session("full", read(document),
    call("edit_file", { file_path: document.uri.fsPath, old_string: "x", new_string: "y", replace_all: true }), say("done"));
  await run("agentd.prompt", "y");
  await until("the edit is there", () => document.getText() === "a\ny\nb\ny\nc\n", () => document.getText());
  await vscode.window.showTextDocument(document);
  await run("undo");
  assert.equal(document.getText(), "a\nx\nb\nx\nc\n");
});

test("an edit for an older text is refused, and what was typed stays", async () => {
  const document = await opened("stale.txt", "one\ntwo\n");
  const work = await session("ask", read(document), edit(document, "two", "TWO"), say("I read it again"));
  await run("agentd.prompt", "shout");
  await until("the edit is called for", () => asked(work).length === 2);
  await type(document, 1, 3, ", as I want it");
  await until("the question is answered", () =>
    asked(work).length === 3 || run("agentd.approve").then(() => true, () => false));
  await until("the model is told", () => asked(work).length === 3, () => asked(work).length);
  assert.equal(document.getText(), "one\ntwo, as I want it\n");
});

test("a file that is not open is written on disk", async () => {
  const path = join(root(), "new", "file.txt");
  await session("full", call("write_file", { file_path: path, content: "made\n" }), say("done"));
  await run("agentd.prompt", "make it");
  await until("the file is there", () => existsSync(path) && readFileSync(path, "utf8") === "made\n");
});

test("what the last prompt did to files is taken back by a command", async () => {
  const document = await opened("back.txt", "before\n");
  const work = await session("full", read(document), edit(document, "before", "after"), say("done"));
  await run("agentd.prompt", "change it");
  await until("it is changed", () => document.getText() === "after\n");
  await until("the prompt has ended", async () => {
    if (asked(work).length < 3) return false;
    return run("agentd.undo", work.sessionId).then(() => true, () => false);
  });
  await until("it is as it was", () => document.getText() === "before\n", () => document.getText());
});

test("what is not saved is saved before a command runs", async () => {
  const document = await opened("save.txt", "on disk\n");
  await type(document, 0, 0, "typed, ");
  const work = await session("full", call("bash", { command: `cat '${document.uri.fsPath}'` }), say("done"));
  await run("agentd.prompt", "show it");
  await until("the model is told", () => asked(work).length === 2, () => asked(work).length);
  assert.ok(asked(work)[1].includes("typed, on disk"), asked(work)[1]);
  assert.equal(document.isDirty, false);
});

/** Runs a command of the shell in a session, after `document` was changed; gives what the model is told of it. */
async function commandAfter(...responses) {
  const work = await session("full", call("bash", { command: "true" }), say("done"), ...responses);
  await run("agentd.prompt", "run it");
  await until("the model is told", () => asked(work).length === 2, () => asked(work).length);
  return asked(work)[1];
}

test("a document that VS Code may not save is named with the reason, and keeps what was typed", async () => {
  const document = await opened("read-only.txt", "on disk\n");
  await type(document, 0, 0, "typed, ");
  const files = vscode.workspace.getConfiguration("files");
  await files.update("readonlyInclude", { "**/*-read-only.txt": true }, vscode.ConfigurationTarget.Workspace);
  try {
    const told = await commandAfter();
    assert.match(told, /read-only\.txt/);
    assert.match(told, /VS Code did not save it: the file is read-only there/);
    assert.equal(document.getText(), "typed, on disk\n");
    assert.equal(document.isDirty, true);
    assert.equal(readFileSync(document.uri.fsPath, "utf8"), "on disk\n");
  } finally {
    await files.update("readonlyInclude", undefined, vscode.ConfigurationTarget.Workspace);
    await vscode.window.showTextDocument(document);
    await run("workbench.action.files.revert");
  }
});

test("a document in whose place a folder stands is named with the reason, and keeps what was typed", async () => {
  const document = await opened("folder.txt", "on disk\n");
  await type(document, 0, 0, "typed, ");
  rmSync(document.uri.fsPath);
  mkdirSync(document.uri.fsPath);
  try {
    const told = await commandAfter();
    assert.match(told, /folder\.txt/);
    assert.match(told, /a folder stands in its place/);
    assert.equal(document.getText(), "typed, on disk\n");
  } finally {
    await vscode.window.showTextDocument(document);
    await run("workbench.action.revertAndCloseActiveEditor");
    rmSync(document.uri.fsPath, { recursive: true });
  }
});

test("a text without a name is left alone before a command, without a dialog", async () => {
  const document = await vscode.workspace.openTextDocument({ content: "mine\n" });
  await vscode.window.showTextDocument(document);
  await type(document, 0, 0, "all ");
  await commandAfter();
  assert.equal(document.getText(), "all mine\n");
  assert.equal(document.isDirty, true);
  await vscode.window.showTextDocument(document);
  await run("workbench.action.revertAndCloseActiveEditor");
});
