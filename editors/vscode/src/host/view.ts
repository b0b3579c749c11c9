import * as vscode from "vscode";

/** The page of the chat view: no inline script or style, nothing from outside the extension. */
export function page(webview: vscode.Webview, extension: vscode.Uri): string {
  const at = (file: string) => webview.asWebviewUri(vscode.Uri.joinPath(extension, "dist", file)).toString();
  const policy = [
    "default-src 'none'", `script-src ${webview.cspSource}`, `style-src ${webview.cspSource}`,
    `font-src ${webview.cspSource}`, "img-src data:",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${at("webview.css")}">
  <title>agentd</title>
</head>
<body><div id="app"></div><script src="${at("webview.js")}"></script></body>
</html>`;
}
