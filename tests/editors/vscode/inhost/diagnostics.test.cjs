const assert = require("node:assert/strict");
const vscode = require("vscode");
const { asked, call, opened, run, say, session, test, until } = require("./tests.cjs");

const problem = (line, message) =>
  Object.assign(new vscode.Diagnostic(new vscode.Range(line, 0, line, 3), message), { source: "checker" });

async function withProblems(play) {
  const collection = vscode.languages.createDiagnosticCollection("checker");
  try {
    await play(collection);
  } finally {
    collection.dispose();
  }
}

/** Says what is wrong with a document, and waits until everybody has heard it. */
async function told(collection, document, problems) {
  let listening;
  const heard = new Promise((done) => {
    listening = vscode.languages.onDidChangeDiagnostics(({ uris }) => uris.some((uri) => uri.toString() === document.uri.toString()) && done());
  });
  collection.set(document.uri, problems);
  await heard;
  listening.dispose();
}

test("the problems that VS Code shows reach the model", () => withProblems(async (collection) => {
  const document = await opened("wrong.py", "one\ntwo\n");
  collection.set(document.uri, [problem(1, "two is undefined")]);
  const work = await session("full", call("diagnostics", {}), say("done"));
  await run("agentd.prompt", "what is wrong?");
  await until("the model is told", () => asked(work).length === 2);
  assert.ok(asked(work)[1].includes("two is undefined"), asked(work)[1]);
}));

test("the model is told which problems its edit made and mended", () => withProblems(async (collection) => {
  const document = await opened("checked.py", "one\ntwo\n");
  const check = () => collection.set(document.uri,
    [problem(1, document.getText().includes("TWO") ? "TWO is undefined" : "two is undefined")]);
  check();
  const listening = vscode.workspace.onDidChangeTextDocument((event) => event.document === document && check());
  const input = { file_path: document.uri.fsPath };
  const work = await session("full", call("read_file", input),
    call("edit_file", { ...input, old_string: "two", new_string: "TWO" }), say("done"));
  await run("agentd.prompt", "shout");
  await until("the model is told", () => asked(work).length === 3);
  listening.dispose();
  assert.ok(asked(work)[2].includes("TWO is undefined"), asked(work)[2]);
}));

test("the problems of the present text are waited for, where a checker takes its time", () => withProblems(async (collection) => {
  const document = await opened("slow.py", "one\ntwo\n");
  await told(collection, document, [problem(1, "two is undefined")]);
  let late;
  const listening = vscode.workspace.onDidChangeTextDocument((event) => {
    if (event.document !== document) return;
    late = setTimeout(() => collection.set(document.uri, [problem(0, "one is undefined")]), 700);
  });
  const input = { file_path: document.uri.fsPath };
  const work = await session("full", call("read_file", input),
    call("edit_file", { ...input, old_string: "two", new_string: "2" }), say("done"));
  await run("agentd.prompt", "mend it");
  await until("the model is told", () => asked(work).length === 3, () => asked(work).length);
  listening.dispose();
  clearTimeout(late);
  assert.ok(asked(work)[2].includes("one is undefined"), asked(work)[2]);
}));

test("waiting for problems ends with the prompt that is stopped, and the next one is answered", () => withProblems(async (collection) => {
  const document = await opened("silent.py", "one\ntwo\n");
  await told(collection, document, [problem(1, "two is undefined")]); // and nothing more, ever
  const input = { file_path: document.uri.fsPath };
  const work = await session("full", call("read_file", input),
    call("edit_file", { ...input, old_string: "two", new_string: "2" }), say("on I go"));
  await run("agentd.prompt", "mend it");
  await until("the edit is there", () => document.getText().includes("2"));
  await run("agentd.cancel", work.sessionId);
  await until("the next prompt is taken", () => run("agentd.prompt", "go on").then(() => true, () => false));
  await until("the model is asked again", () => asked(work).length === 3, () => asked(work));
  assert.match(asked(work)[2], /go on/);
}));
