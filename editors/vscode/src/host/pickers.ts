/** Quick picks: of a session, a model, a mode. */
import * as vscode from "vscode";
import type { Mode, ModelInfo, Session } from "../shared/wire";

const MODES: Record<Mode, string> = {
  plan: "Read only: no change, no command",
  ask: "Ask before each change and each command",
  edit: "Change files freely, ask before commands",
  auto: "Change files and run commands in the sandbox freely",
  full: "Never ask",
};

export async function chooseMode(modes: Mode[]): Promise<Mode | undefined> {
  const items = modes.map((mode) => ({ label: mode, detail: MODES[mode] }));
  return (await vscode.window.showQuickPick(items, { title: "Permission mode" }))?.label;
}

export async function chooseModel(models: ModelInfo[]): Promise<string | undefined> {
  const items = models
    .filter((model) => !model.id.endsWith("/*") && model.provider !== "scripted")
    .sort((a, b) => Number(b.available) - Number(a.available))
    .map((model) => ({ label: model.name, description: model.id, detail: model.available ? "" : `$(warning) ${model.reason ?? "not available"}` }));
  const other = { label: "Another model…", description: "provider/model", detail: "" };
  const chosen = await vscode.window.showQuickPick([...items, other], { title: "Model", matchOnDescription: true });
  if (chosen !== other) return chosen?.description;
  const named = await vscode.window.showInputBox({
    title: "Model", prompt: "provider/model", validateInput: (text) => (/^[^/\s]+\/\S+$/.test(text.trim()) ? undefined : "provider/model"),
  });
  return named?.trim();
}

/** A session by its title; the list is searched as the user types. */
export function chooseSession(list: (query: string) => Promise<{ sessions: Session[] }>): Promise<string | undefined> {
  const pick = vscode.window.createQuickPick<vscode.QuickPickItem & { sessionId: string }>();
  pick.title = "Open a session";
  pick.matchOnDescription = true;
  let number = 0;
  const read = async () => {
    const mine = ++number;
    pick.busy = true;
    const { sessions } = await list(pick.value.trim());
    if (mine !== number) return;
    pick.items = sessions.map((session) => ({
      sessionId: session.sessionId,
      label: session.title === "" ? "(no title)" : session.title,
      description: `${ago(session.updatedAt)}${session.state === "idle" ? "" : ` · ${session.state}`}`,
      alwaysShow: true,
    }));
    pick.busy = false;
  };
  return new Promise((resolve, reject) => {
    const failed = (error: unknown) => {
      pick.dispose();
      reject(error as Error);
    };
    pick.onDidChangeValue(() => void read().catch(failed));
    pick.onDidAccept(() => {
      resolve(pick.selectedItems[0]?.sessionId);
      pick.hide();
    });
    pick.onDidHide(() => {
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
    read().catch(failed);
  });
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400], ["hour", 3600], ["minute", 60]];

function ago(time: string): string {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const format = new Intl.RelativeTimeFormat(vscode.env.language, { numeric: "auto" });
  for (const [unit, size] of UNITS) if (Math.abs(seconds) >= size) return format.format(Math.round(seconds / size), unit);
  return format.format(0, "minute");
}
