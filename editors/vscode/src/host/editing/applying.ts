/** `workspace/applyEdit`: an edit is made while the daemon waits for it, or not at all. */
import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult, WorkspaceEdit } from "vscode-languageclient/node";
import { keyOf } from "./uris";

/** What LSP's edit is in VS Code's terms. */
export type Convert = (edit: WorkspaceEdit) => Promise<vscode.WorkspaceEdit>;

/**
 * Waits until the window answers, and fails where nobody wants to know any more by then.
 *
 * The window of a remote workspace may be away: its connection is cut, or the machine in front of the user sleeps. VS
 * Code keeps what it is told meanwhile, for hours, and it would do then what the daemon has long given up on, and told
 * the model of as not done.
 */
export async function untilReached(token: vscode.CancellationToken): Promise<void> {
  await vscode.commands.executeCommand("setContext", "agentd.ui.isReached", true); // any word that the window answers
  if (token.isCancellationRequested) throw new vscode.CancellationError();
}

/** Makes the edit, which `around` stands around. One for another version of a document is refused. */
export async function applyEdit(
  params: ApplyWorkspaceEditParams, token: vscode.CancellationToken, convert: Convert,
  around: (params: ApplyWorkspaceEditParams, apply: () => Thenable<boolean>) => Promise<boolean>,
): Promise<ApplyWorkspaceEditResult> {
  const edit = await convert(params.edit);
  await untilReached(token);
  // Nothing is awaited from here on, in which a document could become another one.
  const stale = otherVersion(params.edit);
  if (stale !== undefined) return { applied: false, failureReason: `${stale} was changed meanwhile` };
  return { applied: await around(params, () => vscode.workspace.applyEdit(edit)) };
}

/** The document that is open in another version than an edit is for. */
function otherVersion({ documentChanges = [] }: WorkspaceEdit): string | undefined {
  const versions = new Map(vscode.workspace.textDocuments.map((each) => [each.uri.toString(), each.version]));
  for (const change of documentChanges) {
    if (!("textDocument" in change) || change.textDocument.version === null) continue;
    const version = versions.get(keyOf(change.textDocument.uri));
    if (version !== undefined && version !== change.textDocument.version) return vscode.workspace.asRelativePath(vscode.Uri.parse(change.textDocument.uri));
  }
  return undefined;
}
