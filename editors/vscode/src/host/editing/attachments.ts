/** What the user adds to a prompt from the editor: files, the selection, problems; and completing their names. */
import * as vscode from "vscode";
import type { Attachment, Completion, Params } from "../../shared/messages";
import type { CommandInfo } from "../../shared/wire";
import type { Files } from "./files";
import { wireRange } from "./focus";

const MAX_PROBLEMS = 100;
const SEVERITIES = ["error", "warning", "information", "hint"];

function named(uri: vscode.Uri): string {
  return uri.scheme === "untitled" ? uri.path : vscode.workspace.asRelativePath(uri);
}

export function fileAttachment(uri: vscode.Uri): Attachment {
  return { label: named(uri), block: { type: "resource", uri: uri.toString() } };
}

/**
 * What was dropped on the view, where it is a file. VS Code's window names those of a remote machine as that machine's;
 * here, on that machine, they are files.
 */
export function droppedAttachments(uris: readonly string[]): Attachment[] {
  return uris.flatMap((text) => {
    const uri = vscode.Uri.parse(text, true);
    const here = uri.scheme === "vscode-remote" ? vscode.Uri.file(uri.path) : uri;
    return ["file", "untitled"].includes(here.scheme) ? [fileAttachment(here)] : [];
  });
}

/** What is selected in the editor in front, whole lines named; the line of the cursor where nothing is. */
export function selectionAttachment(editor = vscode.window.activeTextEditor): Attachment | undefined {
  if (!editor || !["file", "untitled"].includes(editor.document.uri.scheme)) return undefined;
  const { document, selection } = editor;
  const range = selection.isEmpty ? document.lineAt(selection.active.line).rangeIncludingLineBreak : selection;
  const last = range.end.character === 0 && range.end.line > range.start.line ? range.end.line : range.end.line + 1;
  const lines = last === range.start.line + 1 ? `${last}` : `${range.start.line + 1}-${last}`;
  return { label: `${named(document.uri)}:${lines}`, block: { type: "resource", uri: document.uri.toString(), range: wireRange(range) } };
}

function problemLines(uri: vscode.Uri, diagnostics: readonly vscode.Diagnostic[]): string[] {
  return diagnostics.map((each) => {
    const { line, character } = each.range.start;
    return `${named(uri)}:${line + 1}:${character + 1}: ${SEVERITIES[each.severity]}: ${each.message}${each.source ? ` (${each.source})` : ""}`;
  });
}

/** The problems of the file in front, or of all files where it has none. */
export function diagnosticsAttachment(): Attachment | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  const here = uri ? problemLines(uri, vscode.languages.getDiagnostics(uri)) : [];
  const lines = here.length > 0 ? here : vscode.languages.getDiagnostics().flatMap(([each, found]) => problemLines(each, found));
  if (lines.length === 0) return undefined;
  const shown = lines.slice(0, MAX_PROBLEMS);
  const more = lines.length > shown.length ? [`… and ${lines.length - shown.length} more`] : [];
  const label = `${lines.length} ${lines.length === 1 ? "problem" : "problems"}${here.length > 0 && uri ? ` in ${named(uri)}` : ""}`;
  return { label, block: { type: "text", text: ["Problems that the editor shows:", ...shown, ...more].join("\n") } };
}

function quoted(path: string): string {
  return /\s/.test(path) ? `@"${path}"` : `@${path}`;
}

function special(query: string): Completion[] {
  const offers: Completion[] = [];
  const selection = selectionAttachment();
  if (selection) offers.push({ kind: "selection", label: "selection", detail: selection.label, insert: "", attachment: selection });
  const problems = diagnosticsAttachment();
  if (problems) offers.push({ kind: "diagnostics", label: "diagnostics", detail: problems.label, insert: "", attachment: problems });
  return offers.filter((each) => each.label.startsWith(query.toLowerCase()));
}

/** What can follow an `@` or a `/`. */
export async function complete({ trigger, query }: Params<"complete">, files: Files, commands: CommandInfo[]): Promise<Completion[]> {
  if (trigger === "/") {
    return commands.filter((each) => each.name.toLowerCase().includes(query.toLowerCase())).map((each) => ({
      kind: "command", label: `/${each.name}`, insert: `/${each.name} `,
      detail: [each.argumentHint, each.description].filter(Boolean).join(" · "),
    }));
  }
  const found = await files.matching(query);
  return [
    ...special(query),
    ...found.map(({ uri, path, isFolder }): Completion => ({
      kind: isFolder ? "folder" : "file", label: isFolder ? `${path}/` : path, insert: `${quoted(path)} `,
      attachment: fileAttachment(uri),
    })),
  ];
}
