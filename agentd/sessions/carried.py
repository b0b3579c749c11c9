"""What a forked session takes with it: records at the beginning of its journal that are no events.

They have no number and are never sent. One holds what the conversation stood at, each of the others one
message with what its provider wants back: so damage costs one of them, and a list need not read them.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from agentd.protocol.events import Memory
from agentd.protocol.messages import AssistantMessage, Message, ResultBlock, TodoItem, UserMessage
from agentd.protocol.wire import Many, Wire

KEY = "carried"
"""The one member of such a record."""


class CarriedStart(Wire):
    """Where a prompt began: how many messages there were, and the to-do list."""

    messages: int
    todo: Many[TodoItem] = ()


class Carried(Wire):
    """A part of what is carried over."""

    messages: Many[Message] = ()
    provider_data: dict[str, Any] | None = None
    shown: Many[ResultBlock] | None = None
    starts: dict[str, CarriedStart] = Field(default_factory=dict)
    todo: Many[TodoItem] = ()
    memories: Many[Memory] = ()

    def whole_messages(self) -> tuple[Message, ...]:
        """The messages with what their provider wants back, or what the model is shown of them."""
        return tuple(map(self._whole, self.messages))

    def _whole(self, message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            return message.model_copy(update={"provider_data": self.provider_data})
        return (
            message.model_copy(update={"shown": self.shown}) if isinstance(message, UserMessage) else message
        )


def records_of(
    messages: tuple[Message, ...],
    starts: dict[str, CarriedStart],
    todo: tuple[TodoItem, ...],
    memories: tuple[Memory, ...],
) -> Iterator[dict[str, Any]]:
    """The records that carry this."""
    for message in messages:
        data = message.provider_data if isinstance(message, AssistantMessage) else None
        shown = message.shown if isinstance(message, UserMessage) else None
        yield {KEY: Carried(messages=(message,), provider_data=data, shown=shown)}
    yield {KEY: Carried(starts=starts, todo=todo, memories=memories)}
