/** Set-up and help: what the view's `action` calls do, each in VS Code's own UI. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { Params } from "../shared/messages";
import type { Bridge } from "./bridge";
import type { DaemonClient } from "./client";
import { beginDemo } from "./demo";
import { showReport } from "./doctor";
import { HostError, toCallError, type Handlers } from "./handlers";
import { Installation } from "./install";
import { chooseKey } from "./keyDialog";
import type { Keys } from "./keys";
import { unlinked } from "./plain";
import { findProgram, isExecutable, type Places, type Program } from "./program";
import { onPythonChange } from "./python";
import { modelSetting, modeSetting } from "./settings";
import type { ShownSession } from "./shown";
import type { SurroundingsRoom } from "./surroundings";

export interface SetupRooms {
  daemon: DaemonClient;
  keys: Keys;
  bridge: Bridge;
  shown: ShownSession;
  surroundings: SurroundingsRoom;
}

export type SetupCalls = "openLink" | "copy" | "action";
type Action = Params<"action">["name"];

export class Setup {
  private rooms: SetupRooms | null = null;
  private readonly installation: Installation;
  private program: Program | null = null;
  private installing = false;

  constructor(
    private readonly context: vscode.ExtensionContext, private readonly log: vscode.LogOutputChannel, private readonly cwd: string,
  ) {
    const root = path.join(context.globalStorageUri.fsPath, "agentd");
    this.installation = new Installation({ root, cwd, log });
  }

  connect(rooms: SetupRooms): vscode.Disposable {
    this.rooms = rooms;
    const again = () => {
      if (rooms.daemon.connection.state === "missing") void rooms.daemon.start();
    };
    const otherPython = () => (rooms.daemon.connection.state === "ready" ? void this.offerOther() : again());
    const sources = [
      onPythonChange(this.log, otherPython),
      vscode.workspace.onDidGrantWorkspaceTrust(again),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("agentd.command")) void rooms.daemon.start();
      }),
    ];
    return new vscode.Disposable(() => sources.forEach((source) => source.dispose()));
  }

  /** The program to run from now on. */
  async find(): Promise<Program> {
    this.program = null;
    this.program = await findProgram(this.places);
    return this.program;
  }

  /** What the daemon is told of the user's settings as it starts. */
  options(): object {
    const [model, mode] = [modelSetting(), modeSetting()];
    return { trusted: vscode.workspace.isTrusted, ...(model === undefined ? {} : { model }), ...(mode === undefined ? {} : { mode }) };
  }

  get handlers(): Pick<Handlers, SetupCalls> {
    return {
      async openLink({ url }) {
        const uri = vscode.Uri.parse(url, true);
        if (!["http", "https", "mailto"].includes(uri.scheme)) throw new HostError(`Links with ${uri.scheme}: are not opened.`);
        await vscode.env.openExternal(uri);
        return {};
      },
      async copy({ text }) {
        await vscode.env.clipboard.writeText(text);
        return {};
      },
      action: async ({ name, argument }) => {
        await this.act(name, argument);
        return {};
      },
    };
  }

  async act(name: Action, argument?: string): Promise<void> {
    const { daemon, keys, surroundings, shown, bridge } = this.here;
    switch (name) {
      case "install": return this.install();
      case "chooseProgram": return this.chooseProgram();
      case "setKey": return chooseKey(keys, () => surroundings.readModels(), argument);
      case "demo": return beginDemo({ client: daemon, shown, bridge, extension: this.context.extensionUri });
      case "restart": return daemon.start();
      case "showLog": return this.log.show(true);
      case "manageTrust": return void (await vscode.commands.executeCommand("workbench.trust.manage"));
      case "doctor": return showReport(this.program ?? (await this.find()), this.cwd);
      case "walkthrough":
        await vscode.commands.executeCommand("workbench.action.openWalkthrough", `${this.context.extension.id}#agentd.start`, false);
        // VS Code takes no note of what was so already when it first looked at the steps: that agentd is there.
        return void (await vscode.commands.executeCommand("setContext", "agentd.ui.walkthroughIsOpen", true));
      case "openSettings":
        return void (await vscode.commands.executeCommand("workbench.action.openSettings", argument ?? `@ext:${this.context.extension.id}`));
      default: throw new HostError(`There is no action "${String(name)}".`);
    }
  }

  /** Another Python environment is selected: what runs is not ended for it, but may be. */
  private async offerOther(): Promise<void> {
    const running = this.program;
    try {
      const other = await findProgram(this.places);
      if (running === null || this.program !== running || other.shown === running.shown) return;
      const restart = "Restart agentd";
      const answer = await vscode.window.showInformationMessage(
        `The Python environment that is selected now has its own agentd (${unlinked(other.shown)}, ${other.version}).`, restart,
      );
      if (answer === restart) await this.here.daemon.start();
    } catch (error) {
      this.log.info(toCallError(error).message); // there is none: the one that runs goes on
    }
  }

  private get places(): Places {
    return { cwd: this.cwd, installed: () => this.installation.program(), log: this.log };
  }

  private get here(): SetupRooms {
    if (this.rooms === null) throw new HostError("agentd is starting.");
    return this.rooms;
  }

  private async install(): Promise<void> {
    if (this.installing) return;
    this.installing = true;
    const { daemon } = this.here;
    const source = vscode.workspace.getConfiguration("agentd").get<string>("installSource", "").trim();
    try {
      await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: "Installing agentd", cancellable: true },
        async (progress, token) => {
          await this.installation.install(source, (message) => {
            progress.report({ message });
            void daemon.stop({ state: "installing", step: message });
          }, token);
        },
      );
    } finally {
      this.installing = false;
      await daemon.start();
    }
  }

  private async chooseProgram(): Promise<void> {
    const chosen = await vscode.window.showOpenDialog({ title: "Choose the agentd program", openLabel: "Use", canSelectMany: false });
    const [uri] = chosen ?? [];
    if (uri === undefined) return;
    const file = uri.fsPath;
    if (uri.scheme !== "file") throw new HostError(`${file} is on another machine than the workspace: agentd runs where the files are.`);
    if (!(await isExecutable(file))) throw new HostError(`${file} is no program.`);
    await vscode.workspace.getConfiguration("agentd").update("command", [file], vscode.ConfigurationTarget.Global);
  }
}
