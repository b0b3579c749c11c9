/** Edits of the daemon's, in a window that may be away. */
import { afterEach, expect, test, vi } from "vitest";
import { applyEdit } from "../../src/host/editing/applying";
import { save } from "../../src/host/editing/saving";
import { CancellationError, CancellationTokenSource, commands, Document, workspace } from "./vscode";

vi.mock("vscode", () => import("./vscode"));

const URI = "file:///w/a.txt";

afterEach(() => {
  vi.restoreAllMocks();
  workspace.textDocuments.splice(0);
});

/** A window that answers nothing until it is said to be back. */
function away(): () => void {
  let back = (): void => undefined;
  const answered = new Promise<undefined>((resolve) => (back = () => resolve(undefined)));
  vi.spyOn(commands, "executeCommand").mockReturnValue(answered);
  return back;
}

/** Asks for an edit of the file in one of its versions; `made` tells whether VS Code was told to make it. */
function asked(version: number, source = new CancellationTokenSource()): { made: () => boolean; result: Promise<unknown>; source: CancellationTokenSource } {
  const edit = { documentChanges: [{ textDocument: { uri: URI, version }, edits: [] }] };
  const making = vi.spyOn(workspace, "applyEdit").mockResolvedValue(true);
  const result = applyEdit({ edit }, source.token as never, async () => ({}) as never, (_, apply) => Promise.resolve(apply()));
  return { made: () => making.mock.calls.length > 0, result, source };
}

test("an edit is made for the version that it is for, and refused for another one", async () => {
  const document = new Document(URI, "text\n");
  expect(await asked(document.version).result).toEqual({ applied: true });
  vi.restoreAllMocks();
  const { result, made } = asked(document.version + 1);
  expect(await result).toEqual({ applied: false, failureReason: "a.txt was changed meanwhile" });
  expect(made()).toBe(false);
});

test("an edit that the daemon gave up while the window was away is not made when that is back", async () => {
  const document = new Document(URI, "text\n");
  const back = away();
  const { result, made, source } = asked(document.version);
  source.cancel();
  back();
  await expect(result).rejects.toBeInstanceOf(CancellationError);
  expect(made()).toBe(false);
});

test("an edit that the daemon still waits for is made when the window is back, unless the user was faster", async () => {
  const document = new Document(URI, "text\n");
  let back = away();
  const { result, made } = asked(document.version);
  await Promise.resolve();
  expect(made()).toBe(false);
  back();
  expect(await result).toEqual({ applied: true });
  back = away();
  const late = asked(document.version);
  document.types("text", "typed");
  back();
  expect(await late.result).toMatchObject({ applied: false });
});

test("a document is not saved for a command that did not wait until the window was back", async () => {
  let saved = 0;
  const document = Object.assign(new Document(URI, "text\n"), { saving: async () => (saved++, true) });
  document.types("text", "typed");
  const back = away();
  const source = new CancellationTokenSource();
  const saving = save({ uris: [URI] }, source.token as never);
  source.cancel();
  await expect(saving).rejects.toBeInstanceOf(CancellationError);
  back();
  await new Promise((resolve) => setImmediate(resolve));
  expect([saved, document.isDirty]).toEqual([0, true]);
});
