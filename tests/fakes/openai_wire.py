"""OpenAI's chat format from the server's side: scripted responses as streams, and faults of requests."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from fakes.image_faults import openai_faults

STATUS_OF_KIND = {
    "auth": 401, "rate_limit": 429, "overloaded": 503, "context_overflow": 400, "bad_request": 400,
    "refusal": 400, "quota": 429, "timeout": 504, "server": 500,
}  # fmt: skip
CODE_OF_KIND = {
    "context_overflow": "context_length_exceeded", "quota": "insufficient_quota", "refusal": "content_filter",
}  # fmt: skip
FINISH = {"stop": "stop", "length": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NINE = re.compile(r"[A-Za-z0-9]{9}")
FIELDS = {"model", "messages", "stream", "stream_options", "tools", "max_tokens", "reasoning_effort"}


def chat_events(response: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[bytes]:
    """A scripted response as the events of a stream; the last usage only where the request asks for it."""
    content = response.get("content", ())
    position = 0
    for block in content:
        for delta in _deltas(block, position, response.get("chunkSize", 16)):
            yield _event({"index": 0, "delta": delta, "finish_reason": None})
        position += block["type"] == "tool_call"
    if failure := response.get("error"):
        yield b"data: " + json.dumps({"error": _error_object(failure)}).encode() + b"\n\n"
        return
    if response.get("hang"):
        return
    stop = response.get("stopReason") or ("tool_use" if position else "stop")
    yield _event({"index": 0, "delta": {}, "finish_reason": FINISH[stop]})
    usage = response.get("usage")
    if usage and (request.get("stream_options") or {}).get("include_usage"):
        yield _event(None, _usage(usage))
    yield b"data: [DONE]\n\n"


def http_error(failure: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """A scripted error as status, headers and body of an HTTP answer."""
    status = failure.get("status") or STATUS_OF_KIND.get(failure["kind"], 500)
    headers = {"content-type": "application/json"}
    if "retryAfterMs" in failure:
        headers["retry-after-ms"] = str(failure["retryAfterMs"])
    return status, headers, json.dumps({"error": _error_object(failure)}).encode()


def wire_fault(body: Any) -> str | None:
    """The first thing that a strict server would refuse in a request, or None."""
    if not isinstance(body, dict) or body.get("stream") is not True or not body.get("model"):
        return "the body is no streamed request for a model"
    if unknown := sorted(set(body) - FIELDS):
        return f"unknown field {unknown[0]}"
    if body.get("tools") == []:
        return "tools is empty"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "there are no messages"
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "a lone surrogate"
    if messages[0].get("role") == "system":
        messages = messages[1:]
    faults = (
        *_tool_faults(body),
        *_call_faults(messages),
        *_order_faults(messages),
        *_content_faults(messages),
        *openai_faults(messages),
    )
    return faults[0] if faults else None


def mistral_fault(body: Any) -> str | None:
    """The first thing that Mistral's server would refuse in a request, or None."""
    if (fault := wire_fault(body)) is not None:
        return fault
    roles = [message["role"] for message in body["messages"]]
    if ("tool", "user") in pairwise(roles):
        return "Unexpected role 'user' after role 'tool'"
    ids = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    for id in ids:
        if not NINE.fullmatch(id):
            return f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
    return None


def _tool_faults(body: Mapping[str, Any]) -> Iterator[str]:
    names = [tool.get("function", {}).get("name", "") for tool in body.get("tools") or ()]
    for name in names:
        if not NAME.fullmatch(name):
            yield f"tools: the name {name!r} does not match '{NAME.pattern}'"
    if len(set(names)) < len(names):
        yield "tools: a name is there twice"
    for name, tool in zip(names, body.get("tools") or (), strict=True):
        yield from schema_faults(name, tool.get("function", {}).get("parameters", {}))


def schema_faults(name: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """What OpenAI's servers refuse in a tool's schema, outside of strict mode too."""
    where = f"Invalid schema for function '{name}'"
    if parameters.get("type") != "object" or any(
        word in parameters for word in ("oneOf", "anyOf", "allOf", "enum", "not")
    ):
        yield (
            f"{where}: schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at "
            "the top level."
        )
    if _lacks_items(parameters):
        yield f"{where}: array schema missing items."


def _lacks_items(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(map(_lacks_items, schema))
    if not isinstance(schema, dict):
        return False
    inner = (value for word, value in schema.items() if word not in ("enum", "const", "default"))
    return (schema.get("type") == "array" and "items" not in schema) or any(map(_lacks_items, inner))


def _order_faults(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    roles = [message.get("role") for message in messages]
    if not roles or roles[0] != "user":
        yield "the first message is not from the user"
    elif roles[-1] == "assistant":
        yield "the last message is from the assistant"
    for number, role in enumerate(roles):
        if role not in ("user", "assistant", "tool"):
            yield f"messages[{number}]: unexpected role {role}"
        if number and role == roles[number - 1] and role != "tool":
            yield f"messages[{number}]: {role} follows {role}"


def _call_faults(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message.get("role") == "tool":
            if not waiting or message.get("tool_call_id") != waiting.pop(0):
                yield f"messages[{number}]: a tool result without its call, or out of order"
            continue
        if waiting:
            yield f"messages[{number}]: tool call {waiting[0]} has no result right after it"
        waiting = []
        if message.get("tool_calls") == []:
            yield f"messages[{number}]: tool_calls is empty"
        for call in message.get("tool_calls") or ():
            if not isinstance(call.get("id"), str) or not call["id"] or call["id"] in seen:
                yield f"messages[{number}]: call id {call.get('id')!r} is missing or used twice"
            if not _is_json_object(call["function"].get("arguments")):
                yield f"messages[{number}]: arguments are no JSON text of an object"
            name = call["function"].get("name", "")
            if not name:
                yield f"messages[{number}]: a call has no name"
            elif not NAME.fullmatch(name):
                yield f"messages[{number}]: the name of a call does not match '{NAME.pattern}'"
            seen.add(call.get("id"))
            waiting.append(call.get("id"))
    if waiting:
        yield f"tool call {waiting[0]} has no result"


def _content_faults(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, message in enumerate(messages):
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, list):
            blank = not content or any(
                part.get("type") == "text" and not part["text"].strip() for part in content
            )
        elif not content:
            blank = not message.get("tool_calls")
        else:
            blank = not isinstance(content, str) or not content.strip()
        if blank:
            yield f"messages[{number}]: the content is blank"


def _is_json_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text, parse_constant=_no_number), dict)
    except ValueError:
        return False


def _no_number(word: str) -> None:
    raise ValueError(word)  # Python reads NaN and Infinity, JSON has neither


def _deltas(block: Mapping[str, Any], position: int, size: int) -> Iterator[dict[str, Any]]:
    if block["type"] != "tool_call":
        name = "content" if block["type"] == "text" else "reasoning_content"
        for piece in _pieces(block["text"], size):
            yield {name: piece}
        return
    text = block.get("rawArguments")
    if text is None:
        text = json.dumps(block.get("arguments", {}), ensure_ascii=False)
    function = {"name": block["name"], "arguments": ""}
    first: dict[str, Any] = {"index": position, "type": "function", "function": function}
    if "id" in block:
        first["id"] = block["id"]
    yield {"tool_calls": [first]}
    for piece in _pieces(text, size):
        yield {"tool_calls": [{"index": position, "function": {"arguments": piece}}]}


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _event(choice: Mapping[str, Any] | None, usage: Mapping[str, Any] | None = None) -> bytes:
    chunk: dict[str, Any] = {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "choices": [] if choice is None else [choice],
    }
    if usage is not None:
        chunk["usage"] = usage
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def _usage(usage: Mapping[str, int]) -> dict[str, Any]:
    read, written, output = usage.get("cacheRead", 0), usage.get("cacheWrite", 0), usage.get("output", 0)
    prompt = usage.get("input", 0) + read + written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
    }


def _error_object(failure: Mapping[str, Any]) -> dict[str, Any]:
    code = CODE_OF_KIND.get(failure["kind"])
    return {"message": failure["message"], "type": f"{failure['kind']}_error", "code": code}
