/** `agentd doctor`, in an editor. */
import * as vscode from "vscode";
import { ask, type CommandLine } from "./process";

const DOCTOR_MS = 60_000;

export async function showReport(program: CommandLine, cwd: string): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.find((each) => each.uri.scheme === "file")?.uri.fsPath;
  const title = "agentd looks at its set-up";
  const report = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    // what a trusted folder adds is part of the report; one that is not trusted is not gone into
    const where = vscode.workspace.isTrusted ? (folder ?? cwd) : cwd;
    const { stdout, stderr } = await ask({ command: program.command, args: [...program.args.filter((each) => !each.startsWith("--")), "doctor"] }, { cwd: where, timeoutMs: DOCTOR_MS });
    return stdout + (stderr.trim() === "" ? "" : `\n${stderr}`);
  });
  const content = `${report.trimEnd()}\n`;
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content, language: "plaintext" }), { preview: false });
}
