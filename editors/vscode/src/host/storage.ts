/** Where this extension keeps what belongs to a workspace: one folder for all windows on it. */
import { createHash } from "node:crypto";
import { readdir, rm, stat, utimes } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";

/** What no window has looked for so long goes. */
const MAX_AGE_MS = 90 * 24 * 60 * 60 * 1000;

/**
 * The folder, which may not be there yet. VS Code's own for a workspace (`storageUri`) is another one for each window
 * on it, and its memento is known to other windows only when they are opened again.
 *
 * @param nowhere for a window without a folder
 */
export function sharedStorage(context: vscode.ExtensionContext, nowhere: vscode.Uri): string {
  const place = vscode.workspace.workspaceFile ?? vscode.workspace.workspaceFolders?.[0]?.uri;
  if (place === undefined) return nowhere.fsPath;
  return path.join(all(context), createHash("sha256").update(place.toString()).digest("hex").slice(0, 32));
}

/** Removes what is kept of workspaces that nobody opens any more. Fails on nothing. */
export async function sweepStorage(context: vscode.ExtensionContext, own: string): Promise<void> {
  const now = new Date();
  await utimes(own, now, now).catch(() => undefined);
  for (const name of await readdir(all(context)).catch(() => [] as string[])) {
    const folder = path.join(all(context), name);
    const isOld = await stat(folder).then(({ mtimeMs }) => now.getTime() - mtimeMs > MAX_AGE_MS, () => false);
    if (isOld) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

function all(context: vscode.ExtensionContext): string {
  return path.join(context.globalStorageUri.fsPath, "workspaces");
}
