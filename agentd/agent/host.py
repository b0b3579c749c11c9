"""What the loop needs of whoever runs it. It knows neither JSON-RPC nor LSP nor which face it serves."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agentd.agent.images import SessionImages
from agentd.agent.prompt_cut import PromptWatch
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.sources import Sources
from agentd.permissions.policy import Manner
from agentd.protocol.events import DurableEvent, LiveEvent, Memory
from agentd.protocol.messages import Effort, Message, TodoItem, ToolCall, UserMessage
from agentd.providers.base import Model, Provider
from agentd.tools.base import Action, LiveOutput, Tool, Toolbox, ToolContext


@dataclass(frozen=True)
class Engine:
    """Which model answers the next turn, and who brings the request there."""

    model: Model
    provider: Provider
    effort: Effort | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a tool call may run, and how; `reason` is what the model is told when it may not.

    `feedback` is what of that the user has said.
    """

    allowed: bool
    reason: str = ""
    manner: Manner = "plain"
    feedback: str = ""


class NotJournaled(Exception):
    """An event could not be journaled, so it was not sent either. The run cannot go on, nor be closed.

    `kind` is "storage" where the disk is at fault and "internal" where we are.
    """

    def __init__(self, message: str, kind: Literal["storage", "internal"] = "storage") -> None:
        super().__init__(message)
        self.kind = kind


class Conversation(Protocol):
    """A session as far as a model is told of it."""

    @property
    def sources(self) -> Sources:
        """Time and ids."""
        ...

    @property
    def transcript(self) -> Sequence[Message]:
        """All messages of the session, oldest first. Emitting `message_end` makes it grow."""
        ...

    @property
    def memory(self) -> Memory | None:
        """What requests show of a history that was made shorter. `compaction_end` changes it."""
        ...

    @property
    def todo(self) -> Sequence[TodoItem]:
        """The to-do list as it is now."""
        ...

    @property
    def toolbox(self) -> Toolbox:
        """The tools of the session."""
        ...

    @property
    def compaction(self) -> CompactionSettings:
        """When the history is made shorter by itself."""
        ...

    def system_prompt(self) -> str:
        """What the model is told before the conversation."""
        ...

    def place_of(self, uri: str) -> str:
        """A file as the model names it."""
        ...

    def learn_window(self, model: Model, tokens: int) -> Model:
        """A server has said how large a model's context window is; gives the model as it is known now."""
        ...


class Host(Conversation, Protocol):
    """The owner of a session, as the loop sees it."""

    def engine(self) -> Engine:
        """The model for the next turn: a change during a run acts from the next turn on."""
        ...

    def unique_call_id(self, wanted: str | None) -> str:
        """An id that no other tool call of the session has: the provider's own where it is free."""
        ...

    @property
    def prompt_watch(self) -> PromptWatch:
        """What looks whether the session's model servers leave out parts of its prompts."""
        ...

    @property
    def images(self) -> SessionImages:
        """What the images of the session look like to models."""
        ...

    def claim_steer(self) -> bool:
        """Whether a message of the user waits to be said in this run. Then it will be: see `next_steer`."""
        ...

    async def next_steer(self) -> UserMessage | None:
        """The next message that the user wants said now; emitting its `message_end` takes it, for good.

        May wait for the disk, then finds it in the step in which it returns.
        """
        ...

    async def before_request(self) -> None:
        """The model is about to be asked: wait for what the user has to say of it first."""
        ...

    def tool_context(self, output: LiveOutput) -> ToolContext:
        """What a tool may use."""
        ...

    async def room(self) -> None:
        """Wait until the client has read enough of what was sent: a slow client slows the run."""
        ...

    async def emit(self, event: DurableEvent | LiveEvent, **private: Any) -> None:
        """Journal the event and send it, before the first wait; return when what it promises holds.

        `private` is journaled beside it and never sent.

        For an event that gates something (a user message, the start of a tool, a decision, the end of a run)
        that is when it is safe on disk. Raises `NotJournaled`.
        """
        ...

    async def permit(self, call: ToolCall, tool: Tool, action: Action, title: str) -> Verdict:
        """Judge a prepared call by mode and rules, asking the user where need be."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: object) -> None:
        """Run something that may outlive the run: a tool that does not heed its cancellation."""
        ...
