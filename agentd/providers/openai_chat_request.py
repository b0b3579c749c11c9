"""A model request as the body of an OpenAI-compatible `POST /chat/completions`.

Only fields that the server is known to take are sent (`openai_chat_dialect`), in the forms that the strict
ones want: assistant content as one string or null, arguments as JSON *text*, the results of a turn right
after it, one message each, and images only in user messages. This API has no flag for a failed tool: the text
has to say it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    Effort,
    ImageContent,
    ResultBlock,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.base import Model, ModelRequest, ToolSpec, no_images
from agentd.providers.gemini_request import UNSIGNED
from agentd.providers.inline_thinking import inlined
from agentd.providers.mistral_call_ids import NineLetterIds
from agentd.providers.openai_call_ids import OLD_MAX_LENGTH, CallIds
from agentd.providers.openai_chat_dialect import PLAIN, CallIdRule, ChatDialect, EffortForm
from agentd.providers.openai_schema import function_parameters
from agentd.providers.openai_text import NO_OUTPUT, data_url, said, shows_error
from agentd.providers.reasoning import replayed
from agentd.providers.strict_schema import fits_strict

IMAGES_OF_RESULTS = "Images from the tool results above:"
RESULTS_SEEN = "I have seen the results."
"""What stands between results and a user message for servers that want an answer there."""

_MAX_CACHE_KEY = 64
_NO_REASONING = " "
"""The reasoning of an answer that had none, where there has to be some: Kimi takes "" for nothing at all."""


class _Ids(Protocol):
    """From the ids of a session to those that a server takes, the same for a call and its result."""

    def __getitem__(self, id: str, /) -> str: ...


class _SameIds:
    """For servers that take every id."""

    def __getitem__(self, id: str, /) -> str:
        return id


_IDS: dict[CallIdRule, Callable[[], _Ids]] = {
    "any": _SameIds,
    "64": CallIds,
    "40": lambda: CallIds(OLD_MAX_LENGTH),
    "nine": NineLetterIds,
}


def chat_body(request: ModelRequest, dialect: ChatDialect = PLAIN) -> dict[str, Any]:
    """The body of the request. Raises `ProviderError` for an image that the model cannot see."""
    model = request.model
    body: dict[str, Any] = {
        "model": model.name,
        "messages": list(_chat_messages(request, dialect)),
        "stream": dialect.stream,
    }
    if dialect.stream and dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool, dialect) for tool in request.tools]
        if dialect.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = dialect.parallel_tool_calls
    if model.max_output is not None and dialect.max_tokens_field != "none":
        body[dialect.max_tokens_field] = model.max_output
    if request.effort is not None and request.effort in model.efforts:
        body |= _thinking(request.effort, dialect)
    if dialect.cache_markers and "claude" in model.name:
        body["cache_control"] = {"type": "ephemeral"}
    if dialect.prompt_cache_key and request.messages:
        body["prompt_cache_key"] = f"agentd-{request.messages[0].message_id}"[:_MAX_CACHE_KEY]
    return body


def _thinking(effort: Effort, dialect: ChatDialect) -> dict[str, Any]:
    """The fields that ask for an effort. Where there is only on and off, the least effort is off."""
    on = effort != "minimal"
    switch = {"type": "enabled" if on else "disabled"}
    forms: dict[EffortForm, dict[str, Any]] = {
        "reasoning_effort": {"reasoning_effort": effort},
        "reasoning": {"reasoning": {"effort": effort}},
        "thinking": {"thinking": switch},
        "thinking_effort": {"thinking": switch} | ({"reasoning_effort": effort} if on else {}),
        "enable_thinking": {"enable_thinking": on},
        "chat_template_kwargs": {"chat_template_kwargs": {"enable_thinking": on}},
        "none": {},
    }
    return forms[dialect.effort_form]


def _tool(tool: ToolSpec, dialect: ChatDialect) -> dict[str, Any]:
    parameters = function_parameters(tool.parameters)
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
    }
    if dialect.strict_tools and fits_strict(parameters):
        function["strict"] = True
    return {"type": "function", "function": function}


# --- the history ----------------------------------------------------------------------------------


def _chat_messages(request: ModelRequest, dialect: ChatDialect) -> Iterator[dict[str, Any]]:
    """The messages, with a short answer before a user message that may not follow a result."""
    previous = None
    for message in _turns(request, dialect):
        if message["role"] == "user" and previous == "tool" and not dialect.user_after_tool:
            yield {"role": "assistant", "content": RESULTS_SEEN}
        previous = message["role"]
        yield message


def _turns(request: ModelRequest, dialect: ChatDialect) -> Iterator[dict[str, Any]]:
    model, ids = request.model, _IDS[dialect.call_ids]()
    if request.system.strip():
        yield {"role": dialect.system_role if model.reasoning else "system", "content": request.system}
    sees = model.images and dialect.images
    user: list[ContentBlock] = []  # what the next user message will say
    for message in request.messages:
        if isinstance(message, UserMessage):
            user += message.content
            continue
        if isinstance(message, ToolResultMessage):
            yield _tool_message(message, ids)
            user += _images_of(message, first=not user)
            continue
        if (answer := _assistant_message(message, model, dialect, ids)) is not None:
            if user:
                yield _user_message(user, model, sees)
                user = []
            yield answer
    if user:
        yield _user_message(user, model, sees)


def _images_of(result: ToolResultMessage, *, first: bool) -> Iterator[ContentBlock]:
    """The images of a result, for the user message after the last result of the turn."""
    images = [block for block in result.content if isinstance(block, ImageContent)]
    if images and first:
        yield TextContent(text=IMAGES_OF_RESULTS)
    yield from images


def _user_message(blocks: Sequence[ContentBlock], model: Model, sees: bool) -> dict[str, Any]:
    if not any(isinstance(block, ImageContent) for block in blocks):
        return {"role": "user", "content": "\n\n".join(said(block) for block in blocks)}
    if not sees:
        raise no_images(model)
    return {"role": "user", "content": [_part(block) for block in blocks]}


def _part(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        return {"type": "image_url", "image_url": {"url": data_url(block)}}
    return {"type": "text", "text": said(block)}


def _assistant_message(
    message: AssistantMessage, model: Model, dialect: ChatDialect, ids: _Ids
) -> dict[str, Any] | None:
    """The message, or None when it neither says nor calls anything: servers refuse such a turn."""
    text = message.text
    calls = [_call(call, ids) for call in message.calls]
    if not text.strip():
        if not calls:
            return None
        text = ""
    empty = None if dialect.empty_content == "null" else ""
    answer: dict[str, Any] = {"role": "assistant", "content": text or empty}
    if calls:
        answer["tool_calls"] = calls
    kept = message.provider_data or {}
    is_own = message.provider == model.provider and message.model in (model.name, model.id)
    if kept and is_own and dialect.reasoning_replay != "never":
        thinking = "".join(block.text for block in message.content if isinstance(block, ThinkingContent))
        answer |= _thinking_again(kept, thinking, text, dialect)
        for call, extra in zip(calls, kept.get("callExtras", ()), strict=False):
            if isinstance(extra, Mapping):
                call |= {name: value for name, value in extra.items() if name not in call}
        if "extraContent" in kept:
            answer["extra_content"] = kept["extraContent"]
    if calls and dialect.sign_calls:
        calls[0].setdefault("extra_content", {"google": {"thought_signature": UNSIGNED}})
    if calls and dialect.reasoning_replay == "required":
        answer.setdefault("reasoning_content", _NO_REASONING)
    return answer


def _thinking_again(
    kept: Mapping[str, Any], thinking: str, text: str, dialect: ChatDialect
) -> dict[str, Any]:
    """The fields with which an answer's thinking goes back: in the form in which it came, or as demanded."""
    whole = inlined(kept, thinking, text)
    if dialect.reasoning_replay == "required" and thinking:
        beside = {name: value for name, value in replayed(kept, thinking).items() if name != "reasoning"}
        return beside | {"reasoning_content": thinking}
    return replayed(kept, thinking) if whole is None else {"content": whole}


def _call(call: ToolCall, ids: _Ids) -> dict[str, Any]:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": ids[call.id],
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _tool_message(result: ToolResultMessage, ids: _Ids) -> dict[str, Any]:
    text = "\n".join(_texts(result.content))
    if not text.strip():
        has_image = any(isinstance(block, ImageContent) for block in result.content)
        text = "(the image follows below)" if has_image else NO_OUTPUT
    if result.is_error and not shows_error(text):
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": ids[result.tool_call_id], "content": text}


def _texts(blocks: Iterable[ResultBlock]) -> Iterator[str]:
    return (block.text for block in blocks if isinstance(block, TextContent))
