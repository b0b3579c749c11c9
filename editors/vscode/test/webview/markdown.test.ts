import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse, type Parsed, type Piece } from "../../src/webview/markdown/parse";

/** Lines that Markdown's blocks are made of, and what makes them hard to tell apart while they grow. */
const line = fc.constantFrom(
  "", "", "text", "more *text* and `code`", "- one", "- two", "  - nested", "1. first", "2. second", "  continued", "    indented", "> quoted", "lazy",
  "```", "```python", "~~~", "# Heading", "===", "---", "***", "| a | b |", "|---|:-:|", "| 1 | 2 |", "[link](http://x.example/)", "<b>html</b>", "\\", "* star", "+ plus", "1", "10. ten",
);
const document = fc.array(line, { maxLength: 24 }).map((lines) => lines.join("\n"));

/** The text as it grows, cut at these places. */
function grown(text: string, cuts: readonly number[]): Parsed {
  let parsed: Parsed | null = null;
  for (const cut of [...cuts].map((part) => Math.floor(part * text.length)).sort((a, b) => a - b)) parsed = parse(text.slice(0, cut), parsed, false);
  return parse(text, parsed, true);
}

const shape = ({ done, open }: Parsed) => [...done, ...open].map(({ at: _, ...piece }: Piece) => piece);
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 30 });

describe("Markdown that grows", { timeout: 60_000 }, () => {
  test("is in the end what it is when it comes at once, wherever it was cut", () => {
    fc.assert(fc.property(document, cuts, (text, places) => {
      expect(shape(grown(text, places))).toEqual(shape(parse(text, null, true)));
    }), { numRuns: 600 });
  });

  test("is in the end the same also when it comes letter by letter", () => {
    fc.assert(fc.property(document, (text) => {
      let parsed: Parsed | null = null;
      for (let end = 1; end <= text.length; end++) parsed = parse(text.slice(0, end), parsed, false);
      expect(shape(parse(text, parsed, true))).toEqual(shape(parse(text, null, true)));
    }), { numRuns: 300 });
  });

  test.each(["1. a\n\n1. b", "* a\n\n* b\n\n*c*", "- a\n\n  more\n\n- b", "> a\n\n>b", "    a\n\n    b", "a\n\n    b", "- a\n\n1. b"])("takes a line without its end for nothing certain: %j", (text) => {
    let parsed: Parsed | null = null;
    for (let end = 1; end <= text.length; end++) parsed = parse(text.slice(0, end), parsed, false);
    expect(shape(parse(text, parsed, true))).toEqual(shape(parse(text, null, true)));
  });

  test("keeps what is finished: the same objects, not parsed again", () => {
    const first = parse("# Title\n\nOne.\n\nTwo\nis open", null, false);
    const second = parse("# Title\n\nOne.\n\nTwo\nis open no more.\n\nThree\n", first, false);
    expect(first.done.length).toBe(2);
    expect(second.done.slice(0, 2)).toEqual(first.done);
    expect(second.done[0]).toBe(first.done[0]);
    expect(second.done[1]).toBe(first.done[1]);
    expect(second.from).toBeGreaterThan(first.from);
  });

  test("keeps a name for each block over time, so that its place in the page stays", () => {
    const first = parse("One.\n\nTwo", null, false);
    const second = parse("One.\n\nTwo goes on.\n\nThree\n", first, false);
    expect([...second.done, ...second.open].map((piece) => piece.at)).toEqual([0, 6, 20]);
  });

  test("finds the definition of a link that comes behind it", () => {
    const text = "See [this][1].\n\nMore.\n\n[1]: https://example.com/\n";
    expect(JSON.stringify(shape(grown(text, [0.3, 0.6])))).toContain("https://example.com/");
  });
});

describe("what Markdown may show", () => {
  test("HTML is text", () => {
    expect(shape(parse("<script>alert(1)</script> <b>x</b>", null, true))).toEqual([
      { type: "html", html: "<p>&lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;x&lt;/b&gt;</p>\n" },
    ]);
  });

  test("a picture from elsewhere is a link, and a script is no link", () => {
    const html = JSON.stringify(shape(parse("![p](https://example.com/x.png) [s](javascript:alert(1))", null, true)));
    expect(html).not.toContain("<img");
    expect(html).not.toContain("javascript:alert(1)\\\"");
  });

  test("a fence knows its language, and whether it is closed", () => {
    expect(shape(parse("```ts {1}\nlet a;\n", null, false))).toEqual([{ type: "code", language: "ts", code: "let a;\n", closed: false }]);
    expect(shape(parse("```ts\nlet a;\n```", null, false))).toEqual([{ type: "code", language: "ts", code: "let a;\n", closed: true }]);
    expect(shape(parse("````\n```\n", null, false))).toEqual([{ type: "code", language: "", code: "```\n", closed: false }]);
  });
});
