"""What requests show of a history that was compacted. The history itself stays as it is.

A memory is made by `compaction.py`, journaled with its `compaction_end`, and looked up again for every
request: so a request is the same from turn to turn, and after a restart. A memory speaks of messages by their
ids and counts only while the last one that it sums up is there: where a rewind took that one away, the
memory before it counts again.
"""

from collections.abc import Collection, Sequence

from agentd.protocol.events import Memory
from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
)

_ID_ROOM = 126  # of the 128 characters of an id


def current(memories: Sequence[Memory], transcript: Sequence[Message]) -> Memory | None:
    """The memory that counts, of those that were made (oldest first)."""
    if not memories:
        return None
    there = {message.message_id for message in transcript}
    return next((m for m in reversed(memories) if m.through is None or m.through in there), None)


def first_kept(transcript: Sequence[Message], memory: Memory | None) -> int:
    """The index of the first message that is shown itself, behind what the memory's text stands for."""
    if memory is None or memory.through is None:
        return 0
    places = (i for i, message in enumerate(transcript) if message.message_id == memory.through)
    return next(places, -1) + 1


BUILT_IN = ("agentd", "commands")
"""Provider and model of what agentd answers itself, where the user runs one of its own commands."""


def is_aside(message: Message) -> bool:
    """Whether it stands beside the conversation, as a built-in command and its answer do: never shown."""
    if isinstance(message, AssistantMessage):
        return (message.provider, message.model) == BUILT_IN
    return isinstance(message, UserMessage) and message.shown == ()


def as_shown(message: Message) -> Message:
    """A message of the user as the model is shown it; any other as it is."""
    if not isinstance(message, UserMessage) or message.shown is None:
        return message
    return message.model_copy(update={"content": message.shown, "shown": None})


def recalled(transcript: Sequence[Message], memory: Memory | None) -> Sequence[Message]:
    """The transcript as the memory has it, for `request.project` to make a request of."""
    if memory is None:
        return transcript
    cleared = frozenset(memory.cleared)
    place = first_kept(transcript, memory)
    kept = [shown(message, cleared) for message in transcript[place:]]
    if memory.text is None or not place:
        return kept
    return [_head(memory, memory.text, transcript[:place]), *kept]


def _head(memory: Memory, text: str, gone: Sequence[Message]) -> UserMessage:
    """What stands for the messages that are gone: the summary, and perhaps the user's prompt as it was."""
    content: list[ContentBlock] = [TextContent(text=text)]
    for message in gone:
        if isinstance(message, UserMessage) and message.message_id == memory.prompt:
            content += message.content if message.shown is None else message.shown
    last = gone[-1]
    return UserMessage(
        message_id=f"{last.message_id[:_ID_ROOM]}.s", content=tuple(content), timestamp=last.timestamp
    )


def shown(message: Message, cleared: Collection[str]) -> Message:
    """A message as it is shown where the results of these ids are without their output."""
    if not isinstance(message, ToolResultMessage) or message.message_id not in cleared:
        return message
    return message.model_copy(update={"content": (TextContent(text=note(message)),)})


def is_answer(message: Message) -> bool:
    """Whether the model said something there that requests show: what failed or was aborted is left out."""
    if not isinstance(message, AssistantMessage) or is_aside(message):
        return False
    return message.stop_reason not in ("error", "aborted")


def note(result: ToolResultMessage) -> str:
    """What is left of a result whose output is no longer shown."""
    size = sum(len(block.text) for block in result.content if isinstance(block, TextContent))
    images = sum(not isinstance(block, TextContent) for block in result.content)
    also = f" and {images} image{'' if images == 1 else 's'}" if images else ""
    return (
        f"[Output of {result.tool_name}, {size:,} characters{also}: left out to save room. "
        "If it matters still, look again.]"
    )
