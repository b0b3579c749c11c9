/** Addresses that others name: a model, or the page. */
import * as vscode from "vscode";
import { HostError } from "../handlers";

/** The address of a file or an unsaved text. Fails on any other: VS Code would run it, or have another program open it. */
export function fileUri(text: string): vscode.Uri {
  const uri = vscode.Uri.parse(text, true);
  if (uri.scheme !== "file" && uri.scheme !== "untitled") {
    throw new HostError(`Only files are opened in the editor, and ${uri.scheme}: is none.`, { kind: "invalidParams" });
  }
  return uri;
}

const MAX_KNOWN = 10_000;
const known = new Map<string, string>();

/** A file's address as VS Code writes it, whoever wrote it. */
export function keyOf(uri: string): string {
  let key = known.get(uri);
  if (key === undefined) {
    if (known.size >= MAX_KNOWN) known.clear();
    key = vscode.Uri.parse(uri).toString();
    known.set(uri, key);
  }
  return key;
}

/** A document that is open in the editor, by its address as VS Code writes it. */
export function documentOf(uri: string): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri);
}
