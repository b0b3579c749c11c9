"""How many tokens a history fills of a model's context window, and how many it may.

What the server counted goes first; only what came since is estimated. An estimate is the same each time, and
rather simple: models do not tell how they count.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import to_json

from agentd.agent.memory import as_shown, is_answer
from agentd.protocol.messages import AssistantMessage, ImageContent, Message, ToolCall
from agentd.providers.base import Model, ToolSpec

IMAGE_TOKENS = 1600
"""An image, whatever its size: what the largest costs that servers do not shrink.

https://docs.claude.com/en/docs/build-with-claude/vision#calculate-image-costs
"""

BYTES_PER_TOKEN = 4
"""Of UTF-8, as far as an estimate goes."""

_MESSAGE_TOKENS = 4  # what stands around a message
_LEAST_RESERVE = 10  # a tenth of the window


def of_text(text: str) -> int:
    """An estimate: four bytes of UTF-8 are a token, which is near for English, code and Chinese alike."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def of_message(message: Message) -> int:
    """An estimate for one message."""
    return _MESSAGE_TOKENS + sum(_of_block(block) for block in as_shown(message).content)


def of_messages(messages: Iterable[Message]) -> int:
    """An estimate for messages."""
    return sum(map(of_message, messages))


def of_preamble(system: str, tools: Iterable[ToolSpec]) -> int:
    """An estimate for what stands before the messages of every request."""
    return of_text(system) + sum(
        of_text(tool.name) + of_text(tool.description) + _of_json(tool.parameters) for tool in tools
    )


def _of_block(block: Any) -> int:
    if isinstance(block, ImageContent):
        return IMAGE_TOKENS
    if isinstance(block, ToolCall):
        said = _of_json(block.arguments) if block.raw_arguments is None else of_text(block.raw_arguments)
        return of_text(block.name) + said
    text = getattr(block, "text", None)
    return of_text(text) if isinstance(text, str) else _of_json(block)


def _of_json(value: Any) -> int:
    try:
        return -(-len(to_json(value)) // BYTES_PER_TOKEN)
    except ValueError:  # what is no JSON, such as a lone surrogate: the request repairs it
        return of_text(repr(value))


def counted(transcript: Sequence[Message], since: int, *, latest: bool = True) -> tuple[int, int] | None:
    """What the server counted with its last answer behind `since`, or the first, and the index behind that.

    None where it has counted nothing there.
    """
    places = range(since, len(transcript))
    for place in reversed(places) if latest else places:
        message = transcript[place]
        usage = message.usage if isinstance(message, AssistantMessage) and is_answer(message) else None
        if usage is not None and usage.context_tokens > 0:
            return usage.context_tokens, place + 1
    return None


def budget(model: Model) -> int | None:
    """How much of the window a request may fill: all but room for an answer, and a tenth at least.

    None where the window is not known. A limit of the answer that leaves nothing is taken for a mistake.
    """
    window, output = model.context_window, model.max_output or 0
    if window is None or window <= 0:
        return None
    if not 0 < output < window:
        output = 0
    return window - max(output, -(-window // _LEAST_RESERVE))


def threshold(model: Model, share: float) -> int | None:
    """From how many tokens on a history is too long, at this share of the window; None where nobody knows."""
    most = budget(model)
    if most is None or model.context_window is None:
        return None
    return max(min(int(model.context_window * share), most), 1)
