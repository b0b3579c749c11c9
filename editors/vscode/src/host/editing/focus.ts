/** `agentd/focus`: where the user looks, for the next prompt. Never any text. */
import * as vscode from "vscode";
import type { FocusParams, Range } from "../../shared/wire";
import type { Wire } from "../daemon";

const DELAY_MS = 200;

export function wireRange({ start, end }: vscode.Range): Range {
  return { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } };
}

function focusOf(editor: vscode.TextEditor | undefined): FocusParams {
  if (!editor || !["file", "untitled"].includes(editor.document.uri.scheme)) return {};
  const visible = editor.visibleRanges[0];
  return {
    uri: editor.document.uri.toString(),
    selection: wireRange(editor.selection),
    ...(visible ? { visible: wireRange(visible) } : {}),
  };
}

export class Focus implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private told = "{}";

  constructor(private readonly client: Wire) {
    const soon = () => (this.timer ??= setTimeout(() => this.tell(), DELAY_MS));
    this.subscriptions = [
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.window.onDidChangeTextEditorSelection(soon),
      vscode.window.onDidChangeTextEditorVisibleRanges(soon),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Tells at once what has not been told: before a prompt it must not be late. */
  tell(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const focus = focusOf(vscode.window.activeTextEditor);
    const words = JSON.stringify(focus);
    if (words === this.told) return;
    this.told = words;
    this.client.notify("agentd/focus", focus);
  }

  /** Another process does not know it. */
  forget(): void {
    this.told = "{}";
    this.tell();
  }
}
