import { expect, test, vi } from "vitest";
import { Review } from "../../src/host/editing/review";

vi.mock("vscode", () => {
  class Disposable {
    static from = () => new Disposable();
    dispose(): void {}
  }
  class EventEmitter {
    readonly event = () => new Disposable();
    fire(): void {}
    dispose(): void {}
  }
  const none = () => new Disposable();
  return {
    Disposable, EventEmitter, ThemeColor: class {}, Range: class { constructor(readonly line: number) {} },
    CodeLens: class { constructor(readonly range: object, readonly command: object) {} },
    OverviewRulerLane: { Left: 1 }, EndOfLine: { LF: 1, CRLF: 2 },
    window: { createTextEditorDecorationType: none, onDidChangeVisibleTextEditors: none, onDidChangeActiveTextEditor: none },
    workspace: { onDidChangeTextDocument: none, onDidChangeConfiguration: none, getConfiguration: () => ({ get: () => true }) },
    languages: { registerCodeLensProvider: none }, commands: { registerCommand: none },
  };
});

const changes = { onDidChange: () => undefined, open: () => ({ sessionId: "s", promptId: "p" }) };

function documentOf(texts: string[]): { getText(): string } {
  return { uri: { toString: () => "file:///w/a.txt" }, eol: 1, lineCount: 3, getText: () => texts[0] ?? "" } as never;
}

test("a file of which nobody knows what it was is not offered as one that was empty", async () => {
  const log: string[] = [];
  const originals = { text: () => Promise.reject(new Error("sessionNotFound")) };
  const review = new Review(changes as never, originals as never, (line) => log.push(line));
  expect(await review.provideCodeLenses(documentOf(["all\nthat\nI have\n"]) as never)).toEqual([]);
  expect(log).toEqual(["What file:///w/a.txt was before the prompt is not known: sessionNotFound"]);
});

test("what is typed while the text before is fetched is part of what is compared", async () => {
  const texts = ["one\nTWO\n"];
  const originals = { text: async () => {
    texts[0] = "one\ntwo\n"; // taken back by hand meanwhile
    return "one\ntwo\n";
  } };
  const review = new Review(changes as never, originals as never, () => undefined);
  expect(await review.provideCodeLenses(documentOf(texts) as never)).toEqual([]);
});
