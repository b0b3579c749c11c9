import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  // `vscode` exists in an extension host only; what no real one can show is tested on a stand-in.
  resolve: { alias: { vscode: fileURLToPath(new URL("test/host/vscode.ts", import.meta.url)) } },
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    setupFiles: ["test/orphan.mjs", "test/examples.ts"],
    testTimeout: 60_000, // busy machines: a bound, nothing that is measured
    hookTimeout: 120_000,
    // One Preact for the view and for what tests draw with.
    server: { deps: { inline: [/@testing-library/, /@preact\/signals/, /^preact/, /vscode-languageclient/] } },
  },
});
