/** `agentd/document/save`: what is unsaved is put on disk before a command reads it. */
import * as vscode from "vscode";
import type { DocumentSaveParams, DocumentSaveResult, UnsavedDocument } from "../../shared/wire";

async function failure(document: vscode.TextDocument): Promise<string | undefined> {
  // Saving one would put a dialog in front of the user.
  if (document.isUntitled) return "it has no name on disk yet";
  if (!document.isDirty) return undefined;
  try {
    return (await document.save()) ? undefined : "VS Code did not save it";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export async function save({ uris }: DocumentSaveParams): Promise<DocumentSaveResult> {
  const saved: string[] = [];
  const failed: UnsavedDocument[] = [];
  for (const uri of uris) {
    const document = vscode.workspace.textDocuments.find((each) => each.uri.toString() === vscode.Uri.parse(uri).toString());
    const reason = document ? await failure(document) : undefined;
    if (reason) failed.push({ uri, reason });
    else saved.push(uri);
  }
  return { saved, failed };
}
