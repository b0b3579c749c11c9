// The protocol's types, written by `npm run wire` from `agentd schema`. Do not edit.

export type RunStop = "stop" | "length" | "refusal" | "aborted" | "max_turns" | "error" | "interrupted";
export type Id = string;
export type ErrorKind =
  | "auth"
  | "rate_limit"
  | "overloaded"
  | "context_overflow"
  | "bad_request"
  | "refusal"
  | "quota"
  | "network"
  | "timeout"
  | "protocol"
  | "server"
  | "storage"
  | "internal";
export type Mode = "plan" | "ask" | "edit" | "auto" | "full";
export type Effort = "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
export type AssistantBlock = TextContent | ThinkingContent | ToolCall;
export type MessageStop = "stop" | "length" | "tool_use" | "refusal" | "error" | "aborted";
export type ToolKind =
  "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "other";
export type PermissionSubject = CommandSubject | EditSubject | ReadSubject | FetchSubject | McpSubject;
export type Message = UserMessage | AssistantMessage | ToolResultMessage;
export type ContentBlock = TextContent | ImageContent | ResourceContent | CommandContent;
export type ResultBlock = TextContent | ImageContent;
export type ToolDetails = EditDetails | CommandDetails | ReadDetails | SearchDetails;
export type FileAction = "created" | "changed" | "deleted";
export type Event =
  | AgentStart
  | TurnStart
  | MessageStart
  | MessageEnd
  | MessageReset
  | ToolExecutionStart
  | ToolExecutionEnd
  | TurnEnd
  | AgentEnd
  | PermissionRequested
  | PermissionResolved
  | Retry
  | QueueChanged
  | SessionChanged
  | SessionRewound
  | TodoChanged
  | CompactionStart
  | CompactionEnd
  | FilesChanged
  | Notice
  | MessageUpdate
  | ToolExecutionUpdate;

export interface Wire {
  AgentEnd?: AgentEnd;
  AgentStart?: AgentStart;
  AssistantBlock?: AssistantBlock;
  AssistantMessage?: AssistantMessage;
  AttachResult?: AttachResult;
  BackgroundInfo?: BackgroundInfo;
  CancelParams?: CancelParams;
  CancelResult?: CancelResult;
  ChangedFile?: ChangedFile;
  ChildCall?: ChildCall;
  ClientOptions?: ClientOptions;
  CommandContent?: CommandContent;
  CommandDetails?: CommandDetails;
  CommandInfo?: CommandInfo;
  CommandSubject?: CommandSubject;
  CommandsParams?: CommandsParams;
  CommandsResult?: CommandsResult;
  CompactionEnd?: CompactionEnd;
  CompactionStart?: CompactionStart;
  ContentBlock?: ContentBlock;
  Cost?: Cost;
  CredentialsParams?: CredentialsParams;
  Diagnostic?: Diagnostic;
  DiagnosticsGetParams?: DiagnosticsGetParams;
  DiagnosticsGetResult?: DiagnosticsGetResult;
  DiffFile?: DiffFile;
  DiffStep?: DiffStep;
  DocumentDiagnostics?: DocumentDiagnostics;
  DocumentSaveParams?: DocumentSaveParams;
  DocumentSaveResult?: DocumentSaveResult;
  EditDetails?: EditDetails;
  EditSubject?: EditSubject;
  Effort?: Effort;
  Empty?: Empty;
  ErrorKind?: ErrorKind;
  Event?: Event;
  EventNotification?: EventNotification;
  FetchSubject?: FetchSubject;
  FileAction?: FileAction;
  FileChange?: FileChange;
  FilesChanged?: FilesChanged;
  FocusParams?: FocusParams;
  Id?: Id;
  ImageContent?: ImageContent;
  Location?: Location;
  McpSubject?: McpSubject;
  Message?: Message;
  MessageDelta?: MessageDelta;
  MessageEnd?: MessageEnd;
  MessageHead?: MessageHead;
  MessageReset?: MessageReset;
  MessageStart?: MessageStart;
  MessageStop?: MessageStop;
  MessageUpdate?: MessageUpdate;
  Mode?: Mode;
  ModelInfo?: ModelInfo;
  ModelsParams?: ModelsParams;
  ModelsResult?: ModelsResult;
  Notice?: Notice;
  Partial?: Partial;
  PartialMessage?: PartialMessage;
  PartialTool?: PartialTool;
  PermissionAnswer?: PermissionAnswer;
  PermissionOption?: PermissionOption;
  PermissionRequest?: PermissionRequest;
  PermissionRequested?: PermissionRequested;
  PermissionResolved?: PermissionResolved;
  PermissionRespondParams?: PermissionRespondParams;
  PermissionRevokeParams?: PermissionRevokeParams;
  PermissionRule?: PermissionRule;
  PermissionRulesParams?: PermissionRulesParams;
  PermissionRulesResult?: PermissionRulesResult;
  PermissionSubject?: PermissionSubject;
  Position?: Position;
  Problem?: Problem;
  PromptAccepted?: PromptAccepted;
  PromptParams?: PromptParams;
  PromptResult?: PromptResult;
  PromptSettings?: PromptSettings;
  QueueChanged?: QueueChanged;
  QueueResult?: QueueResult;
  QueueUpdateParams?: QueueUpdateParams;
  QueuedPrompt?: QueuedPrompt;
  Range?: Range;
  ReadDetails?: ReadDetails;
  ReadSubject?: ReadSubject;
  ResourceContent?: ResourceContent;
  ResultBlock?: ResultBlock;
  Retry?: Retry;
  RewoundFile?: RewoundFile;
  RpcError?: RpcError;
  RunError?: RunError;
  RunStop?: RunStop;
  SandboxStatus?: SandboxStatus;
  SearchDetails?: SearchDetails;
  Session?: Session;
  SessionAttachParams?: SessionAttachParams;
  SessionChanged?: SessionChanged;
  SessionCompactParams?: SessionCompactParams;
  SessionCompactResult?: SessionCompactResult;
  SessionDiffParams?: SessionDiffParams;
  SessionDiffResult?: SessionDiffResult;
  SessionExportResult?: SessionExportResult;
  SessionFork?: SessionFork;
  SessionForkParams?: SessionForkParams;
  SessionGetParams?: SessionGetParams;
  SessionGetResult?: SessionGetResult;
  SessionListParams?: SessionListParams;
  SessionListResult?: SessionListResult;
  SessionNewParams?: SessionNewParams;
  SessionOriginalParams?: SessionOriginalParams;
  SessionOriginalResult?: SessionOriginalResult;
  SessionParams?: SessionParams;
  SessionParent?: SessionParent;
  SessionResult?: SessionResult;
  SessionRewindParams?: SessionRewindParams;
  SessionRewindResult?: SessionRewindResult;
  SessionRewound?: SessionRewound;
  SessionStatus?: SessionStatus;
  SessionUpdateParams?: SessionUpdateParams;
  StatusResult?: StatusResult;
  TextContent?: TextContent;
  ThinkingContent?: ThinkingContent;
  TodoChanged?: TodoChanged;
  TodoItem?: TodoItem;
  ToolCall?: ToolCall;
  ToolDelta?: ToolDelta;
  ToolDetails?: ToolDetails;
  ToolExecutionEnd?: ToolExecutionEnd;
  ToolExecutionStart?: ToolExecutionStart;
  ToolExecutionUpdate?: ToolExecutionUpdate;
  ToolInfo?: ToolInfo;
  ToolKind?: ToolKind;
  ToolResultMessage?: ToolResultMessage;
  ToolsParams?: ToolsParams;
  ToolsResult?: ToolsResult;
  TrustParams?: TrustParams;
  TurnEnd?: TurnEnd;
  TurnStart?: TurnStart;
  UnsavedDocument?: UnsavedDocument;
  UnsavedParams?: UnsavedParams;
  Usage?: Usage;
  UserMessage?: UserMessage;
}
/**
 * A run is over. `usage` is the run's, `messageIds` are the messages it added.
 */
export interface AgentEnd {
  type: "agent_end";
  stopReason: RunStop;
  messageId: Id | null;
  messageIds: Id[];
  turns: number;
  usage?: Usage;
  error?: RunError;
}
/**
 * Tokens. `input` excludes the cached parts, `reasoning` is part of `output`; `total` is their sum.
 *
 * `contextTokens` is what the last response's prompt and answer filled of the context window.
 */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  reasoning: number;
  total: number;
  contextTokens: number;
  contextWindow?: number;
  cost?: Cost;
}
/**
 * Money spent.
 */
export interface Cost {
  total: number;
  currency: "USD";
}
/**
 * Why a run ended with `stop_reason` error.
 *
 * Where a model server answered: its HTTP `status`, its own `code` and the `requestId` that its support
 * asks for.
 */
export interface RunError {
  kind: ErrorKind;
  message: string;
  retryable: boolean;
  retryAfterMs?: number;
  status?: number;
  code?: string;
  requestId?: string;
}
/**
 * A run begins.
 */
export interface AgentStart {
  type: "agent_start";
  prompt: PromptSettings;
}
/**
 * What a run was started with. `instructions` are the files of instructions that the model is told.
 */
export interface PromptSettings {
  model: string | null;
  mode: Mode;
  effort?: Effort;
  instructions?: string[];
}
/**
 * Text.
 */
export interface TextContent {
  type: "text";
  text: string;
}
/**
 * What the model thought aloud; `redacted` when the provider keeps the text to itself.
 */
export interface ThinkingContent {
  type: "thinking";
  text: string;
  redacted?: boolean;
}
/**
 * The model's wish to call a tool. `rawArguments` holds argument text that was no JSON object.
 */
export interface ToolCall {
  type: "tool_call";
  id: Id;
  name: string;
  arguments: {
    [k: string]: unknown;
  };
  rawArguments?: string;
}
/**
 * What the model said, whole or as far as it came.
 *
 * `provider_data` is what the provider wants back (signatures, field names): it is journaled beside the
 * message and never sent to clients.
 */
export interface AssistantMessage {
  role: "assistant";
  messageId: Id;
  content: AssistantBlock[];
  provider: string;
  model: string;
  usage?: Usage;
  stopReason: MessageStop;
  errorMessage?: string;
  timestamp: string;
}
/**
 * Either all durable events behind `after_seq`, as `agentd/event` told them, or the session as it is now.
 *
 * The next durable event is `seq` + 1, the next update goes on at the offsets of `partial`.
 */
export interface AttachResult {
  kind: "replay" | "snapshot";
  events?: {
    [k: string]: unknown;
  }[];
  pending?: PermissionRequest[];
  partial?: Partial;
  snapshot?: SessionGetResult;
  seq: number;
}
/**
 * A question to the user: may this tool call run?
 *
 * A question about a call of a child is its parent's, `toolCallId` the call that runs the child, and
 * `child` the call it is about.
 */
export interface PermissionRequest {
  sessionId: Id;
  promptId: Id;
  requestId: Id;
  toolCallId: Id;
  toolName: string;
  title: string;
  kind: ToolKind;
  subject: PermissionSubject;
  options: PermissionOption[];
  child?: ChildCall;
}
/**
 * A command line and where it would run.
 *
 * `reason` says, in the model's words, why it has to run outside the sandbox; none where it need not.
 */
export interface CommandSubject {
  type: "command";
  command: string;
  cwd: string;
  reason?: string;
}
/**
 * A change to one file, as a unified diff. `targetUri` is the new name of one that would be moved.
 */
export interface EditSubject {
  type: "edit";
  uri: string;
  targetUri?: string;
  patch: string;
}
/**
 * A file to read.
 */
export interface ReadSubject {
  type: "read";
  uri: string;
}
/**
 * An address to fetch.
 */
export interface FetchSubject {
  type: "fetch";
  url: string;
}
/**
 * A tool of an MCP server.
 */
export interface McpSubject {
  type: "mcp";
  server: string;
  tool: string;
  arguments: {
    [k: string]: unknown;
  };
}
/**
 * One possible answer; `rule` says in words what an answer for good would cover.
 */
export interface PermissionOption {
  optionId: Id;
  label: string;
  kind: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  scope: "once" | "session" | "workspace" | "user";
  rule?: string;
}
/**
 * A tool call of a child session.
 */
export interface ChildCall {
  sessionId: Id;
  toolCallId: Id;
}
/**
 * What a running prompt has said so far and no durable event holds yet.
 */
export interface Partial {
  message?: PartialMessage;
  tools: PartialTool[];
}
/**
 * What the open assistant message holds so far.
 */
export interface PartialMessage {
  messageId: Id;
  content: unknown[];
}
/**
 * What a running tool has said so far; the next update goes on at `offset`.
 */
export interface PartialTool {
  toolCallId: Id;
  output: string;
  offset: number;
}
/**
 * A session with its messages, oldest first.
 */
export interface SessionGetResult {
  session: Session;
  messages: Message[];
  hasMore: boolean;
  pending: PermissionRequest[];
  queue: QueuedPrompt[];
  todo: TodoItem[];
  partial?: Partial;
  seq: number;
}
/**
 * A conversation in one workspace folder. `seq` is the number of its last durable event.
 */
export interface Session {
  sessionId: Id;
  workspaceUri: string;
  title: string;
  model: string | null;
  mode: Mode;
  effort?: Effort;
  state: "idle" | "running" | "waiting";
  lockedBy?: number;
  parent?: SessionParent;
  forkedFrom?: SessionFork;
  createdAt: string;
  updatedAt: string;
  messageCount: number;
  usage?: Usage;
  seq: number;
}
/**
 * The tool call that runs a child session.
 */
export interface SessionParent {
  sessionId: Id;
  toolCallId: Id;
}
/**
 * The session and message a fork began at.
 */
export interface SessionFork {
  sessionId: Id;
  messageId: Id;
}
/**
 * What the user said.
 *
 * `shown` is what the model is shown of it where that is something else (files that it refers to, the text
 * of a command): it is found out once, journaled beside the message and never sent to clients.
 */
export interface UserMessage {
  role: "user";
  messageId: Id;
  content: ContentBlock[];
  timestamp: string;
}
/**
 * An image, base64.
 */
export interface ImageContent {
  type: "image";
  mimeType: string;
  data: string;
}
/**
 * A file, or a range of it, that the user points at; `text` where the client sends it along.
 */
export interface ResourceContent {
  type: "resource";
  uri: string;
  range?: Range;
  text?: string;
}
/**
 * From a position up to, not including, another.
 */
export interface Range {
  start: Position;
  end: Position;
}
/**
 * A place in a document as LSP counts it: 0-based line and character.
 */
export interface Position {
  line: number;
  character: number;
}
/**
 * A slash command with its arguments.
 */
export interface CommandContent {
  type: "command";
  name: string;
  arguments: string;
}
/**
 * What a tool call came to: the model sees `content`, clients may show `details` instead.
 */
export interface ToolResultMessage {
  role: "tool_result";
  messageId: Id;
  toolCallId: Id;
  toolName: string;
  content: ResultBlock[];
  isError: boolean;
  details?: ToolDetails;
  timestamp: string;
}
/**
 * What an edit did.
 */
export interface EditDetails {
  type: "edit";
  files: FileChange[];
}
/**
 * A file that an edit made, changed or removed, with its unified diff.
 */
export interface FileChange {
  uri: string;
  action: FileAction;
  patch: string;
  additions: number;
  deletions: number;
}
/**
 * How a command ended. `totalBytes` counts all its output, `truncated` whether the result holds less.
 *
 * `printed` is the end of its output with colours and weights (SGR), where it has any.
 */
export interface CommandDetails {
  type: "command";
  exitCode: number | null;
  signal?: string;
  durationMs: number;
  truncated: boolean;
  totalBytes: number;
  spillUri?: string;
  printed?: string;
}
/**
 * Which lines were shown: 1-based and inclusive, both 0 where none was.
 */
export interface ReadDetails {
  type: "read";
  uri: string;
  startLine: number;
  endLine: number;
  totalLines: number;
}
/**
 * How much a search found.
 */
export interface SearchDetails {
  type: "search";
  matches: number;
  truncated: boolean;
}
/**
 * A prompt that waits for its turn.
 */
export interface QueuedPrompt {
  promptId: Id;
  kind: "queue" | "steer";
  prompt: ContentBlock[];
  queuedAt: string;
}
/**
 * One item of the to-do list.
 */
export interface TodoItem {
  id: Id;
  text: string;
  status: "pending" | "in_progress" | "completed";
}
/**
 * A command that runs in the background of a session; `id` is what the model knows it by.
 */
export interface BackgroundInfo {
  id: string;
  command: string;
}
/**
 * `agentd/cancel`.
 */
export interface CancelParams {
  sessionId: Id;
  promptId?: Id;
  keepQueue?: boolean;
}
/**
 * What a cancel met. `quiescent` is false when a tool inside the daemon had to be abandoned.
 *
 * `background` are the commands that go on in the background, there when there are any.
 */
export interface CancelResult {
  state: "cancelled" | "notRunning";
  quiescent: boolean;
  promptId?: Id;
  restored: QueuedPrompt[];
  background?: BackgroundInfo[];
}
/**
 * A file that a run changed.
 */
export interface ChangedFile {
  uri: string;
  action: FileAction;
}
/**
 * What a client says of itself in `initializationOptions.agentd`.
 *
 * Without `trusted`, what the user has told agentd of the workspace counts.
 */
export interface ClientOptions {
  model?: string;
  mode?: Mode;
  trusted?: boolean;
  updates?: "all" | "coalesced" | "none";
  permission?: boolean;
  diagnostics?: boolean;
  save?: boolean;
  credentials?: {
    [k: string]: string;
  };
}
/**
 * A command that a prompt may name. `source` is "built-in", "user" or "workspace".
 */
export interface CommandInfo {
  name: string;
  description: string;
  argumentHint?: string;
  source: string;
}
/**
 * `agentd/commands`.
 */
export interface CommandsParams {
  workspaceUri?: string;
}
/**
 * The commands that can be run now, by name.
 */
export interface CommandsResult {
  commands: CommandInfo[];
}
/**
 * How that went: nothing has changed unless it is `compacted`. `kept` is never sent to clients.
 */
export interface CompactionEnd {
  type: "compaction_end";
  outcome: "compacted" | "nothingToDo" | "aborted" | "failed";
  tokensBefore: number;
  tokensAfter?: number;
  error?: RunError;
}
/**
 * The history is being made shorter for the model. `tokensBefore` is what it fills of the window.
 */
export interface CompactionStart {
  type: "compaction_start";
  reason: "threshold" | "overflow" | "request";
  tokensBefore: number;
}
/**
 * `agentd/credentials/set`; null takes the secret back.
 */
export interface CredentialsParams {
  provider: string;
  secret: string | null;
}
/**
 * A diagnostic of LSP. `severity`: 1 error, 2 warning, 3 information, 4 hint.
 */
export interface Diagnostic {
  range: Range;
  message: string;
  severity?: number;
  code?: number | string;
  source?: string;
}
/**
 * `agentd/diagnostics/get`: of these documents or all, once they are those of the present text.
 */
export interface DiagnosticsGetParams {
  uris?: string[];
  timeoutMs: number;
}
/**
 * What the editor knows by then.
 */
export interface DiagnosticsGetResult {
  items: DocumentDiagnostics[];
}
/**
 * The diagnostics of a document, at a version where that is known. `agentd/diagnostics/publish`, too.
 */
export interface DocumentDiagnostics {
  uri: string;
  version?: number;
  diagnostics: Diagnostic[];
}
/**
 * A file in a diff, with how many lines came and went.
 *
 * `steps` are there where others changed the file between changes of agentd's, and lead from what it was
 * before to what it was behind the last one.
 */
export interface DiffFile {
  uri: string;
  action: FileAction;
  additions: number;
  deletions: number;
  steps?: DiffStep[];
}
/**
 * A part of what became of a file, as a unified diff against what the steps before it made of it.
 */
export interface DiffStep {
  by: "agentd" | "others";
  patch: string;
}
/**
 * `agentd/document/save`.
 */
export interface DocumentSaveParams {
  uris: string[];
}
/**
 * The documents that were saved, and those that were not.
 */
export interface DocumentSaveResult {
  saved: string[];
  failed?: UnsavedDocument[];
}
/**
 * A document that could not be saved.
 */
export interface UnsavedDocument {
  uri: string;
  reason: string;
}
/**
 * No params, or no result.
 */
export interface Empty {}
/**
 * A turn begins: one request to the model and the tool calls it leads to.
 */
export interface TurnStart {
  type: "turn_start";
  turn: number;
}
/**
 * A message begins.
 */
export interface MessageStart {
  type: "message_start";
  message: MessageHead;
}
/**
 * What is known of a message when it begins.
 */
export interface MessageHead {
  role: "user" | "assistant" | "tool_result";
  messageId: Id;
  model?: string;
  toolCallId?: Id;
  toolName?: string;
}
/**
 * A message is whole.
 */
export interface MessageEnd {
  type: "message_end";
  message: Message;
}
/**
 * An open message begins again from empty under the same id.
 */
export interface MessageReset {
  type: "message_reset";
  messageId: Id;
}
/**
 * A tool call is taken up.
 */
export interface ToolExecutionStart {
  type: "tool_execution_start";
  toolCallId: Id;
  toolName: string;
  arguments: {
    [k: string]: unknown;
  };
  title: string;
  kind: ToolKind;
  locations: Location[];
}
/**
 * A file, and a 0-based line in it where one is known.
 */
export interface Location {
  uri: string;
  line?: number;
}
/**
 * A tool call has its result.
 */
export interface ToolExecutionEnd {
  type: "tool_execution_end";
  toolCallId: Id;
  toolName: string;
  result: ToolResultMessage;
  durationMs: number;
}
/**
 * A turn is over. `usage` is that response's.
 */
export interface TurnEnd {
  type: "turn_end";
  turn: number;
  messageId: Id;
  stopReason: string;
  toolResultIds: Id[];
  usage?: Usage;
}
/**
 * A question stands open.
 */
export interface PermissionRequested {
  sessionId: Id;
  promptId: Id;
  requestId: Id;
  toolCallId: Id;
  toolName: string;
  title: string;
  kind: ToolKind;
  subject: PermissionSubject;
  options: PermissionOption[];
  child?: ChildCall;
  type: "permission_requested";
}
/**
 * A question is closed.
 */
export interface PermissionResolved {
  type: "permission_resolved";
  requestId: Id;
  toolCallId: Id;
  outcome: "allowed" | "rejected" | "cancelled";
  optionId?: Id;
  by: "client" | "rule" | "cancel";
}
/**
 * The request to the model failed and is sent again after `delayMs`.
 */
export interface Retry {
  type: "retry";
  attempt: number;
  maxAttempts: number;
  delayMs: number;
  reason: string;
}
/**
 * The queue as it is now.
 */
export interface QueueChanged {
  type: "queue_changed";
  queue: QueuedPrompt[];
}
/**
 * The session as it is now; number 1 of every session.
 */
export interface SessionChanged {
  type: "session_changed";
  session: Session;
}
/**
 * The session went back to just before a prompt.
 *
 * With `undo` that was turned round: `restoredMessageIds` are back.
 */
export interface SessionRewound {
  type: "session_rewound";
  promptId: Id;
  scope: "files" | "conversation" | "both";
  removedMessageIds: Id[];
  files: RewoundFile[];
  undo?: true;
  restoredMessageIds?: Id[];
}
/**
 * A file that a rewind restored, or why it did not.
 */
export interface RewoundFile {
  uri: string;
  action: FileAction;
  conflict?: string;
}
/**
 * The to-do list as it is now.
 */
export interface TodoChanged {
  type: "todo_changed";
  items: TodoItem[];
}
/**
 * The files that a run changed.
 */
export interface FilesChanged {
  type: "files_changed";
  files: ChangedFile[];
}
/**
 * Something the user should know.
 */
export interface Notice {
  type: "notice";
  severity: "info" | "warning" | "error";
  message: string;
}
/**
 * An open message grew (live).
 */
export interface MessageUpdate {
  type: "message_update";
  messageId: Id;
  update: MessageDelta;
}
/**
 * New text of block `index`; `offset` counts UTF-16 code units of that block before it.
 */
export interface MessageDelta {
  kind: "text" | "thinking" | "tool_call";
  index: number;
  offset: number;
  delta: string;
  toolCallId?: Id;
  toolName?: string;
}
/**
 * A running tool said something (live).
 */
export interface ToolExecutionUpdate {
  type: "tool_execution_update";
  toolCallId: Id;
  update: ToolDelta;
}
/**
 * New output of a running tool; `offset` counts UTF-16 code units of that channel before it.
 */
export interface ToolDelta {
  channel: "stdout" | "stderr" | "progress";
  offset: number;
  delta: string;
}
/**
 * The params of `agentd/event`. Durable events carry `seq`; `promptId` is absent outside a run.
 */
export interface EventNotification {
  sessionId: Id;
  promptId?: Id;
  seq?: number;
  time: string;
  event: Event;
}
/**
 * `agentd/focus`: the document that the user looks at, what is selected and what can be seen of it.
 *
 * Without `uri` it is none.
 */
export interface FocusParams {
  uri?: string;
  selection?: Range;
  visible?: Range;
}
/**
 * A model that can be named in a prompt, and why it is not available if it is not.
 */
export interface ModelInfo {
  id: string;
  provider: string;
  name: string;
  contextWindow?: number;
  maxOutput?: number;
  images: boolean;
  reasoning: boolean;
  efforts: string[];
  available: boolean;
  reason?: string;
}
/**
 * `agentd/models`. Where the server of a `provider` knows its models best, it is asked for them.
 */
export interface ModelsParams {
  provider?: string;
}
/**
 * `agentd/models`.
 */
export interface ModelsResult {
  models: ModelInfo[];
  default: string | null;
}
/**
 * The client's answer to `agentd/permission/request`.
 */
export interface PermissionAnswer {
  optionId?: Id;
  feedback?: string;
  cancelled?: boolean;
}
/**
 * `agentd/permission/respond`.
 */
export interface PermissionRespondParams {
  requestId: Id;
  optionId: Id;
  feedback?: string;
}
/**
 * `agentd/permissions/revoke`.
 */
export interface PermissionRevokeParams {
  ruleId: Id;
}
/**
 * What the user allowed for good. `pattern` says in words what it covers.
 */
export interface PermissionRule {
  ruleId: Id;
  scope: "session" | "workspace" | "user";
  tool: string;
  pattern: string;
  createdAt: string;
}
/**
 * `agentd/permissions/rules`.
 */
export interface PermissionRulesParams {
  workspaceUri?: string;
}
/**
 * `agentd/permissions/rules`.
 */
export interface PermissionRulesResult {
  rules: PermissionRule[];
}
/**
 * Something that is wrong with the set-up, and where. `line` is 0-based.
 */
export interface Problem {
  severity: "error" | "warning" | "info";
  message: string;
  uri?: string;
  line?: number;
}
/**
 * A prompt with `wait: accepted` is safe in the journal. `problems` as in `PromptResult`.
 */
export interface PromptAccepted {
  sessionId: Id;
  promptId: Id;
  outcome: "started" | "queued" | "steered";
  seq: number;
  problems?: Problem[];
  restored?: QueuedPrompt[];
}
/**
 * `agentd/prompt`. An empty list goes on from the transcript without a user message.
 */
export interface PromptParams {
  sessionId?: Id;
  workspaceUri?: string;
  prompt: string | ContentBlock[];
  promptId?: Id;
  model?: string;
  mode?: Mode;
  effort?: Effort;
  maxTurns?: number;
  whenBusy?: "reject" | "queue" | "steer" | "interrupt";
  wait?: "completed" | "accepted";
  workDoneToken?: string | number;
}
/**
 * How a run ended. `outcome` and `runPromptId` are there where another prompt's run took this one.
 *
 * `restored` are the steers that an interruption gives back. `problems` is what is wrong with the set-up,
 * told with the first answer of a process.
 */
export interface PromptResult {
  sessionId: Id;
  promptId: Id;
  stopReason: RunStop;
  text: string;
  messageId: Id | null;
  usage?: Usage;
  turns: number;
  seq: number;
  error?: RunError;
  problems?: Problem[];
  outcome?: "steered";
  runPromptId?: Id;
  restored?: QueuedPrompt[];
}
/**
 * The queue as it is now.
 */
export interface QueueResult {
  queue: QueuedPrompt[];
}
/**
 * `agentd/queue/update`. `promptId` is needed by edit, remove and move; without it, run means all.
 */
export interface QueueUpdateParams {
  sessionId: Id;
  op: "edit" | "remove" | "move" | "clear" | "run";
  promptId?: Id;
  prompt?: string | ContentBlock[];
  index?: number;
}
/**
 * Why a request was answered with an error. Clients switch on `data.kind`.
 */
export interface RpcError {
  code: number;
  message: string;
  data: {
    kind:
      | "parse"
      | "request"
      | "methodNotFound"
      | "invalidParams"
      | "internal"
      | "notInitialized"
      | "cancelled"
      | "sessionNotFound"
      | "promptNotFound"
      | "sessionBusy"
      | "sessionLocked"
      | "queueFull"
      | "noModel"
      | "authRequired"
      | "overloaded"
      | "outsideWorkspace"
      | "permissionClosed"
      | "storage"
      | "unsupported";
    retryable: boolean;
    hint?: string;
  };
}
/**
 * What commands in mode `auto` run in: why it is not better or not there, and what it leaves open.
 */
export interface SandboxStatus {
  backend: "bubblewrap" | "landlock" | "none";
  reason?: string;
  gaps: string[];
}
/**
 * `agentd/session/attach`. `afterSeq` is the number of the last durable event that the client has.
 */
export interface SessionAttachParams {
  sessionId: Id;
  afterSeq?: number;
}
/**
 * `agentd/session/compact`. `instructions` say what the summary should keep above all.
 */
export interface SessionCompactParams {
  sessionId: Id;
  instructions?: string;
}
/**
 * What became of it, and what the history fills of the model's context window, in tokens.
 */
export interface SessionCompactResult {
  outcome: "compacted" | "nothingToDo" | "aborted";
  tokensBefore: number;
  tokensAfter: number;
}
/**
 * `agentd/session/diff`: of one prompt, or of all.
 */
export interface SessionDiffParams {
  sessionId: Id;
  promptId?: Id;
}
/**
 * What changed in the end, as a unified diff and file by file.
 */
export interface SessionDiffResult {
  patch: string;
  files: DiffFile[];
}
/**
 * A session as Markdown.
 */
export interface SessionExportResult {
  text: string;
}
/**
 * `agentd/session/fork`. Without `messageId` all of it, as far as its turns are whole.
 */
export interface SessionForkParams {
  sessionId: Id;
  messageId?: Id;
}
/**
 * `agentd/session/get`.
 */
export interface SessionGetParams {
  sessionId: Id;
  before?: Id;
  limit?: number;
}
/**
 * `agentd/session/list`.
 */
export interface SessionListParams {
  workspaceUri?: string;
  children?: boolean;
  limit?: number;
  cursor?: string;
}
/**
 * Sessions, newest first.
 */
export interface SessionListResult {
  sessions: Session[];
  nextCursor?: string;
}
/**
 * `agentd/session/new`.
 */
export interface SessionNewParams {
  workspaceUri?: string;
  title?: string;
  model?: string;
  mode?: Mode;
  effort?: Effort;
}
/**
 * `agentd/session/original`.
 */
export interface SessionOriginalParams {
  sessionId: Id;
  promptId: Id;
  uri: string;
}
/**
 * A file's text before a prompt; null where there was no file.
 */
export interface SessionOriginalResult {
  text: string | null;
}
/**
 * A request about one session.
 */
export interface SessionParams {
  sessionId: Id;
}
/**
 * A session.
 */
export interface SessionResult {
  session: Session;
}
/**
 * `agentd/session/rewind`: to just before prompt `promptId`, or `undo` of the last rewind.
 *
 * `uris` are the files to restore, all unless said. With `dryRun` nothing changes.
 */
export interface SessionRewindParams {
  sessionId: Id;
  promptId?: Id;
  scope?: "files" | "conversation" | "both";
  uris?: string[];
  dryRun?: boolean;
  undo?: boolean;
}
/**
 * What it came to, or would; `restoredMessageIds` are those that an undo brings back.
 */
export interface SessionRewindResult {
  files: RewoundFile[];
  removedMessageIds: Id[];
  restoredMessageIds?: Id[];
}
/**
 * An open session. `instructions` are the files of instructions that its last prompt told the model.
 */
export interface SessionStatus {
  sessionId: Id;
  state: "idle" | "running" | "waiting";
  lastActivityAt: string;
  instructions?: string[];
}
/**
 * `agentd/session/update`.
 */
export interface SessionUpdateParams {
  sessionId: Id;
  title?: string;
  model?: string;
  mode?: Mode;
  effort?: Effort;
}
/**
 * `agentd/status`. New sessions begin with `mode`; `modes` can be chosen, as far as it is known.
 */
export interface StatusResult {
  version: string;
  uptimeMs: number;
  sessions: SessionStatus[];
  problems: Problem[];
  mode?: Mode;
  modes?: Mode[];
  sandbox?: SandboxStatus;
}
/**
 * A tool that the model may call.
 */
export interface ToolInfo {
  name: string;
  description: string;
  parameters: {
    [k: string]: unknown;
  };
  kind: ToolKind;
  source: string;
  available: boolean;
  reason?: string;
}
/**
 * `agentd/tools`.
 */
export interface ToolsParams {
  workspaceUri?: string;
}
/**
 * `agentd/tools`.
 */
export interface ToolsResult {
  tools: ToolInfo[];
}
/**
 * `agentd/trust/didChange`.
 */
export interface TrustParams {
  trusted: boolean;
}
/**
 * `agentd/document/unsaved`: all files that are open as something else than text and not saved.
 */
export interface UnsavedParams {
  uris: string[];
}
