/** `agentd/document/save`: what is unsaved is put on disk before a command reads it. */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import * as vscode from "vscode";
import type { DocumentSaveParams, DocumentSaveResult, UnsavedDocument } from "../../shared/wire";
import { untilReached } from "./applying";
import { keyOf } from "./uris";

/** VS Code says that it did not save, and shows the user why; it does not tell us. */
async function whyNot(uri: vscode.Uri): Promise<string> {
  try {
    const { type, permissions } = await vscode.workspace.fs.stat(uri);
    if (type & vscode.FileType.Directory) return "a folder stands in its place";
    if (permissions !== undefined && permissions & vscode.FilePermission.Readonly) return "the file is read-only";
    if (uri.scheme === "file") await access(uri.fsPath, constants.W_OK);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === "EACCES" || code === "EPERM" || code === "EROFS") return "the file is read-only";
    if (code === "FileNotFound" || code === "ENOENT") return "VS Code did not save it, and the file is not there";
  }
  return "VS Code did not save it: the file is read-only there, or was changed on disk by another program";
}

async function failure(document: vscode.TextDocument | vscode.NotebookDocument, token: vscode.CancellationToken): Promise<string | undefined> {
  // Saving one would put a dialog in front of the user.
  if (document.isUntitled) return "it has no name on disk yet";
  if (!document.isDirty) return undefined;
  try {
    await untilReached(token);
    return (await document.save()) ? undefined : await whyNot(document.uri);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Fails with what `token` says as soon as that does: a saving that has begun goes on, no other begins. */
export async function save({ uris }: DocumentSaveParams, token: vscode.CancellationToken): Promise<DocumentSaveResult> {
  const saved: string[] = [];
  const failed: UnsavedDocument[] = [];
  const cancelled = untilCancelled(token);
  try {
    for (const uri of uris) {
      if (token.isCancellationRequested) throw new vscode.CancellationError();
      const { textDocuments, notebookDocuments } = vscode.workspace;
      const all = [...textDocuments, ...notebookDocuments].filter((each) => each.uri.toString() === keyOf(uri));
      const document = all.find((each) => each.isDirty) ?? all[0]; // a notebook may be open as text, too
      const reason = document ? await Promise.race([failure(document, token), cancelled.happened]) : undefined;
      if (reason) failed.push({ uri, reason });
      else saved.push(uri);
    }
    return { saved, failed };
  } finally {
    cancelled.dispose();
  }
}

/** Fails once something is cancelled; to be disposed of. */
function untilCancelled(token: vscode.CancellationToken): { happened: Promise<never>; dispose(): void } {
  let listening: vscode.Disposable | undefined;
  const happened = new Promise<never>((_, reject) => {
    listening = token.onCancellationRequested(() => reject(new vscode.CancellationError()));
  });
  happened.catch(() => undefined); // it is looked at where it is waited for
  return { happened, dispose: () => listening?.dispose() };
}
