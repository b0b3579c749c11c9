import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findProgram, searchPath } from "../../src/host/program";
import { env, python, settings, workspace } from "./vscode";

let root: string;
const path = process.env.PATH;
const home = process.env.HOME;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "agentd-programs-"));
  process.env.PATH = join(root, "path");
  process.env.HOME = join(root, "home");
  workspace.isTrusted = true;
});
afterEach(() => {
  Object.assign(process.env, { PATH: path, HOME: home });
  delete settings.command;
  Object.assign(python, { api: undefined, asked: 0, activates: undefined });
  workspace.workspaceFolders = undefined;
});

/** A program that says a version. */
function program(folder: string, version: string, name = "agentd"): string {
  mkdirSync(join(root, folder), { recursive: true });
  const file = join(root, folder, name);
  writeFileSync(file, `#!/bin/sh\necho "agentd ${version}"\n`, { mode: 0o755 });
  return file;
}

/** The Python extension, with the environment of a folder selected. */
function selected(folder: string): void {
  const executable = { uri: { fsPath: join(root, folder, "python") } };
  python.api = { environments: { getActiveEnvironmentPath: () => ({ path: "" }), resolveEnvironment: async () => ({ executable }) } };
}

const log = { info: () => undefined, warn: () => undefined } as never;
const find = (installed: string | null = null) => findProgram({ cwd: root, installed: async () => installed, log });

test("the selected Python environment comes before PATH, and that before a private installation", async () => {
  const [environment, onPath, installed] = [program("venv", "0.2.0"), program("path", "0.3.0"), program("private", "0.4.0")];
  selected("venv");
  expect((await find(installed)).command).toBe(environment);
  python.api = undefined;
  expect((await find(installed)).command).toBe(onPath);
  process.env.PATH = "";
  expect(await find(installed)).toEqual({ command: installed, args: [], shown: installed, version: "0.4.0" });
});

test("in a workspace that is not trusted the Python extension is not even asked", async () => {
  program("venv", "0.2.0");
  selected("venv");
  workspace.isTrusted = false;
  await expect(find()).rejects.toMatchObject({ kind: "missing" });
  expect(python.asked).toBe(0);
});

test("one that is too old or does not answer is left for the next, and told where there is none", async () => {
  const old = program("path", "0.0.9");
  const installed = program("private", "0.1.0");
  expect((await find(installed)).command).toBe(installed);
  await expect(find()).rejects.toMatchObject({ kind: "missing", message: `${old} is agentd 0.0.9, which is too old: this extension needs 0.1.0 or newer.` });
});

test("the setting is what counts, or fails by its name", async () => {
  program("path", "0.3.0");
  const mine = program("mine", "0.5.0", "my-agentd");
  settings.command = [mine, "--allow-full"];
  expect(await find()).toMatchObject({ command: mine, args: ["--allow-full"], version: "0.5.0" });
  for (const command of [["./my-agentd"], ["mine/my-agentd"], [join(root, "none")], [7]]) {
    settings.command = command;
    await expect(find(), String(command)).rejects.toMatchObject({ kind: "unusable", message: expect.stringContaining("agentd.command") });
  }
});

test("programs are looked for in absolute folders outside the workspace only, links followed", async () => {
  const root = mkdtempSync(join(tmpdir(), "agentd-path-"));
  for (const name of ["bin", "work/bin", "other"]) mkdirSync(join(root, name), { recursive: true });
  symlinkSync(join(root, "work", "bin"), join(root, "link"));
  const value = ["", ".", "bin", join(root, "bin"), join(root, "work"), join(root, "work", "bin"), join(root, "link"), join(root, "none"), join(root, "other")];
  const found = await searchPath(value.join(delimiter), [join(root, "work")]);
  expect(found.filter((folder) => folder.startsWith(root))).toEqual([join(root, "bin"), join(root, "other")]);
  expect(found.every((folder) => folder.startsWith("/"))).toBe(true);
});

test.each([["ssh-remote", "the machine of the workspace (ssh-remote)"], ["dev-container", "the machine of the workspace (dev-container)"],
  ["127.0.0.1:8000", "the machine of the workspace"], [undefined, "this machine"]])("where agentd was looked for is said: with the remote %s, %s", async (remote, where) => {
  process.env.PATH = "";
  env.remoteName = remote;
  await expect(find()).rejects.toMatchObject({ kind: "missing", message: `agentd was not found on ${where}.` });
  settings.command = ["agentd"];
  await expect(find()).rejects.toThrow(`no program on ${where}`);
  env.remoteName = undefined;
});
