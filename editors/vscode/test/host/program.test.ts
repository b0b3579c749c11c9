import { mkdirSync, mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { searchPath } from "../../src/host/program";

test("programs are looked for in absolute folders outside the workspace only, links followed", async () => {
  const root = mkdtempSync(join(tmpdir(), "agentd-path-"));
  for (const name of ["bin", "work/bin", "other"]) mkdirSync(join(root, name), { recursive: true });
  symlinkSync(join(root, "work", "bin"), join(root, "link"));
  const value = ["", ".", "bin", join(root, "bin"), join(root, "work"), join(root, "work", "bin"), join(root, "link"), join(root, "none"), join(root, "other")];
  const found = await searchPath(value.join(delimiter), [join(root, "work")]);
  expect(found.filter((folder) => folder.startsWith(root))).toEqual([join(root, "bin"), join(root, "other")]);
  expect(found.every((folder) => folder.startsWith("/"))).toBe(true);
});
