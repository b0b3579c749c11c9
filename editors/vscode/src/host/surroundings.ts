/** What the view shows around the session, kept up to date. */
import * as vscode from "vscode";
import type { Surroundings, ToView } from "../shared/messages";
import type { CommandsResult, Mode, ModelsResult, ModelInfo, StatusResult } from "../shared/wire";
import type { Daemon } from "./daemon";
import type { Folders } from "./folders";
import { toCallError } from "./handlers";
import { possible, type Beginning, type Choices } from "./settings";

/** Until agentd has told which can be chosen. */
const MODES: Mode[] = ["plan", "ask", "edit"];
const MODES_UNTRUSTED: Mode[] = ["plan", "ask"];

export interface SurroundingsParts {
  daemon: Daemon;
  folders: Folders;
  choices: Choices;
  keys(): string[];
  post(message: ToView): void;
  log: vscode.LogOutputChannel;
}

export class SurroundingsRoom implements vscode.Disposable {
  private models: ModelInfo[] = [];
  private defaultModel: string | null = null;
  private commands: CommandsResult["commands"] = [];
  private status: StatusResult | null = null;
  private told = "";
  private readonly sources: vscode.Disposable[];

  constructor(private readonly parts: SurroundingsParts) {
    this.sources = [
      parts.daemon.onConnection((connection) => {
        this.tell();
        if (connection.state === "ready") void this.refresh();
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(() => void this.refresh()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => void this.refresh()),
      vscode.window.onDidChangeActiveTextEditor(() => this.tell()), // the folder may be another one
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("agentd")) void this.refresh();
        else if (event.affectsConfiguration("workbench.reduceMotion")) this.tell();
      }),
    ];
  }

  get now(): Surroundings {
    const { daemon, folders, choices } = this.parts;
    const trusted = vscode.workspace.isTrusted;
    const possible = this.status?.modes ?? MODES;
    const modes = trusted ? possible : possible.filter((mode) => MODES_UNTRUSTED.includes(mode));
    return {
      connection: daemon.connection,
      trusted,
      folders: folders.all,
      folder: folders.current,
      models: this.models,
      defaultModel: choices.forNew.model ?? this.defaultModel,
      modes,
      defaultMode: this.defaultMode(modes),
      ...(choices.forNew.effort === undefined ? {} : { defaultEffort: choices.forNew.effort }),
      commands: this.commands,
      problems: this.status?.problems ?? [],
      keys: this.parts.keys(),
      whenRunning: vscode.workspace.getConfiguration("agentd").get<"steer" | "queue">("ui.whenRunning", "steer"),
      reduceMotion: vscode.workspace.getConfiguration("workbench").get("reduceMotion") === "on",
    };
  }

  /** What the user chose for new sessions, without a mode that turned out not to be had here: none is shown, either. */
  get beginning(): Beginning {
    return possible(this.parts.choices.forNew, this.status?.modes);
  }

  /** The mode of a new session: the user's choice, or what settings and configuration say. */
  private defaultMode(modes: Mode[]): Mode {
    const wanted = this.beginning.mode ?? this.status?.mode;
    return wanted !== undefined && modes.includes(wanted) ? wanted : "ask";
  }

  /** The models, once they are known. Fails where there is no daemon to tell them. */
  async readModels(): Promise<ModelInfo[]> {
    if (this.models.length === 0) this.models = (await this.parts.daemon.request<ModelsResult>("agentd/models")).models;
    return this.models;
  }

  /** Tells the view where something changed. */
  tell(): void {
    const surroundings = this.now;
    const text = JSON.stringify(surroundings);
    if (text === this.told) return;
    this.told = text;
    this.parts.post({ type: "surroundings", surroundings });
  }

  /** Asks the daemon again: settings, keys, folders or trust are others. */
  async refresh(): Promise<void> {
    this.tell();
    if (this.parts.daemon.connection.state !== "ready") return;
    const workspaceUri = this.parts.folders.current ?? undefined;
    await Promise.all([
      this.ask<ModelsResult>("agentd/models", {}, (result) => {
        this.models = result.models;
        this.defaultModel = result.default;
      }),
      this.ask<CommandsResult>("agentd/commands", workspaceUri === undefined ? {} : { workspaceUri }, (result) => {
        this.commands = result.commands;
      }),
      this.ask<StatusResult>("agentd/status", {}, (result) => {
        this.status = result;
      }),
    ]);
    this.tell();
    await this.askServers();
  }

  /** Models that nobody knows by name (`provider/*`): their servers do, where they run on this machine. */
  private async askServers(): Promise<void> {
    const unnamed = this.models.filter((model) => model.id.endsWith("/*") && !/ not (set|known)/.test(model.reason ?? ""));
    await Promise.all(unnamed.map(({ provider }) =>
      this.ask<ModelsResult>("agentd/models", { provider }, ({ models }) => {
        if (!models.some((model) => model.available)) return;
        this.models = [...models, ...this.models.filter((model) => model.provider !== provider)];
        this.tell();
      })));
  }

  dispose(): void {
    for (const source of this.sources) source.dispose();
  }

  private async ask<R>(method: string, params: object, take: (result: R) => void): Promise<void> {
    try {
      take(await this.parts.daemon.request<R>(method, params));
    } catch (error) {
      const { kind, message } = toCallError(error);
      if (kind !== "ended") this.parts.log.warn(`${method}: ${message}`);
    }
  }
}
