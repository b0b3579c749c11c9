import * as vscode from "vscode";
import { Host } from "./host/host";

let host: Host | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  host = await Host.open(context);
}

/** Ends the daemon, its tools' processes first. */
export async function deactivate(): Promise<void> {
  await host?.close();
  host = undefined;
}
