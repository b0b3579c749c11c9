"""Params and results of agentd's own requests: sections 2, 3, 4, 6 and 11 of the protocol."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from agentd.protocol.events import RewindScope, RewoundFile
from agentd.protocol.messages import (
    ContentBlock,
    Effort,
    FileAction,
    Message,
    Mode,
    PermissionRequest,
    QueuedPrompt,
    RunError,
    RunStop,
    Session,
    TodoItem,
    ToolKind,
    Usage,
)
from agentd.protocol.wire import Id, Many, Wire, absent

NOT_BLANK = r"\S"
Text = Annotated[str, StringConstraints(pattern=NOT_BLANK)]
"""A string that is not blank."""


class Empty(Wire):
    """No params, or no result."""


# --- initialize -----------------------------------------------------------------------------------


class ClientOptions(Wire):
    """What a client says of itself in `initializationOptions.agentd`.

    Without `trusted`, what the user has told agentd of the workspace counts.
    """

    model: str | None = absent()
    mode: Mode | None = absent()
    trusted: bool | None = absent()
    updates: Literal["all", "coalesced", "none"] = "all"
    permission: bool = False
    diagnostics: bool = False
    save: bool = False
    credentials: dict[str, str] = Field(default_factory=dict, repr=False)


class TrustParams(Wire):
    """`agentd/trust/didChange`."""

    trusted: bool


# --- sessions -------------------------------------------------------------------------------------


class SessionNewParams(Wire):
    """`agentd/session/new`."""

    workspace_uri: str | None = absent()
    title: str | None = absent()
    model: str | None = absent()
    mode: Mode | None = absent()
    effort: Effort | None = absent()


class SessionResult(Wire):
    """A session."""

    session: Session


class SessionListParams(Wire):
    """`agentd/session/list`."""

    workspace_uri: str | None = absent()
    children: bool = False
    limit: int = Field(default=50, ge=1, le=1000)
    cursor: str | None = absent()


class SessionListResult(Wire):
    """Sessions, newest first."""

    sessions: Many[Session]
    next_cursor: str | None = absent()


class SessionGetParams(Wire):
    """`agentd/session/get`."""

    session_id: Id
    before: Id | None = absent()
    limit: int = Field(default=200, ge=1, le=10_000)


class PartialMessage(Wire):
    """What the open assistant message holds so far."""

    message_id: Id
    content: Many[Any]


class PartialTool(Wire):
    """What a running tool has said so far; the next update goes on at `offset`."""

    tool_call_id: Id
    output: str
    offset: int


class Partial(Wire):
    """What a running prompt has said so far and no durable event holds yet."""

    message: PartialMessage | None = absent()
    tools: Many[PartialTool] = ()


class SessionGetResult(Wire):
    """A session with its messages, oldest first."""

    session: Session
    messages: Many[Message]
    has_more: bool
    pending: Many[PermissionRequest]
    queue: Many[QueuedPrompt]
    todo: Many[TodoItem]
    partial: Partial | None = absent()
    seq: int


class SessionAttachParams(Wire):
    """`agentd/session/attach`. `after_seq` is the number of the last durable event that the client has."""

    session_id: Id
    after_seq: int = Field(default=0, ge=0)


class AttachResult(Wire):
    """Either all durable events behind `after_seq`, as `agentd/event` told them, or the session as it is now.

    The next durable event is `seq` + 1, the next update goes on at the offsets of `partial`.
    """

    kind: Literal["replay", "snapshot"]
    events: Many[dict[str, Any]] | None = absent()
    pending: Many[PermissionRequest] | None = absent()
    partial: Partial | None = absent()
    snapshot: SessionGetResult | None = absent()
    seq: int


class SessionExportResult(Wire):
    """A session as Markdown."""

    text: str


class SessionUpdateParams(Wire):
    """`agentd/session/update`."""

    session_id: Id
    title: str | None = absent()
    model: str | None = absent()
    mode: Mode | None = absent()
    effort: Effort | None = absent()


class SessionCompactParams(Wire):
    """`agentd/session/compact`. `instructions` say what the summary should keep above all."""

    session_id: Id
    instructions: str | None = absent()


class SessionCompactResult(Wire):
    """What became of it, and what the history fills of the model's context window, in tokens."""

    outcome: Literal["compacted", "nothingToDo", "aborted"]
    tokens_before: int
    tokens_after: int


class SessionForkParams(Wire):
    """`agentd/session/fork`. Without `message_id` all of it, as far as its turns are whole."""

    session_id: Id
    message_id: Id | None = absent()


class SessionRewindParams(Wire):
    """`agentd/session/rewind`: to just before prompt `prompt_id`, or `undo` of the last rewind.

    `uris` are the files to restore, all unless said. With `dry_run` nothing changes.
    """

    session_id: Id
    prompt_id: Id | None = absent()
    scope: RewindScope | None = absent()
    uris: Many[str] | None = absent()
    dry_run: bool = False
    undo: bool = False


class SessionRewindResult(Wire):
    """What it came to, or would; `restored_message_ids` are those that an undo brings back."""

    files: Many[RewoundFile]
    removed_message_ids: Many[Id]
    restored_message_ids: Many[Id] | None = absent()


class SessionDiffParams(Wire):
    """`agentd/session/diff`: of one prompt, or of all."""

    session_id: Id
    prompt_id: Id | None = absent()


class DiffStep(Wire):
    """A part of what became of a file, as a unified diff against what the steps before it made of it."""

    by: Literal["agentd", "others"]
    patch: str


class DiffFile(Wire):
    """A file in a diff, with how many lines came and went.

    `steps` are there where others changed the file between changes of agentd's, and lead from what it was
    before to what it was behind the last one.
    """

    uri: str
    action: FileAction
    additions: int
    deletions: int
    steps: Many[DiffStep] | None = absent()


class SessionDiffResult(Wire):
    """What changed in the end, as a unified diff and file by file."""

    patch: str
    files: Many[DiffFile]


class SessionOriginalParams(Wire):
    """`agentd/session/original`."""

    session_id: Id
    prompt_id: Id
    uri: str


class SessionOriginalResult(Wire):
    """A file's text before a prompt; null where there was no file."""

    text: str | None


class SessionParams(Wire):
    """A request about one session."""

    session_id: Id


# --- prompt and cancel ----------------------------------------------------------------------------


class PromptParams(Wire):
    """`agentd/prompt`. An empty list goes on from the transcript without a user message."""

    session_id: Id | None = absent()
    workspace_uri: str | None = absent()
    prompt: Text | Many[ContentBlock]
    prompt_id: Id | None = absent()
    model: str | None = absent()
    mode: Mode | None = absent()
    effort: Effort | None = absent()
    max_turns: int | None = Field(default=None, ge=1, exclude_if=lambda value: value is None)
    when_busy: Literal["reject", "queue", "steer", "interrupt"] = "reject"
    wait: Literal["completed", "accepted"] = "completed"
    work_done_token: str | int | None = absent()


class Problem(Wire):
    """Something that is wrong with the set-up, and where. `line` is 0-based."""

    severity: Literal["error", "warning", "info"]
    message: str
    uri: str | None = absent()
    line: int | None = absent()


class PromptResult(Wire):
    """How a run ended. `outcome` and `run_prompt_id` are there where another prompt's run took this one.

    `restored` are the steers that an interruption gives back. `problems` is what is wrong with the set-up,
    told with the first answer of a process.
    """

    session_id: Id
    prompt_id: Id
    stop_reason: RunStop
    text: str
    message_id: Id | None
    usage: Usage | None = absent()
    turns: int
    seq: int
    error: RunError | None = absent()
    problems: Many[Problem] | None = absent()
    outcome: Literal["steered"] | None = absent()
    run_prompt_id: Id | None = absent()
    restored: Many[QueuedPrompt] | None = absent()


class PromptAccepted(Wire):
    """A prompt with `wait: accepted` is safe in the journal. `problems` as in `PromptResult`."""

    session_id: Id
    prompt_id: Id
    outcome: Literal["started", "queued", "steered"]
    seq: int
    problems: Many[Problem] | None = absent()
    restored: Many[QueuedPrompt] | None = absent()


class CancelParams(Wire):
    """`agentd/cancel`."""

    session_id: Id
    prompt_id: Id | None = absent()
    keep_queue: bool = False


class BackgroundInfo(Wire):
    """A command that runs in the background of a session; `id` is what the model knows it by."""

    id: str
    command: str


class CancelResult(Wire):
    """What a cancel met. `quiescent` is false when a tool inside the daemon had to be abandoned.

    `background` are the commands that go on in the background, there when there are any.
    """

    state: Literal["cancelled", "notRunning"]
    quiescent: bool
    prompt_id: Id | None = absent()
    restored: Many[QueuedPrompt] = ()
    background: Many[BackgroundInfo] | None = absent()


QueueOp = Literal["edit", "remove", "move", "clear", "run"]


class QueueUpdateParams(Wire):
    """`agentd/queue/update`. `prompt_id` is needed by edit, remove and move; without it, run means all."""

    session_id: Id
    op: QueueOp
    prompt_id: Id | None = absent()
    prompt: Text | Many[ContentBlock] | None = absent()
    index: int | None = Field(default=None, ge=0, exclude_if=lambda value: value is None)


class QueueResult(Wire):
    """The queue as it is now."""

    queue: Many[QueuedPrompt]


# --- permissions ----------------------------------------------------------------------------------


class PermissionAnswer(Wire):
    """The client's answer to `agentd/permission/request`."""

    option_id: Id | None = absent()
    feedback: str | None = absent()
    cancelled: bool = False


class PermissionRespondParams(Wire):
    """`agentd/permission/respond`."""

    request_id: Id
    option_id: Id
    feedback: str | None = absent()


class PermissionRulesParams(Wire):
    """`agentd/permissions/rules`."""

    workspace_uri: str | None = absent()


class PermissionRule(Wire):
    """What the user allowed for good. `pattern` says in words what it covers."""

    rule_id: Id
    scope: Literal["session", "workspace", "user"]
    tool: str
    pattern: str
    created_at: str


class PermissionRulesResult(Wire):
    """`agentd/permissions/rules`."""

    rules: Many[PermissionRule]


class PermissionRevokeParams(Wire):
    """`agentd/permissions/revoke`."""

    rule_id: Id


# --- the rest -------------------------------------------------------------------------------------


class SessionStatus(Wire):
    """An open session. `instructions` are the files of instructions that its last prompt told the model."""

    session_id: Id
    state: Literal["idle", "running", "waiting"]
    last_activity_at: str
    instructions: Many[str] | None = absent()


class SandboxStatus(Wire):
    """What commands in mode `auto` run in: why it is not better or not there, and what it leaves open."""

    backend: Literal["bubblewrap", "landlock", "none"]
    reason: str | None = absent()
    gaps: Many[str] = ()


class StatusResult(Wire):
    """`agentd/status`. New sessions begin with `mode`; `modes` can be chosen, as far as it is known."""

    version: str
    uptime_ms: int
    sessions: Many[SessionStatus]
    problems: Many[Problem]
    mode: Mode | None = absent()
    modes: Many[Mode] | None = absent()
    sandbox: SandboxStatus | None = absent()


class ModelInfo(Wire):
    """A model that can be named in a prompt, and why it is not available if it is not."""

    id: str
    provider: str
    name: str
    context_window: int | None = absent()
    max_output: int | None = absent()
    images: bool
    reasoning: bool
    efforts: Many[str]
    available: bool
    reason: str | None = absent()


class ModelsParams(Wire):
    """`agentd/models`. Where the server of a `provider` knows its models best, it is asked for them."""

    provider: str | None = absent()


class ModelsResult(Wire):
    """`agentd/models`."""

    models: Many[ModelInfo]
    default: str | None


class ToolsParams(Wire):
    """`agentd/tools`."""

    workspace_uri: str | None = absent()


class ToolInfo(Wire):
    """A tool that the model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: ToolKind
    source: str
    available: bool
    reason: str | None = absent()


class ToolsResult(Wire):
    """`agentd/tools`."""

    tools: Many[ToolInfo]


class CommandsParams(Wire):
    """`agentd/commands`."""

    workspace_uri: str | None = absent()


class CommandInfo(Wire):
    """A command that a prompt may name. `source` is "built-in", "user" or "workspace"."""

    name: str
    description: str
    argument_hint: str | None = absent()
    source: str


class CommandsResult(Wire):
    """The commands that can be run now, by name."""

    commands: Many[CommandInfo]


class CredentialsParams(Wire):
    """`agentd/credentials/set`; null takes the secret back."""

    provider: str
    secret: str | None = Field(repr=False)
