/** The editor side: what a prompt changed, documents, diagnostics, what the user attaches. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams, ApplyWorkspaceEditResult } from "vscode-languageclient/node";
import type { Change, Params, ToView } from "../../shared/messages";
import type { CommandsResult, EventNotification, SessionGetResult } from "../../shared/wire";
import type { Daemon } from "../daemon";
import type { Handlers } from "../handlers";
import { unlinked } from "../plain";
import { told } from "../told";
import { applyEdit, type Convert } from "./applying";
import { complete, diagnosticsAttachment, droppedAttachments, fileAttachment, selectionAttachment } from "./attachments";
import { Changes } from "./changes";
import { Diagnostics } from "./diagnostics";
import { Files } from "./files";
import { Focus } from "./focus";
import { Notebooks } from "./notebooks";
import { openDiff, ORIGINAL, Originals, PREVIEW, Previews } from "./originals";
import { Review } from "./review";
import { save } from "./saving";
import { StatusBar } from "./statusBar";
import { Tracks } from "./tracks";
import { TrackStore } from "./trackStore";
import { fileUri } from "./uris";

/** What the editor side may use of the rest of the host. */
export interface EditingContext {
  client: Daemon;
  /** The folder for what is kept of the workspace, by all windows on it. */
  storage: string;
  /** The session whose sub-agent a session is. */
  parentOf(sessionId: string): string | null;
  /** Tells the view, where there is one. */
  post(message: ToView): void;
  /** The session that is shown, also while the view is hidden. */
  shownSessionId(): string | null;
  /** Every `agentd/event`, of any session, in order, each durable one once. */
  onEvent(listener: (event: EventNotification) => void): vscode.Disposable;
  /** Brings the chat to the front. */
  reveal(): Promise<void>;
  /** A line for the output channel. */
  log(message: string): void;
}

export type EditingCalls =
  "complete" | "attach" | "openFile" | "openDiff" | "previewPatch" | "accept" | "revert" | "insertAtCursor";

export interface Editing extends vscode.Disposable {
  handlers: Pick<Handlers, EditingCalls>;
  /** What this client answers: goes into `initializationOptions.agentd`. */
  capabilities: { diagnostics: boolean; save: boolean };
  /**
   * The changes of a session that is shown from now on, as far as they are known at once: between the snapshot and
   * the events that follow it nothing may be awaited. What is found out later goes out as a notice `changes`.
   */
  shown(snapshot: SessionGetResult): Change[];
  /** Makes an edit for the daemon; see there. */
  applyEdit(params: ApplyWorkspaceEditParams, token: vscode.CancellationToken, convert: Convert): Promise<ApplyWorkspaceEditResult>;
  /** A session is deleted: its changes can neither be compared nor reverted any more. */
  forget(sessionId: string): void;
  /** Writes what the user has decided of changes, now. */
  keep(): Promise<void>;
  /** Tells the daemon at once where the user looks: called before a prompt is sent. */
  tellFocus(): void;
}

/** All events of a long session are many: they are asked for once it is on the screen. */
const CATCH_UP_DELAY_MS = 250;

async function openFile({ uri: named, line }: Params<"openFile">): Promise<object> {
  const uri = fileUri(named);
  const selection = line === undefined ? undefined : new vscode.Range(line, 0, line, 0);
  await vscode.commands.executeCommand("vscode.open", uri, { preview: true, ...(selection ? { selection } : {}) });
  return {};
}

async function insertAtCursor({ text }: Params<"insertAtCursor">): Promise<object> {
  const editor = vscode.window.activeTextEditor;
  if (editor) await editor.insertSnippet(new vscode.SnippetString().appendText(text));
  else await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: text }));
  return {};
}

/** Commands by which the user acts on changes and adds to the prompt from elsewhere than the view. */
function registerCommands(context: EditingContext, changes: Changes, tracks: Tracks): vscode.Disposable[] {
  type FilePlace = Params<"openDiff">;
  const active = (): FilePlace | undefined => {
    const uri = vscode.window.activeTextEditor?.document.uri.toString();
    return uri === undefined ? undefined : changes.open(uri);
  };
  const onFile = (name: string, act: (place: FilePlace) => unknown) =>
    vscode.commands.registerCommand(name, async (given?: FilePlace) => {
      const place = given?.sessionId ? given : active();
      if (place) await told(async () => act(place));
      else void vscode.window.setStatusBarMessage("agentd: no prompt changed this file", 3000);
    });
  const attach = async (...attachments: (ReturnType<typeof selectionAttachment>)[]) => {
    const found = attachments.filter((each) => each !== undefined);
    await context.reveal();
    if (found.length > 0) context.post({ type: "attach", attachments: found });
    context.post({ type: "focus" });
  };
  return [
    onFile("agentd.ui.openDiff", ({ sessionId, promptId, uri }) => openDiff({ sessionId, promptId, uri }, changes.placeNow(uri))),
    onFile("agentd.ui.acceptFile", (place) => tracks.acceptFile(place)),
    onFile("agentd.ui.revertFile", async (place) => tellConflicts((await changes.revert(place)).files)),
    vscode.commands.registerCommand("agentd.ui.addSelection", () => attach(selectionAttachment())),
    vscode.commands.registerCommand("agentd.ui.addProblems", () => attach(diagnosticsAttachment())),
    vscode.commands.registerCommand("agentd.ui.addFile", (one?: vscode.Uri, all?: vscode.Uri[]) => {
      const chosen = all ?? [one ?? vscode.window.activeTextEditor?.document.uri].filter((each) => each !== undefined);
      return attach(...chosen.map(fileAttachment));
    }),
  ];
}

function tellConflicts(files: { uri: string; conflict?: string }[]): void {
  const conflicts = files.filter((each) => each.conflict);
  if (conflicts.length === 0) return;
  const words = conflicts.map((each) => `${vscode.workspace.asRelativePath(vscode.Uri.parse(each.uri))}: ${each.conflict}`);
  void vscode.window.showWarningMessage(unlinked(`agentd left alone what it could not revert. ${words.join("; ")}`));
}

export function createEditing(context: EditingContext): Editing {
  const { client } = context;
  const changes = new Changes(client, path.join(context.storage, "changes.json"), context.log, context.parentOf);
  const originals = new Originals(client);
  const store = new TrackStore(path.join(context.storage, "review"), context.log, (uri) => tracks.merged(uri));
  const tracks: Tracks = new Tracks(client, changes, originals, store, context.log);
  const [previews, files, diagnostics, focus, statusBar] = [new Previews(), new Files(), new Diagnostics(client), new Focus(client), new StatusBar()];
  const notebooks = new Notebooks(client);
  let workspaceUri: string | undefined;
  let catchingUp: NodeJS.Timeout | undefined;
  const commands = async () =>
    (await client.request<CommandsResult>("agentd/commands", workspaceUri === undefined ? {} : { workspaceUri })).commands;
  const connected = () => {
    statusBar.connected(client.connection);
    if (client.connection.state !== "ready") return tracks.reset();
    focus.forget();
    diagnostics.tellAll();
    notebooks.tellAll();
  };
  const subscriptions = vscode.Disposable.from(
    changes, tracks, files, diagnostics, notebooks, focus, statusBar, new Review(changes, tracks, context.log),
    vscode.workspace.registerTextDocumentContentProvider(ORIGINAL, originals),
    vscode.workspace.registerTextDocumentContentProvider(PREVIEW, previews),
    client.onRequest("agentd/document/save", async (params: Parameters<typeof save>[0], token) => {
      const result = await save(params, token);
      notebooks.tell(); // before the answer, which it proves
      return result;
    }),
    client.onRequest("agentd/diagnostics/get", (params: Parameters<Diagnostics["get"]>[0], token) => diagnostics.get(params, token)),
    client.onConnection(connected),
    // Another window may have been at work meanwhile.
    vscode.window.onDidChangeWindowState(({ focused }) => focused && void Promise.all([changes.look(), store.look()])),
    context.onEvent((event) => {
      changes.note(event);
      tracks.note(event);
      statusBar.note(event);
    }),
    changes.onDidChange((sessionId) => {
      if (sessionId === context.shownSessionId()) context.post({ type: "changes", sessionId, changes: changes.of(sessionId) });
    }),
    ...registerCommands(context, changes, tracks),
  );
  connected();
  return {
    handlers: {
      complete: async (params) => complete(params, files, params.trigger === "/" ? await commands() : []),
      attach: ({ uris }) => droppedAttachments(uris),
      openFile: (params) => openFile({ ...params, uri: changes.placeNow(params.uri) }),
      openDiff: async (place) => (await openDiff(place, changes.placeNow(place.uri)), {}),
      previewPatch: async ({ uri, patch }) => (await previews.open(uri, patch), {}),
      accept: (params) => (changes.accept(params), {}),
      revert: (params) => changes.revert(params),
      insertAtCursor,
    },
    capabilities: { diagnostics: true, save: true },
    shown({ session }) {
      workspaceUri = session.workspaceUri;
      clearTimeout(catchingUp); // a session may be told in two steps
      catchingUp = setTimeout(() => {
        changes.catchUp(session.sessionId).catch((error) => context.log(`The changes of ${session.sessionId} are not known: ${String(error)}`));
      }, CATCH_UP_DELAY_MS);
      return changes.of(session.sessionId);
    },
    applyEdit: (params, token, convert) => applyEdit(params, token, convert, (...edit) => tracks.applying(...edit)),
    forget(sessionId) {
      changes.forget(sessionId);
      tracks.forget(sessionId);
    },
    keep: async () => void (await Promise.all([changes.keep(), store.keep()])),
    tellFocus: () => focus.tell(),
    dispose: () => {
      clearTimeout(catchingUp);
      subscriptions.dispose();
    },
  };
}
