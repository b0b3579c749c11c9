/**
 * A connection as VS Code's Remote-SSH makes it: one login without a terminal, whose shell reads from its input what
 * starts VS Code's server where none runs, and through which the server is reached. The server outlives it.
 */
import { spawn } from "node:child_process";
import { expect, until } from "./until.mjs";

const lives = (process) => process !== null && process.exitCode === null && process.signalCode === null;

export class Connection {
  #ssh;
  #client = null;

  /** `ssh`: {argv: `ssh` with the login and what it forwards, script: for the shell there, ready: what it says then}. */
  constructor(ssh) {
    this.#ssh = ssh;
  }

  /** Makes it where there is none. */
  async make() {
    if (lives(this.#client)) return;
    const { argv, script, ready } = this.#ssh;
    const client = spawn(argv[0], argv.slice(1), { env: {}, stdio: "pipe" });
    let said = "";
    for (const stream of [client.stdout, client.stderr]) stream.on("data", (piece) => (said += piece));
    client.stdin.on("error", () => undefined); // what it said tells more
    client.stdin.write(script); // left open: its end would be the connection's
    this.#client = client;
    try {
      const state = await until("the connection is made", () =>
        lives(client) ? said.includes(ready) && "made" : "refused", { seen: () => said });
      expect(state === "made", `ssh has ended: ${said}`);
    } catch (error) {
      await this.cut();
      throw error;
    }
  }

  /** Cuts it as a network does that goes away: nobody says good-bye. */
  async cut() {
    const client = this.#client;
    this.#client = null;
    if (!lives(client)) return;
    const ended = new Promise((done) => client.once("exit", done));
    client.kill("SIGKILL");
    await ended;
  }
}
