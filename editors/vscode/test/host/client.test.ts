/** What is made of a program that ends as it is started, whichever way the language client tells of it. */
import type { ChildProcess } from "node:child_process";
import { expect, test, vi } from "vitest";
import { DaemonClient } from "../../src/host/client";
import { Restarts } from "../../src/host/restarts";
import type { Connection } from "../../src/shared/messages";

/** How the language client takes a connection that is closed before `initialize` is answered. */
const taken = vi.hoisted(() => ({ by: "", handlers: new Map<string, (params: object, token: object) => Promise<unknown>>() }));

vi.mock("vscode-languageclient/node", () => {
  /** Its start as far as it is about such an end; which of the two comes is the order of two events of the machine. */
  class LanguageClient {
    initializeResult: unknown = undefined;
    constructor(
      _id: string, _name: string, private readonly open: () => Promise<{ reader: ChildProcess["stdout"] }>,
      private readonly options: { errorHandler: { closed(): unknown } },
    ) {}
    onNotification(): void {}
    onRequest(method: string, handler: (params: object, token: object) => Promise<unknown>): void {
      taken.handlers.set(method, handler);
    }
    isRunning(): boolean {
      return false;
    }
    async start(): Promise<void> {
      const { reader } = await this.open();
      await new Promise((resolve) => reader!.resume().once("close", resolve));
      this.options.errorHandler.closed();
      if (taken.by === "a failure") throw new Error("Connection got disposed.");
    }
  }
  return {
    LanguageClient, CloseAction: { DoNotRestart: 1 }, ErrorAction: { Continue: 1 },
    LSPErrorCodes: { RequestCancelled: -32800 },
    ResponseError: class extends Error {
      constructor(readonly code: number, message: string) {
        super(message);
      }
    },
    ErrorCodes: { PendingResponseRejected: -32097, ConnectionInactive: -32096, MessageWriteError: -32099 },
  };
});

const log = new Proxy({}, { get: () => () => undefined }) as never;

test.each(["a failure", "a start without a result"])("a program that ends at once, told by %s, is given up with its last words", async (way) => {
  taken.by = way;
  vi.spyOn(Restarts.prototype, "next").mockReturnValueOnce(0).mockReturnValueOnce(0).mockReturnValueOnce(null);
  let starts = 0;
  const client = new DaemonClient({
    log, middleware: {}, cwd: "/",
    find: async () => {
      starts++;
      return { command: "/bin/sh", args: ["-c", "echo no room for me >&2; exit 3"], shown: "theirs" };
    },
    options: async () => ({}),
  });
  const over = new Promise<Connection>((resolve) => client.onConnection((connection) => {
    if (connection.state !== "starting") resolve(connection);
  }));
  await client.start();
  expect(await over).toMatchObject({ state: "failed", reason: "theirs ended as it started (exit code 3). It said: no room for me" });
  expect(starts).toBe(3);
});

test("a question of the daemon's that it cancels is answered as cancelled, another failure as what it is", async () => {
  vi.spyOn(Restarts.prototype, "next").mockReturnValueOnce(null);
  const client = new DaemonClient({
    log, middleware: {}, cwd: "/", options: async () => ({}),
    find: async () => ({ command: "/bin/sh", args: ["-c", "exit 3"], shown: "theirs" }),
  });
  client.onRequest("agentd/some", async () => {
    throw new Error("it stopped");
  });
  await client.start();
  const ask = taken.handlers.get("agentd/some")!;
  await expect(ask({}, { isCancellationRequested: true })).rejects.toMatchObject({ code: -32800 });
  await expect(ask({}, { isCancellationRequested: false })).rejects.toThrow("it stopped");
});
