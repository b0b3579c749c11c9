/** The files of the open folders by name, for completion: what VS Code itself would find. */
import fuzzysort from "fuzzysort";
import * as vscode from "vscode";

const MAX_FILES = 50_000;
const MAX_FOUND = 50;
const FRESH_MS = 10_000;

export interface Found {
  uri: vscode.Uri;
  /** Relative to its folder, with the folder's name in front where there are several. */
  path: string;
  isFolder: boolean;
}

function excluded(): string {
  const globs = ["files.exclude", "search.exclude"].flatMap((name) =>
    Object.entries(vscode.workspace.getConfiguration().get<Record<string, unknown>>(name, {})).filter(([, is]) => is === true).map(([glob]) => glob));
  return `{${["**/.git", "**/node_modules", "**/.venv", "**/__pycache__", ...globs].join(",")}}`;
}

function withFolders(files: Found[]): Found[] {
  const folders = new Map<string, Found>();
  for (const { uri, path } of files) {
    let [above, folder] = [path, uri];
    while (above.includes("/")) {
      above = above.slice(0, above.lastIndexOf("/"));
      folder = vscode.Uri.joinPath(folder, "..");
      if (folders.has(above)) break;
      folders.set(above, { uri: folder, path: above, isFolder: true });
    }
  }
  return [...files, ...folders.values()];
}

export class Files implements vscode.Disposable {
  private listed: Promise<Found[]> | undefined;
  private readonly subscriptions: vscode.Disposable[];
  private expiry: NodeJS.Timeout | undefined;

  constructor() {
    const forget = () => (this.listed = undefined);
    this.subscriptions = [
      vscode.workspace.onDidCreateFiles(forget), vscode.workspace.onDidDeleteFiles(forget),
      vscode.workspace.onDidRenameFiles(forget), vscode.workspace.onDidChangeWorkspaceFolders(forget),
    ];
  }

  dispose(): void {
    clearTimeout(this.expiry);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Files and folders that match what was typed, the best first; of nothing typed, what is open. */
  async matching(query: string): Promise<Found[]> {
    const all = await this.all();
    const open = new Set(vscode.window.tabGroups.all.flatMap((group) => group.tabs)
      .map((tab) => (tab.input instanceof vscode.TabInputText ? tab.input.uri.toString() : "")));
    if (!query) {
      const isOpen = (it: Found) => Number(open.has(it.uri.toString()));
      return [...all].sort((one, other) => isOpen(other) - isOpen(one)).slice(0, MAX_FOUND);
    }
    return fuzzysort.go(query, all, { key: "path", limit: MAX_FOUND }).map((each) => each.obj);
  }

  private all(): Promise<Found[]> {
    if (!this.listed) {
      this.listed = this.list();
      clearTimeout(this.expiry);
      this.expiry = setTimeout(() => (this.listed = undefined), FRESH_MS);
    }
    return this.listed;
  }

  private async list(): Promise<Found[]> {
    const uris = await vscode.workspace.findFiles("**/*", excluded(), MAX_FILES);
    return withFolders(uris.map((uri) => ({ uri, path: vscode.workspace.asRelativePath(uri), isFolder: false }))
      .sort((one, other) => one.path.localeCompare(other.path)));
  }
}
