import { afterEach, describe, expect, test, vi } from "vitest";
import { Diagnostics } from "../../src/host/editing/diagnostics";
import { save } from "../../src/host/editing/saving";
import { PlayedDaemon } from "../host/wire";
import { CancellationError, CancellationTokenSource, Document, FilePermission, FileType, languages, workspace } from "./vscode";

vi.mock("vscode", () => import("./vscode"));

afterEach(() => {
  vi.restoreAllMocks();
  workspace.textDocuments.splice(0);
  workspace.notebookDocuments.splice(0);
});

function dirty(uri: string, saving: () => Promise<boolean>): Document {
  const document = new Document(uri, "text\n");
  document.types("text", "typed");
  return Object.assign(document, { saving });
}

const within = (token: object) => token as never;

describe("saving for a command", () => {
  test("what is saved is told from what is not, with the reason, and nothing of it is lost", async () => {
    const [good, refused, broken] = [
      dirty("file:///w/good.txt", async () => true),
      dirty("file:///w/refused.txt", async () => false),
      dirty("file:///w/broken.txt", async () => Promise.reject(new Error("the disk is full"))),
    ];
    const untitled = dirty("untitled:Untitled-1", async () => true);
    vi.spyOn(workspace.fs, "stat").mockResolvedValue({ type: FileType.File, permissions: FilePermission.Readonly });
    const uris = [good, refused, broken, untitled].map((each) => each.uri.toString());
    expect(await save({ uris: [...uris, "file:///w/closed.txt"] }, within(new CancellationTokenSource().token))).toEqual({
      saved: [uris[0], "file:///w/closed.txt"],
      failed: [
        { uri: uris[1], reason: "the file is read-only" },
        { uri: uris[2], reason: "the disk is full" },
        { uri: uris[3], reason: "it has no name on disk yet" },
      ],
    });
    for (const each of [refused, broken, untitled]) expect([each.getText(), each.isDirty]).toEqual(["typed\n", true]);
  });

  test("a notebook that is open as text as well is saved", async () => {
    const notebook = dirty("file:///w/n.ipynb", async () => true);
    workspace.notebookDocuments.push(...workspace.textDocuments.splice(0));
    new Document("file:///w/n.ipynb", "text\n");
    await save({ uris: ["file:///w/n.ipynb"] }, within(new CancellationTokenSource().token));
    expect(notebook.isDirty).toBe(false);
  });

  test("once it is cancelled it answers so at once, and saves nothing more", async () => {
    let [done, later] = [(_: boolean) => undefined as void, 0];
    const first = dirty("file:///w/slow.txt", () => new Promise<boolean>((resolve) => (done = resolve)));
    const second = dirty("file:///w/next.txt", async () => (later++, true));
    const source = new CancellationTokenSource();
    const saving = save({ uris: [first.uri.toString(), second.uri.toString()] }, within(source.token));
    source.cancel();
    await expect(saving).rejects.toBeInstanceOf(CancellationError);
    done(true);
    await Promise.resolve();
    expect(later).toBe(0);
    expect(second.isDirty).toBe(true);
  });

  test("one that is cancelled before it begins saves nothing", async () => {
    let count = 0;
    const document = dirty("file:///w/a.txt", async () => (count++, true));
    const source = new CancellationTokenSource();
    source.cancel();
    await expect(save({ uris: [document.uri.toString()] }, within(source.token))).rejects.toBeInstanceOf(CancellationError);
    expect(count).toBe(0);
  });
});

test("waiting for the problems of the present text is over once it is cancelled, and says so", async () => {
  const document = new Document("file:///w/a.py", "text\n");
  const diagnostics = new Diagnostics(new PlayedDaemon());
  languages.say(document.uri);
  document.types("text", "typed");
  const source = new CancellationTokenSource();
  const asked = diagnostics.get({ uris: [document.uri.toString()], timeoutMs: 60_000 }, within(source.token));
  source.cancel();
  await expect(asked).rejects.toBeInstanceOf(CancellationError);
  diagnostics.dispose();
});

test("what is told once more of an older text is none of the present one, and who checks again is heard", async () => {
  const document = new Document("file:///w/a.py", "text\n");
  const diagnostics = new Diagnostics(new PlayedDaemon());
  const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };
  const checked = (message: string) => {
    const found = [{ range, message, severity: 0 }];
    vi.spyOn(languages, "getDiagnostics").mockImplementation(() => found as never);
    languages.say(document.uri);
  };
  checked("old");
  document.types("text", "typed");
  languages.say(document.uri); // an echo
  const asked = diagnostics.get({ uris: [document.uri.toString()], timeoutMs: 60_000 }, within(new CancellationTokenSource().token));
  let isAnswered = false;
  void asked.then(() => (isAnswered = true));
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(isAnswered).toBe(false);
  checked("old"); // the same, found once more
  expect((await asked).items).toMatchObject([{ version: document.version, diagnostics: [{ message: "old" }] }]);
  diagnostics.dispose();
});
