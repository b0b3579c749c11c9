/** The daemon of this window: a language client over a process that is found, started, watched and started again. */
import * as vscode from "vscode";
import {
  CloseAction, ErrorAction, ErrorCodes, LanguageClient, LSPErrorCodes, ResponseError,
  type ApplyWorkspaceEditParams, type ApplyWorkspaceEditResult, type LanguageClientOptions, type Middleware,
} from "vscode-languageclient/node";
import type { Connection } from "../shared/messages";
import type { Announced, Daemon } from "./daemon";
import type { Convert } from "./editing/applying";
import { HostError } from "./handlers";
import { DaemonProcess, pause, type CommandLine } from "./process";
import { Restarts } from "./restarts";
import { quiet } from "./trace";

export const PROTOCOL = 1;
/** Errors that the connection itself gives: it was closed with the answer outstanding, or could not be written to. */
const GONE = new Set<unknown>([ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive, ErrorCodes.MessageWriteError]);
const START_MS = 30_000;
/** For the answer to `shutdown`, and then for the end of the process before it is killed: 2 s together. */
const STOP_MS = 1_200;
const KILL_MS = 800;

export interface ClientParts {
  log: vscode.LogOutputChannel;
  /** The program to run. Fails with a HostError of kind `missing` where there is none. */
  find(): Promise<CommandLine & { shown: string }>;
  /** `initializationOptions.agentd`, for each start anew. */
  options(): Promise<object>;
  middleware: Middleware;
  /** Makes an edit for the daemon, unless that does not want it any more when it could be made. */
  applyEdit(params: ApplyWorkspaceEditParams, token: vscode.CancellationToken, convert: Convert): Promise<ApplyWorkspaceEditResult>;
  /** Where the daemon runs: never the workspace. */
  cwd: string;
}

/** A language client that shows the user nothing by itself, and can be stopped at any time. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }

  override async stop(timeout?: number): Promise<void> {
    if (this.isRunning()) await super.stop(timeout);
  }
}

type Listener = (params: unknown) => void;
type Handler = (params: unknown, token: vscode.CancellationToken) => Promise<unknown>;

interface Run {
  client: QuietClient;
  process: DaemonProcess | null;
}

export class DaemonClient implements Daemon, vscode.Disposable {
  private state: Connection = { state: "starting" };
  private said: Announced | null = null;
  private run: Run | null = null;
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly handlers = new Map<string, Handler>();
  private readonly changed = new vscode.EventEmitter<Connection>();
  private readonly restarts = new Restarts();
  /** Each start has a number; what belongs to an older one has nothing to say any more. */
  private number = 0;

  constructor(private readonly parts: ClientParts) {}

  get connection(): Connection {
    return this.state;
  }

  get announced(): Announced | null {
    return this.said;
  }

  onConnection(listener: (connection: Connection) => void): vscode.Disposable {
    return this.changed.event(listener);
  }

  // --- what is said -----------------------------------------------------------------------------------

  async request<R>(method: string, params: object = {}, token?: vscode.CancellationToken): Promise<R> {
    if (this.state.state !== "ready") await this.ready(token);
    const client = this.run?.client;
    if (client === undefined) throw unavailable(this.state);
    try {
      return await (token === undefined ? client.sendRequest<R>(method, params) : client.sendRequest<R>(method, params, token));
    } catch (error) {
      if (typeof (error as { data?: { kind?: unknown } }).data?.kind === "string") throw error;
      if (token?.isCancellationRequested) throw new HostError("Cancelled.", { kind: "cancelled", cause: error });
      if (!GONE.has((error as { code?: unknown }).code)) throw error;
      throw new HostError("agentd ended before it answered.", { kind: "ended", cause: error });
    }
  }

  notify(method: string, params: object): void {
    if (this.state.state !== "ready") return;
    this.run?.client.sendNotification(method, params).catch(() => undefined); // it has ended: nobody hears it
  }

  onNotification<P>(method: string, listener: (params: P) => void): vscode.Disposable {
    const known = this.listeners.get(method);
    const all = known ?? new Set<Listener>();
    all.add(listener as Listener);
    if (known === undefined) {
      this.listeners.set(method, all);
      if (this.run !== null) this.listen(this.run.client, method, all);
    }
    return new vscode.Disposable(() => all.delete(listener as Listener));
  }

  onRequest<P, R>(method: string, handler: (params: P, token: vscode.CancellationToken) => R | Promise<R>): vscode.Disposable {
    const answer = answering(handler);
    this.handlers.set(method, answer);
    this.run?.client.onRequest(method, answer);
    return new vscode.Disposable(() => this.handlers.delete(method));
  }

  /** Waits as long as it starts. Fails with a HostError where it does not come to be ready. */
  private ready(token?: vscode.CancellationToken): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): boolean => {
        if (this.state.state === "ready") resolve();
        else if (token?.isCancellationRequested) reject(new HostError("Cancelled.", { kind: "cancelled" }));
        else if (this.state.state === "starting") return false;
        else reject(unavailable(this.state));
        return true;
      };
      if (look()) return;
      const waits = [
        this.changed.event(() => void (look() && waits.forEach((each) => each.dispose()))),
        ...(token === undefined ? [] : [token.onCancellationRequested(() => void (look() && waits.forEach((each) => each.dispose())))]),
      ];
    });
  }

  // --- its life ---------------------------------------------------------------------------------------

  /** Starts it, or starts it anew where it runs. Gives when it is ready or cannot be had; `connection` tells. */
  async start(): Promise<void> {
    this.restarts.forget();
    const number = ++this.number;
    this.set({ state: "starting" });
    await this.end();
    if (number === this.number) await this.begin(number);
  }

  /** Ends it and leaves it ended. `connection` says why there is none. */
  async stop(connection: Connection): Promise<void> {
    this.number++;
    this.set(connection);
    await this.end();
  }

  dispose(): void {
    void this.stop({ state: "failed", reason: "The extension was stopped." });
  }

  private async end(): Promise<void> {
    const run = this.run;
    this.run = null;
    this.said = null;
    if (run === null) return;
    await run.client.stop(STOP_MS).catch(() => undefined);
    run.process?.child.stdin.end(); // one that was not asked, or did not answer, is told by this
    await run.process?.end(KILL_MS);
  }

  private async begin(number: number): Promise<void> {
    let program: (CommandLine & { shown: string }) | undefined;
    let run: Run | undefined;
    try {
      program = await this.parts.find();
      const options = await this.parts.options();
      if (number !== this.number) return;
      run = this.make(program, options, number);
      this.run = run;
      await this.initialized(run, program);
      if (number !== this.number) return;
      this.set({ state: "ready", version: this.said?.version ?? "?", program: program.shown });
    } catch (error) {
      if (number !== this.number) return;
      await this.startFailed(error, run, program, number);
    }
  }

  private make(program: CommandLine, agentd: object, number: number): Run {
    const { log } = this.parts;
    const run = { process: null } as unknown as Run;
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
      initializationOptions: { agentd },
      outputChannel: log,
      traceOutputChannel: quiet(log),
      middleware: this.parts.middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          void this.lost(run, number);
          return { action: CloseAction.DoNotRestart, handled: true, message: "The connection to agentd is closed." };
        },
      },
      initializationFailedHandler: () => false,
    };
    const open = async () => {
      run.process = await DaemonProcess.start(program, this.parts.cwd, log);
      const { stdout, stdin } = run.process.child;
      return { reader: stdout, writer: stdin, detached: true }; // its stderr is logged there, and we end it
    };
    run.client = new QuietClient("agentd", "agentd", open, options);
    for (const [method, all] of this.listeners) this.listen(run.client, method, all);
    for (const [method, handler] of this.handlers) run.client.onRequest(method, handler);
    // In place of the language client's own, which does not hear of it where the daemon gives an edit up.
    run.client.onRequest("workspace/applyEdit", answering((params: ApplyWorkspaceEditParams, token) =>
      this.parts.applyEdit(params, token, (edit) => run.client.protocol2CodeConverter.asWorkspaceEdit(edit))));
    return run;
  }

  private listen(client: LanguageClient, method: string, all: Set<Listener>): void {
    client.onNotification(method, (params: unknown) => {
      for (const listener of all) {
        try {
          listener(params);
        } catch (error) {
          this.parts.log.error(`${method}: ${String((error as Error)?.stack ?? error)}`);
        }
      }
    });
  }

  private async initialized(run: Run, program: { shown: string }): Promise<void> {
    const late = pause(START_MS).then(() => {
      throw new HostError(`${program.shown} did not answer within ${START_MS / 1000} seconds.`);
    });
    await Promise.race([run.client.start(), late]);
    const result = run.client.initializeResult;
    // Where the connection was closed first, the client's start is as good as another: it only has no result.
    if (result === undefined) throw new Error("The connection was closed before initialize was answered.");
    const said = result.capabilities.experimental?.agentd as Announced | undefined;
    if (said === undefined) {
      throw new HostError(`${program.shown} is a language server, but not agentd.`, { kind: "unusable", hint: "Choose another program." });
    }
    if (said.protocol !== PROTOCOL) {
      const isOlder = said.protocol < PROTOCOL; // then a newer one can be installed
      throw new HostError(
        `${program.shown} speaks version ${said.protocol} of the protocol, this extension version ${PROTOCOL}.`,
        { kind: isOlder ? "missing" : "unusable", hint: isOlder ? "Update agentd." : "Update this extension." },
      );
    }
    this.said = said;
  }

  private async startFailed(error: unknown, run: Run | undefined, program: { shown: string } | undefined, number: number): Promise<void> {
    const known = error instanceof HostError ? error : undefined;
    this.run = null;
    this.said = null;
    if (known !== undefined && (known.kind === "missing" || known.kind === "unusable")) {
      if (run !== undefined) void run.client.stop(STOP_MS).catch(() => undefined).then(() => run.process?.end(0));
      this.parts.log.warn(known.message);
      this.set(known.kind === "missing" ? { state: "missing", reason: known.message } : failed(known.message, known.hint));
      return;
    }
    if (run === undefined) {
      const message = error instanceof Error ? error.message : String(error);
      this.parts.log.error(message);
      this.set(failed(message, known?.hint));
      return;
    }
    // it ended, or did not answer: `lost` is told of an end only where the connection came to be
    await run.process?.end(known === undefined ? 1_000 : 0);
    const how = run.process === null ? "" : ` (${await run.process.ended})`;
    const reason = known?.message ?? `${program?.shown ?? "agentd"} ended as it started${how}.`;
    await this.again(`${reason}${words(run)}`, number);
  }

  private async lost(run: Run, number: number): Promise<void> {
    if (number !== this.number || this.run !== run || this.state.state !== "ready") return;
    this.run = null;
    this.said = null;
    this.set({ state: "starting" });
    await run.process?.end(2_000);
    const how = run.process === null ? "" : ` (${await run.process.ended})`;
    if (number === this.number) await this.again(`agentd ended${how}.${words(run)}`, number);
  }

  private async again(reason: string, number: number): Promise<void> {
    const delay = this.restarts.next(Date.now());
    if (number !== this.number) return;
    if (delay === null) {
      this.parts.log.error(`${reason} It is not started again by itself.`);
      this.set(failed(reason, "The log says more. Restart agentd when the reason is gone."));
      return;
    }
    this.parts.log.warn(`${reason} It is started again in ${delay} ms.`);
    this.set({ state: "starting" });
    await new Promise((resolve) => setTimeout(resolve, delay));
    if (number === this.number) await this.begin(number);
  }

  private set(connection: Connection): void {
    if (JSON.stringify(connection) === JSON.stringify(this.state) && connection.state !== "ready") return;
    this.state = connection;
    this.changed.fire(connection);
  }
}

/** A handler whose failure counts as a cancel where one was asked for. */
function answering<P, R>(handler: (params: P, token: vscode.CancellationToken) => R | Promise<R>): Handler {
  return async (params, token) => {
    try {
      return await handler(params as P, token);
    } catch (error) {
      if (!token.isCancellationRequested) throw error;
      throw new ResponseError(LSPErrorCodes.RequestCancelled, "Cancelled.");
    }
  };
}

function failed(reason: string, hint?: string): Connection {
  return { state: "failed", reason, ...(hint === undefined ? {} : { hint }) };
}

function words(run: Run): string {
  const last = run.process?.lastWords;
  return last === undefined ? "" : ` It said: ${last}`;
}

function unavailable(connection: Connection): HostError {
  if (connection.state === "missing") return new HostError(connection.reason, { kind: "missing", hint: "Install agentd, or choose the program." });
  if (connection.state === "failed") return new HostError(connection.reason, connection.hint === undefined ? {} : { hint: connection.hint });
  if (connection.state === "installing") return new HostError("agentd is being installed.");
  return new HostError("agentd does not run.", { kind: "ended" });
}
