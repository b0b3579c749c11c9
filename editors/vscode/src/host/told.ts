import * as vscode from "vscode";
import { toCallError } from "./handlers";
import { unlinked } from "./plain";

/** Does something for the user, and tells where it fails. */
export async function told(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { kind, message, hint } = toCallError(error);
    if (kind !== "cancelled") void vscode.window.showErrorMessage(unlinked(`agentd: ${message}${hint === undefined ? "" : ` ${hint}`}`));
  }
}
