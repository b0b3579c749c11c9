/** The Python extension as its official interface has it, and as it may be all the same. */
import type { PythonExtension } from "@vscode/python-extension";
import { afterEach, expect, test, vi } from "vitest";
import { onPythonChange, pythonsOfWorkspace } from "../../src/host/python";
import { EventEmitter, installed, python, trusted, workspace } from "./vscode";

type Environments = PythonExtension["environments"];

const words: string[] = [];
const log = { warn: (line: string) => words.push(line) } as never;
const selected = new EventEmitter<never>();

/** The interface, with an interpreter for each folder. */
function official(interpreters: Record<string, string>, more: Partial<Environments> = {}): Pick<PythonExtension, "ready"> & { environments: Partial<Environments> } {
  return {
    ready: Promise.resolve(),
    environments: {
      getActiveEnvironmentPath: (resource) => {
        const folder = (resource as { fsPath: string } | undefined)?.fsPath ?? "";
        return { id: folder, path: interpreters[folder] ?? "python" };
      },
      resolveEnvironment: async (environment) => {
        const { path } = environment as { path: string };
        return { executable: { uri: path === "python" ? undefined : { fsPath: path } } } as never;
      },
      onDidChangeActiveEnvironmentPath: selected.event as never,
      ...more,
    },
  };
}

function folders(...paths: string[]): void {
  workspace.workspaceFolders = paths.map((fsPath) => ({ uri: { scheme: "file", fsPath } }));
}

afterEach(() => {
  Object.assign(python, { api: undefined, asked: 0, activates: undefined });
  workspace.workspaceFolders = undefined;
  workspace.isTrusted = true;
  words.splice(0);
  vi.useRealTimers();
});

test("each folder's interpreter is told, the first folder's first, and each once", async () => {
  python.api = official({ "/w/a": "/env/a/bin/python", "/w/b": "/env/b/bin/python", "/w/c": "/env/a/bin/python" });
  folders("/w/a", "/w/none", "/w/b", "/w/c");
  expect(await pythonsOfWorkspace(log)).toEqual(["/env/a/bin/python", "/env/b/bin/python"]);
});

test("it is started where it is not, and without a folder the window's environment counts", async () => {
  python.activates = async () => official({ "": "/env/bin/python" });
  expect(await pythonsOfWorkspace(log)).toEqual(["/env/bin/python"]);
});

test.each<[string, () => Promise<unknown>, string]>([
  ["does not start", () => Promise.reject(new Error("it is broken")), "it is broken"],
  ["throws as it is asked", async () => official({}, { getActiveEnvironmentPath: () => { throw new Error("not now"); } }), "not now"],
  ["fails as it looks", async () => official({}, { resolveEnvironment: () => Promise.reject(new Error("no idea")) }), "no idea"],
])("one that %s is no failure of ours, and stands in the log", async (_, activates, why) => {
  python.activates = activates;
  expect(await pythonsOfWorkspace(log)).toEqual([]);
  expect(words.join()).toContain(why);
});

test.each<[string, unknown]>([["nothing", undefined], ["another interface", { settings: {} }], ["half of it", { environments: {} }]])(
  "one that gives %s tells no environment", async (_, api) => {
    python.activates = async () => api;
    expect(await pythonsOfWorkspace(log)).toEqual([]);
    onPythonChange(log, () => undefined).dispose();
  });

test("one that never answers is waited for no longer than is bearable", async () => {
  vi.useFakeTimers();
  python.activates = () => new Promise(() => undefined);
  const asked = pythonsOfWorkspace(log);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await asked).toEqual([]);
  expect(words.join()).toContain("did not start within 5 seconds");
});

test("another selection is heard of, also where the extension comes late or is installed meanwhile", async () => {
  const heard: string[] = [];
  let start = (_: unknown): void => undefined;
  python.activates = () => new Promise((resolve) => (start = resolve));
  const late = onPythonChange(log, () => heard.push("late"));
  start(official({}));
  await vi.waitFor(() => (selected.fire(undefined as never), expect(heard).toContain("late")));
  late.dispose();

  Object.assign(python, { api: undefined, activates: undefined });
  const later = onPythonChange(log, () => heard.push("installed"));
  python.api = official({});
  installed.fire();
  await vi.waitFor(() => expect(heard).toContain("installed"));
  later.dispose();
  heard.splice(0);
  selected.fire(undefined as never);
  expect(heard).toEqual([]);
});

test("before the workspace is trusted it is not started, and then it is heard", async () => {
  let starts = 0;
  python.activates = async () => (starts++, official({}));
  workspace.isTrusted = false;
  const heard: string[] = [];
  const listening = onPythonChange(log, () => heard.push("changed"));
  installed.fire();
  await Promise.resolve();
  expect(starts).toBe(0);
  workspace.isTrusted = true;
  trusted.fire();
  await vi.waitFor(() => (selected.fire(undefined as never), expect(heard).toContain("changed")));
  listening.dispose();
});

test("an event that cannot be listened to does no harm", async () => {
  python.api = official({}, { onDidChangeActiveEnvironmentPath: (() => { throw new Error("no events here"); }) as never });
  onPythonChange(log, () => undefined).dispose();
  await vi.waitFor(() => expect(words.join()).toContain("no events here"));
});
