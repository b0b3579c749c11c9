"""Messages, sessions and questions: the types of section 13 of the protocol."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.protocol.wire import Id, Many, Wire, absent

Mode = Literal["plan", "ask", "edit", "auto", "full"]
Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
FileAction = Literal["created", "changed", "deleted"]


class Position(Wire):
    """A place in a document as LSP counts it: 0-based line and character."""

    line: int = Field(ge=0)
    character: int = Field(ge=0)


class Range(Wire):
    """From a position up to, not including, another."""

    start: Position
    end: Position


class Location(Wire):
    """A file, and a 0-based line in it where one is known."""

    uri: str
    line: int | None = absent()


# --- content blocks -------------------------------------------------------------------------------


class TextContent(Wire):
    """Text."""

    type: Literal["text"] = "text"
    text: str


class ImageContent(Wire):
    """An image, base64."""

    type: Literal["image"] = "image"
    mime_type: str
    data: str


class ResourceContent(Wire):
    """A file, or a range of it, that the user points at; `text` where the client sends it along."""

    type: Literal["resource"] = "resource"
    uri: str
    range: Range | None = absent()
    text: str | None = absent()


class CommandContent(Wire):
    """A slash command with its arguments."""

    type: Literal["command"] = "command"
    name: str
    arguments: str = ""


class ThinkingContent(Wire):
    """What the model thought aloud; `redacted` when the provider keeps the text to itself."""

    type: Literal["thinking"] = "thinking"
    text: str
    redacted: bool | None = absent()


class ToolCall(Wire):
    """The model's wish to call a tool. `raw_arguments` holds argument text that was no JSON object."""

    type: Literal["tool_call"] = "tool_call"
    id: Id
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw_arguments: str | None = absent()


ContentBlock = Annotated[
    TextContent | ImageContent | ResourceContent | CommandContent, Field(discriminator="type")
]
AssistantBlock = Annotated[TextContent | ThinkingContent | ToolCall, Field(discriminator="type")]
ResultBlock = Annotated[TextContent | ImageContent, Field(discriminator="type")]


# --- usage and errors -----------------------------------------------------------------------------


class Cost(Wire):
    """Money spent."""

    total: float
    currency: Literal["USD"] = "USD"


class Usage(Wire):
    """Tokens. `input` excludes the cached parts, `reasoning` is part of `output`; `total` is their sum.

    `context_tokens` is what the last response's prompt and answer filled of the context window.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    total: int = 0
    context_tokens: int = 0
    context_window: int | None = absent()
    cost: Cost | None = absent()


ErrorKind = Literal[
    "auth", "rate_limit", "overloaded", "context_overflow", "bad_request", "refusal", "quota", "network",
    "timeout", "protocol", "server", "storage", "internal",
]  # fmt: skip


class RunError(Wire):
    """Why a run ended with `stop_reason` error.

    Where a model server answered: its HTTP `status`, its own `code` and the `request_id` that its support
    asks for.
    """

    kind: ErrorKind
    message: str
    retryable: bool = False
    retry_after_ms: int | None = absent()
    status: int | None = absent()
    code: str | None = absent()
    request_id: str | None = absent()


# --- messages -------------------------------------------------------------------------------------

MessageStop = Literal["stop", "length", "tool_use", "refusal", "error", "aborted"]
RunStop = Literal["stop", "length", "refusal", "aborted", "max_turns", "error", "interrupted"]


class UserMessage(Wire):
    """What the user said.

    `shown` is what the model is shown of it where that is something else (files that it refers to, the text
    of a command): it is found out once, journaled beside the message and never sent to clients.
    """

    role: Literal["user"] = "user"
    message_id: Id
    content: Many[ContentBlock]
    timestamp: str
    shown: Many[ResultBlock] | None = Field(default=None, exclude=True)


class AssistantMessage(Wire):
    """What the model said, whole or as far as it came.

    `provider_data` is what the provider wants back (signatures, field names): it is journaled beside the
    message and never sent to clients.
    """

    role: Literal["assistant"] = "assistant"
    message_id: Id
    content: Many[AssistantBlock]
    provider: str
    model: str
    usage: Usage | None = absent()
    stop_reason: MessageStop
    error_message: str | None = absent()
    timestamp: str
    provider_data: dict[str, Any] | None = Field(default=None, exclude=True)

    @property
    def text(self) -> str:
        """All text of the message, thinking and calls left out."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class FileChange(Wire):
    """A file that an edit made, changed or removed, with its unified diff."""

    uri: str
    action: FileAction
    patch: str
    additions: int
    deletions: int


class EditDetails(Wire):
    """What an edit did."""

    type: Literal["edit"] = "edit"
    files: Many[FileChange]


class CommandDetails(Wire):
    """How a command ended. `total_bytes` counts all its output, `truncated` whether the result holds less.

    `printed` is the end of its output with colours and weights (SGR), where it has any.
    """

    type: Literal["command"] = "command"
    exit_code: int | None
    signal: str | None = absent()
    duration_ms: int
    truncated: bool
    total_bytes: int
    spill_uri: str | None = absent()
    printed: str | None = absent()


class ReadDetails(Wire):
    """Which lines were shown: 1-based and inclusive, both 0 where none was."""

    type: Literal["read"] = "read"
    uri: str
    start_line: int
    end_line: int
    total_lines: int


class SearchDetails(Wire):
    """How much a search found."""

    type: Literal["search"] = "search"
    matches: int
    truncated: bool


AnyDetails = EditDetails | CommandDetails | ReadDetails | SearchDetails
ToolDetails = Annotated[AnyDetails, Field(discriminator="type")]


class ToolResultMessage(Wire):
    """What a tool call came to: the model sees `content`, clients may show `details` instead."""

    role: Literal["tool_result"] = "tool_result"
    message_id: Id
    tool_call_id: Id
    tool_name: str
    content: Many[ResultBlock]
    is_error: bool
    details: ToolDetails | None = absent()
    timestamp: str


Message = Annotated[UserMessage | AssistantMessage | ToolResultMessage, Field(discriminator="role")]


# --- permissions ----------------------------------------------------------------------------------


class CommandSubject(Wire):
    """A command line and where it would run.

    `reason` says, in the model's words, why it has to run outside the sandbox; none where it need not.
    """

    type: Literal["command"] = "command"
    command: str
    cwd: str
    reason: str | None = absent()


class EditSubject(Wire):
    """A change to one file, as a unified diff. `target_uri` is the new name of one that would be moved."""

    type: Literal["edit"] = "edit"
    uri: str
    target_uri: str | None = absent()
    patch: str


class ReadSubject(Wire):
    """A file to read."""

    type: Literal["read"] = "read"
    uri: str


class FetchSubject(Wire):
    """An address to fetch."""

    type: Literal["fetch"] = "fetch"
    url: str


class McpSubject(Wire):
    """A tool of an MCP server."""

    type: Literal["mcp"] = "mcp"
    server: str
    tool: str
    arguments: dict[str, Any]


PermissionSubject = Annotated[
    CommandSubject | EditSubject | ReadSubject | FetchSubject | McpSubject, Field(discriminator="type")
]


class PermissionOption(Wire):
    """One possible answer; `rule` says in words what an answer for good would cover."""

    option_id: Id
    label: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
    scope: Literal["once", "session", "workspace", "user"]
    rule: str | None = absent()


class ChildCall(Wire):
    """A tool call of a child session."""

    session_id: Id
    tool_call_id: Id


class PermissionRequest(Wire):
    """A question to the user: may this tool call run?

    A question about a call of a child is its parent's, `tool_call_id` the call that runs the child, and
    `child` the call it is about.
    """

    session_id: Id
    prompt_id: Id
    request_id: Id
    tool_call_id: Id
    tool_name: str
    title: str
    kind: ToolKind
    subject: PermissionSubject
    options: Many[PermissionOption]
    child: ChildCall | None = absent()


# --- sessions -------------------------------------------------------------------------------------


class SessionParent(Wire):
    """The tool call that runs a child session."""

    session_id: Id
    tool_call_id: Id


class SessionFork(Wire):
    """The session and message a fork began at."""

    session_id: Id
    message_id: Id


class Session(Wire):
    """A conversation in one workspace folder. `seq` is the number of its last durable event."""

    session_id: Id
    workspace_uri: str
    title: str
    model: str | None
    mode: Mode
    effort: Effort | None = absent()
    state: Literal["idle", "running", "waiting"]
    locked_by: int | None = absent()
    parent: SessionParent | None = absent()
    forked_from: SessionFork | None = absent()
    created_at: str
    updated_at: str
    message_count: int
    usage: Usage | None = absent()
    seq: int


class QueuedPrompt(Wire):
    """A prompt that waits for its turn."""

    prompt_id: Id
    kind: Literal["queue", "steer"]
    prompt: Many[ContentBlock]
    queued_at: str


class TodoItem(Wire):
    """One item of the to-do list."""

    id: Id
    text: str
    status: Literal["pending", "in_progress", "completed"]
