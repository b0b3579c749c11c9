"""A model request as the body of a `POST /responses`.

Nothing is stored at the server: each request has the whole history, as items in the order they came. What a
message's items had beside their text and calls (encrypted reasoning, the phase of a message, fields we do not
know) is in the message's provider data and goes back to the same model of the same provider, and to no other.

What the API insists on: each call has its output; a reasoning item is followed by what it led to, or both are
left out; an id is that of an item that the server stored, so none is sent. It has no flag for a failed tool:
the text has to say it. Servers that check requests with the types of OpenAI's SDK (vLLM) differ in one thing:
they want an id on every item, and any will do.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    ImageContent,
    ResultBlock,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.base import Model, ModelRequest, ToolSpec, no_images
from agentd.providers.openai_call_ids import CallIds
from agentd.providers.openai_responses_output import REPLAY_KEY
from agentd.providers.openai_schema import function_parameters
from agentd.providers.openai_text import NO_OUTPUT, data_url, said, shows_error
from agentd.providers.strict_schema import fits_strict

MIN_OUTPUT = 16
"""The least `max_output_tokens` that the API takes."""
_MAX_CACHE_KEY = 64
_REASONING = ("summary", "content", "encrypted_content")

Item = dict[str, Any]


@dataclass(frozen=True)
class ResponsesDialect:
    """What a server that speaks this API takes. The defaults are OpenAI's own."""

    reasoning: bool = True
    """Send effort and summary, where the model reasons."""
    encrypted_reasoning: bool = True
    """Ask models that reason for their reasoning in encrypted form, without which it cannot go back."""
    reasoning_summary: bool = True
    """Ask models that reason for a summary that can be shown."""
    replay_reasoning: bool = True
    """Send reasoning back."""
    prompt_cache_key: bool = True
    """Name the conversation, so that its requests meet the same cache."""
    output_limit: bool = True
    """Send `max_output_tokens` where the model's limit is known."""
    strict: bool | None = False
    """`strict` of each tool: True where its schema allows it; None leaves the field out."""
    bare_items: bool = False
    """Of what items came with, send back only what makes the item: text, call, reasoning."""
    item_ids: bool = False
    """Send messages and reasoning in full, with an id and a status, to servers that refuse them without."""
    adjacent_calls: bool = False
    """Put the calls of a turn after everything else in it: DeepSeek wants nothing between them."""
    cuts_prompts: bool = False
    """Whether the server leaves out the beginning of a prompt that is too long, without a word (Ollama)."""


OPENAI = ResponsesDialect()


def responses_body(request: ModelRequest, dialect: ResponsesDialect = OPENAI) -> dict[str, Any]:
    """The body of the request. Raises `ProviderError` for an image that the model cannot see."""
    model = request.model
    body: dict[str, Any] = {
        "model": model.name,
        "input": list(_input(request, dialect)),
        "stream": True,
        "store": False,
    }
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(tool, dialect) for tool in request.tools]
    if model.max_output is not None and dialect.output_limit:
        body["max_output_tokens"] = max(MIN_OUTPUT, model.max_output)
    if model.reasoning or model.efforts:
        body |= _reasoning(request, dialect)
    if dialect.prompt_cache_key and request.messages:
        body["prompt_cache_key"] = f"agentd-{request.messages[0].message_id}"[:_MAX_CACHE_KEY]
    return body


def _reasoning(request: ModelRequest, dialect: ResponsesDialect) -> dict[str, Any]:
    """The fields that only a model that reasons takes."""
    fields: dict[str, Any] = {}
    reasoning: dict[str, Any] = {}
    if request.effort is not None and request.effort in request.model.efforts:
        reasoning["effort"] = request.effort
    if dialect.reasoning_summary:
        reasoning["summary"] = "auto"
    if reasoning and dialect.reasoning:
        fields["reasoning"] = reasoning
    if dialect.encrypted_reasoning:
        fields["include"] = ["reasoning.encrypted_content"]
    return fields


def _tool(tool: ToolSpec, dialect: ResponsesDialect) -> Item:
    parameters = function_parameters(tool.parameters)
    item: Item = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
    }
    if dialect.strict is not None:  # OpenAI takes an absent one for true
        item["strict"] = dialect.strict and fits_strict(parameters)
    return item


# --- the history ----------------------------------------------------------------------------------


def _input(request: ModelRequest, dialect: ResponsesDialect) -> Iterator[Item]:
    model, ids = request.model, CallIds()
    user: list[ContentBlock] = []  # what the next user message will say
    for message in request.messages:
        if isinstance(message, UserMessage):
            user += message.content
            continue
        if isinstance(message, ToolResultMessage):
            items = [_call_output(message, model, ids)]
        else:
            items = _answer(message, model, dialect, ids)
        if items and user:
            yield _user_message(user, model)
            user = []
        yield from items
    if user:
        yield _user_message(user, model)


def _user_message(blocks: Sequence[ContentBlock], model: Model) -> Item:
    return {"type": "message", "role": "user", "content": _content(blocks, model)}


def _call_output(result: ToolResultMessage, model: Model, ids: CallIds) -> Item:
    output: str | list[Item]
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    text = "\n".join(texts)
    unmarked = result.is_error and not shows_error(text)
    if len(texts) < len(result.content):
        output = _content(result.content, model)
        if unmarked:
            output.insert(0, {"type": "input_text", "text": "Error:"})
    else:
        output = text if text.strip() else NO_OUTPUT
        if unmarked:
            output = f"Error: {output}"
    return {"type": "function_call_output", "call_id": ids[result.tool_call_id], "output": output}


def _content(blocks: Iterable[ContentBlock | ResultBlock], model: Model) -> list[Item]:
    parts: list[Item] = []
    for block in blocks:
        if not isinstance(block, ImageContent):
            parts.append({"type": "input_text", "text": said(block)})
        elif model.images:
            parts.append({"type": "input_image", "image_url": data_url(block), "detail": "auto"})
        else:
            raise no_images(model)
    return parts


def _answer(message: AssistantMessage, model: Model, dialect: ResponsesDialect, ids: CallIds) -> list[Item]:
    """The items of what a model said; none where it neither says nor calls anything."""
    items = _as_it_came(message, model, dialect, ids)
    if items is None:
        items = [
            _spoken({}, block.text) if isinstance(block, TextContent) else _call({}, block, ids)
            for block in message.content
            if isinstance(block, ToolCall) or (isinstance(block, TextContent) and block.text.strip())
        ]
    if dialect.adjacent_calls:
        items.sort(key=lambda item: item["type"] == "function_call")
    if dialect.item_ids:
        _complete(items, message.message_id)
    return items


def _complete(items: Sequence[Item], message_id: str) -> None:
    """Give messages all that the API's own have; ids are made up where another model's had none of use."""
    for number, item in enumerate(items):
        if item["type"] == "message":
            item.setdefault("id", f"msg_{message_id}_{number}")
            item["status"] = "completed"
            for part in item["content"]:
                part["annotations"] = []


def _as_it_came(
    message: AssistantMessage, model: Model, dialect: ResponsesDialect, ids: CallIds
) -> list[Item] | None:
    """The items as this very model sent them; None where it was another, or where they fit no more."""
    kept = (message.provider_data or {}).get(REPLAY_KEY)
    same = message.provider == model.provider and message.model in (model.name, model.id)
    if not same or not isinstance(kept, list):
        return None
    texts = [block.text for block in message.content if isinstance(block, TextContent) and block.text.strip()]
    kinds = [item.get("type") for item in kept]
    if kinds.count("message") != len(texts) or kinds.count("function_call") != len(message.calls):
        return None
    items: list[Item] = []
    led: list[Item] = []  # reasoning whose following item is not there yet
    said_next, called_next = iter(texts), iter(message.calls)
    for item in kept:
        fields = {key: item[key] for key in item if _goes_back(key, item["type"], dialect)}
        if fields["type"] == "reasoning":
            led += [{"summary": []} | fields] if dialect.replay_reasoning else []
            continue
        if fields["type"] == "message":
            items += [*led, _spoken(fields, next(said_next))]
        elif fields["type"] == "function_call":
            items += [*led, _call(fields, next(called_next), ids)]
        led = []
    return items


def _goes_back(key: str, type: str, dialect: ResponsesDialect) -> bool:
    """Whether a field that an item came with goes back with it."""
    if key == "id":
        return dialect.item_ids
    return not dialect.bare_items or key == "type" or (type == "reasoning" and key in _REASONING)


def _spoken(fields: Mapping[str, Any], text: str) -> Item:
    content = [{"type": "output_text", "text": text}]
    return {**fields, "type": "message", "role": "assistant", "content": content}


def _call(fields: Mapping[str, Any], call: ToolCall, ids: CallIds) -> Item:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        **fields,
        "type": "function_call",
        "call_id": ids[call.id],
        "name": call.name,
        "arguments": arguments,
    }
