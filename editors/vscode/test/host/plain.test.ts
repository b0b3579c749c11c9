import { expect, test } from "vitest";
import { unlinked } from "../../src/host/plain";

/** What VS Code makes links of in a message. */
const LINK = /\[[^\]]+\]\((?:https?:\/\/|command:|file:)[^)\s]+/i;

test("no text of others becomes a link of a message, which may run any command", () => {
  for (const text of ["[OK](command:workbench.action.quit)", "a [b](https://x.example) c", "[[x]](command:a)", "]([x](command:a)"]) {
    expect(unlinked(text)).not.toMatch(LINK);
  }
  expect(unlinked("list[0](x)")).toBe("list[0] (x)");
});

test("a message of several lines is one, and marks that turn text are spelled out", () => {
  expect(unlinked(" one\r\n  two\n")).toBe("one two");
  expect(unlinked("a\u202eb")).toBe("a\\u{202e}b");
});
