/**
 * What is logged of the traffic.
 *
 * The language client can trace all that it says, keys among it, and the setting which turns that on may come from
 * a workspace. So it gets a channel whose level never asks for it, and the daemon traces instead: it leaves keys out.
 */
import * as vscode from "vscode";
import type { DaemonClient } from "./client";

/** The channel as one that never wants a trace. */
export function quiet(log: vscode.LogOutputChannel): vscode.LogOutputChannel {
  return new Proxy(log, {
    get(target, name) {
      if (name === "logLevel") return vscode.LogLevel.Info;
      if (name === "onDidChangeLogLevel") return () => new vscode.Disposable(() => undefined);
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(target) : value;
    },
  });
}

/** The channel as one that may be written to when VS Code has closed it: a daemon's last words come late. */
export function untilClosed(channel: vscode.LogOutputChannel): vscode.LogOutputChannel {
  return new Proxy(channel, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        try {
          return (value as (...args: unknown[]) => unknown).apply(target, args);
        } catch {
          return undefined; // nobody reads it any more
        }
      };
    },
  });
}

/** Has the daemon trace as the user's setting `agentd.trace` says, and logs what it tells. */
export function followTrace(daemon: DaemonClient, log: vscode.LogOutputChannel): vscode.Disposable {
  const level = () => vscode.workspace.getConfiguration("agentd").get<string>("trace", "off");
  const tell = () => {
    if (level() !== "off") daemon.notify("$/setTrace", { value: level() });
  };
  // With every change of any setting the language client sets its own level, `off`: ours comes behind it.
  const changed = (event: vscode.ConfigurationChangeEvent) => {
    if (level() !== "off") setImmediate(tell);
    else if (event.affectsConfiguration("agentd.trace")) daemon.notify("$/setTrace", { value: "off" });
  };
  return vscode.Disposable.from(
    daemon.onConnection((connection) => void (connection.state === "ready" && tell())),
    vscode.workspace.onDidChangeConfiguration(changed),
    daemon.onNotification<{ message: string; verbose?: string }>("$/logTrace", ({ message, verbose }) => {
      log.info(verbose === undefined ? message : `${message}\n${verbose}`);
    }),
  );
}
