"""A model request as the body of an OpenAI-compatible `POST /chat/completions`.

Only fields that every server of this kind knows are sent, in the forms that the strict ones want: assistant
content as one string or null, arguments as JSON *text*, the results of a turn right after it, one message
each, and images only in user messages. This API has no flag for a failed tool: the text has to say it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    ImageContent,
    ResultBlock,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.base import Model, ModelRequest, ToolSpec, no_images
from agentd.providers.openai_text import NO_OUTPUT, data_url, said, shows_error
from agentd.providers.reasoning import replayed

IMAGES_OF_RESULTS = "Images from the tool results above:"


def chat_body(request: ModelRequest, *, include_usage: bool = True) -> dict[str, Any]:
    """The body of the request. Raises `ProviderError` for an image that the model cannot see."""
    model = request.model
    body: dict[str, Any] = {
        "model": model.name,
        "messages": list(_chat_messages(request)),
        "stream": True,
    }
    if include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if model.max_output is not None:
        body["max_tokens"] = model.max_output
    if request.effort is not None and request.effort in model.efforts:
        body["reasoning_effort"] = request.effort
    return body


def _tool(tool: ToolSpec) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}} | tool.parameters
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def _chat_messages(request: ModelRequest) -> Iterator[dict[str, Any]]:
    if request.system.strip():
        yield {"role": "system", "content": request.system}
    user: list[ContentBlock] = []  # what the next user message will say
    for message in request.messages:
        if isinstance(message, UserMessage):
            user += message.content
            continue
        if isinstance(message, ToolResultMessage):
            yield _tool_message(message)
            user += _images_of(message, first=not user)
            continue
        if (answer := _assistant_message(message, request.model)) is not None:
            if user:
                yield _user_message(user, request.model)
                user = []
            yield answer
    if user:
        yield _user_message(user, request.model)


def _images_of(result: ToolResultMessage, *, first: bool) -> Iterator[ContentBlock]:
    """The images of a result, for the user message after the last result of the turn."""
    images = [block for block in result.content if isinstance(block, ImageContent)]
    if images and first:
        yield TextContent(text=IMAGES_OF_RESULTS)
    yield from images


def _user_message(blocks: Sequence[ContentBlock], model: Model) -> dict[str, Any]:
    if not any(isinstance(block, ImageContent) for block in blocks):
        return {"role": "user", "content": "\n\n".join(said(block) for block in blocks)}
    if not model.images:
        raise no_images(model)
    return {"role": "user", "content": [_part(block) for block in blocks]}


def _part(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        return {"type": "image_url", "image_url": {"url": data_url(block)}}
    return {"type": "text", "text": said(block)}


def _assistant_message(message: AssistantMessage, model: Model) -> dict[str, Any] | None:
    """The message, or None when it neither says nor calls anything: servers refuse such a turn."""
    text = message.text
    calls = [_call(call) for call in message.calls]
    if not text.strip():
        if not calls:
            return None
        text = ""
    answer: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        answer["tool_calls"] = calls
    kept = message.provider_data or {}
    if kept and message.provider == model.provider and message.model in (model.name, model.id):
        thinking = "".join(block.text for block in message.content if isinstance(block, ThinkingContent))
        answer |= replayed(kept, thinking)
        for call, extra in zip(calls, kept.get("callExtras", ()), strict=False):
            if extra:
                call["extra_content"] = extra
    return answer


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _tool_message(result: ToolResultMessage) -> dict[str, Any]:
    text = "\n".join(_texts(result.content))
    if not text.strip():
        has_image = any(isinstance(block, ImageContent) for block in result.content)
        text = "(the image follows below)" if has_image else NO_OUTPUT
    if result.is_error and not shows_error(text):
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": text}


def _texts(blocks: Iterable[ResultBlock]) -> Iterator[str]:
    return (block.text for block in blocks if isinstance(block, TextContent))
