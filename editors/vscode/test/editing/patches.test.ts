import { applyPatch, createTwoFilesPatch } from "diff";
import { expect, test } from "vitest";
import { patchOf } from "../../src/host/editing/patches";

const made = (name: string, before: string, after: string) => createTwoFilesPatch(`a/${name}`, `b/${name}`, before, after)
  .replace(/^=+\n/, "");

test("a file's patch is found among others, by its whole name and not by a shorter one", () => {
  const diff = made("a.txt", "1\n", "2\n") + made("sub/a.txt", "3\n", "4\n") + made("b.txt", "5\n", "6\n");
  expect(applyPatch("3\n", patchOf(diff, "/w/sub/a.txt")!)).toBe("4\n");
  expect(applyPatch("1\n", patchOf(diff, "/w/a.txt")!)).toBe("2\n");
  expect(patchOf(diff, "/w/c.txt")).toBeUndefined();
});

test("lines that look like the head of a file are what they are: lines", () => {
  const before = "one\n-- b/other.txt\n++ b/other.txt\nlast";
  const after = "one\n@@ -1,1 +1,1 @@\nlast, with\n";
  const diff = made("a.txt", before, after) + made("other.txt", "1\n", "2\n");
  expect(applyPatch(before, patchOf(diff, "/w/a.txt")!)).toBe(after);
  expect(applyPatch("1\n", patchOf(diff, "/w/other.txt")!)).toBe("2\n");
});

test("modes, new files, and patches that are left out do no harm", () => {
  const diff = [
    "diff --git a/run b/run", "old mode 100644", "new mode 100755", "--- a/big.txt", "+++ b/big.txt",
    "The diff of this file is left out: it would be too long.", "--- /dev/null", "+++ b/new.txt", "@@ -0,0 +1,2 @@", "+1", "+2", "",
  ].join("\n");
  expect(patchOf(diff, "/w/big.txt")).toBeUndefined();
  expect(applyPatch("", patchOf(diff, "/w/new.txt")!)).toBe("1\n2\n");
});
