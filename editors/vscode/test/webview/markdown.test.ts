import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeadReader } from "../../src/webview/markdown/head";
import { parse, type Parsed, type Piece } from "../../src/webview/markdown/parse";

/** Lines that Markdown's blocks are made of, and what makes them hard to tell apart while they grow. */
const line = fc.constantFrom(
  "", "", "text", "more *text* and `code`", "- one", "- two", "  - nested", "1. first", "2. second", "  continued", "    indented", "> quoted", "lazy",
  "```", "```python", "~~~", "# Heading", "===", "---", "***", "| a | b |", "|---|:-:|", "| 1 | 2 |", "[link](http://x.example/)", "<b>html</b>", "\\", "* star", "+ plus", "1", "10. ten",
  "[1]: http://one.example/", "see [1] and [that][two]", "[two]: http://two.example/ 'Two'", "    ```", "- ```", "> ~~~", "````",
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

  test("is at every moment what it would be at once, but for links that are defined", () => {
    fc.assert(fc.property(document.filter((text) => !text.includes("]:")), cuts, (text, places) => {
      let parsed: Parsed | null = null;
      for (const cut of [...places].map((part) => Math.floor(part * text.length)).sort((a, b) => a - b)) {
        parsed = parse(text.slice(0, cut), parsed, false);
        expect(shape(parsed)).toEqual(shape(parse(text.slice(0, cut), null, false)));
      }
    }), { numRuns: 600 });
  });

  test.each(["```ts\na\n\n``\nb\n```  \n", "~~~~\n~~~\n```\nx\n~~~~~\ny", "  ```\n  a\n b\n```\n", "```\na\r\nb\n```\n", "````\n```` no\n    ````\n````\n"])("code that goes on is the same letter by letter: %j", (text) => {
    let parsed: Parsed | null = null;
    for (let end = 1; end <= text.length; end++) {
      parsed = parse(text.slice(0, end), parsed, false);
      expect(shape(parsed)).toEqual(shape(parse(text.slice(0, end), null, false)));
    }
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

  test.each(["> [1]: http://one.example/\n\n[1]", "[a\nb]: http://one.example/\n\n[a b]"])("takes no part of a definition for the whole: %j", (text) => {
    const letters = Array.from(text, (_, at) => at / text.length);
    expect(shape(grown(text, letters))).toEqual(shape(parse(text, null, true)));
    expect(JSON.stringify(shape(grown(text, letters)))).toContain("http://one.example/");
  });

  test("begins anew where more comes behind what was said to be all", () => {
    expect(shape(parse("one\ntwo", parse("one\n", null, true), true))).toEqual(shape(parse("one\ntwo", null, true)));
  });

  test("finds the definition also where nothing else is open in the end", () => {
    const text = "See [this][1].\n```\n```\n[1]: https://example.com/";
    const came = parse(text, parse(text.slice(0, text.indexOf("[1]:")), null, false), false);
    expect(came.open).toEqual([]);
    expect(JSON.stringify(shape(parse(text, came, true)))).toContain("https://example.com/");
  });
});

describe("the end of a text that is too long to be shown", () => {
  const lines = Array.from({ length: 400 }, (_, line) => `const value${line} = ${line};\n`).join("");

  /** What is shown from about a place on, of a text that came in pieces. */
  function shown(text: string, at: number, size: number): ReturnType<typeof shape> {
    const reader = new HeadReader();
    let head = reader.at(text.slice(0, 2_000), 0);
    for (let end = at + 2_000; end <= text.length; end += size) head = reader.at(text.slice(0, end), at);
    head = reader.at(text, at);
    return shape(parse(head.fence + text.slice(head.from), null, true, head.references));
  }

  test("is code where it begins in the midst of code, and prose behind that", () => {
    const text = `Look:\n\n\`\`\`ts\n${lines}\`\`\`\n\nThat was *it*.\n`;
    const [code, prose] = shown(text, 4_000, 700);
    expect(code).toMatchObject({ type: "code", language: "ts", closed: true });
    expect((code as { code: string }).code.startsWith("const value")).toBe(true);
    expect(lines.endsWith((code as { code: string }).code)).toBe(true);
    expect(prose).toEqual({ type: "html", html: "<p>That was <em>it</em>.</p>\n" });
  });

  test.each([["~~~~ts\n", "~~~\n```\n", "~~~~~\n"], ["```\n", "~~~\n`` `\n", "```  \n"]])("is code until what opened it closes it: %j", (open, within, close) => {
    const text = `${open}${within}${lines}${close}\nProse.\n`;
    expect(shown(text, 4_000, 500).map(({ type }) => type)).toEqual(["code", "html"]);
    expect(shown(`${open}${within}${close}\n${"Prose.\n\n".repeat(1_000)}`, 4_000, 500)[0]).toEqual({ type: "html", html: "<p>Prose.</p>\n" });
  });

  test("knows the definitions of links that stand before it, and none of those in code", () => {
    const text = `[1]: http://one.example/\n\n\`\`\`\n[2]: http://two.example/\n\`\`\`\n\n${"Words.\n\n".repeat(1_000)}See [it][1] and [that][2].\n`;
    const last = JSON.stringify(shown(text, 4_000, 900).at(-1));
    expect(last).toContain("http://one.example/");
    expect(last).toContain("[that][2]");
  });

  test("begins with a block, where one is near", () => {
    const text = `${"A paragraph\nof two lines.\n\n".repeat(400)}`;
    expect(shown(text, 3_333, 400)[0]).toEqual({ type: "html", html: "<p>A paragraph\nof two lines.</p>\n" });
  });

  test("is the same in whatever pieces the text came", () => {
    fc.assert(fc.property(document, fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 1, max: 900 }), (part, at, size) => {
      fc.pre(part.length > 0);
      const text = `${part}\n`.repeat(Math.ceil(5_000 / part.length));
      expect(shown(text, at, size)).toEqual(shown(text, at, text.length + 1));
    }), { numRuns: 200 });
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
