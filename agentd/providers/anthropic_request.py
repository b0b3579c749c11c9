"""A model request as the body of a `POST /v1/messages`.

What the API insists on: `max_tokens`; all results of a turn at the beginning of the one user message after
it; calls at the end of their message; no blank text; ids of letters, digits, "_" and "-"; thinking as it was,
for the model that thought it. Sampling is never set: the newer models refuse it.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    ImageContent,
    Message,
    ResultBlock,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from agentd.providers.anthropic_blocks import blocks_of
from agentd.providers.anthropic_models import (
    BINDING_CONTROLS,
    BUDGETS,
    MIN_BUDGET,
    Dialect,
    Generation,
    generation_of,
    nearest_effort,
)
from agentd.providers.anthropic_schema import input_schema
from agentd.providers.base import Model, ModelRequest, ToolSpec, no_images

_MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_OTHER_NAMES = {"image/jpg": "image/jpeg"}
_THOUGHTS = ("thinking", "redacted_thinking")
_ODD_IN_ID = re.compile(r"[^A-Za-z0-9_-]")
_MARKER = {"type": "ephemeral"}
_EMPTY_RESULT = "(no output)"
_MAX_MARKERS = 4

Body = dict[str, Any]


def messages_body(request: ModelRequest, dialect: Dialect, *, thoughts: bool = True) -> Body:
    """The body of the request, with the thinking of earlier turns unless `thoughts` is false.

    Raises `ProviderError` for an image that the model cannot see.
    """
    generation = generation_of(request.model, dialect)
    turns = _turns(request, dialect)
    if not thoughts:
        turns = _without_thoughts(turns)
    thinking = _thinking(request, generation)
    checks_thoughts = generation.thinking == "budget" and not dialect.unsigned_thinking
    if checks_thoughts and (not thinking or _left_off_without_thinking(turns)):
        thinking = {}
        turns = _without_thoughts(turns)
    body: Body = {
        "model": request.model.name,
        "max_tokens": generation.max_output,
        "stream": True,
        "messages": turns,
        **thinking,
    }
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system}]
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    for block in _worth_caching(body)[: min(dialect.cache_markers, _MAX_MARKERS)]:
        block["cache_control"] = _MARKER
    return body


def betas_of(body: Body, dialect: Dialect) -> tuple[str, ...]:
    """The betas that a body needs."""
    binds = "block_binding" in body.get("thinking", {})
    return (*dialect.betas, *([BINDING_CONTROLS] if binds and BINDING_CONTROLS not in dialect.betas else []))


def shows_thoughts(body: Body) -> bool:
    """Whether there is thinking in the messages of a body."""
    return any(block["type"] in _THOUGHTS for turn in body["messages"] for block in turn["content"])


def _tool(tool: ToolSpec) -> Body:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": input_schema(tool.parameters),
    }


# --- thinking -------------------------------------------------------------------------------------


def _thinking(request: ModelRequest, generation: Generation) -> Body:
    """The fields that ask for thinking; none without an effort, for the server to do as it does."""
    fields: Body = {}
    if request.effort is None and not generation.binds_thinking:
        return fields
    if generation.thinking == "adaptive":
        fields["thinking"] = {"type": "adaptive", "display": "summarized"}
        if generation.binds_thinking:
            fields["thinking"]["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        if request.effort is not None:
            fields["output_config"] = {"effort": nearest_effort(request.effort, generation.efforts)}
    elif generation.thinking == "budget" and request.effort is not None:
        effort = nearest_effort(request.effort, generation.efforts)
        # Thinking counts as output: half of the limit is left for the answer.
        budget = min(BUDGETS[effort], generation.max_output // 2)
        if budget >= MIN_BUDGET:
            fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return fields


def _left_off_without_thinking(turns: list[Body]) -> bool:
    """Whether the last answer calls tools and did not think first: with a budget, none may go on from there.

    So it is after a change of model or effort in the middle of a tool loop.
    """
    last: list[Body] = next((turn["content"] for turn in reversed(turns) if turn["role"] == "assistant"), [])
    return bool(last) and last[-1]["type"] == "tool_use" and last[0]["type"] not in _THOUGHTS


def _without_thoughts(turns: list[Body]) -> list[Body]:
    """The same without thinking, which a model that is not asked to think refuses to see."""
    for turn in turns:
        turn["content"] = [block for block in turn["content"] if block["type"] not in _THOUGHTS]
    return [turn for turn in turns if turn["content"]]


# --- messages -------------------------------------------------------------------------------------


def _turns(request: ModelRequest, dialect: Dialect) -> list[Body]:
    """The messages, neighbours of one role merged."""
    turns: list[Body] = []
    for role, content in _contents(request.messages, request.model, dialect):
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += content
        elif content:
            turns.append({"role": role, "content": content})
    return turns


def _contents(
    messages: Iterable[Message], model: Model, dialect: Dialect
) -> Iterator[tuple[str, list[Body]]]:
    ids = _Ids()
    after_results: list[Body] = []  # what only a user can show, once all results of the turn are there
    for message in messages:
        if isinstance(message, ToolResultMessage):
            result, beside = _result(message, model)
            yield "user", [{"tool_use_id": ids.of(message.tool_call_id)} | result]
            after_results += beside
            continue
        if after_results:
            yield "user", after_results
            after_results = []
        if isinstance(message, UserMessage):
            yield "user", list(_user_blocks(message.content, model))
        elif message.stop_reason != "refusal" or message.calls:
            # A refused turn makes the model refuse again; a call stays, because its result does.
            blocks = blocks_of(message, _kept(message, model), unsigned=dialect.unsigned_thinking)
            yield "assistant", [_with_valid_id(block, ids) for block in blocks]
    yield "user", after_results


def _user_blocks(blocks: Iterable[ContentBlock | ResultBlock], model: Model) -> Iterator[Body]:
    for block in blocks:
        if isinstance(block, ImageContent):
            yield _image(block, model)
        elif (text := _said(block)).strip():
            yield {"type": "text", "text": text}


def _said(block: ContentBlock | ResultBlock) -> str:
    """A block in words. The loop turns resources and commands into text; here it is for completeness."""
    if isinstance(block, TextContent):
        return block.text
    if block.type == "resource":
        return f"[{block.uri}]" + (f"\n{block.text}" if block.text else "")
    if block.type == "command":
        return f"/{block.name} {block.arguments}".rstrip()
    return f"[image {block.mime_type}]"


def _image(image: ImageContent, model: Model) -> Body:
    """An image, or its mention where the API takes none of its type: a refused one would be sent for ever."""
    if not model.images:
        raise no_images(model)
    media_type = image.mime_type.lower()
    media_type = _OTHER_NAMES.get(media_type, media_type)
    if media_type not in _MEDIA_TYPES:
        return {"type": "text", "text": f"[an image of type {image.mime_type}, which cannot be shown here]"}
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": image.data}}


def _result(result: ToolResultMessage, model: Model) -> tuple[Body, list[Body]]:
    """The result, without its id, and the images that it cannot hold: a failed one takes only text."""
    content = list(_user_blocks(result.content, model))
    beside: list[Body] = []
    if result.is_error:
        beside = [block for block in content if block["type"] == "image"]
        content = [block for block in content if block["type"] != "image"]
    block: Body = {
        "type": "tool_result",
        "content": content or [{"type": "text", "text": _EMPTY_RESULT}],
    }
    if result.is_error:
        block["is_error"] = True
    return block, beside


def _kept(message: AssistantMessage, model: Model) -> Any:
    """The blocks that were kept of an answer, where this model gave it."""
    if message.provider != model.provider or message.model not in (model.name, model.id):
        return None
    return (message.provider_data or {}).get("blocks")


def _with_valid_id(block: Body, ids: "_Ids") -> Body:
    return block | {"id": ids.of(block["id"])} if block["type"] == "tool_use" else block


class _Ids:
    """Call ids in the API's alphabet, each as different from the others as it was."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, id: str) -> str:
        """The id under which a call and its result go out."""
        if id not in self._ids:
            base = wanted = _ODD_IN_ID.sub("_", id)
            count = 1
            while wanted in self._taken:
                count += 1
                wanted = f"{base}_{count}"
            self._ids[id] = wanted
            self._taken.add(wanted)
        return self._ids[id]


# --- caching --------------------------------------------------------------------------------------


def _worth_caching(body: Body) -> list[Body]:
    """The blocks to mark, the most useful first.

    A marker covers all before it. The last user block covers the whole request, for the next one to go on
    from; the last block of the user message before is where the request before this one left its marker,
    which the server may not find by itself past many blocks. System and tools serve other conversations too.
    """
    users = [turn["content"][-1] for turn in body["messages"] if turn["role"] == "user"]
    system, tools = body.get("system", [None])[-1], body.get("tools", [None])[-1]
    wanted = (users[-1] if users else None, system, users[-2] if len(users) > 1 else None, tools)
    return [block for block in wanted if block is not None]
