/** What language servers and linters say of files: told to the daemon as it changes, and when it asks. */
import * as vscode from "vscode";
import type { Diagnostic, DiagnosticsGetParams, DiagnosticsGetResult, DocumentDiagnostics } from "../../shared/wire";
import type { Wire } from "../daemon";

const TELL_DELAY_MS = 150;
const MAX_DIAGNOSTICS = 1000;
const OWN_SOURCE = "agentd";

function told(diagnostic: vscode.Diagnostic): Diagnostic {
  const { start, end } = diagnostic.range;
  const code = typeof diagnostic.code === "object" ? diagnostic.code.value : diagnostic.code;
  return {
    range: { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } },
    message: diagnostic.message,
    severity: diagnostic.severity + 1, // VS Code counts from 0, LSP from 1
    ...(code === undefined ? {} : { code }),
    ...(diagnostic.source ? { source: diagnostic.source } : {}),
  };
}

function isTold(uri: vscode.Uri): boolean {
  return uri.scheme === "file" || uri.scheme === "untitled";
}

export class Diagnostics implements vscode.Disposable {
  /** The version of a document's text when its diagnostics changed last. */
  private readonly versions = new Map<string, number>();
  /** What was said of each file by then. */
  private readonly said = new Map<string, readonly vscode.Diagnostic[]>();
  private readonly waiting = new Set<() => void>();
  private readonly changed = new Set<string>();
  private readonly subscription: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly client: Wire) {
    this.subscription = vscode.Disposable.from(
      vscode.languages.onDidChangeDiagnostics(({ uris }) => this.note(uris)),
      // Opened again, its versions begin anew.
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.close(uri.toString())),
    );
  }

  dispose(): void {
    this.subscription.dispose();
    clearTimeout(this.timer);
  }

  /** `agentd/diagnostics/get`: those of the present texts as soon as they are known, else what there is in time. Fails once it is cancelled. */
  async get(params: DiagnosticsGetParams, token: vscode.CancellationToken): Promise<DiagnosticsGetResult> {
    if (!params.uris) return { items: vscode.languages.getDiagnostics().filter(([uri]) => isTold(uri)).map(([uri]) => this.item(uri)) };
    const uris = params.uris.map((each) => vscode.Uri.parse(each));
    if (!uris.every((each) => this.isFresh(each))) await this.news(uris, params.timeoutMs, token);
    if (token.isCancellationRequested) throw new vscode.CancellationError();
    return { items: uris.map((each) => this.item(each)) };
  }

  private close(uri: string): void {
    this.versions.delete(uri);
    this.said.delete(uri);
  }

  /** Another process knows nothing yet. */
  tellAll(): void {
    this.said.clear();
    this.note(vscode.languages.getDiagnostics().filter(([, each]) => each.length > 0).map(([uri]) => uri));
  }

  private document(uri: vscode.Uri): vscode.TextDocument | undefined {
    return vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
  }

  /** Whether what is known is of the present text, or nobody ever said anything of this document. */
  private isFresh(uri: vscode.Uri): boolean {
    const document = this.document(uri);
    const version = this.versions.get(uri.toString());
    return !document || version === undefined || version === document.version;
  }

  private item(uri: vscode.Uri): DocumentDiagnostics {
    const version = this.versions.get(uri.toString());
    const diagnostics = vscode.languages.getDiagnostics(uri).filter((each) => each.source !== OWN_SOURCE).slice(0, MAX_DIAGNOSTICS).map(told);
    return { uri: uri.toString(), ...(version !== undefined && this.document(uri) ? { version } : {}), diagnostics };
  }

  private news(uris: vscode.Uri[], timeoutMs: number, token: vscode.CancellationToken): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        cancelled.dispose();
        this.waiting.delete(look);
        resolve();
      };
      const look = () => uris.every((each) => this.isFresh(each)) && end();
      const timer = setTimeout(end, timeoutMs);
      const cancelled = token.onCancellationRequested(end);
      this.waiting.add(look);
    });
  }

  private note(uris: readonly vscode.Uri[]): void {
    for (const uri of uris) {
      if (!isTold(uri)) continue;
      if (this.isEcho(uri)) continue;
      const document = this.document(uri);
      if (document) this.versions.set(uri.toString(), document.version);
      this.changed.add(uri.toString());
    }
    for (const look of [...this.waiting]) look();
    if (this.changed.size > 0) this.timer ??= setTimeout(() => this.tell(), TELL_DELAY_MS);
  }

  /**
   * VS Code tells a moment later once more of what a checker has said, which may be of a text that is another one by
   * then. Who checks again says it anew.
   */
  private isEcho(uri: vscode.Uri): boolean {
    const now = vscode.languages.getDiagnostics(uri);
    const before = this.said.get(uri.toString());
    if (now.length > 0) this.said.set(uri.toString(), now);
    else this.said.delete(uri.toString());
    return now.length > 0 && before?.length === now.length && now.every((each, at) => each === before[at]);
  }

  private tell(): void {
    this.timer = undefined;
    for (const uri of this.changed) this.client.notify("agentd/diagnostics/publish", this.item(vscode.Uri.parse(uri)));
    this.changed.clear();
  }
}
