/** As much of `vscode` as the editing rooms need: documents that can be typed in, read from disk and closed. */
export class Disposable {
  constructor(private readonly end: () => void) {}
  static from(...all: { dispose(): void }[]): Disposable {
    return new Disposable(() => all.forEach((each) => each.dispose()));
  }
  dispose(): void {
    this.end();
  }
}
export class EventEmitter<T> {
  private readonly listeners = new Set<(value: T) => void>();
  readonly event = (listener: (value: T) => void): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };
  fire(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
  dispose(): void {
    this.listeners.clear();
  }
}
export class ThemeColor {}
export class Position {
  constructor(readonly line: number, readonly character: number) {}
}
export class Range {
  readonly start: Position;
  constructor(line: number, character: number, readonly toLine: number, readonly toCharacter: number) {
    this.start = new Position(line, character);
  }
}
export class CodeLens {
  constructor(readonly range: Range, readonly command: { title: string; command: string; arguments: unknown[] }) {}
}
export class Uri {
  private constructor(readonly scheme: string, readonly path: string) {}
  static parse(text: string): Uri {
    const [, scheme, path] = /^([a-z-]+):(?:\/\/)?(.*)$/.exec(text)!;
    return new Uri(scheme!, decodeURIComponent(path!));
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}://${this.path.split("/").map((each) => encodeURIComponent(each).replace(/[()!'*]/g, (it) => `%${it.charCodeAt(0).toString(16).toUpperCase()}`)).join("/")}`;
  }
}
export enum EndOfLine { LF = 1, CRLF = 2 }
export enum OverviewRulerLane { Left = 1 }
export enum TextDocumentChangeReason { Undo = 1, Redo = 2 }

const happened = new EventEmitter<object>();
const moved = new EventEmitter<{ files: { oldUri: Uri; newUri: Uri }[] }>();
const closed = new EventEmitter<Document>();

/** A document in the editor. What is done to it is told as VS Code tells it. */
export class Document {
  version = 1;
  isDirty = false;
  isClosed = false;
  readonly uri: Uri;
  /** What comes of saving it. */
  saving: () => Promise<boolean> = async () => true;

  constructor(uri: string, private text: string) {
    this.uri = Uri.parse(uri);
    workspace.textDocuments.push(this);
  }

  get eol(): EndOfLine {
    return this.text.includes("\r\n") ? EndOfLine.CRLF : EndOfLine.LF;
  }

  get isUntitled(): boolean {
    return this.uri.scheme === "untitled";
  }

  async save(): Promise<boolean> {
    const isSaved = await this.saving();
    if (isSaved) this.isDirty = false;
    return isSaved;
  }

  get lineCount(): number {
    return this.text.split("\n").length;
  }

  getText(): string {
    return this.text;
  }

  offsetAt({ line, character }: { line: number; character: number }): number {
    return this.text.split("\n").slice(0, line).reduce((sum, each) => sum + each.length + 1, 0) + character;
  }

  /** The user types. */
  types(from: string, to: string): void {
    this.becomes(this.text.replace(from, () => to), true);
  }

  undoes(text: string): void {
    this.becomes(text, true, TextDocumentChangeReason.Undo);
  }

  /** It is read anew from disk. */
  isRead(text: string): void {
    this.becomes(text, false);
  }

  becomes(text: string, isDirty: boolean, reason?: TextDocumentChangeReason): void {
    this.text = text;
    this.version++;
    this.isDirty = isDirty;
    happened.fire({ document: this, contentChanges: [{}], reason });
  }

  close(): void {
    this.isClosed = true;
    workspace.textDocuments.splice(workspace.textDocuments.indexOf(this), 1);
    closed.fire(this);
  }
}

export class CancellationError extends Error {}
export class CancellationTokenSource {
  private readonly emitter = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }
}
export enum FileType { File = 1, Directory = 2 }
export enum FilePermission { Readonly = 1 }

const diagnosed = new EventEmitter<{ uris: Uri[] }>();
const none = (): Disposable => new Disposable(() => undefined);
export const window = { createTextEditorDecorationType: none, onDidChangeVisibleTextEditors: none, onDidChangeActiveTextEditor: none, visibleTextEditors: [] };
export const languages = {
  registerCodeLensProvider: none, getDiagnostics: () => [], onDidChangeDiagnostics: diagnosed.event,
  /** Something says of these documents what is wrong with them. */
  say: (...uris: Uri[]) => diagnosed.fire({ uris }),
};
export const commands = { registerCommand: none, executeCommand: async () => undefined };
export const workspace = {
  textDocuments: [] as Document[],
  notebookDocuments: [] as Document[],
  fs: { stat: async (_: Uri): Promise<{ type: FileType; permissions?: FilePermission }> => ({ type: FileType.File }) },
  onDidChangeTextDocument: happened.event,
  onDidCloseTextDocument: closed.event,
  onDidRenameFiles: moved.event,
  onDidChangeConfiguration: none,
  getConfiguration: () => ({ get: () => true }),
  applyEdit: async (): Promise<boolean> => true,
  asRelativePath: (uri: Uri) => uri.path.replace("/w/", ""),
};

/** The user moves a file or a folder. */
export function renamed(from: string, to: string): void {
  moved.fire({ files: [{ oldUri: Uri.parse(from), newUri: Uri.parse(to) }] });
}
