"""What a running prompt has said so far and no durable event holds yet: `partial` in a session's reading."""

from typing import Any

from agentd.protocol.events import (
    MessageDelta,
    MessageEnd,
    MessageReset,
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
        self._pieces: dict[int, list[str]] = {}
        self._latest: dict[int, MessageDelta] = {}
        self._tools: dict[str, tuple[str, int]] = {}

    def follow(self, event: object) -> None:
        """Take the next event of the run, live or durable."""
        if isinstance(event, MessageUpdate):
            pieces = self._pieces.setdefault(event.update.index, [])
            pieces.append(event.update.delta)
            self._latest[event.update.index] = event.update  # knows the call's id and name once they came
        elif isinstance(event, MessageStart) and event.message.role == "assistant":
            self._message_id, self._pieces, self._latest = event.message.message_id, {}, {}
        elif isinstance(event, MessageReset):
            self._pieces, self._latest = {}, {}
        elif isinstance(event, MessageEnd):
            self._message_id = None
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
            blocks = sorted(self._latest.items())
            content = tuple(_block(latest, "".join(self._pieces[index])) for index, latest in blocks)
            message = PartialMessage(message_id=self._message_id, content=content)
        tools = tuple(
            PartialTool(tool_call_id=call_id, output=said, offset=end)
            for call_id, (said, end) in self._tools.items()
        )
        return Partial(message=message, tools=tools)


def _block(latest: MessageDelta, text: str) -> Any:
    if latest.kind == "text":
        return TextContent(text=text)
    if latest.kind == "thinking":
        return ThinkingContent(text=text)
    return ToolCall(id=latest.tool_call_id or "pending", name=latest.tool_name or "", raw_arguments=text)
