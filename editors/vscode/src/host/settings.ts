/** The user's settings, and what new sessions begin with. */
import * as vscode from "vscode";
import type { Effort, Mode } from "../shared/wire";

const KEPT = "newSessions";

export interface Beginning {
  model?: string;
  mode?: Mode;
  effort?: Effort;
}

/** A choice without its mode where that cannot be had; as long as nobody knows which can, any may be. */
export function possible(chosen: Beginning, modes: readonly Mode[] | undefined): Beginning {
  const { mode, ...others } = chosen;
  return mode === undefined || modes === undefined || modes.includes(mode) ? chosen : others;
}

/** The model that the settings name; those of a workspace count only where it is trusted. */
export function modelSetting(): string | undefined {
  return said(vscode.workspace.getConfiguration("agentd").get("model"));
}

/**
 * The mode that the user's own settings name. A workspace may ask for a stricter one only: its word goes to agentd as
 * what it is, by `workspace/configuration`.
 */
export function modeSetting(): string | undefined {
  return said(vscode.workspace.getConfiguration("agentd").inspect("mode")?.globalValue);
}

function said(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** What new sessions begin with, as the user last chose it in this workspace; else settings and the daemon decide. */
export class Choices {
  constructor(private readonly memory: vscode.Memento) {}

  get forNew(): Beginning {
    return this.memory.get<Beginning>(KEPT, {});
  }

  async choose(chosen: Beginning): Promise<void> {
    const { effort, ...kept } = this.forNew;
    // an effort is that of a model: it does not outlive the choice of another
    const last = chosen.model === undefined && effort !== undefined ? { effort } : {};
    await this.memory.update(KEPT, { ...kept, ...last, ...chosen });
  }
}
