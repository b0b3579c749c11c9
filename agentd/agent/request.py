"""Transcript -> model request: the one place where that happens, and valid for every transcript.

A transcript is what happened: it may end in an unanswered call, hold results nobody asked for, turns that
failed, blank texts. A model server refuses all of these. Repair is by projection: nothing is written back,
and projecting twice gives the same.

What holds for every result of `project`:

* it begins with a user message and ends with a user message or a tool result;
* each tool call has one result, right after its message, in call order; no result lacks its call;
* call ids are unique; every call has a name; no text block is blank; all text is valid Unicode;
* answers that failed or were aborted are left out, and so are messages that say nothing, and agentd's own
  commands with their answers;
* what a message refers to stands there as it was when the message was said, whatever became of it since;
* an image for which a server refused the request is not sent again: no later prompt would be answered;
* while the transcript grows and its memory stays, and no image is refused or has to make room for another
  (`images.py`), the messages of a request begin with those of the one before, to the byte: model servers find
  in their cache what they have read already.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic_core import to_json

from agentd.agent.host import Conversation, Engine
from agentd.agent.images import Sight, without_images, without_refused_images
from agentd.agent.memory import as_shown, is_answer, is_aside, recalled
from agentd.protocol.events import Memory
from agentd.protocol.messages import (
    AssistantBlock,
    AssistantMessage,
    ContentBlock,
    ImageContent,
    Message,
    ResourceContent,
    ResultBlock,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agentd.protocol.text import clean_text
from agentd.protocol.wire import Wire
from agentd.providers.base import ModelRequest, ToolSpec
from agentd.tools.base import Toolbox

Model = TypeVar("Model", bound=Wire)

NO_RESULT = "No result: this tool call was not run."
NO_OUTPUT = "(no output)"
NO_IMAGE = "[There was an image here, which this model cannot see.]"
GO_ON = "Continue."
NEVER_READ = "[This command was not run: the daemon stopped before it was read.]"
"""Of a command whose text was never looked up; that of all others stands beside their message as `shown`."""
LOST_START = "(The start of this conversation is not available.)"

_ID_ROOM = 120  # of the 128 characters of an id, so that a number can be put behind it
_NO_NAME = "unknown"


def project(
    transcript: Sequence[Message],
    memory: Memory | None = None,
    *,
    images: bool = True,
    sight: Sight | None = None,
) -> tuple[Message, ...]:
    """The messages of a valid request that says what the transcript says, as far as `memory` still shows it.

    For a model that takes no `images`, a word stands in the place of each. `sight` is how the others are
    shown; without it they are as they stand there.
    """
    transcript = [as_shown(message) for message in recalled(transcript, memory) if not is_aside(message)]
    if not images:
        transcript = [without_images(message, NO_IMAGE) for message in transcript]
    else:
        transcript = without_refused_images(transcript)
        transcript = transcript if sight is None else sight.shown(transcript)
    results = _results_by_call(transcript)
    taken: set[str] = set()
    messages: list[Message] = []
    for message in transcript:
        if isinstance(message, UserMessage):
            messages += _user(message)
        elif isinstance(message, AssistantMessage):
            messages += _asked_on(messages)
            messages += _answer_with_results(message, results, taken)
    if messages and not isinstance(messages[0], UserMessage):
        messages.insert(0, _synthetic_user(LOST_START, messages[0]))
    return (*messages, *_asked_on(messages))


def request_for(conversation: Conversation, engine: Engine, sight: Sight | None = None) -> ModelRequest:
    """The request for the model's next answer, with the images as it sees them."""
    model = engine.model
    messages = project(conversation.transcript, conversation.memory, images=model.images, sight=sight)
    return ModelRequest(
        model=model,
        system=conversation.system_prompt(),
        messages=messages,
        tools=tool_specs(conversation.toolbox),
        effort=engine.effort,
    )


def tool_specs(toolbox: Toolbox) -> tuple[ToolSpec, ...]:
    """The tools as a model server sees them, always in the same order."""
    return tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in toolbox.tools)


def _asked_on(messages: Sequence[Message]) -> Iterator[Message]:
    """What a user says for a model to go on from its own answer. It stays, also where nothing came of it."""
    if messages and isinstance(messages[-1], AssistantMessage):
        yield _synthetic_user(GO_ON, messages[-1])


def _results_by_call(transcript: Sequence[Message]) -> dict[str, deque[ToolResultMessage]]:
    results: dict[str, deque[ToolResultMessage]] = defaultdict(deque)
    for message in transcript:
        if isinstance(message, ToolResultMessage):
            results[message.tool_call_id].append(message)
    return results


def _user(message: UserMessage) -> Iterator[Message]:
    content = tuple(block for block in map(_user_block, message.content) if block is not None)
    if content:
        yield _with(message, content=content)


def _user_block(block: ContentBlock) -> ContentBlock | None:
    if isinstance(block, ImageContent):
        return block
    if isinstance(block, TextContent):
        return _text_block(block)
    if isinstance(block, ResourceContent):
        return _text_block(TextContent(text=_mention(block)))
    return _text_block(TextContent(text=f"/{block.name} {block.arguments}\n{NEVER_READ}"))


def _mention(resource: ResourceContent) -> str:
    """A file the user points at, in words. The model reads what it needs of it with its tools."""
    lines = ""
    if resource.range is not None:
        lines = f" lines {resource.range.start.line + 1}-{resource.range.end.line + 1}"
    said = f":\n{resource.text}" if resource.text else ""
    return f"[{resource.uri}{lines}]{said}"


def _text_block(block: TextContent) -> TextContent | None:
    return _with(block, text=clean_text(block.text)) if block.text.strip() else None


def _answer_with_results(
    message: AssistantMessage, results: dict[str, deque[ToolResultMessage]], taken: set[str]
) -> Iterator[Message]:
    if not is_answer(message):
        return
    content: list[AssistantBlock] = []
    answers: list[ToolResultMessage] = []
    for block in message.content:
        if isinstance(block, ToolCall):
            call = _call(block, taken)
            content.append(call)
            answers.append(_result(call, message, results[block.id]))
        elif isinstance(block, ThinkingContent):
            content.append(_with(block, text=clean_text(block.text)))
        elif (text := _text_block(block)) is not None:
            content.append(text)
    if any(not isinstance(block, ThinkingContent) for block in content):
        yield _with(message, content=tuple(content))
        yield from answers


def _call(call: ToolCall, taken: set[str]) -> ToolCall:
    unique, count = call.id, 1
    while unique in taken:
        count += 1
        unique = f"{call.id[:_ID_ROOM]}~{count}"
    taken.add(unique)
    return _with(
        call,
        id=unique,
        name=clean_text(call.name) or _NO_NAME,
        arguments=_clean_arguments(call.arguments),
        raw_arguments=None,
    )


def _result(call: ToolCall, message: AssistantMessage, found: deque[ToolResultMessage]) -> ToolResultMessage:
    if not found:
        return ToolResultMessage(
            message_id=f"{message.message_id}.r"[:128],
            tool_call_id=call.id,
            tool_name=call.name,
            content=(TextContent(text=NO_RESULT),),
            is_error=True,
            timestamp=message.timestamp,
        )
    result = found.popleft()
    content: list[ResultBlock] = []
    for block in result.content:
        kept = block if isinstance(block, ImageContent) else _text_block(block)
        if kept is not None:
            content.append(kept)
    said = tuple(content) or (TextContent(text=NO_OUTPUT),)
    return _with(result, tool_call_id=call.id, tool_name=call.name, content=said)


def _with(model: Model, **fields: Any) -> Model:
    """The model with these fields, itself where it has them: most of a transcript needs no repair."""
    if all(getattr(model, name) == value for name, value in fields.items()):
        return model
    return model.model_copy(update=fields)


def _clean_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        to_json(arguments)
    except Exception:  # whatever cannot be written as JSON is rebuilt from what can
        cleaned = _clean_value(arguments)
        assert isinstance(cleaned, dict)
        return cleaned
    return arguments


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_value(item) for item in value]
    return value if isinstance(value, int | float | bool | None) else str(value)


def _synthetic_user(text: str, beside: Message) -> UserMessage:
    return UserMessage(
        message_id=f"{beside.message_id}.u"[:128],
        content=(TextContent(text=text),),
        timestamp=beside.timestamp,
    )
