/** The view in a page of its own, with the policy that it has in VS Code: `npm run preview`, or `serve()` from a test. */
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { bundles } from "../../scripts/build.mjs";
import { themes } from "./themes.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const TYPES = { js: "text/javascript", css: "text/css", ttf: "font/ttf", json: "application/json" };

/** Builds the view and serves it. Gives the address and a way to stop. `recordings` are further ones by name. */
export async function serve({ port = 0, recordings = {}, production = true } = {}) {
  const made = new Map();
  const { view, style } = bundles(production);
  const host = { entryPoints: [`${root}test/preview/host.ts`], outfile: `${root}dist/host.js`, bundle: true, format: "iife" };
  for (const options of [view, style, host]) {
    const { outputFiles } = await build({ ...options, write: false, logLevel: "warning" });
    for (const file of outputFiles) made.set(`/${basename(file.path)}`, file.contents);
  }
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    try {
      const [type, body] = await content(pathname, searchParams);
      response.writeHead(200, { "Content-Type": type, ...(made.has(pathname) ? { "Cache-Control": "max-age=3600" } : {}), ...(pathname === "/" ? { "Content-Security-Policy": policy } : {}) }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  async function content(path, wish) {
    if (path === "/") return ["text/html", page(wish.get("theme") ?? "dark")];
    if (path === "/theme.css") return [TYPES.css, sheet(wish.get("theme"))];
    const extension = path.slice(path.lastIndexOf(".") + 1);
    const recording = path.match(/^\/fixtures\/(\w+)\.json$/)?.[1];
    if (recording) return [TYPES.json, recordings[recording] ? JSON.stringify(recordings[recording]) : await readFile(`${root}test/fixtures/${recording}.json`)];
    if (!made.has(path)) throw new Error(`There is no ${path}.`);
    return [TYPES[extension] ?? "application/json", made.get(path)];
  }
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}/`, stop: () => new Promise((resolve) => server.close(resolve)) };
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src data:; connect-src 'self'";

function page(theme) {
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">
<link rel="stylesheet" href="theme.css?theme=${theme}"><link rel="stylesheet" href="webview.css"><title>agentd</title></head>
<body class="${themes[theme].kind}"><div id="app"></div><script src="host.js"></script><script src="webview.js"></script></body></html>`;
}

function sheet(theme) {
  const { variables, background } = themes[theme] ?? themes.dark;
  const lines = Object.entries(variables).map(([name, value]) => `--vscode-${name}: ${value};`);
  return `:root { ${lines.join(" ")} } html { background: ${background}; }`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { address } = await serve({ port: 8717, production: false });
  console.log(`${address}?recording=demo&speed=30&theme=dark   (recordings: test/fixtures; themes: ${Object.keys(themes).join(", ")})`);
}
