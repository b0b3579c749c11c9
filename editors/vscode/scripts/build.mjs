// Bundles the extension for Node and the view for the browser into dist/.
import { build, context } from "esbuild";

const production = process.argv.includes("--production");
const common = { bundle: true, minify: production, sourcemap: !production, logLevel: "info", legalComments: "none" };
const bundles = [
  { ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", platform: "node", format: "cjs", target: "node20", external: ["vscode"] },
  { ...common, entryPoints: ["src/webview/main.tsx"], outfile: "dist/webview.js", platform: "browser", format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" },
  { ...common, entryPoints: ["src/webview/chat.css"], outfile: "dist/webview.css", loader: { ".ttf": "file" }, assetNames: "[name]" },
];
if (process.argv.includes("--watch")) {
  for (const bundle of bundles) await (await context(bundle)).watch();
} else {
  await Promise.all(bundles.map((bundle) => build(bundle)));
}
