/**
 * What the extension host and the chat view say to each other: calls of the view, each answered once, and
 * notices of the host. Both sides import this file and nothing else of each other.
 *
 * The view shows one session at a time and derives all it shows of it from `session` (a snapshot) and `events`
 * (what followed), as `agentd/session/attach` gives them. The host keeps no second copy of a session's state.
 */
import type {
  CommandInfo, ContentBlock, Effort, EventNotification, Message, Mode, ModelInfo, Problem, Session, SessionGetResult,
} from "./wire";

/** Where the daemon stands. Only with `ready` do calls that need it succeed. */
export type Connection =
  | { state: "starting" }
  | { state: "ready"; version: string; program: string }
  | { state: "missing"; reason: string }
  | { state: "installing"; step: string }
  | { state: "failed"; reason: string; hint?: string };

/** What the view shows around the session. Sent whole whenever something in it changed. */
export interface Surroundings {
  connection: Connection;
  /** False in Restricted Mode: nothing of the workspace is loaded or run. */
  trusted: boolean;
  folders: { uri: string; name: string }[];
  /** The folder in which a new session begins; null without a folder. */
  folder: string | null;
  models: ModelInfo[];
  /** The model of new sessions where the user chose none; null: there is none to choose. */
  defaultModel: string | null;
  /** What can be chosen here: `full` only where the user's configuration permits it, `auto` only with a sandbox. */
  modes: Mode[];
  /** What new sessions begin with. */
  defaultMode: Mode;
  /** Of new sessions, where the user chose one. */
  defaultEffort?: Effort;
  commands: CommandInfo[];
  problems: Problem[];
  /** Providers for which the extension keeps a key; never the keys. */
  keys: string[];
  /** What Enter does while a prompt runs: the setting `agentd.ui.whenRunning`. */
  whenRunning: "steer" | "queue";
  /** What can be changed about the look: VS Code's own settings. */
  reduceMotion: boolean;
}

/** A file that a prompt changed, and what the user said of it. */
export interface Change {
  sessionId: string;
  promptId: string;
  uri: string;
  /** Relative to its folder, for showing. */
  path: string;
  action: "created" | "changed" | "deleted";
  additions: number;
  deletions: number;
  state: "open" | "accepted" | "reverted";
}

/** Something that the user adds to the next prompt from the editor: a chip beside the text. */
export interface Attachment {
  /** For showing: `src/a.ts:3-9`, `Selection`, `12 problems`. */
  label: string;
  block: ContentBlock;
}

export interface Completion {
  kind: "file" | "folder" | "selection" | "diagnostics" | "command";
  label: string;
  detail?: string;
  /** What replaces the word that was completed. Empty where only the attachment is added. */
  insert: string;
  attachment?: Attachment;
}

export interface CallError {
  /** `data.kind` of the protocol's errors, or `host` for the extension's own. */
  kind: string;
  message: string;
  hint?: string;
}

/** Which session the view shows, in the host's words. `seq`: the last event in it. */
export interface Shown {
  snapshot: SessionGetResult;
  /**
   * The last durable events up to `snapshot.seq`, without a gap among them, as `agentd/session/attach` replays them:
   * they tell what messages do not (runs and their prompts, titles, durations, notices). May begin anywhere.
   */
  history?: EventNotification[];
  changes: Change[];
}

/** Calls of the view: name → [params, result]. A call fails with a CallError and changes nothing then. */
export interface Calls {
  /** The first call of every view. `sessionId`: what it showed before it was hidden or reloaded. */
  ready: [{ sessionId?: string }, { surroundings: Surroundings; shown: Shown | null }];
  /** Answered at acceptance. Without sessionId a new session begins, which then becomes the shown one. */
  prompt: [
    { sessionId?: string; promptId: string; prompt: ContentBlock[]; whenBusy: "queue" | "steer" | "interrupt" | "reject" },
    /** `restored`: steers that were not said yet when this prompt interrupted. */
    { sessionId: string; outcome: "started" | "queued" | "steered"; restored?: ContentBlock[][] },
  ];
  /** Goes on from the transcript (`prompt: []`). */
  goOn: [{ sessionId: string }, object];
  cancel: [{ sessionId: string; promptId?: string; keepQueue?: boolean }, { restored: ContentBlock[][] }];
  queue: [
    { sessionId: string; op: "edit" | "remove" | "move" | "clear" | "run"; promptId?: string; prompt?: ContentBlock[]; index?: number },
    object,
  ];
  permission: [{ requestId: string; optionId: string; feedback?: string }, object];
  /** Without sessionId: what new sessions begin with. */
  choose: [{ sessionId?: string; model?: string; mode?: Mode; effort?: Effort; folder?: string }, object];
  newSession: [{ folder?: string }, object];
  sessions: [{ cursor?: string; query?: string }, { sessions: Session[]; nextCursor?: string }];
  open: [{ sessionId: string }, Shown];
  earlier: [{ sessionId: string; before: string }, { messages: Message[]; hasMore: boolean }];
  /** The sub-agents that a call of the session ran, as they are kept; none where it ran none. */
  children: [{ sessionId: string; toolCallId: string }, { children: SessionGetResult[] }];
  rename: [{ sessionId: string; title: string }, object];
  fork: [{ sessionId: string; messageId?: string }, Shown];
  /** Asks in VS Code before it deletes; `deleted` says what came of it. */
  delete: [{ sessionId: string }, { deleted: boolean }];
  compact: [{ sessionId: string }, { outcome: string }];
  exportMarkdown: [{ sessionId: string }, object];
  /** Takes back, files and conversation: all from `promptId` on, else the last prompt. `redo`: the last taking back. */
  undo: [{ sessionId: string; promptId?: string; redo?: boolean }, { files: { uri: string; action: string; conflict?: string }[] }];
  complete: [{ trigger: "@" | "/"; query: string }, Completion[]];
  /** A file dropped or chosen, by URI: what is attached for it. */
  attach: [{ uris: string[] }, Attachment[]];
  openFile: [{ uri: string; line?: number }, object];
  /** The file before the prompt against the file now, in VS Code's diff editor. */
  openDiff: [{ sessionId: string; promptId: string; uri: string }, object];
  /** A patch that is asked for and not made yet, in VS Code's diff editor. */
  previewPatch: [{ uri: string; patch: string }, object];
  accept: [{ sessionId: string; promptId: string; uri?: string }, object];
  revert: [{ sessionId: string; promptId: string; uri?: string }, { files: { uri: string; action: string; conflict?: string }[] }];
  openLink: [{ url: string }, object];
  copy: [{ text: string }, object];
  insertAtCursor: [{ text: string }, object];
  /** Set-up and help: each does what its name says, in VS Code's own UI where it needs the user. */
  action: [
    { name: "install" | "chooseProgram" | "setKey" | "demo" | "restart" | "showLog" | "manageTrust" | "doctor" | "walkthrough" | "openSettings"; argument?: string },
    object,
  ];
}

export type CallName = keyof Calls;
export type Params<N extends CallName> = Calls[N][0];
export type Result<N extends CallName> = Calls[N][1];

/** View → host. */
export type FromView = { [N in CallName]: { id: number; call: N; params: Params<N> } }[CallName];

/** Host → view. */
export type ToView =
  | { type: "answer"; id: number; result: unknown }
  | { type: "failure"; id: number; error: CallError }
  | { type: "surroundings"; surroundings: Surroundings }
  /** Another session is shown from now on, or the same one anew (after a daemon's restart). Null: none yet. */
  | { type: "session"; shown: Shown | null }
  /**
   * What happened in the shown session, in order, as the daemon sent it; several at once where many came. Events of
   * its sub-agents are among them, under their own `sessionId` (each begins with a `session_changed` with `parent`).
   */
  | { type: "events"; sessionId: string; events: EventNotification[] }
  | { type: "changes"; sessionId: string; changes: Change[] }
  /** Sessions other than the shown one that run or wait, by id. */
  | { type: "others"; sessions: { sessionId: string; title: string; state: Session["state"] }[] }
  | { type: "attach"; attachments: Attachment[] }
  | { type: "draft"; text: string }
  | { type: "focus" };
