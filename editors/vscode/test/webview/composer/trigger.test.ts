import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { insertAt, insertWord, triggerAt } from "../../../src/webview/composer/trigger";

/** The trigger where `|` stands. */
const at = (marked: string) => triggerAt(marked.replace("|", ""), marked.indexOf("|"));
const taken = (marked: string, insert: string) => {
  const { text, caret } = insertAt(marked.replace("|", ""), at(marked)!, insert);
  return `${text.slice(0, caret)}|${text.slice(caret)}`;
};

describe("a completion", () => {
  it("begins at an @ that begins a word", () => {
    expect(at("see @src/a|")).toMatchObject({ trigger: "@", query: "src/a", start: 4, end: 10 });
    expect(at("@|")).toMatchObject({ trigger: "@", query: "" });
    expect(at("(@a|")).toMatchObject({ query: "a", start: 1 });
    expect(at("line\n@a|")).toMatchObject({ query: "a", start: 5 });
    expect(at('@"my file|')).toMatchObject({ query: "my file", start: 0 });
  });

  it("begins at a slash only where the text begins", () => {
    expect(at("/he|")).toMatchObject({ trigger: "/", query: "he", start: 0, end: 3 });
    expect(at("/|")).toMatchObject({ trigger: "/", query: "" });
    for (const text of ["see /he|", "/help me|", "/usr/b|", " /he|", "\n/he|"]) expect(at(text)).toBeNull();
  });

  it("does not begin in an address or behind the word", () => {
    for (const text of ["me@example|", "@a |", "a|", "|@a"]) expect(at(text)).toBeNull();
  });

  it("takes the place of the whole word and ends with a blank, unless a folder is gone on with", () => {
    expect(taken("see @sr|", "@src/a.ts")).toBe("see @src/a.ts |");
    expect(taken("see @sr|c/b.ts now", "@src/a.ts")).toBe("see @src/a.ts |now");
    expect(taken("see @sr|", "@src/")).toBe("see @src/|");
    expect(taken("(@sr|)", "@src/a.ts")).toBe("(@src/a.ts|)");
    expect(taken("/he|", "/help")).toBe("/help |");
    expect(taken("see @sel| here", "")).toBe("see | here");
    expect(taken('see @"my f|ile" now', "@x")).toBe("see @x |now");
  });

  it("keeps all text around the word, wherever the caret is", () => {
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom("@", "/", "a", " ", '"', "\n", "(", ".") }), fc.nat(30), (text, where) => {
      const place = triggerAt(text, Math.min(where, text.length));
      if (!place) return;
      const after = insertAt(text, place, "X");
      expect(after.text.startsWith(`${text.slice(0, place.start)}X`)).toBe(true);
      expect(after.text.endsWith(text.slice(place.end))).toBe(true);
      expect(after.caret).toBeLessThanOrEqual(after.text.length);
      expect(text[place.start]).toBe(place.trigger);
    }));
  });

  it("puts an @ in as a word of its own", () => {
    expect(insertWord("see", 3, 3, "@")).toEqual({ text: "see @", caret: 5 });
    expect(insertWord("see ", 4, 4, "@")).toEqual({ text: "see @", caret: 5 });
    expect(insertWord("", 0, 0, "/")).toEqual({ text: "/", caret: 1 });
  });
});
