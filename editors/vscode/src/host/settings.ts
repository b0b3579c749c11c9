/** The user's settings, and what new sessions begin with. */
import * as vscode from "vscode";
import type { Effort, Mode } from "../shared/wire";

const KEPT = "newSessions";

export interface Beginning {
  model?: string;
  mode?: Mode;
  effort?: Effort;
}

/** A setting that says something. */
export function setting(name: "model" | "mode"): string | undefined {
  const value = vscode.workspace.getConfiguration("agentd").get<string>(name, "").trim();
  return value === "" ? undefined : value;
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
