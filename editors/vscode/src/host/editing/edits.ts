/** What edits make of texts; texts that are compared have `\n` as line ends. */
import { applyPatch } from "diff";
import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams } from "vscode-languageclient/node";
import { withLineEnds } from "./hunks";

type DocumentEdit = Extract<NonNullable<ApplyWorkspaceEditParams["edit"]["documentChanges"]>[number], { textDocument: object }>;

export const plain = (text: string): string => withLineEnds(text, "\n");

/** The text that an edit makes of a document; undefined where it is for another version of it. */
export function edited(document: vscode.TextDocument, change: DocumentEdit): string | undefined {
  if (change.textDocument.version !== null && change.textDocument.version !== document.version) return undefined;
  const at = (place: { line: number; character: number }) => document.offsetAt(new vscode.Position(place.line, place.character));
  const text = document.getText();
  const edits = change.edits.flatMap((each) => ("range" in each && "newText" in each
    ? [{ from: at(each.range.start), to: at(each.range.end), text: each.newText }] : []));
  const [parts, end] = edits.sort((one, other) => one.from - other.from).reduce<[string[], number]>(
    ([made, last], each) => [[...made, text.slice(last, each.from), each.text], each.to], [[], 0]);
  return plain([...parts, text.slice(end)].join(""));
}

/** The text with a patch; false where that does not fit it. */
export function applied(text: string, patch: string): string | false {
  try {
    return applyPatch(text, plain(patch), { fuzzFactor: 0 });
  } catch {
    return false;
  }
}
