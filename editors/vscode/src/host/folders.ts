/** The folders of the window, and the one in which new sessions begin. */
import * as vscode from "vscode";
import type { Session } from "../shared/wire";

export interface Folder {
  uri: string;
  name: string;
}

export class Folders {
  private chosen: string | null = null;

  /** `nowhere`: where sessions begin in a window without a folder. */
  constructor(private readonly nowhere: vscode.Uri) {}

  /** Those that agentd can work in: folders of the machine on which it runs. */
  get all(): Folder[] {
    return (vscode.workspace.workspaceFolders ?? [])
      .filter((folder) => folder.uri.scheme === "file")
      .map((folder) => ({ uri: folder.uri.toString(), name: folder.name }));
  }

  /** The chosen one, else that of the active editor, else the first; null without any. */
  get current(): string | null {
    const all = this.all.map((folder) => folder.uri);
    if (this.chosen !== null && all.includes(this.chosen)) return this.chosen;
    const document = vscode.window.activeTextEditor?.document.uri;
    const holding = document === undefined ? undefined : vscode.workspace.getWorkspaceFolder(document)?.uri.toString();
    return holding !== undefined && all.includes(holding) ? holding : (all[0] ?? null);
  }

  choose(uri: string): void {
    this.chosen = uri;
  }

  /** Where a new session begins. */
  get forNew(): string {
    return this.current ?? this.nowhere.toString();
  }

  /** The folders whose sessions this window lists. */
  get listed(): string[] {
    const all = this.all.map((folder) => folder.uri);
    return all.length === 0 ? [this.nowhere.toString()] : all;
  }

  /** What a session's folder is called here. */
  nameOf(session: Session): string {
    return this.all.find((folder) => folder.uri === session.workspaceUri)?.name ?? "";
  }
}
