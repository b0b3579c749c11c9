import { build } from "esbuild";
import { expect, test } from "vitest";
// @ts-expect-error a script without types
import { bundles } from "../../scripts/build.mjs";

test("the view stays small: script and style are under 600 KB as they are shipped", { timeout: 120_000 }, async () => {
  const { view, style } = bundles(true) as Record<string, object>;
  const made = await Promise.all([view, style].map((options) => build({ ...options, write: false, logLevel: "silent" })));
  const files = made.flatMap(({ outputFiles }) => outputFiles).filter((file) => !file.path.endsWith(".ttf"));
  const bytes = files.reduce((sum, file) => sum + file.contents.length, 0);
  expect(bytes).toBeLessThan(600_000);
  expect(bytes).toBeGreaterThan(100_000);
});
