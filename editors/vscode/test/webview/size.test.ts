import { build } from "esbuild";
import { expect, test } from "vitest";
// @ts-expect-error a script without types
import { bundles } from "../../scripts/build.mjs";

test("the extension and its view stay small: all that is shipped of them is well under 900 KB", { timeout: 120_000 }, async () => {
  const all = Object.values(bundles(true) as Record<string, object>);
  const made = await Promise.all(all.map((options) => build({ ...options, write: false, logLevel: "silent" })));
  const bytes = made.flatMap(({ outputFiles }) => outputFiles).reduce((sum, file) => sum + file.contents.length, 0);
  expect(bytes).toBeLessThan(900_000);
  expect(bytes).toBeGreaterThan(100_000);
});
