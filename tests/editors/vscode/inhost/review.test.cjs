const assert = require("node:assert/strict");
const { existsSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");
const { asked, call, opened, root, run, say, session, test, type, until } = require("./tests.cjs");

const read = (document) => call("read_file", { file_path: document.uri.fsPath });
const edit = (document, from, to) =>
  call("edit_file", { file_path: document.uri.fsPath, old_string: from, new_string: to });

const REVERT = "agentd.ui.revertHunk";
const ACCEPT = "agentd.ui.acceptHunk";

/** The lenses of a command in a document, in order. */
async function lenses(document, command) {
  const all = await run("vscode.executeCodeLensProvider", document.uri, 100);
  return all.filter((lens) => lens.command?.command === command);
}

const counted = (document, count, command = REVERT) => until(`${count} places can be decided`, async () => {
  const found = await lenses(document, command);
  return found.length === count && found;
}, async () => [document.getText(), await run("vscode.executeCodeLensProvider", document.uri, 100)]);

const click = (lens) => run(lens.command.command, ...lens.command.arguments);

/** A prompt that makes these edits of a document, to its end. */
async function edited(document, ...edits) {
  const work = await session("full", read(document), ...edits, say("done"));
  const prompt = await run("agentd.prompt", "change it");
  await until("the prompt has ended", () => asked(work).length === edits.length + 2, () => asked(work).length);
  return { ...work, ...prompt };
}

test("a hunk is taken back in an unsaved document with CRLF, as one step that undo takes back", async () => {
  const document = await opened("crlf.txt", "a\r\nb\r\nc\r\nd\r\ne\r\n");
  await type(document, 0, 1, " typed");
  await edited(document, edit(document, "b\r\n", "B\r\nadded\r\n"), edit(document, "e\r\n", "E\r\n"));
  const [first] = await counted(document, 2);
  const then = "a typed\r\nB\r\nadded\r\nc\r\nd\r\nE\r\n";
  assert.equal(document.getText(), then);
  await click(first);
  assert.equal(document.getText(), "a typed\r\nb\r\nc\r\nd\r\nE\r\n");
  assert.equal(document.eol, vscode.EndOfLine.CRLF);
  await vscode.window.showTextDocument(document);
  await run("undo");
  assert.equal(document.getText(), then);
  await run("redo");
  assert.equal(document.getText(), "a typed\r\nb\r\nc\r\nd\r\nE\r\n");
});

test("the last hunk of a text without a last line end is taken back", async () => {
  for (const [before, from, to] of [["one\ntwo", "two", "TWO\nthree\n"], ["one\ntwo\nthree", "\ntwo\nthree", ""], ["one\n", "one\n", "one"]]) {
    const document = await opened("end.txt", before);
    await edited(document, edit(document, from, to));
    const [only] = await counted(document, 1);
    await click(only);
    assert.equal(document.getText(), before);
    await counted(document, 0);
  }
});

test("a hunk is accepted, the rest follows what is typed, and is then taken back", async () => {
  const document = await opened("accept.txt", "a\nb\nc\nd\ne\nf\n");
  await edited(document, edit(document, "b", "B"), edit(document, "e", "E"));
  const [first] = await counted(document, 2, ACCEPT);
  await click(first);
  const [rest] = await counted(document, 1);
  assert.equal(rest.range.start.line, 4);
  await type(document, 4, 0, "above\n");
  assert.equal(document.getText(), "a\nB\nc\nd\nabove\nE\nf\n");
  const [moved] = await until("the place has moved with what was typed above it", async () => {
    const found = await lenses(document, REVERT);
    return found.length === 1 && found[0].range.start.line === 5 && found;
  });
  await click(moved);
  assert.equal(document.getText(), "a\nB\nc\nd\nabove\ne\nf\n");
  await counted(document, 0);
});

test("what the user writes is not offered, and what both wrote is taken back on a word only", async () => {
  const document = await opened("both (1)+[x].txt", "a\nb\nc\nd\ne\nf\n");
  await edited(document, edit(document, "b", "B"), edit(document, "e", "E"));
  await counted(document, 2);
  await type(document, 3, 0, "my own ");
  await type(document, 4, 1, ", and mine");
  await until("the place of both is told from the other", async () => {
    const titles = (await lenses(document, REVERT)).map((lens) => lens.command.title);
    return titles.length === 2 && titles[1].includes("since") && !titles[0].includes("since");
  }, () => lenses(document, REVERT));
  const then = document.getText();
  const [pure, shared] = await lenses(document, REVERT);
  void click(shared); // a question that nobody answers
  await click(pure);
  assert.equal(document.getText(), then.replace("B", "b"));
  assert.equal(document.getText(), "a\nb\nc\nmy own d\nE, and mine\nf\n");
});

test("what a command writes under an open file is offered like an edit", async () => {
  const document = await opened("command.txt", "a\nb\nc\nd\n");
  const work = await session("full", read(document), edit(document, "a", "A"),
    call("bash", { command: `printf 'A\\nb\\nC\\nd\\n' > '${document.uri.fsPath}'` }), say("done"));
  await run("agentd.prompt", "change it");
  await until("the prompt has ended", () => asked(work).length === 4, () => asked(work));
  await until("VS Code has read it", () => document.getText() === "A\nb\nC\nd\n", () => document.getText());
  await counted(document, 2);
  await type(document, 1, 1, " mine");
  await counted(document, 2);
});

test("a place comes back with an undo, its file with the last one, and both go with a redo", async () => {
  const document = await opened("back.txt", "a\nb\nc\nd\ne\n");
  await edited(document, edit(document, "b", "B"), edit(document, "e", "E"));
  await click((await counted(document, 2))[0]);
  await click((await counted(document, 1))[0]);
  await counted(document, 0);
  await vscode.window.showTextDocument(document);
  await run("undo");
  await counted(document, 1);
  await run("undo");
  await counted(document, 2);
  await run("redo");
  await counted(document, 1);
  await run("redo");
  await counted(document, 0);
});

test("a file that a prompt made is gone when its only change is taken back, and comparable before", async () => {
  const path = join(root(), "made-for-review.txt");
  const work = await session("full", call("write_file", { file_path: path, content: "made\n" }), say("done"));
  await run("agentd.prompt", "make it");
  await until("the prompt has ended", () => existsSync(path) && asked(work).length === 2);
  const document = await vscode.workspace.openTextDocument(path);
  const [only] = await counted(document, 1);
  const [compare] = await lenses(document, "agentd.ui.openDiff");
  await click(compare);
  assert.deepEqual(await sides(), ["", "made\n"]);
  await click(only);
  await until("the file is gone", () => !existsSync(path));
});

test("a file that a prompt deleted is compared with nothing", async () => {
  const document = await opened("deleted.txt", "here\n");
  await run("workbench.action.closeActiveEditor");
  const work = await session("full", read(document), call("delete_file", { file_path: document.uri.fsPath }), say("done"));
  const { promptId } = await run("agentd.prompt", "delete it");
  await until("it is gone", () => !existsSync(document.uri.fsPath) && asked(work).length === 3, () => asked(work));
  await run("agentd.ui.openDiff", { sessionId: work.sessionId, promptId, uri: document.uri.toString() });
  assert.deepEqual(await sides(), ["here\n", ""]);
});

/** The texts of the diff editor in front. */
async function sides() {
  const input = await until("a diff is in front", () => {
    const now = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    return now instanceof vscode.TabInputTextDiff && now;
  });
  const texts = [input.original, input.modified].map(async (uri) => (await vscode.workspace.openTextDocument(uri)).getText());
  return Promise.all(texts);
}

test("what cannot be saved is named to the model before its command runs on what is on disk", async () => {
  const document = await opened("conflict.txt", "read\n");
  await type(document, 0, 0, "typed, ");
  writeFileSync(document.uri.fsPath, "another program wrote this much longer text meanwhile\n");
  const work = await session("full", call("bash", { command: "true" }), say("done"));
  await run("agentd.prompt", "run it");
  await until("the model is told", () => asked(work).length === 2, () => asked(work).length);
  assert.match(asked(work)[1], /conflict\.txt/);
  assert.match(asked(work)[1], /VS Code did not save it|newer|conflict/i);
  await vscode.window.showTextDocument(document);
  await run("workbench.action.files.revert");
});
