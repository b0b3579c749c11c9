// Bundles the extension for Node and the view for the browser into dist/, and writes NOTICE.md from what is in them.
import { writeFileSync } from "node:fs";
import { build, context } from "esbuild";
import { notice } from "./notice.mjs";

const production = process.argv.includes("--production");
const common = { bundle: true, minify: production, sourcemap: !production, logLevel: "info", legalComments: "none", metafile: true,
  define: { "process.env.NODE_ENV": production ? '"production"' : '"development"' } };
const bundles = [
  { ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", platform: "node", format: "cjs", target: "node20", external: ["vscode"] },
  { ...common, entryPoints: ["src/webview/main.tsx"], outfile: "dist/webview.js", platform: "browser", format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" },
  { ...common, entryPoints: ["src/webview/chat.css"], outfile: "dist/webview.css", loader: { ".ttf": "file" }, assetNames: "[name]" },
];

if (process.argv.includes("--watch")) {
  for (const bundle of bundles) await (await context(bundle)).watch();
} else {
  const built = await Promise.all(bundles.map((bundle) => build(bundle)));
  const inputs = built.flatMap(({ metafile }) => Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs)));
  writeFileSync("dist/inputs.json", JSON.stringify([...new Set(inputs)].sort(), null, 1));
  writeFileSync("NOTICE.md", notice(inputs));
}
