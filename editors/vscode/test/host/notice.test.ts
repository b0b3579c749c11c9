import { existsSync, readFileSync } from "node:fs";
import { build } from "esbuild";
import { expect, test } from "vitest";
// @ts-expect-error a script without types
import { notice, packagesOf } from "../../scripts/notice.mjs";

test("a package is the innermost one that a file is in", () => {
  const inputs = ["src/extension.ts", "node_modules/a/lib/x.js", "node_modules/@s/b/y.js", "node_modules/a/node_modules/c/z.js"];
  expect(packagesOf(inputs)).toEqual(["node_modules/@s/b", "node_modules/a", "node_modules/a/node_modules/c"]);
});

test("every package of which something is bundled is in the notices, with the text of its licence", async () => {
  const bundle = { bundle: true, write: false, metafile: true, logLevel: "silent" } as const;
  const built = await Promise.all([
    build({ ...bundle, entryPoints: ["src/extension.ts"], platform: "node", external: ["vscode"] }),
    build({ ...bundle, entryPoints: ["src/webview/main.tsx"], jsx: "automatic", jsxImportSource: "preact" }),
    build({ ...bundle, entryPoints: ["src/webview/chat.css"], loader: { ".ttf": "file" }, outdir: "dist" }),
  ]);
  const inputs = built.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  const text = notice(built.flatMap(({ metafile }) => Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs)))) as string;
  const packages = packagesOf(inputs) as string[];
  expect(packages.length).toBeGreaterThan(5);
  for (const folder of packages) {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as { name: string; version: string };
    const used = built.some(({ metafile }) => Object.values(metafile.outputs).some((output) =>
      Object.entries(output.inputs).some(([file, { bytesInOutput }]) => file.startsWith(`${folder}/`) && bytesInOutput > 0)));
    if (used) expect(text).toContain(`## ${name} ${version}`);
    expect(existsSync(folder)).toBe(true);
  }
});
