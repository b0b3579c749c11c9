/** Which notebooks are open and not saved: told to the daemon, which knows texts only, each time that it changes. */
import * as vscode from "vscode";
import type { Wire } from "../daemon";

/** VS Code says of no notebook that it was reverted, but for its change just before. */
const LOOK_DELAY_MS = 150;

export class Notebooks implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private told = "";
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly client: Wire) {
    const look = () => this.look();
    this.subscription = vscode.Disposable.from(
      vscode.workspace.onDidOpenNotebookDocument(look),
      vscode.workspace.onDidChangeNotebookDocument(look),
      vscode.workspace.onDidSaveNotebookDocument(look),
      vscode.workspace.onDidCloseNotebookDocument(look),
    );
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription.dispose();
  }

  /** Another process knows nothing yet. */
  tellAll(): void {
    this.told = "";
    this.tell();
  }

  /** Tells which are unsaved now, where that is not known yet. */
  tell(): void {
    const unsaved = vscode.workspace.notebookDocuments.filter((each) => each.isDirty && each.uri.scheme === "file");
    const uris = unsaved.map((each) => each.uri.toString()).sort();
    if (uris.join("\n") === this.told) return;
    this.told = uris.join("\n");
    this.client.notify("agentd/document/unsaved", { uris });
  }

  private look(): void {
    this.tell();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), LOOK_DELAY_MS);
  }
}
