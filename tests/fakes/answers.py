"""Scripted responses as the bytes that a server of any API would stream, for servers that then misbehave."""

from collections.abc import Callable, Mapping
from typing import Any

from fakes.anthropic_server import message_events
from fakes.gemini_server import answer_events
from fakes.openai_wire import chat_events
from fakes.responses_wire import ResponsesWire

MODEL = "m"

_EVENTS: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    "openai-chat": lambda response, _: chat_events(response, {"stream_options": {"include_usage": True}}),
    "openai-responses": lambda response, model: ResponsesWire().events_of(response, {"model": model}),
    "anthropic": lambda response, model: message_events(response, {"model": model}),
    "gemini": answer_events,
}
APIS = tuple(_EVENTS)


def answer(api: str, *blocks: Any, model: str = MODEL, **fields: Any) -> bytes:
    """The body of a streamed answer of a model; a string is a text block.

    `fields` are those of a scripted response.
    """
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return b"".join(_EVENTS[api]({"content": content, **fields}, model))
