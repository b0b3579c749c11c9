import { readFileSync } from "node:fs";
import { build } from "esbuild";
import { expect, test } from "vitest";
// @ts-expect-error scripts without types
import { bundles } from "../../scripts/build.mjs";
// @ts-expect-error scripts without types
import { notice, packagesOf } from "../../scripts/notice.mjs";

test("a package is the innermost one that a file is in", () => {
  const inputs = ["src/extension.ts", "node_modules/a/lib/x.js", "node_modules/@s/b/y.js", "node_modules/a/node_modules/c/z.js"];
  expect(packagesOf(inputs)).toEqual(["node_modules/@s/b", "node_modules/a", "node_modules/a/node_modules/c"]);
});

test("every package of which something is bundled is in the notices, with the text of its licence", { timeout: 60_000 }, async () => {
  const all = Object.values(bundles(true) as Record<string, object>);
  const built = await Promise.all(all.map((each) => build({ ...each, write: false, metafile: true, logLevel: "silent" })));
  const used = built.flatMap(({ metafile }) => Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs)))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => file);
  const text = notice(used, process.cwd()) as string;
  const folders = [...new Set(used.flatMap((file) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []))];
  expect(folders.length).toBeGreaterThan(5);
  for (const folder of folders) {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as { name: string; version: string };
    const at = text.indexOf(`## ${name} ${version}`);
    expect(at, name).toBeGreaterThan(0);
    expect(text.slice(at, at + 2000), name).toMatch(/copyright|permission is hereby granted|licen[cs]e/i);
  }
});
