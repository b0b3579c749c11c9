import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accepted, hunksBetween, linesOf, removedText, withLineEnds, type Hunk } from "../../src/host/editing/hunks";

const text = fc.array(fc.constantFrom("a\n", "b\n", "c\r\n", "\n", "d\r", "😀\n"), { maxLength: 12 })
  .chain((lines) => fc.constantFrom("", "end").map((last) => lines.join("") + last));

function reverted(before: string, after: string, hunk: Hunk): string {
  const lines = [...linesOf(after)];
  lines.splice(hunk.newStart, hunk.newLines, removedText(before, hunk));
  return lines.join("");
}

describe("hunks", () => {
  test("lines joined are the text", () => fc.assert(fc.property(text, (it) => linesOf(it).join("") === it)));

  test("taking back every hunk, last first, gives the old text", () => fc.assert(fc.property(text, text, (before, after) => {
    const back = hunksBetween(before, after).toReversed().reduce((now, hunk) => reverted(before, now, hunk), after);
    expect(back).toBe(before);
  })));

  test("accepting every hunk, last first, gives the new text", () => fc.assert(fc.property(text, text, (before, after) => {
    const then = hunksBetween(before, after).toReversed().reduce((old, hunk) => accepted(old, after, hunk), before);
    expect(then).toBe(after);
  })));

  test("accepting one hunk leaves the others", () => fc.assert(fc.property(text, text, fc.nat(), (before, after, at) => {
    const hunks = hunksBetween(before, after);
    fc.pre(hunks.length > 0);
    const left = hunksBetween(accepted(before, after, hunks[at % hunks.length]!), after);
    expect(left.length).toBeLessThanOrEqual(hunks.length);
    expect(left.reduce((sum, each) => sum + each.newLines + each.oldLines, 0))
      .toBeLessThan(hunks.reduce((sum, each) => sum + each.newLines + each.oldLines, 0));
  })));

  test("texts that share nothing and are long are one hunk", () => {
    const [before, after] = ["x", "y"].map((it) => Array.from({ length: 5000 }, (_, at) => `${it}${at}\n`).join(""));
    expect(hunksBetween(before!, after!)).toHaveLength(1);
  });

  test("line ends are made those of the other text", () => expect(withLineEnds("a\nb\r\nc\r", "\r\n")).toBe("a\r\nb\r\nc\r\n"));
});
