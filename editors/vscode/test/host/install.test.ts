import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { Installation } from "../../src/host/install";
import { CancellationTokenSource } from "./vscode";

let lines: string[] = [];
const log = { info: (line: string) => void lines.push(line), warn: () => undefined } as never;
let folder: string;
let installation: Installation;

beforeEach(() => {
  lines = [];
  process.env.PIP_NO_INDEX = "1"; // what is installed is here
  folder = mkdtempSync(join(tmpdir(), "agentd-install-"));
  installation = new Installation({ root: join(folder, "root"), cwd: folder, log });
});

function wheel(version: string): string {
  const path = join(folder, `agentd_lsp-${version}-py3-none-any.whl`);
  execFileSync("python3", [join(__dirname, "wheel.py"), path, version]);
  return path;
}

const environments = () => readdirSync(join(folder, "root")).filter((name) => name.startsWith("env-"));
const install = (source: string, cancelling = new CancellationTokenSource(), step: (text: string) => void = () => undefined) =>
  installation.install(source, step, cancelling.token as never);

describe("a private installation", { timeout: 400_000 }, () => {
  test("is used once it is whole, and stays in use where a later one fails", async () => {
    expect(await installation.program()).toBeNull();
    expect(await install(wheel("0.1.7"))).toBe("0.1.7");
    const program = (await installation.program()) ?? "";
    expect(execFileSync(program, ["--version"], { encoding: "utf8" })).toBe("agentd 0.1.7\n");
    const broken = join(folder, "agentd_lsp-9.9-py3-none-any.whl");
    writeFileSync(broken, "no wheel");
    await expect(install(broken)).rejects.toMatchObject({ message: expect.stringContaining("pip could not install") });
    expect(await installation.program()).toBe(program);
    expect(environments().length).toBe(1);
  });

  test("that is cancelled leaves nothing", async () => {
    const source = new CancellationTokenSource();
    const cancelled = install(wheel("0.1.7"), source, (step) => {
      if (step.startsWith("Installing")) setImmediate(() => source.cancel());
    });
    await expect(cancelled).rejects.toMatchObject({ kind: "cancelled" });
    expect(environments()).toEqual([]);
    expect(existsSync(join(folder, "root", "current"))).toBe(false);
  });

  test("names a package that the index has not", async () => {
    await expect(install("agentd-lsp==999999.0")).rejects.toMatchObject({ message: "The package index has no agentd-lsp==999999.0." });
    expect(environments()).toEqual([]);
  });

  test("tells no password of where it is from, in the log or in what fails", async () => {
    const source = "agentd-lsp @ https://someone:hunter2@127.0.0.1:9/agentd.whl";
    const failed = await install(source).catch((error: Error) => error.message);
    expect(failed).not.toContain("hunter2");
    expect(lines.some((line) => line.includes("https://…@127.0.0.1:9/"))).toBe(true);
    expect(lines.join("\n")).not.toContain("hunter2");
  });
});
