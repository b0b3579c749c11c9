/** The Python environment that the user selected for the workspace, by the Python extension where that is installed. */
import * as vscode from "vscode";
import { toCallError } from "./handlers";

const EXTENSION = "ms-python.python";
const WAIT_MS = 5_000;

/** As much of the Python extension's interface as is used. */
interface PythonApi {
  environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable?: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath?: vscode.Event<unknown>;
  };
}

/** The interpreter of the first workspace folder, or null. To be asked for in a trusted workspace only. */
export async function pythonOfWorkspace(log: vscode.LogOutputChannel): Promise<string | null> {
  const environments = (await api(log))?.environments;
  if (environments === undefined) return null;
  try {
    const active = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    const resolved = await soon(environments.resolveEnvironment(active));
    return resolved?.executable?.uri?.fsPath ?? null;
  } catch (error) {
    log.warn(`The Python extension did not tell the environment: ${toCallError(error).message}`);
    return null;
  }
}

/** Calls when the user selects another environment. */
export async function onPythonChange(log: vscode.LogOutputChannel, listener: () => void): Promise<vscode.Disposable> {
  return (await api(log))?.environments?.onDidChangeActiveEnvironmentPath?.(listener) ?? new vscode.Disposable(() => undefined);
}

async function api(log: vscode.LogOutputChannel): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>(EXTENSION);
  if (extension === undefined) return undefined;
  try {
    return extension.isActive ? extension.exports : await soon(Promise.resolve(extension.activate()));
  } catch (error) {
    log.warn(`The Python extension did not start: ${toCallError(error).message}`);
    return undefined;
  }
}

function soon<T>(promise: Promise<T>): Promise<T | undefined> {
  return Promise.race([promise, new Promise<undefined>((resolve) => setTimeout(resolve, WAIT_MS, undefined).unref())]);
}
