/**
 * Stands for the Python extension: exports as much of its interface as ours uses (`@vscode/python-extension`), and does
 * what the file says that AGENTD_PYTHON names: {interpreter?, throws?, isLate?}. Its last change is another selection.
 * Each activation is a line of the file beside it that ends with `.asked`.
 */
const { appendFileSync, readFileSync, watch } = require("node:fs");
const { basename, dirname } = require("node:path");
const vscode = require("vscode");

const place = process.env.AGENTD_PYTHON;

function said() {
  try {
    return JSON.parse(readFileSync(place, "utf8"));
  } catch {
    return {};
  }
}

async function activate(context) {
  appendFileSync(`${place}.asked`, "activated\n");
  const changed = new vscode.EventEmitter();
  let before = said().interpreter;
  const watching = watch(dirname(place), (_, name) => {
    const { interpreter } = said();
    if (name !== basename(place) || interpreter === undefined || interpreter === before) return;
    before = interpreter;
    changed.fire({ id: interpreter, path: interpreter, resource: undefined });
  });
  context.subscriptions.push(changed, { dispose: () => watching.close() });
  if (said().isLate) await new Promise((done) => setTimeout(done, 1500));
  return {
    ready: Promise.resolve(),
    environments: {
      getActiveEnvironmentPath() {
        if (said().throws) throw new Error("this environment cannot be told");
        return { id: said().interpreter ?? "", path: said().interpreter ?? "python" };
      },
      resolveEnvironment: async ({ path }) => (path === "python" ? undefined : { path, executable: { uri: vscode.Uri.file(path) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
}

module.exports = { activate };
