import * as vscode from "vscode";
import { page } from "./host/view";

export function activate(context: vscode.ExtensionContext): void {
  const provider: vscode.WebviewViewProvider = {
    resolveWebviewView(view) {
      view.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(context.extensionUri, "dist")] };
      view.webview.html = page(view.webview, context.extensionUri);
    },
  };
  context.subscriptions.push(vscode.window.registerWebviewViewProvider("agentd.ui.chat", provider));
}
