"""The rules of a model server that forgives nothing, spelled out over plain JSON.

Written from what servers document, without a look at how requests are made: it shares no code with the
projection or with the scripted provider.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agentd.protocol.messages import Message


def faults(messages: Sequence[Message]) -> list[str]:
    """Every rule that these messages break, in words."""
    plain = [message.model_dump(by_alias=True) for message in messages]
    return [*_order(plain), *_pairs(plain), *(fault for each in plain for fault in _content(each))]


def _order(plain: list[dict[str, Any]]) -> Iterator[str]:
    if not plain:
        return  # nothing to say is nothing to send
    if plain[0]["role"] != "user":
        yield "does not begin with the user"
    if plain[-1]["role"] not in ("user", "tool_result"):
        yield "ends with the assistant"


def _pairs(plain: list[dict[str, Any]]) -> Iterator[str]:
    used: set[str] = set()
    place = 0
    while place < len(plain):
        message = plain[place]
        place += 1
        if message["role"] == "tool_result":
            yield f"a result of {message['toolCallId']} that belongs to no call"
            continue
        wanted = [block["id"] for block in message["content"] if block["type"] == "tool_call"]
        if used.intersection(wanted) or len(set(wanted)) < len(wanted):
            yield f"a call id is used twice: {wanted}"
        used.update(wanted)
        given = [each.get("toolCallId") for each in plain[place : place + len(wanted)]]
        roles = {each["role"] for each in plain[place : place + len(wanted)]}
        if given != wanted or roles - {"tool_result"}:
            yield f"calls {wanted} are followed by {given}"
        place += len(wanted)


def _content(message: dict[str, Any]) -> Iterator[str]:
    blocks = message["content"]
    if not blocks:
        yield f"a message of {message['role']} is empty"
    if message["role"] == "assistant":
        if message["stopReason"] in ("error", "aborted"):
            yield "an answer that failed"
        if all(block["type"] == "thinking" for block in blocks):
            yield "an answer of mere thinking"
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield "a blank text"
        if block["type"] == "tool_call":
            if not block["name"]:
                yield "a call without a name"
            if not isinstance(block["arguments"], dict):
                yield "arguments that are no object"
        if block["type"] in ("resource", "command"):
            yield f"a {block['type']} block, which no server knows"
    try:
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        yield f"no JSON in UTF-8: {error}"
