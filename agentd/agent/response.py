"""One model response as it grows: stream events in, live deltas and finally the message's blocks out."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic_core import from_json

from agentd.protocol.events import MessageDelta
from agentd.protocol.messages import AssistantBlock, TextContent, ThinkingContent, ToolCall
from agentd.protocol.text import clean_text, utf16_length
from agentd.providers.base import StreamEnd, TextDelta, ThinkingDelta, ToolCallDelta

_A_CALL = 1024
"""About what a call costs beside its arguments: many without any are a long answer, too."""


class ArgumentsError(ValueError):
    """Argument text that is no JSON object. The message says where, and never what."""


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call: a JSON object, or nothing at all, which some servers send for no arguments."""
    if not text.strip():
        return {}
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise ArgumentsError(f"arguments must be valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise ArgumentsError("arguments must be a JSON object")
    try:
        json.dumps(value, allow_nan=False)  # 1e400 is read as infinity, which cannot be said again
    except ValueError:
        raise ArgumentsError("arguments must be valid JSON (number out of range)") from None
    return value


@dataclass
class _Block:
    kind: Literal["text", "thinking", "tool_call"]
    pieces: list[str] = field(default_factory=list)
    offset: int = 0
    call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Response:
    """The blocks of one response. `call_id` makes an id for a call from the provider's own, if it has one."""

    def __init__(self, call_id: Callable[[str | None], str]) -> None:
        self._call_id = call_id
        self._blocks: dict[int, _Block] = {}
        self.size = 0
        """How much was said so far, in UTF-16 code units; a call counts as some by itself."""

    def is_news(self, event: TextDelta | ThinkingDelta | ToolCallDelta) -> bool:
        """Whether the event says anything: some servers send pieces without text."""
        return isinstance(event, ToolCallDelta) or bool(event.text)

    def add(self, event: TextDelta | ThinkingDelta | ToolCallDelta) -> MessageDelta | None:
        """Take a piece; give what a live client should see of it, if anything."""
        if isinstance(event, ToolCallDelta):
            return self._add_call(event)
        block = self._blocks.get(event.index)
        if block is None:
            block = self._blocks[event.index] = _Block("text" if isinstance(event, TextDelta) else "thinking")
        return self._grow(event.index, block, event.text)

    def _add_call(self, event: ToolCallDelta) -> MessageDelta | None:
        block = self._blocks.get(event.index)
        if block is None:
            block = self._blocks[event.index] = _Block("tool_call")
            self.size += _A_CALL
        news = False
        if event.id and block.call_id is None:
            block.call_id, news = self._call_id(event.id), True
        if event.name and block.name is None:
            block.name, news = clean_text(event.name), True
        return self._grow(event.index, block, event.arguments, even_empty=news)

    def _grow(self, index: int, block: _Block, text: str, *, even_empty: bool = False) -> MessageDelta | None:
        if not text and not even_empty:
            return None
        text = clean_text(text)
        offset = block.offset
        block.pieces.append(text)
        block.offset += utf16_length(text)
        self.size += block.offset - offset
        return MessageDelta(
            kind=block.kind,
            index=index,
            offset=offset,
            delta=text,
            tool_call_id=block.call_id,
            tool_name=block.name,
        )

    def partial(self) -> tuple[AssistantBlock, ...]:
        """What was said so far. Calls are left out: nobody can know whether they are whole."""
        return tuple(
            _spoken(block)
            for _, block in sorted(self._blocks.items())
            if block.kind != "tool_call" and block.text
        )

    def finish(self, end: StreamEnd, max_output: int | None) -> tuple[tuple[AssistantBlock, ...], set[str]]:
        """All blocks, and the ids of the calls that the output limit cut off.

        A call is cut when its arguments are no whole JSON object and the response ended for its length, by
        the server's word or by its own count of tokens. An empty argument text at the very end of such a
        response is one that had not begun.
        """
        at_limit = end.stop == "length" or bool(
            max_output and end.usage is not None and end.usage.output >= max_output
        )
        content: list[AssistantBlock] = []
        cut: set[str] = set()
        last = max(self._blocks, default=-1)
        for index, block in sorted(self._blocks.items()):
            if block.kind != "tool_call":
                if block.text:
                    content.append(_spoken(block))
                continue
            call = _call(block, block.call_id or self._call_id(None))
            content.append(call)
            unbegun = index == last and end.stop == "length" and not block.text.strip()
            if unbegun or (call.raw_arguments is not None and at_limit):
                cut.add(call.id)
        return tuple(content), cut


def _spoken(block: _Block) -> TextContent | ThinkingContent:
    return TextContent(text=block.text) if block.kind == "text" else ThinkingContent(text=block.text)


def _call(block: _Block, call_id: str) -> ToolCall:
    name = block.name or ""
    try:
        return ToolCall(id=call_id, name=name, arguments=parse_arguments(block.text))
    except ArgumentsError:
        return ToolCall(id=call_id, name=name, raw_arguments=block.text)
