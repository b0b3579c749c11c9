/** Looking through changes where they are: each changed place of a file can be accepted or reverted by itself. */
import * as vscode from "vscode";
import { HostError } from "../handlers";
import { told } from "../told";
import type { Changes } from "./changes";
import { accepted, hunksBetween, removedText, withLineEnds, type Hunk } from "./hunks";
import type { Originals } from "./originals";

/** A larger file is compared in the diff editor only. */
const MAX_LENGTH = 2_000_000;
const REDRAW_DELAY_MS = 150;

interface Compared {
  sessionId: string;
  promptId: string;
  /** There was no such file. */
  isNew: boolean;
  before: string;
  hunks: Hunk[];
}

function eolOf(document: vscode.TextDocument): "\r\n" | "\n" {
  return document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
}

function rangeOf(document: vscode.TextDocument, hunk: Hunk): vscode.Range {
  return document.validateRange(new vscode.Range(hunk.newStart, 0, hunk.newStart + hunk.newLines, 0));
}

/** Where a hunk's text stands; at the end of a text without a last line end that is behind its last character. */
function replaced(document: vscode.TextDocument, hunk: Hunk, before: string): { range: vscode.Range; text: string } {
  return { range: rangeOf(document, hunk), text: withLineEnds(removedText(before, hunk), eolOf(document)) };
}

export class Review implements vscode.CodeLensProvider, vscode.Disposable {
  /** What the user accepted hunk by hunk, by document: what the rest is compared with. */
  private readonly baselines = new Map<string, { promptId: string; text: string }>();
  private readonly redraw = new vscode.EventEmitter<void>();
  private readonly added: vscode.TextEditorDecorationType;
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChangeCodeLenses = this.redraw.event;

  constructor(
    private readonly changes: Changes, private readonly originals: Originals, private readonly log: (line: string) => void,
  ) {
    this.added = vscode.window.createTextEditorDecorationType({
      isWholeLine: true,
      backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"),
      overviewRulerColor: new vscode.ThemeColor("editorGutter.modifiedBackground"),
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
    const soon = () => (this.timer ??= setTimeout(() => this.draw(), REDRAW_DELAY_MS));
    this.subscriptions = [
      this.added,
      changes.onDidChange(soon),
      vscode.workspace.onDidChangeTextDocument(({ document }) => changes.open(document.uri.toString()) && soon()),
      vscode.window.onDidChangeVisibleTextEditors(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.workspace.onDidChangeConfiguration((it) => it.affectsConfiguration("agentd.review") && soon()),
      vscode.languages.registerCodeLensProvider([{ scheme: "file" }], this),
      vscode.commands.registerCommand("agentd.ui.revertHunk", (uri?: string, at?: number) => told(() => this.decide(uri, at, "revert"))),
      vscode.commands.registerCommand("agentd.ui.acceptHunk", (uri?: string, at?: number) => told(() => this.decide(uri, at, "accept"))),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.redraw).dispose();
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const compared = await this.compare(document);
    if (!compared || compared.hunks.length === 0) return [];
    const uri = document.uri.toString();
    const place = { sessionId: compared.sessionId, promptId: compared.promptId, uri };
    const lens = (line: number, title: string, command: string, ...args: unknown[]) =>
      new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, arguments: args });
    const count = compared.hunks.length;
    return [
      lens(0, `agentd changed ${count === 1 ? "one place" : `${count} places`}`, "agentd.ui.openDiff", place),
      lens(0, "Accept file", "agentd.ui.acceptFile", place),
      lens(0, "Revert file", "agentd.ui.revertFile", place),
      ...compared.hunks.flatMap((hunk) => {
        const line = Math.min(hunk.newStart, document.lineCount - 1);
        return [
          lens(line, "$(check) Accept", "agentd.ui.acceptHunk", uri, hunk.newStart),
          lens(line, "$(discard) Revert", "agentd.ui.revertHunk", uri, hunk.newStart),
        ];
      }),
    ];
  }

  private async compare(document: vscode.TextDocument): Promise<Compared | undefined> {
    const uri = document.uri.toString();
    const isWanted = vscode.workspace.getConfiguration("agentd.review", document.uri).get("inEditor", true);
    const open = isWanted ? this.changes.open(uri) : undefined;
    if (!open) return undefined;
    const kept = this.baselines.get(uri);
    const original = kept?.promptId === open.promptId ? kept.text : await this.original({ ...open, uri });
    const text = document.getText(); // as it is when all else is known: what is done with the hunks is done to it
    if (original === undefined || text.length > MAX_LENGTH) return undefined;
    const before = original ?? "";
    return { ...open, isNew: original === null, before, hunks: hunksBetween(withLineEnds(before, eolOf(document)), text) };
  }

  /** Undefined where it cannot be had: that is not the same as an empty file, which a revert would make of it. */
  private async original(place: { sessionId: string; promptId: string; uri: string }): Promise<string | null | undefined> {
    try {
      return await this.originals.text(place);
    } catch (error) {
      this.log(`What ${place.uri} was before the prompt is not known: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  /** Reverts or accepts the hunk at a line; without arguments the one at the cursor. */
  private async decide(uri: string | undefined, at: number | undefined, what: "accept" | "revert"): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const document = uri === undefined ? editor?.document : await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
    const line = at ?? editor?.selection.active.line;
    const compared = document && (await this.compare(document));
    if (!document || !compared || line === undefined) return;
    const hunk = compared.hunks.find((each) => line >= each.newStart && line < each.newStart + Math.max(each.newLines, 1));
    if (!hunk) {
      void vscode.window.setStatusBarMessage("agentd: no change of a prompt at this place", 3000);
      return;
    }
    if (what === "revert") await this.revert(document, compared, hunk);
    else this.accept(document, compared, hunk);
  }

  private async revert(document: vscode.TextDocument, compared: Compared, hunk: Hunk): Promise<void> {
    if (compared.isNew) { // all of the file is the change: without it there is no file, not an empty one
      const { sessionId, promptId } = compared;
      await vscode.commands.executeCommand("agentd.ui.revertFile", { sessionId, promptId, uri: document.uri.toString() });
      return;
    }
    const { range, text } = replaced(document, hunk, compared.before);
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, range, text, { label: "Revert a change of agentd", needsConfirmation: false });
    if (!(await vscode.workspace.applyEdit(edit))) throw new HostError(`${document.uri.fsPath} changed meanwhile; nothing was reverted.`);
    if (compared.hunks.length === 1) this.settle(document, compared, "reverted");
  }

  private accept(document: vscode.TextDocument, compared: Compared, hunk: Hunk): void {
    const text = accepted(withLineEnds(compared.before, eolOf(document)), document.getText(), hunk);
    this.baselines.set(document.uri.toString(), { promptId: compared.promptId, text });
    if (compared.hunks.length === 1) this.settle(document, compared, "accepted");
    else this.redraw.fire();
    this.draw();
  }

  private settle(document: vscode.TextDocument, compared: Compared, state: "accepted" | "reverted"): void {
    const uri = document.uri.toString();
    const wasAccepted = this.baselines.delete(uri);
    this.changes.settle(compared.sessionId, uri, wasAccepted ? "accepted" : state);
  }

  private draw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.redraw.fire();
    const front = vscode.window.activeTextEditor?.document.uri.toString();
    void vscode.commands.executeCommand("setContext", "agentd.ui.fileIsChanged", front !== undefined && this.changes.open(front) !== undefined);
    for (const editor of vscode.window.visibleTextEditors) void this.decorate(editor);
  }

  private async decorate(editor: vscode.TextEditor): Promise<void> {
    if (editor.document.uri.scheme !== "file") return;
    const version = editor.document.version;
    const compared = await this.compare(editor.document);
    if (editor.document.version !== version) return; // Another drawing follows.
    const lines = (hunk: Hunk) => new vscode.Range(hunk.newStart, 0, hunk.newStart + hunk.newLines - 1, 0);
    editor.setDecorations(this.added, (compared?.hunks ?? []).filter((each) => each.newLines > 0).map(lines));
  }
}

