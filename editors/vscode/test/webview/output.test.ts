import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newTool, printed } from "../../src/webview/model/tools";
import { lines } from "../../src/webview/transcript/ansi";
import { rows } from "../../src/webview/transcript/patch";
import { fileOf } from "../../src/webview/transcript/places";
import { count, duration, filePath, money } from "../../src/webview/transcript/words";
import { recording, watched } from "./recordings";

const plain = (text: string) => lines(text).map((line) => line.map((span) => span.text).join(""));

describe("what a command printed", { timeout: 60_000 }, () => {
  test("colours and weights become classes, and end where they are reset", () => {
    expect(lines("\x1b[1;31mred\x1b[0m plain")).toEqual([[{ text: "red", style: "ansi-red ansi-bold" }, { text: " plain", style: "" }]]);
    expect(lines("\x1b[7mturned")).toEqual([[{ text: "turned", style: "ansi-back ansi-on-fore" }]]);
  });

  test("colours by number become the theme's nearest", () => {
    expect(lines("\x1b[38;5;196mx")[0]![0]!.style).toBe("ansi-bright-red");
    expect(lines("\x1b[38;2;10;200;10mx")[0]![0]!.style).toBe("ansi-green");
    expect(lines("\x1b[48;5;238mx")[0]![0]!.style).toBe("ansi-on-bright-black");
    expect(lines("\x1b[38:5:21mx")[0]![0]!.style).toBe("ansi-bright-blue");
  });

  test("a line that is written over shows what was written last", () => {
    expect(plain("10%\r55%\r100%\nnext")).toEqual(["100%", "next"]);
    expect(plain("long line\r\x1b[Kshort")).toEqual(["short"]);
    expect(plain("long\rsh")).toEqual(["shng"]);
    expect(plain("ab\bc\r\n\n")).toEqual(["ac", ""]);
  });

  test("no control sequence reaches the page, whatever a program prints", () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom("\x1b[", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b[2J", "\x1b[?25l", "\x1b", "\x07", "\r", "\b", "\x1b[38;5m", "\x1b[;;m"));
    fc.assert(fc.property(fc.array(piece), (pieces) => {
      for (const line of plain(pieces.join(""))) expect(line).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f]/);
    }), { numRuns: 500 });
  });

  test("text without control characters is itself", () => {
    fc.assert(fc.property(fc.string().filter((text) => !/[\x00-\x1f\x7f]/.test(text)), (text) => {
      expect(plain(text)).toEqual([text]);
    }));
  });

  test("of endless output the end is kept, and how much is missing before it", () => {
    let tool = { ...newTool("c", "bash"), state: "running" as const };
    const line = `${"x".repeat(999)}\n`;
    for (let nth = 0; nth < 3000; nth++) tool = printed(tool, { channel: "stdout", offset: nth * 1000, delta: line }) as typeof tool;
    const [part] = tool.output;
    expect(tool.output).toHaveLength(1);
    expect(part!.text.length).toBeLessThanOrEqual(1 << 20);
    expect(part!.missed + part!.text.length).toBe(3_000_000);
    expect(part!.text.endsWith(line)).toBe(true);
  });

  test("a real command's colours are kept behind its end", () => {
    const it = recording("output");
    const tools = watched(it, it.events).entries.flatMap((entry) => (entry.type === "assistant" ? entry.blocks : []))
      .flatMap((block) => (block.type === "tool" ? [block.tool] : []));
    const styles = lines(tools[0]!.output.map((part) => part.text).join("")).flat().map((span) => span.style);
    expect(styles).toContain("ansi-green");
  });
});

describe("a diff", () => {
  test("has the numbers of both sides, and a gap between hunks", () => {
    const patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9 @@ def f\n--- nine\n\\ No newline at end of file\n++++ 9\n";
    expect(rows(patch)).toEqual([
      { kind: "context", text: "one", old: 1, new: 1 }, { kind: "removed", text: "two", old: 2 }, { kind: "added", text: "2", new: 2 },
      { kind: "gap", text: "def f" }, { kind: "removed", text: "-- nine", old: 9 }, { kind: "added", text: "+++ 9", new: 9 },
    ]);
  });
});

describe("words for numbers", () => {
  test("are short and true", () => {
    expect([0, 950, 59_900, 185_000, 7_500_000].map(duration)).toEqual(["0.0 s", "0.9 s", "59 s", "3 min 5 s", "2 h 5 min"]);
    expect([0, 999, 4_210, 42_100, 999_600, 1_300_000].map(count)).toEqual(["0", "999", "4.2k", "42k", "1M", "1.3M"]);
    expect([0, 0.0042, 0.123, 1.255].map(money)).toEqual(["$0", "$0.004", "$0.123", "$1.25"]);
    expect(filePath("file:///a/b/src/x%20y.ts", "file:///a/b")).toBe("src/x y.ts");
    expect(filePath("file:///other/x.ts", "file:///a/b")).toBe("/other/x.ts");
  });
});

describe("a link of the model", () => {
  const folder = "file:///home/user/project";
  test.each([
    ["src/a.ts", { uri: `${folder}/src/a.ts` }],
    ["./src/a.ts:12", { uri: `${folder}/src/a.ts`, line: 11 }],
    ["src/a.ts:12:5", { uri: `${folder}/src/a.ts`, line: 11 }],
    ["a.ts:3", { uri: `${folder}/a.ts`, line: 2 }],
    ["src/a%20b.ts#L7-L9", { uri: `${folder}/src/a%20b.ts`, line: 6 }],
    ["/etc/hosts", { uri: "file:///etc/hosts" }],
    ["file:///tmp/x.py#3", { uri: "file:///tmp/x.py", line: 2 }],
  ])("to a file is its place: %s", (href, place) => {
    expect(fileOf(href, folder)).toEqual(place);
  });

  test.each(["https://example.com/a.ts:12", "mailto:a@example.com", "#section", "//example.com/x", "command:do", "vscode://x"])("to elsewhere is none: %s", (href) => {
    expect(fileOf(href, folder)).toBeNull();
  });
});
