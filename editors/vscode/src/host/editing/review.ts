/** Looking through changes where they are: each changed place of a file can be accepted or reverted by itself. */
import * as vscode from "vscode";
import { HostError } from "../handlers";
import { unlinked } from "../plain";
import { told } from "../told";
import type { Place } from "./attribution";
import type { Changes } from "./changes";
import { linesOf, removedText, withLineEnds, type Hunk } from "./hunks";
import type { Reviewed, Tracks } from "./tracks";

const REDRAW_DELAY_MS = 150;

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

/** What a place is, wherever it stands: lines may have moved it meanwhile. */
function contentOf(document: vscode.TextDocument, { base }: Reviewed, place: Place): string {
  const now = linesOf(document.getText()).slice(place.newStart, place.newStart + place.newLines).join("");
  return JSON.stringify([removedText(base, place), now, place.isShared]);
}

function title({ places, isSure }: Reviewed): string {
  const count = places.length === 1 ? "one place" : `${places.length} places`;
  return isSure ? `agentd changed ${count}` : `agentd, or you since, changed ${count}`;
}

export class Review implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly redraw = new vscode.EventEmitter<void>();
  private readonly added: vscode.TextEditorDecorationType;
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  readonly onDidChangeCodeLenses = this.redraw.event;

  constructor(
    private readonly changes: Changes, private readonly tracks: Tracks, private readonly log: (line: string) => void,
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
      tracks.onDidChange(soon),
      vscode.workspace.onDidChangeTextDocument(({ document }) => changes.open(document.uri.toString()) && soon()),
      vscode.window.onDidChangeVisibleTextEditors(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.workspace.onDidChangeConfiguration((it) => it.affectsConfiguration("agentd.review") && soon()),
      vscode.languages.registerCodeLensProvider([{ scheme: "file" }, { scheme: "untitled" }], this),
      vscode.commands.registerCommand("agentd.ui.revertHunk", (uri?: string, at?: number) => told(() => this.decide(uri, at, "revert"))),
      vscode.commands.registerCommand("agentd.ui.acceptHunk", (uri?: string, at?: number) => told(() => this.decide(uri, at, "accept"))),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.redraw).dispose();
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const reviewed = await this.review(document);
    if (!reviewed || reviewed.places.length === 0) return [];
    const uri = document.uri.toString();
    const { sessionId, promptId } = reviewed;
    const file = { sessionId, promptId, uri: reviewed.uri };
    const lens = (line: number, words: string, command: string, ...args: unknown[]) =>
      new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title: words, command, arguments: args });
    return [
      lens(0, title(reviewed), "agentd.ui.openDiff", file),
      lens(0, "Accept file", "agentd.ui.acceptFile", file),
      lens(0, "Revert file", "agentd.ui.revertFile", file),
      ...reviewed.places.flatMap(({ newStart, isShared }) => {
        const line = Math.min(newStart, document.lineCount - 1);
        return [
          lens(line, isShared ? "$(check) Accept with what changed since" : "$(check) Accept", "agentd.ui.acceptHunk", uri, newStart),
          lens(line, isShared ? "$(discard) Revert with what changed since…" : "$(discard) Revert", "agentd.ui.revertHunk", uri, newStart),
        ];
      }),
    ];
  }

  /** Undefined where nothing is offered, also where it is not known what the file was: an empty one is something else. */
  private async review(document: vscode.TextDocument): Promise<Reviewed | undefined> {
    if (document.uri.scheme !== "file" && document.uri.scheme !== "untitled") return undefined;
    if (!vscode.workspace.getConfiguration("agentd.review", document.uri).get("inEditor", true)) return undefined;
    try {
      return await this.tracks.of(document);
    } catch (error) {
      this.log(`What ${document.uri.toString()} was before the prompt is not known: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  /** Reverts or accepts the place at a line; without arguments the one at the cursor. */
  private async decide(uri: string | undefined, at: number | undefined, what: "accept" | "revert"): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const document = uri === undefined ? editor?.document : await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
    const line = at ?? editor?.selection.active.line;
    const reviewed = document && (await this.review(document));
    if (!document || !reviewed || line === undefined) return;
    const place = reviewed.places.find((each) => line >= each.newStart && line < each.newStart + Math.max(each.newLines, 1));
    if (!place) {
      void vscode.window.setStatusBarMessage("agentd: no change of a prompt at this place", 3000);
      return;
    }
    if (what === "accept") this.tracks.accept(document, place);
    else if (place.isShared && !reviewed.isNew) await this.revertShared(document, reviewed, place);
    else await this.revert(document, reviewed, place);
    this.draw();
  }

  private async revert(document: vscode.TextDocument, reviewed: Reviewed, place: Place): Promise<void> {
    if (reviewed.isNew) { // all of the file is the change: without it there is no file, not an empty one
      const { sessionId, promptId, uri } = reviewed;
      await vscode.commands.executeCommand("agentd.ui.revertFile", { sessionId, promptId, uri });
      return;
    }
    const { range, text } = replaced(document, place, reviewed.base);
    const edit = new vscode.WorkspaceEdit();
    edit.replace(document.uri, range, text, { label: "Revert a change of agentd", needsConfirmation: false });
    if (!(await vscode.workspace.applyEdit(edit))) throw new HostError(`${document.uri.fsPath} changed meanwhile; nothing was reverted.`);
    this.tracks.settle(document);
  }

  /** What others wrote since would go too: they are asked, without a dialog in their way. */
  private async revertShared(document: vscode.TextDocument, reviewed: Reviewed, place: Place): Promise<void> {
    const both = "Revert Both";
    const compare = "Compare";
    const name = unlinked(vscode.workspace.asRelativePath(document.uri));
    const answer = await vscode.window.showWarningMessage(
      `Line ${place.newStart + 1} of ${name} was changed after agentd, too. Reverting takes that back as well; undo brings both back.`, both, compare,
    );
    if (answer === compare) await vscode.commands.executeCommand("agentd.ui.openDiff", { ...reviewed, places: undefined });
    if (answer !== both) return;
    const wanted = contentOf(document, reviewed, place);
    const now = await this.review(document);
    const same = now?.places.filter((each) => contentOf(document, now, each) === wanted) ?? [];
    if (!now || same.length !== 1) throw new HostError(`${name} changed meanwhile; nothing was reverted.`);
    await this.revert(document, now, same[0] as Place);
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
    const version = editor.document.version;
    const reviewed = await this.review(editor.document);
    if (editor.document.version !== version) return; // Another drawing follows.
    const lines = (hunk: Hunk) => new vscode.Range(hunk.newStart, 0, hunk.newStart + hunk.newLines - 1, 0);
    editor.setDecorations(this.added, (reviewed?.places ?? []).filter((each) => each.newLines > 0).map(lines));
  }
}

