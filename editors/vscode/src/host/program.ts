/** Where agentd is. Nothing of a workspace that the user does not trust has a say in it. */
import { constants } from "node:fs";
import { access, realpath, stat } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { HostError, toCallError } from "./handlers";
import { machine } from "./machine";
import { ask, type CommandLine } from "./process";
import { pythonsOfWorkspace } from "./python";
import { atLeast, OLDEST, versionIn } from "./versions";

export interface Program extends CommandLine {
  /** For showing: the command line. */
  shown: string;
  version: string;
}

const NAME = process.platform === "win32" ? "agentd.exe" : "agentd";

export interface Places {
  /** Where programs are asked for their version: never the workspace. */
  cwd: string;
  /** The program of a private installation, which may not be there. */
  installed(): Promise<string | null>;
  log: vscode.LogOutputChannel;
}

/** The first agentd that works with this extension. Fails with a HostError of kind `missing` where there is none. */
export async function findProgram(places: Places): Promise<Program> {
  const said = vscode.workspace.getConfiguration("agentd").get<string[]>("command", []);
  if (Array.isArray(said) && said.length > 0) return chosen(said, places);
  const tooOld: string[] = [];
  for await (const command of candidates(places)) {
    const program = await tried({ command, args: [] }, places).catch((error: unknown) => {
      places.log.warn(`${command} is not used: ${toCallError(error).message}`);
      return null;
    });
    if (program === null) continue;
    if (atLeast(program.version, OLDEST)) return program;
    tooOld.push(`${program.shown} is agentd ${program.version}`);
    places.log.warn(`${program.shown} is not used: agentd ${program.version} is older than ${OLDEST}.`);
  }
  const reason = tooOld.length === 0
    ? `agentd was not found on ${machine()}.`
    : `${tooOld.join(", ")}, which is too old: this extension needs ${OLDEST} or newer.`;
  throw new HostError(reason, { kind: "missing" });
}

/** What the setting says, and nothing else: it may not be replaced in silence. */
async function chosen(said: string[], places: Places): Promise<Program> {
  const hint = "Correct the setting agentd.command, or empty it to have agentd looked for.";
  const [name, ...args] = said;
  if (name === undefined || said.some((each) => typeof each !== "string")) {
    throw new HostError("The setting agentd.command has to be a list of texts: a program and its arguments.", { kind: "unusable", hint });
  }
  const command = await located(name);
  if (command === null) {
    throw new HostError(`The setting agentd.command names "${name}", which is no program on ${machine()}.`, { kind: "unusable", hint });
  }
  const line = { command, args };
  let program: Program;
  try {
    program = await tried(line, places);
  } catch (error) {
    // it may be a wrapper that knows no --version: what it is shows when it is started
    places.log.info(toCallError(error).message);
    return { ...line, shown: [command, ...args].join(" "), version: "?" };
  }
  if (!atLeast(program.version, OLDEST)) {
    throw new HostError(
      `${program.shown} is agentd ${program.version}, which is too old: this extension needs ${OLDEST} or newer.`, { kind: "unusable", hint },
    );
  }
  return program;
}

/** A program by its path, or by its name on the user's PATH. */
async function located(name: string): Promise<string | null> {
  const expanded = name.startsWith("~/") ? path.join(os.homedir(), name.slice(2)) : name;
  if (path.isAbsolute(expanded)) return (await isExecutable(expanded)) ? expanded : null;
  if (path.basename(expanded) !== expanded) return null; // relative to nothing
  for (const folder of await searchPath(process.env.PATH ?? "", workspaceFolders())) {
    if (await isExecutable(path.join(folder, expanded))) return path.join(folder, expanded);
  }
  return null;
}

async function tried(line: CommandLine, places: Places): Promise<Program> {
  const shown = [line.command, ...line.args].join(" ");
  const options = line.args.findIndex((each) => each.startsWith("--"));
  const before = options < 0 ? line.args : line.args.slice(0, options); // it takes no other option beside --version
  const answer = await ask({ command: line.command, args: [...before, "--version"] }, { cwd: places.cwd });
  const version = versionIn(answer.stdout);
  if (answer.code !== 0 || version === null) {
    const why = answer.stderr.trim().split("\n").at(-1) ?? "";
    throw new HostError(`${shown} --version did not tell the version of agentd${why === "" ? "" : ` (${why})`}.`);
  }
  return { ...line, shown, version };
}

async function* candidates(places: Places): AsyncGenerator<string> {
  const seen = new Set<string>();
  const is = async (file: string) => {
    if (seen.has(file)) return false;
    seen.add(file);
    return isExecutable(file);
  };
  if (vscode.workspace.isTrusted) {
    for (const python of await pythonsOfWorkspace(places.log)) {
      for (const folder of programFolders(path.dirname(python))) {
        const beside = path.join(folder, NAME);
        if (await is(beside)) yield beside;
      }
    }
  }
  for (const folder of await searchPath(process.env.PATH ?? "", workspaceFolders())) {
    const file = path.join(folder, NAME);
    if (await is(file)) yield file;
  }
  const installed = await places.installed();
  if (installed !== null && (await is(installed))) yield installed;
}

/** Where an environment has its programs: with its interpreter, or below that, as Conda has them on Windows. */
function programFolders(ofInterpreter: string): string[] {
  return process.platform === "win32" ? [ofInterpreter, path.join(ofInterpreter, "Scripts")] : [ofInterpreter];
}

/** The folders of a PATH, and where `pip install --user` puts programs, without relative ones and those in a workspace. */
export async function searchPath(value: string, workspace: string[]): Promise<string[]> {
  const roots = await Promise.all(workspace.map((folder) => realpath(folder).catch(() => folder)));
  const kept: string[] = [];
  for (const folder of [...value.split(path.delimiter), path.join(os.homedir(), ".local", "bin")]) {
    if (!path.isAbsolute(folder)) continue;
    const real = await realpath(folder).catch(() => null);
    if (real === null || roots.some((root) => isInside(real, root))) continue;
    if (!kept.includes(folder)) kept.push(folder);
  }
  return kept;
}

function isInside(file: string, folder: string): boolean {
  const relative = path.relative(folder, file);
  return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative));
}

function workspaceFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((each) => each.uri.scheme === "file").map((each) => each.uri.fsPath);
}

export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
