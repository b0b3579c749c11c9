/** Processes: the daemon, and programs that are asked one thing. */
import { execFile, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import type { CancellationToken, LogOutputChannel } from "vscode";
import { HostError } from "./handlers";

/** A command line. */
export interface CommandLine {
  command: string;
  args: string[];
}

const ASK_MS = 15_000;
const KEPT_LINES = 12;

/** The environment of VS Code's extension host without what makes other programs believe that they are it. */
export function environment(): NodeJS.ProcessEnv {
  const kept = { ...process.env };
  for (const name of Object.keys(kept)) {
    if (name.startsWith("ELECTRON_") || name.startsWith("VSCODE_")) delete kept[name];
  }
  return kept;
}

export interface Answer {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program to its end. Fails with a HostError where it cannot be started or takes too long. */
export function ask(
  line: CommandLine, options: { cwd: string; timeoutMs?: number; token?: CancellationToken },
): Promise<Answer> {
  const name = [line.command, ...line.args].join(" ");
  return new Promise((resolve, reject) => {
    const child = execFile(
      line.command, line.args,
      { cwd: options.cwd, env: environment(), timeout: options.timeoutMs ?? ASK_MS, killSignal: "SIGKILL", maxBuffer: 1 << 24 },
      (error, stdout, stderr) => {
        cancelling?.dispose();
        if (error === null) resolve({ code: 0, stdout, stderr });
        else if (options.token?.isCancellationRequested) reject(new HostError("Cancelled.", { kind: "cancelled" }));
        else if (typeof error.code === "number") resolve({ code: error.code, stdout, stderr });
        else if (error.killed) reject(new HostError(`${name} did not answer in time.`, { cause: error }));
        else reject(new HostError(`${name} cannot be started: ${error.code ?? error.message}.`, { cause: error }));
      },
    );
    child.stdin?.end();
    const cancelling = options.token?.onCancellationRequested(() => child.kill("SIGKILL"));
  });
}

/** The running daemon. */
export class DaemonProcess {
  /** Resolves when it has ended, with how, in words. */
  readonly ended: Promise<string>;
  private readonly last: string[] = [];

  private constructor(readonly child: ChildProcessWithoutNullStreams, log: LogOutputChannel) {
    const lines = createInterface({ input: child.stderr, crlfDelay: Infinity });
    lines.on("line", (line) => {
      this.last.push(line);
      if (this.last.length > KEPT_LINES) this.last.shift();
      logLine(log, line);
    });
    const stderrEnded = new Promise<void>((resolve) => lines.once("close", resolve));
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
        log.info(`agentd ended: ${how}`);
        // its last words come behind its end
        void Promise.race([stderrEnded, pause(200)]).then(() => resolve(how));
      });
    });
  }

  /** Starts it. Fails with a HostError where there is no such program. */
  static start(line: CommandLine, cwd: string, log: LogOutputChannel): Promise<DaemonProcess> {
    return new Promise((resolve, reject) => {
      const child = spawn(line.command, line.args, { cwd, env: environment(), stdio: "pipe" });
      child.once("spawn", () => resolve(new DaemonProcess(child, log)));
      child.once("error", (error: NodeJS.ErrnoException) => {
        reject(new HostError(`${line.command} cannot be started: ${error.code ?? error.message}.`, { kind: "unusable", cause: error }));
      });
      child.stdin.on("error", () => undefined); // it ended while it was written to: `ended` tells
    });
  }

  /** The last line that it said, where it is a word on why it ended. */
  get lastWords(): string | undefined {
    return this.last.findLast((line) => line.trim() !== "");
  }

  /** Waits for its end, and has it ended where it takes longer. */
  async end(withinMs: number): Promise<void> {
    const over = await Promise.race([this.ended.then(() => true), pause(withinMs).then(() => false)]);
    if (!over) this.child.kill("SIGKILL");
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

function logLine(log: LogOutputChannel, line: string): void {
  const level = /^\S+ \S+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) /.exec(line)?.[1];
  const text = level === undefined ? line : line.slice(line.indexOf(level) + level.length + 1);
  if (level === "DEBUG") log.debug(text);
  else if (level === "WARNING") log.warn(text);
  else if (level === "ERROR" || level === "CRITICAL") log.error(text);
  else log.info(text);
}
