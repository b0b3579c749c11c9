"""The seam between the loop and tools.

A tool call goes through three steps, so that each is in one place and no question is asked in vain:

1. `describe`: title and places for the user, from whatever arguments came. Pure, never raises.
2. `prepare`: with valid arguments, find out what would be done: resolve paths, compute the new text. Raises
   when it cannot be done. Changes nothing.
3. `Action.run`: do it. Called at most once, only when it is permitted.

A tool fails by returning `ToolResult.error(text)`, which the model sees verbatim, or by raising, which the
model sees as `Tool "x" failed: <message>`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from agentd.config.checker_settings import Checker
from agentd.permissions.policy import Manner
from agentd.protocol.messages import (
    ImageContent,
    Location,
    PermissionSubject,
    TextContent,
    TodoItem,
    ToolDetails,
    ToolKind,
)
from agentd.providers.base import Model
from agentd.workspace.checkpoints import Checkpoint, NoCheckpoint
from agentd.workspace.editor import Editor, Finding
from agentd.workspace.seen import SeenFiles
from agentd.workspace.shell import Shell
from agentd.workspace.skills import Skill
from agentd.workspace.write_notes import WriteNotes

Channel = Literal["stdout", "stderr", "progress"]


class ToolError(Exception):
    """What a tool raises on purpose. Its message goes to the model."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool gives back to the model, and `details` for clients."""

    content: tuple[TextContent | ImageContent, ...]
    is_error: bool = False
    details: ToolDetails | None = None

    @property
    def said(self) -> str:
        """Its first text."""
        return next((block.text for block in self.content if isinstance(block, TextContent)), "")

    @staticmethod
    def text(text: str, details: ToolDetails | None = None) -> "ToolResult":
        """A result that is one text."""
        return ToolResult((TextContent(text=text),), details=details)

    @staticmethod
    def error(text: str, details: ToolDetails | None = None) -> "ToolResult":
        """A failure, in the tool's own words."""
        return ToolResult((TextContent(text=text),), is_error=True, details=details)


class LiveOutput(Protocol):
    """Passes live output to the user."""

    async def __call__(self, channel: Channel, text: str, left_out: int = 0) -> None:
        """Show more output; `left_out` UTF-16 code units that came behind it are in the result only.

        May wait: that is a slow client.
        """
        ...


async def _silent(channel: Channel, text: str, left_out: int = 0) -> None:
    """Nobody listens to live output."""


class Todo(Protocol):
    """The session's to-do list."""

    @property
    def items(self) -> tuple[TodoItem, ...]:
        """The items in their order."""
        ...

    async def replace(self, items: tuple[TodoItem, ...]) -> None:
        """Keep this list from now on, and show it to the user."""
        ...


@dataclass
class UnkeptTodo:
    """A to-do list that lasts as long as its object."""

    items: tuple[TodoItem, ...] = ()

    async def replace(self, items: tuple[TodoItem, ...]) -> None:
        """Keep this list from now on."""
        self.items = items


def _unseen(findings: Sequence[Finding]) -> bool:
    """There is nobody to show findings to."""
    return False


@dataclass(frozen=True)
class ChildTask:
    """What a child session is to do. `tools` are the names of those it gets; None: all it may have."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ChildAnswer:
    """What a child came to: what it said last, in how many turns, and, where it is not done, why."""

    text: str
    turns: int = 0
    problem: str | None = None


class RunChild(Protocol):
    """Runs a child session to its end, on behalf of the tool call that it is handed to."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all the tools that a child may have."""
        ...

    async def __call__(self, task: ChildTask, tell: Callable[[str], Awaitable[None]]) -> ChildAnswer:
        """Run it; `tell` is told in a line, now and then, what it does.

        Raises nothing but cancellation, and comes back only when nothing of the child runs any more.
        """
        ...


def _untold(result: ToolResult) -> None:
    """Nobody waits for what is done already."""


@dataclass(frozen=True)
class ToolContext:
    """What a tool may use. One per tool call.

    `root` is the workspace folder, resolved. `seen` remembers, for the session, which content of which file
    the model has seen, and `shell` what one command leaves for the next. `environment` is what commands
    inherit. `write_notes` tell a later daemon where writes of this one may have left something. `checkpoint`
    keeps what a file is before it is changed. `checkers` are programs of the user's that find what is wrong.
    `show_findings` shows what a review found, in place of what the session has shown before; it gives False
    where no editor shows it. `made` is told the result of a change as soon as it is made: that is how the
    call ends where it is cancelled, or fails, at what comes behind the change.
    `model` is the one that reads the result, `skills` are those that it can load. `run_child` runs child
    sessions; None where there can be none.
    """

    root: Path
    editor: Editor
    seen: SeenFiles
    environment: Mapping[str, str]
    output: LiveOutput = _silent
    _: KW_ONLY
    todo: Todo = field(default_factory=UnkeptTodo)
    write_notes: WriteNotes = field(default_factory=WriteNotes)
    shell: Shell = field(default_factory=Shell)
    checkpoint: Checkpoint = field(default_factory=NoCheckpoint)
    checkers: tuple[Checker, ...] = ()
    show_findings: Callable[[Sequence[Finding]], bool] = _unseen
    made: Callable[[ToolResult], None] = _untold
    model: Model | None = None
    skills: tuple[Skill, ...] = ()
    run_child: RunChild | None = None


@dataclass(frozen=True)
class Description:
    """How a tool call is shown to the user."""

    title: str
    locations: tuple[Location, ...] = ()


@dataclass(frozen=True)
class Action:
    """A prepared tool call.

    `subject` is what the user would be asked about (None: nothing that could need asking). `secret` marks
    files that hold secrets, which are asked about in every mode but `full`.

    What is done may come in other manners than the plain one (see `permissions.policy.Manner`): `sandboxed`
    does it inside the sandbox, `rebuilt` in the form in which rules judge it. None where there is no such
    form.
    """

    run: Callable[[], Awaitable[ToolResult]]
    subject: PermissionSubject | None = None
    secret: bool = False
    sandboxed: Callable[[], Awaitable[ToolResult]] | None = None
    rebuilt: Callable[[], Awaitable[ToolResult]] | None = None

    def in_manner(self, manner: Manner) -> Callable[[], Awaitable[ToolResult]]:
        """What runs in this manner. Raises `ToolError` where the action has no such form."""
        run = {"plain": self.run, "sandboxed": self.sandboxed, "rebuilt": self.rebuilt}[manner]
        if run is None:
            raise ToolError(f"This call cannot run {manner}.")
        return run


class Tool(Protocol):
    """A tool."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: ToolKind

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """Title and places for the user; the arguments may be anything."""
        ...

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """What these valid arguments would do. The dictionary is the tool's own to keep."""
        ...


@dataclass(frozen=True)
class Toolbox:
    """The tools of a session by name, in the order the model sees them."""

    tools: tuple[Tool, ...]
    _by_name: dict[str, Tool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {tool.name: tool for tool in self.tools})

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._by_name.get(name)
