import { describe, expect, it } from "vitest";
import { historyOf, step } from "../../../src/webview/composer/history";

describe("the history of prompts", () => {
  it("goes back with Up from an empty box and forward with Down to an empty one", () => {
    let { history, text } = step(historyOf(["first", "second"]), "", -1)!;
    expect(text).toBe("second");
    ({ history, text } = step(history, text, -1)!);
    expect(text).toBe("first");
    expect(step(history, text, -1)).toBeNull();
    ({ history, text } = step(history, text, 1)!);
    ({ history, text } = step(history, text, 1)!);
    expect(text).toBe("");
    expect(step(history, text, 1)).toBeNull();
  });

  it("leaves a text alone that was written or changed", () => {
    const { history } = step(historyOf(["first", "second"]), "", -1)!;
    expect(step(history, "second, changed", -1)).toBeNull();
    expect(step(history, "second, changed", 1)).toBeNull();
    expect(step(historyOf(["first"]), "new", -1)).toBeNull();
  });

  it("holds neither blanks nor the same twice in a row", () => {
    expect(historyOf(["a", " a ", "", "b", "a"]).entries).toEqual(["a", "b", "a"]);
  });

  it("has nothing to give where nothing was sent", () => {
    expect(step(historyOf([]), "", -1)).toBeNull();
  });
});
