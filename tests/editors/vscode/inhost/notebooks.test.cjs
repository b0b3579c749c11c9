const assert = require("node:assert/strict");
const { readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");
const { asked, call, root, run, say, session, test, until } = require("./tests.cjs");

const content = (...cells) => `${JSON.stringify({
  cells: cells.map((source, at) => ({ cell_type: "code", execution_count: null, id: `cell-${at}`, metadata: {}, outputs: [], source: [source] })),
  metadata: {}, nbformat: 4, nbformat_minor: 5,
}, null, 1)}\n`;

let numbers = 0;

/** A notebook of the workspace, with these cells. */
function made(...cells) {
  numbers += 1;
  const path = join(root(), `notebook-${numbers}.ipynb`);
  writeFileSync(path, content(...cells));
  return { path, uri: vscode.Uri.file(path) };
}

async function shown({ uri }) {
  const notebook = await vscode.workspace.openNotebookDocument(uri);
  await vscode.window.showNotebookDocument(notebook);
  return notebook;
}

const read = ({ path }) => call("read_file", { file_path: path });
const edit = ({ path }, from, to) => call("edit_file", { file_path: path, old_string: from, new_string: to });
const cells = (notebook) => notebook.getCells().map((each) => each.document.getText());

/** A prompt that makes these calls, to its end. */
async function ran(...calls) {
  const work = await session("full", ...calls, say("done"));
  const { promptId } = await run("agentd.prompt", "change it");
  await until("the prompt has ended", () => asked(work).length === calls.length + 1, () => asked(work));
  return { ...work, promptId };
}

const file = ({ sessionId, promptId }, { uri }) => ({ sessionId, promptId, uri: uri.toString() });

const tabs = () => vscode.window.tabGroups.all.flatMap((group) => group.tabs);

for (const isOpen of [false, true]) {
  test(`a notebook that is ${isOpen ? "open" : "closed"} is changed, compared and taken back as a whole`, async () => {
    const notebook = made("print(1)", "print(2)");
    const document = isOpen ? await shown(notebook) : undefined;
    const work = await ran(read(notebook), edit(notebook, "print(1)", "print(10)"));
    assert.match(readFileSync(notebook.path, "utf8"), /print\(10\)/);
    if (document) await until("VS Code shows it", () => cells(document)[0] === "print(10)", () => cells(document));
    await run("agentd.ui.openDiff", file(work, notebook));
    const diff = await until("it is compared", () => tabs().find(({ input }) => input?.modified?.toString() === notebook.uri.toString()));
    await vscode.window.tabGroups.close(diff);
    await until("it is taken back", async () => {
      await run("agentd.ui.revertFile", file(work, notebook));
      return !/print\(10\)/.test(readFileSync(notebook.path, "utf8"));
    });
    if (document) await until("VS Code shows that", () => cells(document)[0] === "print(1)", () => cells(document));
    await run("workbench.action.closeAllEditors");
  });
}

test("a change of a notebook is accepted as a whole", async () => {
  const notebook = made("print(1)");
  const work = await ran(read(notebook), edit(notebook, "print(1)", "print(10)"));
  await run("agentd.ui.acceptFile", file(work, notebook));
  assert.match(readFileSync(notebook.path, "utf8"), /print\(10\)/);
});

/** Has the user change the first cell, without saving. */
async function typed(document, text) {
  const [cell] = document.getCells();
  const change = new vscode.WorkspaceEdit();
  change.replace(cell.document.uri, new vscode.Range(0, 0, cell.document.lineCount, 0), text);
  assert.ok(await vscode.workspace.applyEdit(change));
  await until("it is unsaved", () => document.isDirty);
}

test("a notebook with changes of the user's is saved before agentd changes its file, and nothing of either is lost", async () => {
  const notebook = made("print(1)", "print(2)");
  const document = await shown(notebook);
  await typed(document, "mine = 1");
  const work = await ran(read(notebook), edit(notebook, "print(2)", "print(20)"), read(notebook), edit(notebook, "print(2)", "print(20)"));
  assert.match(asked(work)[2], /changed since it was read/);
  const now = readFileSync(notebook.path, "utf8");
  assert.match(now, /mine = 1/);
  assert.match(now, /print\(20\)/);
  await until("VS Code shows both", () => cells(document).join() === "mine = 1,print(20)", () => cells(document));
  assert.equal(document.isDirty, false);
  await run("workbench.action.closeAllEditors");
});

test("a command sees what is in a notebook that was not saved", async () => {
  const notebook = made("print(1)");
  const document = await shown(notebook);
  await typed(document, "mine = 2");
  const work = await ran(call("bash", { command: `cat '${notebook.path}'` }));
  assert.match(asked(work)[1], /mine = 2/);
  assert.equal(document.isDirty, false);
  await run("workbench.action.closeAllEditors");
});
