/** Documents that are not files: what a file was before a prompt, and what it would be after a patch. */
import { applyPatch } from "diff";
import * as vscode from "vscode";
import type { SessionOriginalResult } from "../../shared/wire";
import type { Wire } from "../daemon";
import { fileUri } from "./uris";

export const ORIGINAL = "agentd-original";
export const PREVIEW = "agentd-preview";

const EMPTY = "empty";
const MAX_PREVIEWS = 20;
/** So many texts are remembered: a window may be open for weeks. */
const MAX_ORIGINALS = 50;

interface Place {
  sessionId: string;
  promptId: string;
  uri: string;
}

/** The address of a file as it was before a prompt. Its path is the file's, so that VS Code knows the language. */
export function originalUri(place: Place): vscode.Uri {
  const file = vscode.Uri.parse(place.uri, true);
  return vscode.Uri.from({ scheme: ORIGINAL, path: file.path, query: JSON.stringify(place) });
}

/** An empty document that stands for a file that is not there. */
export function nothing(uri: vscode.Uri): vscode.Uri {
  return vscode.Uri.from({ scheme: ORIGINAL, path: uri.path, query: EMPTY });
}

export class Originals implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, Promise<string | null>>();

  constructor(private readonly client: Wire) {}

  /** What a file was before a prompt; null where it was not there. It never changes, so it is not asked for each time. */
  text(place: Place): Promise<string | null> {
    const key = JSON.stringify([place.sessionId, place.promptId, place.uri]);
    const known = this.texts.get(key);
    this.texts.delete(key); // what was asked for last stands last
    const text = known ?? this.client.request<SessionOriginalResult>("agentd/session/original", place).then((it) => it.text);
    this.texts.set(key, text);
    const [oldest] = this.texts.keys();
    if (this.texts.size > MAX_ORIGINALS && oldest !== undefined) this.texts.delete(oldest);
    if (!known) text.catch(() => this.texts.delete(key));
    return text;
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    return uri.query === EMPTY ? "" : ((await this.text(JSON.parse(uri.query) as Place)) ?? "");
  }
}

async function exists(uri: vscode.Uri): Promise<boolean> {
  return vscode.workspace.fs.stat(uri).then(() => true, () => false);
}

async function textNow(uri: vscode.Uri): Promise<string | null> {
  const open = vscode.workspace.textDocuments.find((each) => each.uri.toString() === uri.toString());
  if (open) return open.getText();
  return vscode.workspace.fs.readFile(uri).then((bytes) => new TextDecoder().decode(bytes), () => null);
}

/**
 * Shows a file as it was before a prompt beside what it is now; there the user can go on editing.
 *
 * @param nowAt where the file is now, where that is not what the daemon calls it
 */
export async function openDiff(place: Place, nowAt = place.uri): Promise<void> {
  const file = fileUri(nowAt);
  const now = (await exists(file)) ? file : nothing(file);
  const name = file.path.split("/").at(-1) ?? file.path;
  await vscode.commands.executeCommand("vscode.diff", originalUri(place), now, `${name} (before the prompt ↔ now)`, { preview: true });
}

/** The text with a patch; false where that does not fit it, or is none. */
function patched(text: string, patch: string): string | false {
  try {
    return applyPatch(text, patch, { autoConvertLineEndings: true });
  } catch {
    return false; // it is shown as it is
  }
}

export class Previews implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private count = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Shows what a patch would make of a file; where it does not fit what is there now, the patch itself. */
  async open(uri: string, patch: string): Promise<void> {
    const file = fileUri(uri);
    const before = await textNow(file);
    const then = patched(before ?? "", patch);
    const name = file.path.split("/").at(-1) ?? file.path;
    if (then === false) {
      const raw = this.keep(`${file.path}.diff`, patch);
      await vscode.window.showTextDocument(raw, { preview: true });
      return;
    }
    const after = this.keep(file.path, then);
    const left = before === null ? nothing(file) : file;
    await vscode.commands.executeCommand("vscode.diff", left, after, `${name} (now ↔ as asked for)`, { preview: true });
  }

  private keep(path: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: PREVIEW, path, query: String(++this.count) });
    this.texts.set(uri.toString(), text);
    const oldest = this.texts.keys().next().value;
    if (this.texts.size > MAX_PREVIEWS && oldest !== undefined) this.texts.delete(oldest);
    return uri;
  }
}
