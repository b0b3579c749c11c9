/** What the tests in the extension host are told with, wait with and begin from. */
const { existsSync, mkdirSync, readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");

const tests = new Map();

function test(name, play) {
  if (tests.has(name)) throw new Error(`two tests have the name ${name}`);
  tests.set(name, play);
}

const SECONDS = 30;

/** What `look` gives once it is neither null, undefined nor false; fails with `what` at the deadline. */
async function until(what, look, seen) {
  const end = Date.now() + SECONDS * 1000;
  for (;;) {
    const value = await look();
    if (value !== false && value !== null && value !== undefined) return value;
    if (Date.now() > end) throw new Error(`it did not happen: ${what}\n${seen ? JSON.stringify(await seen()) : ""}`);
    await new Promise((done) => setTimeout(done, 25));
  }
}

const run = (command, ...parameters) => vscode.commands.executeCommand(command, ...parameters);

const root = () => vscode.workspace.workspaceFolders[0].uri.fsPath;

let numbers = 0;

/** A file of the workspace with a name of its own that begins with `name`, shown in an editor. */
async function opened(name, text) {
  numbers += 1;
  const path = join(root(), `${numbers}-${name}`);
  writeFileSync(path, text);
  const document = await vscode.workspace.openTextDocument(path);
  await vscode.window.showTextDocument(document);
  return document;
}

/** Types text into a document at a line and a character. */
async function type(document, line, character, text) {
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, new vscode.Position(line, character), text);
  if (!(await vscode.workspace.applyEdit(edit))) throw new Error(`${document.uri} cannot be changed`);
}

/** A new session whose model plays these responses. */
async function session(mode, ...responses) {
  numbers += 1;
  const folder = join(root(), "..", "scripts");
  mkdirSync(folder, { recursive: true });
  const script = join(folder, `${numbers}.json`);
  writeFileSync(script, JSON.stringify(responses));
  const { sessionId } = await run("agentd.newSession", {});
  await run("agentd.setModel", `scripted/${script}`, sessionId);
  await run("agentd.setMode", mode, sessionId);
  return { sessionId, script };
}

/** What the model of a session was asked so far: the messages of each request as text. */
function asked({ script }) {
  const log = process.env.AGENTD_SCRIPT_REQUESTS;
  if (!existsSync(log)) return [];
  return readFileSync(log, "utf8").split("\n").filter((line) => line.includes(script))
    .map((line) => JSON.stringify(JSON.parse(line).messages));
}

const say = (text, more = {}) => ({ content: [{ type: "text", text }], ...more });
const call = (name, input) => ({ content: [{ type: "tool_call", name, arguments: input }] });

module.exports = { test, tests, until, run, root, opened, type, session, asked, say, call };
