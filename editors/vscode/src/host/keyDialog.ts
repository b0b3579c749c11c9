/** Asks for a provider's key, and keeps it. */
import * as vscode from "vscode";
import type { ModelInfo } from "../shared/wire";
import { toCallError } from "./handlers";
import type { Keys } from "./keys";

/** Providers that need no key, and the one that is no model. */
const WITHOUT = new Set(["scripted", "ollama"]);

export async function chooseKey(keys: Keys, models: () => Promise<ModelInfo[]>, named?: string): Promise<void> {
  const provider = named ?? (await chooseProvider(keys, await models()));
  if (provider === undefined) return;
  const key = await vscode.window.showInputBox({
    title: `API key for ${provider}`,
    prompt: "Kept in VS Code's secret storage and given to agentd in memory only.",
    password: true,
    ignoreFocusOut: true,
    validateInput: (text) => (/\s/.test(text.trim()) ? "A key has no blanks in it." : undefined),
  });
  if (key === undefined || key.trim() === "") return;
  await kept(keys, provider, key.trim());
}

async function kept(keys: Keys, provider: string, key: string): Promise<void> {
  try {
    await keys.set(provider, key);
    void vscode.window.setStatusBarMessage(`agentd: the key for ${provider} is kept`, 5000);
  } catch (error) {
    const { kind, message, hint } = toCallError(error);
    if (kind !== "keyring") throw error;
    const [again, once] = ["Try Again", "Use Until the Window Closes"];
    const answer = await vscode.window.showErrorMessage(`${message} ${hint ?? ""}`, again, once);
    if (answer === again) return kept(keys, provider, key);
    if (answer !== once) return;
    await keys.lend(provider, key);
    void vscode.window.setStatusBarMessage(`agentd: the key for ${provider} is used until this window closes`, 5000);
  }
}

export async function deleteKey(keys: Keys): Promise<void> {
  if (keys.providers.length === 0) {
    void vscode.window.setStatusBarMessage("agentd: no key is kept", 5000);
    return;
  }
  const provider = await vscode.window.showQuickPick(keys.providers, { title: "Delete the API key for" });
  if (provider !== undefined) await keys.set(provider, null);
}

async function chooseProvider(keys: Keys, models: ModelInfo[]): Promise<string | undefined> {
  const providers = [...new Set(models.map((model) => model.provider))].filter((provider) => !WITHOUT.has(provider));
  const items = providers.map((provider) => {
    const available = models.some((model) => model.provider === provider && model.available);
    const kept = keys.providers.includes(provider);
    return { label: provider, description: kept ? "a key is kept here" : available ? "works without one" : "" };
  });
  return (await vscode.window.showQuickPick(items, { title: "Set the API key for" }))?.label;
}
