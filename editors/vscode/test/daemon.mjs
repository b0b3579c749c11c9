/** The real daemon with its scripted model, for recordings and tests: started in a folder of its own, driven over its pipes. */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// A dependency of vscode-languageclient; its exports name no "import".
const rpc = createRequire(createRequire(import.meta.url).resolve("vscode-languageclient/node"))("vscode-jsonrpc/node");

/** `answer(question)` gives the answer to a permission request, or a promise of it. */
export async function start(place, { mode = "ask", answer = () => ({ optionId: "allow_once" }), config = "" } = {}) {
  for (const name of ["workspace", "data"]) mkdirSync(join(place, name), { recursive: true });
  writeFileSync(join(place, "config.toml"), config);
  const program = JSON.parse(process.env.AGENTD_TEST_COMMAND ?? "null") ?? ["agentd", "--stdio"];
  const child = spawn(program[0], program.slice(1), {
    cwd: join(place, "workspace"), stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env.PATH, HOME: place, LC_ALL: "C.UTF-8", AGENTD_CONFIG: join(place, "config.toml"), AGENTD_DATA: join(place, "data") },
  });
  const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(child.stdout), new rpc.StreamMessageWriter(child.stdin));
  const events = [];
  const listeners = new Set();
  connection.onNotification("agentd/event", (note) => {
    events.push(note);
    for (const listener of listeners) listener(note);
  });
  connection.onRequest("agentd/permission/request", (question) => answer(question));
  connection.listen();
  await connection.sendRequest("initialize", {
    processId: process.pid, rootUri: `file://${place}/workspace`, capabilities: {},
    initializationOptions: { agentd: { permission: true, trusted: true, mode } },
  });
  await connection.sendNotification("initialized", {});
  return {
    events,
    call: (method, params) => connection.sendRequest(method, params),
    /** The next event, from now on, for which `wanted` holds. */
    next: (wanted) => new Promise((resolve) => {
      const listener = (note) => {
        if (!wanted(note)) return;
        listeners.delete(listener);
        resolve(note);
      };
      listeners.add(listener);
    }),
    kill: () => new Promise((resolve) => {
      child.once("exit", resolve);
      child.kill("SIGKILL");
    }),
    stop: async () => {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      await connection.sendRequest("shutdown");
      await connection.sendNotification("exit");
      await gone;
    },
  };
}
