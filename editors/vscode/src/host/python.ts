/** The Python environments that the user selected for the workspace, by the Python extension where that is installed. */
import type { PythonExtension } from "@vscode/python-extension";
import * as vscode from "vscode";
import { toCallError } from "./handlers";

const EXTENSION = "ms-python.python";
const WAIT_MS = 5_000;

/** What is used of its interface. Another extension may stand under its name, or an old one: all of it may be missing. */
type PythonApi = Partial<{ ready: PythonExtension["ready"]; environments: Partial<Environments> }>;
type Environments = Pick<
  PythonExtension["environments"], "getActiveEnvironmentPath" | "resolveEnvironment" | "onDidChangeActiveEnvironmentPath"
>;

/**
 * The interpreters of the workspace's folders, the first folder's first. To be asked for in a trusted workspace only.
 * None where the Python extension does not tell in time.
 */
export async function pythonsOfWorkspace(log: vscode.LogOutputChannel): Promise<string[]> {
  const untold = (error: unknown): null => {
    log.warn(`The Python extension did not tell the environment: ${toCallError(error).message}`);
    return null;
  };
  try {
    const api = await soon(activated(), "start");
    await soon(Promise.resolve(api?.ready), "get ready");
    const environments = api?.environments;
    const folders = vscode.workspace.workspaceFolders ?? [];
    const resources = folders.length === 0 ? [undefined] : folders.map((each) => each.uri);
    const found = await Promise.all(resources.map((resource) => interpreter(environments, resource).catch(untold)));
    return [...new Set(found.filter((each) => each !== null))];
  } catch (error) {
    untold(error);
    return [];
  }
}

async function interpreter(environments: Partial<Environments> | undefined, resource: vscode.Uri | undefined): Promise<string | null> {
  const active = environments?.getActiveEnvironmentPath?.(resource);
  if (active === undefined) return null;
  const resolved = await soon(Promise.resolve(environments?.resolveEnvironment?.(active)), "resolve the environment");
  return resolved?.executable?.uri?.fsPath ?? null;
}

/**
 * Calls when the user selects another environment, or installs the Python extension, once the workspace is trusted:
 * before, the Python extension is not asked for anything, nor started.
 */
export function onPythonChange(log: vscode.LogOutputChannel, listener: () => void): vscode.Disposable {
  const sources: vscode.Disposable[] = [];
  let state: "none" | "asked" | "disposed" = "none";
  const begin = async (isLater: boolean): Promise<void> => {
    if (state !== "none" || !vscode.workspace.isTrusted || vscode.extensions.getExtension(EXTENSION) === undefined) return;
    state = "asked";
    try {
      const api = await activated(); // as long as it takes: it may come late
      const source = api?.environments?.onDidChangeActiveEnvironmentPath?.(listener);
      if (source !== undefined && (state as string) === "disposed") source.dispose();
      else if (source !== undefined) sources.push(source);
      if (isLater) listener();
    } catch (error) {
      log.warn(`The Python extension does not tell of environments: ${toCallError(error).message}`);
    }
  };
  sources.push(
    vscode.workspace.onDidGrantWorkspaceTrust(() => void begin(false)),
    vscode.extensions.onDidChange(() => void begin(true)),
  );
  void begin(false);
  return new vscode.Disposable(() => {
    state = "disposed";
    sources.forEach((each) => each.dispose());
  });
}

async function activated(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>(EXTENSION);
  return extension === undefined || extension.isActive ? extension?.exports : extension.activate();
}

/** Fails where a promise takes longer than is bearable while the user waits for agentd. */
async function soon<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not ${what} within ${WAIT_MS / 1000} seconds.`)), WAIT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
