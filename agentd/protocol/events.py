"""The events of `agentd/event`: one vocabulary for loop, journal and wire (protocol section 5)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.protocol.messages import (
    Effort,
    FileAction,
    Location,
    Message,
    Mode,
    PermissionRequest,
    QueuedPrompt,
    RunError,
    RunStop,
    Session,
    TodoItem,
    ToolKind,
    ToolResultMessage,
    Usage,
)
from agentd.protocol.wire import Id, Many, Wire, absent


class PromptSettings(Wire):
    """What a run was started with. `instructions` are the files of instructions that the model is told."""

    model: str | None
    mode: Mode
    effort: Effort | None = absent()
    instructions: Many[str] | None = absent()


class AgentStart(Wire):
    """A run begins."""

    type: Literal["agent_start"] = "agent_start"
    prompt: PromptSettings


class TurnStart(Wire):
    """A turn begins: one request to the model and the tool calls it leads to."""

    type: Literal["turn_start"] = "turn_start"
    turn: int


class MessageHead(Wire):
    """What is known of a message when it begins."""

    role: Literal["user", "assistant", "tool_result"]
    message_id: Id
    model: str | None = absent()
    tool_call_id: Id | None = absent()
    tool_name: str | None = absent()


class MessageStart(Wire):
    """A message begins."""

    type: Literal["message_start"] = "message_start"
    message: MessageHead


class MessageDelta(Wire):
    """New text of block `index`; `offset` counts UTF-16 code units of that block before it."""

    kind: Literal["text", "thinking", "tool_call"]
    index: int
    offset: int
    delta: str
    tool_call_id: Id | None = absent()
    tool_name: str | None = absent()


class MessageUpdate(Wire):
    """An open message grew (live)."""

    type: Literal["message_update"] = "message_update"
    message_id: Id
    update: MessageDelta


class MessageEnd(Wire):
    """A message is whole."""

    type: Literal["message_end"] = "message_end"
    message: Message


class MessageReset(Wire):
    """An open message begins again from empty under the same id."""

    type: Literal["message_reset"] = "message_reset"
    message_id: Id


class ToolExecutionStart(Wire):
    """A tool call is taken up."""

    type: Literal["tool_execution_start"] = "tool_execution_start"
    tool_call_id: Id
    tool_name: str
    arguments: dict[str, Any]
    title: str
    kind: ToolKind
    locations: Many[Location]


class ToolDelta(Wire):
    """New output of a running tool; `offset` counts UTF-16 code units of that channel before it."""

    channel: Literal["stdout", "stderr", "progress"]
    offset: int
    delta: str


class ToolExecutionUpdate(Wire):
    """A running tool said something (live)."""

    type: Literal["tool_execution_update"] = "tool_execution_update"
    tool_call_id: Id
    update: ToolDelta


class ToolExecutionEnd(Wire):
    """A tool call has its result."""

    type: Literal["tool_execution_end"] = "tool_execution_end"
    tool_call_id: Id
    tool_name: str
    result: ToolResultMessage
    duration_ms: int


class TurnEnd(Wire):
    """A turn is over. `usage` is that response's."""

    type: Literal["turn_end"] = "turn_end"
    turn: int
    message_id: Id
    stop_reason: str
    tool_result_ids: Many[Id]
    usage: Usage | None = absent()


class AgentEnd(Wire):
    """A run is over. `usage` is the run's, `message_ids` are the messages it added."""

    type: Literal["agent_end"] = "agent_end"
    stop_reason: RunStop
    message_id: Id | None
    message_ids: Many[Id]
    turns: int
    usage: Usage | None = absent()
    error: RunError | None = absent()


class PermissionRequested(PermissionRequest):
    """A question stands open."""

    type: Literal["permission_requested"] = "permission_requested"


class PermissionResolved(Wire):
    """A question is closed."""

    type: Literal["permission_resolved"] = "permission_resolved"
    request_id: Id
    tool_call_id: Id
    outcome: Literal["allowed", "rejected", "cancelled"]
    option_id: Id | None = absent()
    by: Literal["client", "rule", "cancel"]


class Retry(Wire):
    """The request to the model failed and is sent again after `delay_ms`."""

    type: Literal["retry"] = "retry"
    attempt: int
    max_attempts: int
    delay_ms: int
    reason: str


class QueueChanged(Wire):
    """The queue as it is now."""

    type: Literal["queue_changed"] = "queue_changed"
    queue: Many[QueuedPrompt]


class SessionChanged(Wire):
    """The session as it is now; number 1 of every session."""

    type: Literal["session_changed"] = "session_changed"
    session: Session


class RewoundFile(Wire):
    """A file that a rewind restored, or why it did not."""

    uri: str
    action: FileAction
    conflict: str | None = absent()


RewindScope = Literal["files", "conversation", "both"]


class SessionRewound(Wire):
    """The session went back to just before a prompt.

    With `undo` that was turned round: `restored_message_ids` are back.
    """

    type: Literal["session_rewound"] = "session_rewound"
    prompt_id: Id
    scope: RewindScope
    removed_message_ids: Many[Id]
    files: Many[RewoundFile]
    undo: Literal[True] | None = absent()
    restored_message_ids: Many[Id] | None = absent()


class TodoChanged(Wire):
    """The to-do list as it is now."""

    type: Literal["todo_changed"] = "todo_changed"
    items: Many[TodoItem]


class CompactionStart(Wire):
    """The history is being made shorter for the model. `tokens_before` is what it fills of the window."""

    type: Literal["compaction_start"] = "compaction_start"
    reason: Literal["threshold", "overflow", "request"]
    tokens_before: int


class Memory(Wire):
    """What requests show of a history that was made shorter, in place of the messages themselves.

    `text` stands for all messages up to and with `through`, and behind it, word for word, the user message
    `prompt`. Of the tool results named in `cleared` a note is left. `seen` counts the messages there were:
    what those say of the context's size is of before.
    """

    seen: int
    text: str | None = None
    through: Id | None = None
    prompt: Id | None = None
    cleared: Many[Id] = ()


class CompactionKept(Wire):
    """What is journaled beside a `compaction_end`: what it came to, and what asking for a summary took."""

    memory: Memory | None = None
    usage: Usage | None = None


class CompactionEnd(Wire):
    """How that went: nothing has changed unless it is `compacted`. `kept` is never sent to clients."""

    type: Literal["compaction_end"] = "compaction_end"
    outcome: Literal["compacted", "nothingToDo", "aborted", "failed"]
    tokens_before: int
    tokens_after: int | None = absent()
    error: RunError | None = absent()
    kept: CompactionKept | None = Field(default=None, exclude=True)


class ChangedFile(Wire):
    """A file that a run changed."""

    uri: str
    action: FileAction


class FilesChanged(Wire):
    """The files that a run changed."""

    type: Literal["files_changed"] = "files_changed"
    files: Many[ChangedFile]


class Notice(Wire):
    """Something the user should know."""

    type: Literal["notice"] = "notice"
    severity: Literal["info", "warning", "error"]
    message: str


LiveEvent = MessageUpdate | ToolExecutionUpdate

DurableEvent = (
    AgentStart
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
)

Event = Annotated[DurableEvent | LiveEvent, Field(discriminator="type")]


class EventNotification(Wire):
    """The params of `agentd/event`. Durable events carry `seq`; `prompt_id` is absent outside a run."""

    session_id: Id
    prompt_id: Id | None = absent()
    seq: int | None = absent()
    time: str
    event: Event
