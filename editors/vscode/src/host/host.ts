/** The extension host's rooms, put together. */
import * as vscode from "vscode";
import type { Shown, ToView } from "../shared/messages";
import type { Session } from "../shared/wire";
import { Bridge } from "./bridge";
import { chatHandlers } from "./chat";
import { DaemonClient } from "./client";
import { registerCommands } from "./commands";
import { createEditing } from "./editing";
import { Events } from "./events";
import { Folders } from "./folders";
import { toCallError, type Handlers } from "./handlers";
import { Keys } from "./keys";
import { CommandPrompts } from "./middleware";
import { Others } from "./others";
import { Permissions } from "./permissions";
import { unlinked } from "./plain";
import { sessionHandlers } from "./sessions";
import { Choices } from "./settings";
import { Setup } from "./setup";
import { ShownSession } from "./shown";
import { sharedStorage, sweepStorage } from "./storage";
import { SurroundingsRoom } from "./surroundings";
import { told } from "./told";
import { followTrace, untilClosed } from "./trace";

export class Host {
  private constructor(
    private readonly daemon: DaemonClient, private readonly parts: vscode.Disposable[], private readonly keep: () => Promise<void>,
  ) {}

  static async open(context: vscode.ExtensionContext): Promise<Host> {
    const log = untilClosed(vscode.window.createOutputChannel("agentd", { log: true }));
    const scratch = vscode.Uri.joinPath(context.globalStorageUri, "no-folder");
    await vscode.workspace.fs.createDirectory(scratch);
    const host = assemble(context, log, scratch);
    context.subscriptions.push(log);
    return host;
  }

  async close(): Promise<void> {
    await Promise.all([this.daemon.stop({ state: "failed", reason: "VS Code is closing." }), this.keep()]);
    for (const part of this.parts.reverse()) part.dispose();
  }

  /** @internal for `assemble` */
  static of(daemon: DaemonClient, parts: vscode.Disposable[], keep: () => Promise<void>): Host {
    return new Host(daemon, parts, keep);
  }
}

function assemble(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, scratch: vscode.Uri): Host {
  const folders = new Folders(scratch);
  const choices = new Choices(context.workspaceState);
  const bridge = new Bridge(context.extensionUri, log);
  const post = bridge.post.bind(bridge);
  const setup = new Setup(context, log, scratch.fsPath);
  const commandPrompts = new CommandPrompts(() => editing.tellFocus(), (sessionId) => void show(sessionId, "beside"));

  const daemon: DaemonClient = new DaemonClient({
    log, cwd: scratch.fsPath, find: () => setup.find(),
    options: async () => ({
      ...setup.options(), permission: true, updates: "all", ...editing.capabilities, credentials: await keys.read(),
    }),
    middleware: commandPrompts.middleware,
    applyEdit: (params, token, convert) => editing.applyEdit(params, token, convert),
  });
  const events = new Events(daemon);
  const storage = sharedStorage(context);
  void sweepStorage(context, storage);
  const editing = createEditing({
    client: daemon, storage, parentOf: (id) => events.parentOf(id),
    post, shownSessionId: () => shown.id, onEvent: events.on,
    reveal: () => bridge.reveal(), log: (line) => log.info(line),
  });
  const shown = new ShownSession({
    client: daemon, events, post, changes: (snapshot) => editing.shown(snapshot), memory: context.workspaceState,
    tell: (message) => log.warn(message), held: (session) => void offerFork(session, handlers, post),
  });
  const keys: Keys = new Keys(context.secrets, daemon, log);
  const others = new Others(events, post, () => shown.id);
  const surroundings = new SurroundingsRoom({ daemon, folders, choices, keys: () => keys.providers, post, log });
  const unsupported = () => surroundings.refresh();
  /** Brings a session to the front: the chat, and the session in it. */
  const show = async (sessionId: string, where?: "focus" | "beside"): Promise<void> => {
    await bridge.reveal(where);
    if (shown.id === sessionId) return;
    try {
      post({ type: "session", shown: await shown.open(sessionId) });
      others.tell();
    } catch (error) {
      log.warn(toCallError(error).message);
    }
  };
  const permissions = new Permissions({
    client: daemon, isVisible: () => bridge.isVisible, onVisible: bridge.onVisible, shownSessionId: () => shown.id, show, log,
  });
  const handlers: Handlers = {
    ready: async ({ sessionId }) => {
      const wanted = shown.id ?? sessionId ?? shown.remembered;
      const told = wanted === null ? null : await begun(shown, daemon, wanted, log);
      return { surroundings: surroundings.now, shown: told };
    },
    ...chatHandlers({
      client: daemon, shown, folders, beginning: () => surroundings.beginning, unsupported, post, tellFocus: () => editing.tellFocus(),
    }),
    ...sessionHandlers({
      client: daemon, shown, others, folders, choices, post, chosen: () => surroundings.tell(), unsupported, deleted: editing.forget,
    }),
    ...permissions.handlers,
    ...editing.handlers,
    ...setup.handlers,
  };
  bridge.serve(handlers, () => shown.flush());
  const connected = daemon.onConnection((connection) => {
    void vscode.commands.executeCommand("setContext", "agentd.ui.isReady", connection.state === "ready");
    if (connection.state === "ready") {
      void shown.again();
      return;
    }
    events.reset();
    others.reset();
  });
  const parts: vscode.Disposable[] = [
    bridge, events, editing, shown, keys, others, surroundings, permissions, connected, daemon,
    followTrace(daemon, log), commandPrompts.follow(events.on),
    daemon.onNotification<{ type: number; message: string }>("window/showMessage", (message) => {
      if (!commandPrompts.takesMessage(message.type)) showMessage(message);
    }),
    bridge.onOpened(() => others.tell(true)),
    keys.onChanged(() => void surroundings.refresh()),
    vscode.window.registerWebviewViewProvider("agentd.ui.chat", bridge, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => daemon.notify("agentd/trust/didChange", { trusted: true })),
  ];
  parts.push(
    setup.connect({ daemon, keys, bridge, shown, surroundings }),
    ...registerCommands({ daemon, bridge, shown, surroundings, keys, handlers, setup, show }),
  );
  void daemon.start();
  return Host.of(daemon, parts, () => editing.keep());
}

/** The session of a view that begins: read, or to be read as soon as the daemon is there. */
async function begun(shown: ShownSession, daemon: DaemonClient, wanted: string, log: vscode.LogOutputChannel): Promise<Shown | null> {
  if (daemon.connection.state !== "ready") {
    shown.expect(wanted);
    return null;
  }
  try {
    return await shown.open(wanted);
  } catch (error) {
    const { kind, message } = toCallError(error);
    if (kind === "cancelled" && shown.id !== null && shown.id !== wanted) return begun(shown, daemon, shown.id, log);
    log.info(`The session that was shown last is not: ${message}`);
    if (kind === "ended") shown.expect(wanted);
    else if (kind !== "cancelled") shown.clear();
    return null;
  }
}

/** LSP's message: what the language client would do with it. */
function showMessage({ type, message: said }: { type: number; message: string }): void {
  const message = unlinked(said);
  if (type === 1) void vscode.window.showErrorMessage(message);
  else if (type === 2) void vscode.window.showWarningMessage(message);
  else void vscode.window.showInformationMessage(message);
}

/** The way out for a session that another window or program has. */
async function offerFork(session: Session, handlers: Handlers, post: (message: ToView) => void): Promise<void> {
  const owner = session.lockedBy === undefined ? "another program" : `process ${session.lockedBy}`;
  const fork = "Fork";
  const answer = await vscode.window.showInformationMessage(
    `The session "${unlinked(session.title)}" is in use elsewhere (${owner}). It can be read here; to go on here as well, fork it.`, fork,
  );
  if (answer === fork) await told(async () => post({ type: "session", shown: await handlers.fork({ sessionId: session.sessionId }) }));
}
