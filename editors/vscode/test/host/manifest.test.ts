import { existsSync } from "node:fs";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Manifest {
  extensionKind: string[];
  main: string;
  browser?: string;
  capabilities: { untrustedWorkspaces: { supported: unknown; restrictedConfigurations: string[] }; virtualWorkspaces: { supported: boolean } };
  contributes: {
    commands: { command: string; title: string }[];
    configuration: { properties: Record<string, { scope?: string }> };
    menus: Record<string, { command: string }[]>;
    keybindings: { command: string; when?: string }[];
  };
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const { contributes, capabilities } = manifest;

test("nothing that a workspace can set says what is run or logged", () => {
  for (const name of ["agentd.command", "agentd.installSource", "agentd.trace"]) {
    expect(contributes.configuration.properties[name]?.scope, name).toBe("machine");
    expect(capabilities.untrustedWorkspaces.restrictedConfigurations, name).toContain(name);
  }
  for (const name of ["agentd.model", "agentd.mode"]) expect(capabilities.untrustedWorkspaces.restrictedConfigurations, name).toContain(name);
  expect(capabilities.untrustedWorkspaces.supported).toBe("limited");
});

test("the extension runs where the workspace is, and nowhere else", () => {
  expect(manifest.extensionKind).toEqual(["workspace"]);
  expect(manifest.main).toBeTruthy();
  expect(manifest.browser).toBeUndefined();
  expect(capabilities.virtualWorkspaces.supported).toBe(false);
});

test("all commands are the extension's own, and every menu and key names one that there is", () => {
  const commands = contributes.commands.map((each) => each.command);
  expect(new Set(commands).size).toBe(commands.length);
  for (const command of commands) expect(command).toMatch(/^agentd\.ui\./);
  for (const item of [...Object.values(contributes.menus).flat(), ...contributes.keybindings]) expect(commands).toContain(item.command);
});

test("no key is taken from anybody: each has a when clause", () => {
  for (const key of contributes.keybindings) expect(key.when, key.command).toBeTruthy();
});

test("every command is registered somewhere in the host", () => {
  const sources = (readdirSync("src/host", { recursive: true }) as string[]).filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(`src/host/${file}`, "utf8")).join("\n");
  for (const { command } of contributes.commands) expect(sources).toContain(`"${command}"`);
});

test.skipIf(!existsSync("../../LICENSE"))("the demonstration's project is the one that agentd's script is about", () => {
  const files = readdirSync("media/demo").filter((file) => !file.startsWith("__"));
  expect(files.sort()).toEqual(["README.md", "calculator.py", "test_calculator.py"]);
  for (const file of files) {
    const [ours, theirs] = ["media/demo", "../../agentd/demo_project"].map((folder) => readFileSync(`${folder}/${file}`, "utf8"));
    expect(ours, file).toBe(theirs);
  }
});

test.skipIf(!existsSync("../../LICENSE"))("the licence that the manifest names is the one that lies beside it, and agentd's own", () => {
  const { license } = JSON.parse(readFileSync("package.json", "utf8")) as { license: string };
  expect(readFileSync("LICENSE", "utf8").split("\n")[0]).toBe(`${license} License`);
  expect(readFileSync("../../LICENSE", "utf8")).toBe(readFileSync("LICENSE", "utf8"));
});
