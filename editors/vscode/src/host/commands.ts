/** The commands of the palette, the menus and the keyboard. */
import * as vscode from "vscode";
import type { Mode } from "../shared/wire";
import type { Bridge } from "./bridge";
import type { Daemon } from "./daemon";
import { HostError, type Handlers } from "./handlers";
import { deleteKey } from "./keyDialog";
import type { Keys } from "./keys";
import { chooseMode, chooseModel, chooseSession } from "./pickers";
import type { Setup } from "./setup";
import type { ShownSession } from "./shown";
import type { SurroundingsRoom } from "./surroundings";
import { told } from "./told";

export interface CommandParts {
  daemon: Daemon;
  bridge: Bridge;
  shown: ShownSession;
  surroundings: SurroundingsRoom;
  keys: Keys;
  handlers: Handlers;
  setup: Setup;
  /** Brings a session to the front. */
  show(sessionId: string): Promise<void>;
}

export function registerCommands(parts: CommandParts): vscode.Disposable[] {
  const { bridge, shown, handlers, setup, surroundings } = parts;
  const current = (): string => {
    if (shown.id === null) throw new HostError("No session is open.");
    return shown.id;
  };
  const choose = async (chosen: { model?: string; mode?: Mode }) => {
    await handlers.choose({ ...(shown.id === null ? {} : { sessionId: shown.id }), ...chosen });
  };
  const commands: Record<string, (...args: never[]) => Promise<unknown>> = {
    "agentd.ui.focusChat": () => bridge.reveal(),
    "agentd.ui.newSession": async () => {
      await bridge.reveal();
      await handlers.newSession({});
    },
    "agentd.ui.pickSession": async () => {
      const sessionId = await chooseSession((query) => Promise.resolve(handlers.sessions(query === "" ? {} : { query })));
      if (sessionId !== undefined) await parts.show(sessionId);
    },
    "agentd.ui.cancel": async () => handlers.cancel({ sessionId: current(), keepQueue: false }),
    "agentd.ui.setModel": async () => {
      const model = await chooseModel(await surroundings.readModels());
      if (model !== undefined) await choose({ model });
    },
    "agentd.ui.setMode": async () => {
      const mode = await chooseMode(surroundings.now.modes);
      if (mode !== undefined) await choose({ mode });
    },
    "agentd.ui.compact": async () => handlers.compact({ sessionId: current() }),
    "agentd.ui.exportSession": async () => handlers.exportMarkdown({ sessionId: current() }),
    "agentd.ui.undo": async () => handlers.undo({ sessionId: current() }),
    "agentd.ui.doctor": () => setup.act("doctor"),
    "agentd.ui.setKey": () => setup.act("setKey"),
    "agentd.ui.deleteKey": () => deleteKey(parts.keys),
    "agentd.ui.install": () => setup.act("install"),
    "agentd.ui.chooseProgram": () => setup.act("chooseProgram"),
    "agentd.ui.demo": () => setup.act("demo"),
    "agentd.ui.restart": () => setup.act("restart"),
    "agentd.ui.showLog": () => setup.act("showLog"),
    "agentd.ui.walkthrough": () => setup.act("walkthrough"),
    "agentd.ui.openSettings": () => setup.act("openSettings"),
  };
  return Object.entries(commands).map(([id, run]) => vscode.commands.registerCommand(id, (...args: never[]) => told(() => run(...args))));
}
