import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// `vscode` exists in an extension host only; what no real one can show is tested on a stand-in.
export default defineConfig({
  resolve: { alias: { vscode: fileURLToPath(new URL("test/host/vscode.ts", import.meta.url)) } },
  test: { server: { deps: { inline: [/vscode-languageclient/] } } },
});
