// Bundles the extension for Node and the view for the browser into dist/, and writes NOTICE.md from what is in them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, context } from "esbuild";
import { notice } from "./notice.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What esbuild is told; `view` alone is what the page is made of. */
export function bundles(production) {
  const common = { absWorkingDir: root, bundle: true, minify: production, sourcemap: !production, logLevel: "info", legalComments: "none",
    metafile: true, define: { "process.env.NODE_ENV": production ? '"production"' : '"development"' } };
  return {
    host: { ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", platform: "node", format: "cjs", target: "node20", external: ["vscode"] },
    view: { ...common, entryPoints: ["src/webview/main.tsx"], outfile: "dist/webview.js", platform: "browser", format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" },
    style: { ...common, entryPoints: ["src/webview/chat.css"], outfile: "dist/webview.css", loader: { ".ttf": "file" }, assetNames: "[name]" },
  };
}

/** The files of which something is in what was built. */
export function inputsOf(built) {
  return built.flatMap(({ metafile }) => Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const all = Object.values(bundles(process.argv.includes("--production")));
  if (process.argv.includes("--watch")) for (const bundle of all) await (await context(bundle)).watch();
  else writeFileSync(join(root, "NOTICE.md"), notice(inputsOf(await Promise.all(all.map((bundle) => build(bundle)))), root));
}
