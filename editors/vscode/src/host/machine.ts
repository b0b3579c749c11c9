/** What the place is called where this runs, and agentd with it: where the workspace is. */
import * as vscode from "vscode";

/** In a browser the machine in front of the user is not that one, though the remote has an address only for a name. */
export function machine(): string {
  const name = vscode.env.remoteName;
  if (name === undefined) return "this machine";
  return /^[a-z][a-z-]*$/.test(name) ? `the machine of the workspace (${name})` : "the machine of the workspace";
}
