/**
 * The view model of a session: a pure function of its snapshot and the events behind it. Nothing in it is ever
 * changed in place, and what an event does not touch stays the same object, so that drawing can be as small.
 */
import type {
  FileAction, Location, PermissionRequest, QueuedPrompt, ResultBlock, RunError, Session, TodoItem, ToolDetails, ToolKind, ToolResultMessage, Usage, UserMessage,
} from "../../shared/wire";

export interface SessionView {
  session: Session;
  /** The last durable event in it. */
  seq: number;
  /** Events were missed: what is here is true up to `seq`, and the session has to be read anew. */
  gap: boolean;
  /** running from `agent_start`, waiting while questions stand open, idle from `agent_end`. */
  state: Session["state"];
  /** The run that goes on, or null. */
  run: Run | null;
  /** What the conversation shows, oldest first. */
  entries: readonly Entry[];
  /** The first message that is here, for the page before it. */
  oldest: string | undefined;
  hasMore: boolean;
  pending: readonly PermissionRequest[];
  queue: readonly QueuedPrompt[];
  todo: readonly TodoItem[];
  /** A compaction that goes on, or null. */
  compacting: { reason: string; tokensBefore: number } | null;
  /** Sub-agents by the id of their session. */
  children: Readonly<Record<string, SessionView>>;
  /** What the last rewind took out of `entries`; it comes back where that is undone. */
  rewound: readonly Entry[];
  /** Results of calls that stand in a page which is not loaded. */
  loose: readonly ToolResultMessage[];
}

export interface Run {
  promptId: string;
  startedAt: string;
  model: string | null;
  turn: number;
  /** The request to the model failed and is sent again. Gone as soon as it says something. */
  retry: RetryTold | null;
  /** What it has changed, as told just before its end. */
  files: readonly { uri: string; action: FileAction }[];
}

export interface RetryTold { attempt: number; maxAttempts: number; delayMs: number; reason: string; time: string }

export type Entry = UserEntry | AssistantEntry | RunEnd | NoticeEntry | CompactionEntry | RewoundEntry;

/** What the user said. */
export interface UserEntry {
  type: "user";
  id: string;
  promptId: string | undefined;
  content: UserMessage["content"];
  time: string;
  /** False between `message_start` and `message_end`. */
  done: boolean;
}

/** What the model said, with the calls it made and what they came to. */
export interface AssistantEntry {
  type: "assistant";
  id: string;
  promptId: string | undefined;
  model: string;
  provider: string | undefined;
  blocks: readonly Block[];
  done: boolean;
  stopReason: string | undefined;
  errorMessage: string | undefined;
  time: string;
}

export type Block = TextBlock | ThinkingBlock | ToolBlock;
/** `length` counts what was said on the wire: with more than `text` holds, some was missed. */
export interface TextBlock { type: "text"; text: string; length: number }
export interface ThinkingBlock { type: "thinking"; text: string; length: number; redacted: boolean }
export interface ToolBlock { type: "tool"; tool: Tool }

/**
 * writing: the model still says what it wants; ready: it waits for its turn; waiting: for the user's answer;
 * refused: the user or a rule said no; stopped: cancelled; unknown: the daemon died while it ran.
 */
export type ToolState = "writing" | "ready" | "waiting" | "running" | "done" | "failed" | "refused" | "stopped" | "unknown";

export interface Tool {
  id: string;
  name: string;
  state: ToolState;
  /** In the daemon's words; undefined until the call is taken up. */
  title: string | undefined;
  kind: ToolKind;
  arguments: Readonly<Record<string, unknown>> | undefined;
  /** The text of the arguments while they are written, or where they were no JSON. */
  rawArguments: string;
  rawLength: number;
  locations: readonly Location[];
  startedAt: string | undefined;
  durationMs: number | undefined;
  /** What it printed, live, in the order it came. Empty where it was not seen whole once there is a result. */
  output: readonly OutputPart[];
  /** Where each channel stands. */
  offsets: Readonly<Partial<Record<Channel, number>>>;
  result: readonly ResultBlock[] | undefined;
  resultId: string | undefined;
  isError: boolean;
  details: ToolDetails | undefined;
  /** A question about it was answered with no. */
  rejected: boolean;
}

export type Channel = "stdout" | "stderr" | "progress";
/** `missed`: so many code units were printed before `text` and are not here. */
export interface OutputPart { channel: Channel; text: string; missed: number }

/** A run is over: what it took and how it ended. */
export interface RunEnd {
  type: "run";
  id: string;
  promptId: string | undefined;
  model: string | null;
  stopReason: string;
  turns: number;
  durationMs: number | undefined;
  usage: Usage | undefined;
  error: RunError | undefined;
  files: readonly { uri: string; action: FileAction }[];
  time: string;
}

export interface NoticeEntry { type: "notice"; id: string; severity: "info" | "warning" | "error"; message: string; time: string }
export interface CompactionEntry {
  type: "compaction";
  id: string;
  outcome: string;
  tokensBefore: number;
  tokensAfter: number | undefined;
  error: RunError | undefined;
  time: string;
}
export interface RewoundEntry {
  type: "rewound";
  id: string;
  promptId: string;
  scope: "files" | "conversation" | "both";
  undo: boolean;
  messages: number;
  files: readonly { uri: string; action: FileAction; conflict?: string }[];
  time: string;
}
