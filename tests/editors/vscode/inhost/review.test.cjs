const assert = require("node:assert/strict");
const { existsSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
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

test("a file that is moved in the explorer keeps what is offered, and its comparison", async () => {
  const document = await opened("moved.txt", "a\nb\nc\nd\n");
  const { sessionId, promptId } = await edited(document, edit(document, "b", "B"), edit(document, "d", "D"));
  await click((await counted(document, 2, ACCEPT))[0]);
  await document.save();
  const there = vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, "elsewhere", "moved-there.txt");
  const move = new vscode.WorkspaceEdit();
  move.renameFile(document.uri, there);
  assert.equal(await vscode.workspace.applyEdit(move), true);
  const moved = await vscode.workspace.openTextDocument(there);
  const [only] = await counted(moved, 1);
  await run("agentd.ui.openDiff", { sessionId, promptId, uri: document.uri.toString() });
  assert.deepEqual(await sides(), ["a\nb\nc\nd\n", "a\nB\nc\nD\n"]);
  await click(only);
  assert.equal(moved.getText(), "a\nB\nc\nd\n");
});

test("a byte order mark and CRLF stay as they are when a place is taken back and saved", async () => {
  const document = await opened("mark.txt", "\ufeffa\r\nb\r\nc\r\nd\r\n");
  await edited(document, edit(document, "b", "B"), edit(document, "d", "D"));
  await click((await counted(document, 2))[0]);
  await document.save();
  assert.equal(readFileSync(document.uri.fsPath, "utf8"), "\ufeffa\r\nb\r\nc\r\nD\r\n");
  await counted(document, 1);
});

/** Plays with settings of the workspace. */
async function withSettings(section, values, play) {
  const settings = vscode.workspace.getConfiguration(section);
  for (const [name, value] of Object.entries(values)) await settings.update(name, value, vscode.ConfigurationTarget.Workspace);
  try {
    await play();
  } finally {
    for (const name of Object.keys(values)) await settings.update(name, undefined, vscode.ConfigurationTarget.Workspace);
  }
}

test("where VS Code saves by itself, what is typed while a prompt runs is the user's", () =>
  withSettings("files", { autoSave: "afterDelay", autoSaveDelay: 1 }, async () => {
    const document = await opened("auto.txt", "a\nb\nc\nd\ne\nf\n");
    let typed;
    const listening = vscode.workspace.onDidChangeTextDocument((event) => {
      if (event.document !== document || typed || !document.getText().includes("B")) return;
      typed = type(document, 5, 1, " mine");
    });
    await edited(document, edit(document, "b", "B"), call("bash", { command: "sleep 0.3" }));
    await typed;
    listening.dispose();
    await until("it is saved", () => !document.isDirty && document.getText().includes("mine"), () => document.getText());
    await counted(document, 1);
    await type(document, 3, 1, " mine");
    await until("it is saved again", () => !document.isDirty);
    await counted(document, 1);
    assert.equal(readFileSync(document.uri.fsPath, "utf8"), "a\nB\nc\nd mine\ne\nf mine\n");
  }));

test("what a formatter does on saving is no change of the agent's, and is told where it is one of both", () =>
  withSettings("editor", { formatOnSave: true }, async () => {
    const formatter = vscode.languages.registerDocumentFormattingEditProvider({ pattern: "**/*-format.txt" }, {
      provideDocumentFormattingEdits: (document) => Array.from({ length: document.lineCount - 1 }, (_, line) => line)
        .filter((line) => !document.lineAt(line).text.endsWith(";")).map((line) => vscode.TextEdit.insert(document.lineAt(line).range.end, ";")),
    });
    try {
      const document = await opened("format.txt", "a\nb\nc\nd\ne\n");
      await edited(document, edit(document, "b", "B"));
      await counted(document, 1);
      await document.save();
      await until("it is formatted", () => document.getText() === "a;\nB;\nc;\nd;\ne;\n", () => document.getText());
      const [only] = await until("the place is one of both", async () => {
        const found = await lenses(document, REVERT);
        return found.length === 1 && found[0].command.title.includes("since") && found;
      }, () => lenses(document, REVERT));
      assert.equal(only.range.start.line, 1);
    } finally {
      formatter.dispose();
    }
  }));

test("a comparison that is open while the agent edits follows it", async () => {
  const document = await opened("compared.txt", "a\nb\nc\n");
  const { sessionId, promptId } = await edited(document, edit(document, "b", "B"));
  await run("agentd.ui.openDiff", { sessionId, promptId, uri: document.uri.toString() });
  assert.deepEqual(await sides(), ["a\nb\nc\n", "a\nB\nc\n"]);
  await edited(document, edit(document, "c", "C"));
  assert.deepEqual(await sides(), ["a\nb\nc\n", "a\nB\nC\n"]);
  await counted(document, 1); // two lines that stand together
});

test("a changed file that is deleted by another program is offered again once it is there again", async () => {
  const document = await opened("gone.txt", "a\nb\nc\n");
  await edited(document, edit(document, "b", "B"));
  await document.save();
  rmSync(document.uri.fsPath);
  await run("workbench.action.closeActiveEditor");
  writeFileSync(document.uri.fsPath, "a\nB\nc\n");
  const again = await vscode.workspace.openTextDocument(document.uri);
  await counted(again, 1);
});
