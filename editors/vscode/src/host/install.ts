/** A private installation of agentd: a virtual environment of its own below the extension's storage. */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import { HostError, toCallError } from "./handlers";
import { machine } from "./machine";
import { ask, type Answer } from "./process";
import { isExecutable, searchPath } from "./program";
import { REQUIREMENT, versionIn } from "./versions";

const VENV_MS = 300_000;
const PIP_MS = 900_000;
const PYTHONS = process.platform === "win32" ? ["python.exe", "py.exe"] : ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];
const BIN = process.platform === "win32" ? "Scripts" : "bin";
const EXE = process.platform === "win32" ? ".exe" : "";
/** Names the folder that is in use; it is written when that is whole. */
const CURRENT = "current";

export interface InstallParts {
  /** The folder of all installations. */
  root: string;
  cwd: string;
  log: vscode.LogOutputChannel;
}

export class Installation {
  constructor(private readonly parts: InstallParts) {}

  /** The program of the installation in use, or null. */
  async program(): Promise<string | null> {
    const name = await readFile(path.join(this.parts.root, CURRENT), "utf8").catch(() => null);
    return name === null || !/^[\w.-]+$/.test(name) ? null : path.join(this.parts.root, name, BIN, `agentd${EXE}`);
  }

  /**
   * Makes one beside what is there, and takes it into use when it is whole and answers. `source` is what pip is asked
   * for in place of the released package: a wheel, a folder or a requirement. Gives its version.
   */
  async install(source: string, step: (text: string) => void, token: vscode.CancellationToken): Promise<string> {
    const { root } = this.parts;
    await mkdir(root, { recursive: true });
    const before = await readFile(path.join(root, CURRENT), "utf8").catch(() => null);
    const name = `env-${Date.now().toString(36)}-${process.pid.toString(36)}`;
    const folder = path.join(root, name);
    try {
      step("Looking for Python 3.11 or newer");
      const python = await this.python(token);
      step("Making a virtual environment");
      await this.make(python, folder, token);
      step("Installing agentd");
      await this.pip(folder, source === "" ? REQUIREMENT : source, token);
      step("Trying it");
      const version = await this.tried(folder, token);
      const marker = path.join(root, `${CURRENT}.${name}`);
      await writeFile(marker, name);
      await rename(marker, path.join(root, CURRENT));
      await this.clean([name, ...(before === null ? [] : [before])]);
      return version;
    } catch (error) {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
      throw token.isCancellationRequested ? new HostError("The installation was cancelled.", { kind: "cancelled", cause: error }) : error;
    }
  }

  /** A Python that is new enough. */
  private async python(token: vscode.CancellationToken): Promise<string> {
    const workspace = (vscode.workspace.workspaceFolders ?? []).map((each) => each.uri.fsPath);
    const found: string[] = [];
    for (const folder of await searchPath(process.env.PATH ?? "", workspace)) {
      for (const name of PYTHONS) {
        const file = path.join(folder, name);
        if (!(await isExecutable(file))) continue;
        const answer = await this.run([file, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], 15_000, token).catch(() => null);
        const [major, minor] = (answer?.stdout.trim() ?? "").split(".").map(Number);
        if (major === 3 && minor !== undefined && minor >= 11) return file;
        if (major !== undefined && !Number.isNaN(major)) found.push(`${file} is Python ${answer?.stdout.trim()}`);
      }
    }
    const seen = found.length === 0 ? "" : ` (${found.join(", ")})`;
    throw new HostError(`There is no Python 3.11 or newer on ${machine()}${seen}.`, { hint: "Install Python 3.11 or newer, then try again." });
  }

  private async make(python: string, folder: string, token: vscode.CancellationToken): Promise<void> {
    const answer = await this.run([python, "-I", "-m", "venv", folder], VENV_MS, token);
    if (answer.code === 0) return;
    const hint = /ensurepip|python3-venv/.test(answer.stdout + answer.stderr)
      ? "Python's venv module is incomplete here: on Debian and Ubuntu, install the package python3-venv."
      : "The log says more.";
    throw new HostError(`${python} could not make a virtual environment: ${lastLine(answer)}`, { hint });
  }

  private async pip(folder: string, requirement: string, token: vscode.CancellationToken): Promise<void> {
    const python = path.join(folder, BIN, `python${EXE}`);
    const pip = [python, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-warn-script-location", requirement];
    const answer = await this.run(pip, PIP_MS, token);
    if (answer.code === 0) return;
    const asked = withoutSecrets(requirement);
    const said = answer.stderr + answer.stdout;
    if (/No matching distribution|Could not find a version/.test(said) && !/NewConnectionError|ConnectTimeout|Temporary failure|Connection refused/.test(said)) {
      throw new HostError(`The package index has no ${asked}.`, {
        hint: "If pip is configured to use another index, it has to carry agentd-lsp; or install agentd yourself and choose the program.",
      });
    }
    if (/NewConnectionError|ConnectTimeout|ReadTimeout|Temporary failure|Connection refused|Network is unreachable|ProxyError|SSLError/.test(said)) {
      throw new HostError("The package index cannot be reached.", {
        hint: "Check the network and pip's settings for index and proxy (pip config list), or install agentd yourself and choose the program.",
      });
    }
    throw new HostError(`pip could not install ${asked}: ${lastLine(answer)}`, { hint: "The log holds all that pip said." });
  }

  private async tried(folder: string, token: vscode.CancellationToken): Promise<string> {
    const answer = await this.run([path.join(folder, BIN, `agentd${EXE}`), "--version"], 30_000, token);
    const version = versionIn(answer.stdout);
    if (version === null) throw new HostError(`What was installed is not agentd: ${lastLine(answer)}`);
    return version;
  }

  private async run([command, ...args]: [string, ...string[]] | string[], timeoutMs: number, token: vscode.CancellationToken): Promise<Answer> {
    const { log, cwd } = this.parts;
    if (command === undefined) throw new Error("no command");
    log.info(`Running ${withoutSecrets([command, ...args].join(" "))}`);
    const answer = await ask({ command, args }, { cwd, timeoutMs, token });
    for (const line of `${answer.stdout}\n${answer.stderr}`.split("\n")) if (line.trim() !== "") log.info(`  ${withoutSecrets(line)}`);
    return answer;
  }

  /** Removes what is not in use, and not what another window may be running or making. */
  private async clean(keep: string[]): Promise<void> {
    const dayAgo = Date.now() - 24 * 3600 * 1000;
    for (const name of await readdir(this.parts.root).catch(() => [])) {
      const made = Number.parseInt(/^env-([0-9a-z]+)-/.exec(name)?.[1] ?? "", 36);
      if (keep.includes(name) || !(made < dayAgo)) continue;
      await rm(path.join(this.parts.root, name), { recursive: true, force: true }).catch((error: unknown) => {
        this.parts.log.warn(`An old installation stays: ${toCallError(error).message}`);
      });
    }
  }
}

function lastLine({ stdout, stderr }: Answer): string {
  const lines = `${stdout}\n${stderr}`.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return withoutSecrets(lines.findLast((line) => line.startsWith("ERROR")) ?? lines.at(-1) ?? "it said nothing");
}

/** An index may have a password in its address. */
function withoutSecrets(line: string): string {
  return line.replace(/(\w+:\/\/)[^\s/@]+@/g, "$1…@");
}
