import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sharedStorage, sweepStorage } from "../../src/host/storage";

interface Place { scheme: string; toString(): string }

const workspace = vi.hoisted(() => ({ workspaceFile: undefined as Place | undefined, workspaceFolders: undefined as { uri: Place }[] | undefined }));
vi.mock("vscode", () => ({ workspace }));

let folder = "";
const context = () => ({ globalStorageUri: { fsPath: folder } }) as never;
const uri = (text: string): Place => ({ scheme: text.split(":")[0]!, toString: () => text });

beforeEach(() => void (folder = mkdtempSync(path.join(tmpdir(), "storage-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Where a window keeps what belongs to its workspace. */
function of(file: string | undefined, ...folders: string[]): string {
  workspace.workspaceFile = file === undefined ? undefined : uri(file);
  workspace.workspaceFolders = folders.length > 0 ? folders.map((each) => ({ uri: uri(each) })) : undefined;
  return sharedStorage(context());
}

test("all windows on a folder keep it in one place, those too that VS Code gives a workspace without a name", () => {
  const one = of(undefined, "file:///w");
  expect(of(undefined, "file:///w")).toBe(one);
  expect(of("untitled:1", "file:///w")).toBe(one);
  expect(of("untitled:2", "file:///w", "file:///v")).toBe(one);
  expect(of(undefined, "file:///v")).not.toBe(one);
  expect(of("file:///w.code-workspace", "file:///w")).not.toBe(one);
});

test("a window without a folder keeps it where its sessions do not work", () => {
  const scratch = path.join(folder, "no-folder");
  expect(path.relative(scratch, of(undefined)).startsWith("..")).toBe(true);
  expect(of("untitled:1")).toBe(of(undefined));
});

test("what is kept of a workspace goes once no window has looked for long, and no other", async () => {
  const [own, other, old] = [of(undefined, "file:///own"), of(undefined, "file:///other"), of(undefined, "file:///old")];
  for (const each of [own, other, old]) mkdirSync(each, { recursive: true });
  for (const each of [own, old]) utimesSync(each, new Date(0), new Date(0));
  await sweepStorage(context(), own);
  expect(readdirSync(path.dirname(own)).sort()).toEqual([own, other].map((each) => path.basename(each)).sort());
});
