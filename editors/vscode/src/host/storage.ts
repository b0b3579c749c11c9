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
 */
export function sharedStorage(context: vscode.ExtensionContext): string {
  const { workspaceFile, workspaceFolders } = vscode.workspace;
  // A workspace without a name is one for itself each time: what a second window on a folder is, or a second folder makes.
  const place = workspaceFile?.scheme === "untitled" ? workspaceFolders?.[0]?.uri : (workspaceFile ?? workspaceFolders?.[0]?.uri);
  // Beside the folder that sessions without one work in: there it would be the agent's to read, and to change.
  if (place === undefined) return path.join(all(context), "no-folder");
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
