"""Short ways to write a request and to read an answer."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from agentd.protocol.messages import (
    AssistantBlock,
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.base import (
    Model,
    ModelRequest,
    Provider,
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolSpec,
)

KEY = "sk-canary-0123456789"
HELLO = {"content": [{"type": "text", "text": "Hello, world"}], "chunkSize": 2}
"""An answer for a fake server to play."""
NOW = "2026-11-29T17:01:38.041Z"
READ = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PIXEL = ImageContent(mime_type="image/png", data="iVBORw0KGgo=")


def user(*content: str | ImageContent) -> UserMessage:
    blocks = tuple(TextContent(text=part) if isinstance(part, str) else part for part in content)
    return UserMessage(message_id="u", content=blocks, timestamp=NOW)


def assistant(*content: str | AssistantBlock, model: str = "m", **fields: Any) -> AssistantMessage:
    blocks = tuple(TextContent(text=part) if isinstance(part, str) else part for part in content)
    return AssistantMessage(
        message_id="a",
        content=blocks,
        provider="local",
        model=model,
        stop_reason="tool_use" if any(isinstance(block, ToolCall) for block in blocks) else "stop",
        timestamp=NOW,
        **fields,
    )


def call(id: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=id, name="read_file", arguments=arguments)


def thinking(text: str) -> ThinkingContent:
    return ThinkingContent(text=text)


def result(id: str, *content: str | ImageContent, is_error: bool = False) -> ToolResultMessage:
    blocks = tuple(TextContent(text=part) if isinstance(part, str) else part for part in content)
    return ToolResultMessage(
        message_id="r",
        tool_call_id=id,
        tool_name="read_file",
        content=blocks,
        is_error=is_error,
        timestamp=NOW,
    )


def request(*messages: Message, model: Model | None = None, **fields: Any) -> ModelRequest:
    given = {"system": "Be brief.", "tools": (READ,)} | fields
    return ModelRequest(model or Model("local", "m"), messages=messages or (user("Hi"),), **given)


@dataclass
class Reading:
    """An answer read to its end, or as far as it came."""

    events: list[StreamEvent] = field(default_factory=list)

    async def read(self, provider: Provider, asked: ModelRequest | None = None) -> "Reading":
        async with provider.stream(asked or request()) as events:
            async for event in events:
                self.events.append(event)
        return self

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ThinkingDelta))

    @property
    def end(self) -> StreamEnd:
        last = self.events[-1]
        assert isinstance(last, StreamEnd)
        return last

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Each call as its id, name and argument text, in block order."""
        return calls_in(self.events)


def calls_in(events: list[StreamEvent]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            told = found.setdefault(event.index, {"id": None, "name": None, "arguments": ""})
            assert not (event.id and told["id"]), "an id came twice"
            assert not (event.name and told["name"]), "a name came twice"
            told["id"] = event.id or told["id"]
            told["name"] = event.name or told["name"]
            told["arguments"] += event.arguments
    return [found[index] for index in sorted(found)]


async def read(provider: Provider, asked: ModelRequest | None = None) -> Reading:
    """All of an answer."""
    return await Reading().read(provider, asked)


async def fail(provider: Provider, asked: ModelRequest | None = None) -> tuple[Reading, ProviderError]:
    """What is read of an answer that must fail, and how it fails: in words, and without the key."""
    reading = Reading()
    with pytest.raises(ProviderError) as caught:
        await reading.read(provider, asked)
    await provider.aclose()
    assert caught.value.message
    assert KEY not in caught.value.message
    return reading, caught.value
