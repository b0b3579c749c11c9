"""What a strict model server would find wrong with the messages of a request.

Real servers answer a request that breaks these rules with a 400, and some forgive what others do not. The
scripted provider forgives nothing, so that a loop that is right with it is right with all of them.
"""

from collections.abc import Iterator, Sequence

from agentd.protocol.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.base import ModelRequest


def fault_of(request: ModelRequest) -> str | None:
    """The first fault of a request in words, or None."""
    faults = (*_order_faults(request.messages), *_call_faults(request.messages), *_text_faults(request))
    return faults[0] if faults else None


def _order_faults(messages: Sequence[Message]) -> Iterator[str]:
    if not messages:
        yield "there are no messages"
        return
    if not isinstance(messages[0], UserMessage):
        yield f"the first message is from {messages[0].role}, not from the user"
    if isinstance(messages[-1], AssistantMessage):
        yield "the last message is from the assistant"
    for number, message in enumerate(messages):
        if not message.content and not isinstance(message, ToolResultMessage):
            yield f"messages[{number}]: the content is empty"


def _call_faults(messages: Sequence[Message]) -> Iterator[str]:
    """Each call has one result right after its message, in call order; no result is without call."""
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if message.tool_call_id not in waiting:
                yield f'messages[{number}]: result "{message.tool_call_id}" answers no call before it'
            elif waiting[0] != message.tool_call_id:
                yield f'messages[{number}]: result "{message.tool_call_id}" is not in the order of the calls'
            waiting = [call for call in waiting if call != message.tool_call_id]
            continue
        if waiting:
            yield f'messages[{number}]: call "{waiting[0]}" has no result right after its message'
        waiting = []
        if isinstance(message, AssistantMessage):
            for call in message.calls:
                if call.id in seen:
                    yield f'messages[{number}]: call id "{call.id}" is used twice'
                seen.add(call.id)
                waiting.append(call.id)
    if waiting:
        yield f'call "{waiting[0]}" of the last message has no result'


def _text_faults(request: ModelRequest) -> Iterator[str]:
    if not _is_unicode(request.system):
        yield "the system prompt holds a lone surrogate"
    for number, message in enumerate(request.messages):
        for block in message.content:
            if isinstance(block, TextContent) and not block.text.strip():
                yield f"messages[{number}]: a text block is blank"
            text = block.text if isinstance(block, TextContent | ThinkingContent) else _texts_in(block)
            if not _is_unicode(text):
                yield f"messages[{number}]: a {block.type} block holds a lone surrogate"


def _texts_in(block: object) -> str:
    """All the text in a block that is not mere text, such as the arguments of a call."""
    return "".join(_strings(block.model_dump())) if hasattr(block, "model_dump") else ""


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
