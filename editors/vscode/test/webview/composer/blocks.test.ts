import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ContentBlock } from "../../../src/shared/wire";
import { asCommand, commandAsText, fromBlocks, labelOf, toBlocks } from "../../../src/webview/composer/blocks";
import { attach, EMPTY, present } from "../../../src/webview/composer/draft";

const word = fc.string({ unit: "grapheme", maxLength: 20 });
const path = fc.webPath().map((at) => `file://${at}/x`);
const place = fc.record({ line: fc.nat(500), character: fc.nat(80) });
const resource = fc.record({ type: fc.constant("resource" as const), uri: path, range: fc.record({ start: place, end: place }) });
const image = fc.record({ type: fc.constant("image" as const), mimeType: fc.constant("image/png"), data: fc.base64String({ minLength: 4 }) });
const command = fc.record({
  type: fc.constant("command" as const),
  name: fc.stringMatching(/^[a-z][a-z0-9:-]{0,10}$/),
  arguments: word.map((text) => text.trim()),
});
const text = word.filter((one) => one.trim() !== "").map((one) => ({ type: "text" as const, text: one.trim() }));
const block: fc.Arbitrary<ContentBlock> = fc.oneof(resource, image, command, text);

describe("a draft and its blocks", () => {
  it("sends what was written, without blanks around it", () => {
    fc.assert(fc.property(word, (written) => {
      const sent = toBlocks({ text: written, chips: [] });
      if (written.trim() === "") expect(sent).toEqual([]);
      else if (asCommand(written)) expect(sent).toEqual([asCommand(written)]);
      else expect(sent).toEqual([{ type: "text", text: written.trim() }]);
    }));
  });

  it("gives a prompt back as the draft that sends the same again", () => {
    fc.assert(fc.property(fc.oneof(text, command), fc.uniqueArray(fc.oneof(resource, image), { selector: (one) => JSON.stringify(one) }), (words, chips) => {
      const prompt: ContentBlock[] = [words, ...chips];
      expect(toBlocks(fromBlocks(prompt))).toEqual(prompt);
    }));
  });

  it("loses no block of a prompt that another client made, and settles after one time", () => {
    fc.assert(fc.property(fc.array(block, { maxLength: 6 }), (prompt) => {
      const once = toBlocks(fromBlocks(prompt));
      for (const one of prompt) {
        expect(once).toContainEqual(one);
      }
      expect(toBlocks(fromBlocks(once))).toEqual(once);
    }));
  });

  it("reads a command with its arguments from a text that begins with a slash", () => {
    expect(toBlocks({ text: "/git:fix  the \n tests ", chips: [] })).toEqual([{ type: "command", name: "git:fix", arguments: "the \n tests" }]);
    expect(toBlocks({ text: "/help", chips: [] })).toEqual([{ type: "command", name: "help", arguments: "" }]);
  });

  it("reads no command from a path, from a blank before the slash, or from a slash alone", () => {
    for (const written of ["/usr/bin is full", " /help", "/", "/ help", "see /help"]) {
      expect(toBlocks({ text: written, chips: [] })).toEqual([{ type: "text", text: written.trim() }]);
    }
  });

  it("keeps a text that looks like a command a text when it comes back", () => {
    const prompt: ContentBlock[] = [{ type: "text", text: "/etc is full" }];
    expect(fromBlocks(prompt).text).toBe(" /etc is full");
    expect(toBlocks(fromBlocks(prompt))).toEqual(prompt);
  });

  it("can say a command as the text it was written as", () => {
    expect(commandAsText([{ type: "command", name: "etc", arguments: "is full" }])).toEqual([{ type: "text", text: "/etc is full" }]);
  });

  it("sends a file only while the word for it stands in the text", () => {
    const block: ContentBlock = { type: "resource", uri: "file:///w/a.ts" };
    const draft = attach({ ...EMPTY, text: "look at @a.ts, please" }, [{ label: "a.ts", block, mention: "@a.ts" }]);
    expect(toBlocks(draft)).toEqual([{ type: "text", text: "look at @a.ts, please" }, block]);
    expect(toBlocks({ ...draft, text: "look at @a.tsx" })).toEqual([{ type: "text", text: "look at @a.tsx" }]);
    expect(present({ ...draft, text: "and @a.ts." })).toHaveLength(1);
  });

  it("attaches the same file once", () => {
    const block: ContentBlock = { type: "resource", uri: "file:///w/a.ts" };
    const draft = attach(attach(EMPTY, [{ label: "a.ts", block }]), [{ label: "a.ts", block: { ...block } }]);
    expect(draft.chips).toHaveLength(1);
  });
});

describe("a chip's label", () => {
  const lines = (start: number, end: number, character = 5) => labelOf({
    type: "resource", uri: "file:///w/src/my%20file.ts",
    range: { start: { line: start, character: 0 }, end: { line: end, character } },
  });
  it("names the file and its lines, counted from one", () => {
    expect(labelOf({ type: "resource", uri: "file:///w/src/a.ts" })).toBe("src/a.ts");
    expect(lines(2, 8)).toBe("src/my file.ts:3-9");
    expect(lines(2, 2)).toBe("src/my file.ts:3");
    expect(lines(2, 9, 0)).toBe("src/my file.ts:3-9");
  });
});
