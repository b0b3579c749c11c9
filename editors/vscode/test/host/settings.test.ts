import { afterEach, expect, test } from "vitest";
import { Choices, modelSetting, modeSetting, possible } from "../../src/host/settings";
import { settings, workspaceSettings } from "./vscode";

afterEach(() => {
  for (const all of [settings, workspaceSettings]) for (const name of Object.keys(all)) delete all[name];
});

test("a workspace's settings name no mode for the client: agentd takes a stricter one from them by itself", () => {
  workspaceSettings.mode = "full";
  expect(modeSetting()).toBeUndefined();
  settings.mode = "edit";
  expect(modeSetting()).toBe("edit");
});

test("an empty setting says nothing", () => {
  settings.model = " ";
  expect(modelSetting()).toBeUndefined();
});

test("what was chosen last for new sessions stays, but an effort goes with its model", async () => {
  const kept = new Map<string, unknown>();
  const choices = new Choices({
    get: (name: string, other: unknown) => kept.get(name) ?? other, update: async (name: string, value: unknown) => void kept.set(name, value), keys: () => [],
  } as never);
  await choices.choose({ model: "a/b", effort: "high" });
  await choices.choose({ mode: "plan" });
  expect(choices.forNew).toEqual({ model: "a/b", effort: "high", mode: "plan" });
  await choices.choose({ model: "c/d" });
  expect(choices.forNew).toEqual({ model: "c/d", mode: "plan" });
});

test("a mode that was chosen and cannot be had here is left out, and nothing else is", () => {
  const chosen = { model: "a/b", mode: "auto" } as const;
  expect(possible(chosen, undefined)).toEqual(chosen);
  expect(possible(chosen, ["ask", "auto"])).toEqual(chosen);
  expect(possible(chosen, ["ask", "edit"])).toEqual({ model: "a/b" });
  expect(possible({ model: "a/b" }, ["ask"])).toEqual({ model: "a/b" });
});
