"""What a running prompt has said so far and no durable event holds yet: `partial` in a session's reading."""

from typing import Any

from agentd.protocol.events import (
    MessageDelta,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionUpdate,
)
from agentd.protocol.messages import TextContent, ThinkingContent, ToolCall
from agentd.protocol.methods import Partial, PartialMessage, PartialTool
from agentd.protocol.text import utf16_length

_MAX_TOOL_OUTPUT = 64 * 1024


class LivePart:
    """Follows a run's events and can say at any moment what is open."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._blocks: dict[int, tuple[MessageDelta, list[str]]] = {}
        self._tools: dict[str, tuple[str, int]] = {}

    def follow(self, event: object) -> None:
        """Take the next event of the run, live or durable."""
        if isinstance(event, MessageUpdate):
            _, pieces = self._blocks.get(event.update.index, (None, []))
            self._blocks[event.update.index] = event.update, [*pieces, event.update.delta]
        elif isinstance(event, MessageStart) and event.message.role == "assistant":
            self._message_id, self._blocks = event.message.message_id, {}
        elif isinstance(event, MessageEnd):
            self._message_id, self._blocks = None, {}
        elif isinstance(event, ToolExecutionUpdate):
            said, _ = self._tools.get(event.tool_call_id, ("", 0))
            end = event.update.offset + utf16_length(event.update.delta)
            self._tools[event.tool_call_id] = ((said + event.update.delta)[-_MAX_TOOL_OUTPUT:], end)
        elif isinstance(event, ToolExecutionEnd):
            self._tools.pop(event.tool_call_id, None)

    def read(self) -> Partial | None:
        """What is open now, None when nothing is."""
        if self._message_id is None and not self._tools:
            return None
        message = None
        if self._message_id is not None:
            content = tuple(_block(first, "".join(said)) for _, (first, said) in sorted(self._blocks.items()))
            message = PartialMessage(message_id=self._message_id, content=content)
        tools = tuple(
            PartialTool(tool_call_id=call_id, output=said, offset=end)
            for call_id, (said, end) in self._tools.items()
        )
        return Partial(message=message, tools=tools)


def _block(first: MessageDelta, text: str) -> Any:
    if first.kind == "text":
        return TextContent(text=text)
    if first.kind == "thinking":
        return ThinkingContent(text=text)
    return ToolCall(id=first.tool_call_id or "pending", name=first.tool_name or "", raw_arguments=text)
