// Bundles the extension for Node and the view for the browser into dist/.
import { fileURLToPath } from "node:url";
import { build, context } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What esbuild is told; `view` alone is what the page is made of. */
export function bundles(production) {
  const common = { absWorkingDir: root, bundle: true, minify: production, sourcemap: !production, logLevel: "info", legalComments: "none",
    define: { "process.env.NODE_ENV": production ? '"production"' : '"development"' } };
  return {
    host: { ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", platform: "node", format: "cjs", target: "node20", external: ["vscode"] },
    view: { ...common, entryPoints: ["src/webview/main.tsx"], outfile: "dist/webview.js", platform: "browser", format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" },
    style: { ...common, entryPoints: ["src/webview/chat.css"], outfile: "dist/webview.css", loader: { ".ttf": "file" }, assetNames: "[name]" },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const all = Object.values(bundles(process.argv.includes("--production")));
  if (process.argv.includes("--watch")) for (const bundle of all) await (await context(bundle)).watch();
  else await Promise.all(all.map((bundle) => build(bundle)));
}
