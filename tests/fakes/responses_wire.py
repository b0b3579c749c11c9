"""OpenAI's Responses format from the server's side: scripted responses as streams, and faults of requests."""

import base64
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fakes.image_faults import openai_faults
from fakes.openai_wire import CODE_OF_KIND, schema_faults

FIELDS = {
    "model", "input", "instructions", "stream", "store", "tools", "max_output_tokens", "reasoning", "include",
    "prompt_cache_key",
}  # fmt: skip
FIELDS_OF_TOOL = {"type", "name", "description", "parameters", "strict"}
EFFORTS = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
REASONS = {"length": "max_output_tokens", "refusal": "content_filter"}
ENCRYPTED = "reasoning.encrypted_content"
FIELDS_OF_ITEM = {
    "message": {"type", "role", "content", "phase", "status", "id"},
    "function_call": {"type", "call_id", "name", "arguments", "namespace", "id"},
    "function_call_output": {"type", "call_id", "output"},
    "reasoning": {"type", "summary", "encrypted_content", "content", "id"},
}

Item = dict[str, Any]


class ResponsesWire:
    """One server's memory: with `store: false` it has none of items, but it knows its own seal.

    `typed` servers check requests with the types of OpenAI's SDK and do not seal reasoning (vLLM); `adjacent`
    ones want nothing between the calls of a turn (DeepSeek); `reasons` says whether the models do.
    """

    def __init__(self, *, typed: bool = False, adjacent: bool = False, reasons: bool = True) -> None:
        self._typed = typed
        self._adjacent = adjacent
        self._reasons = reasons
        self._numbers = itertools.count(1)

    # --- requests ---------------------------------------------------------------------------------

    def fault_of(self, body: Any) -> str | None:
        """The first thing that a strict server would refuse in a request, or None."""
        if not isinstance(body, dict) or body.get("stream") is not True or not body.get("model"):
            return "the body is no streamed request for a model"
        if not isinstance(body.get("input"), list) or not body["input"]:
            return "input is empty"
        try:
            json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return "a lone surrogate"
        items = body["input"]
        faults = (
            *self._field_faults(body),
            *_tool_faults(body),
            *_item_faults(items),
            *openai_faults(items),
            *_pairing_faults(items),
            *(_type_faults(items) if self._typed else self._memory_faults(items, body["model"])),
            *(_adjacency_faults(items) if self._adjacent else ()),
        )
        return faults[0] if faults else None

    def _field_faults(self, body: Mapping[str, Any]) -> Iterator[str]:
        if unknown := sorted(set(body) - FIELDS):
            yield f"Unknown parameter: '{unknown[0]}'"
        if body.get("store") is not False:
            yield "store is not false"
        if body.get("max_output_tokens", 16) < 16:
            yield "Invalid 'max_output_tokens': integer below minimum value"
        if len(body.get("prompt_cache_key", "")) > 64:
            yield "prompt_cache_key is too long"
        if not self._reasons:
            if ENCRYPTED in body.get("include", ()):
                yield "Encrypted content is not supported with this model."
            if "reasoning" in body:
                yield "Unsupported parameter: 'reasoning' is not supported with this model."
        if body.get("reasoning", {}).get("effort", "low") not in EFFORTS:
            yield "unknown reasoning.effort"

    def _memory_faults(self, items: Sequence[Item], model: str) -> Iterator[str]:
        for number, item in enumerate(items):
            if "id" in item:
                yield (
                    f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to "
                    "false."
                )
            sealed = item.get("encrypted_content")
            if item.get("type") == "reasoning" and not sealed and not item.get("content"):
                yield f"input[{number}]: a reasoning item without any reasoning"
            if sealed is not None and not sealed.startswith(seal(model, "")):
                yield f"The encrypted content for item {number} could not be verified."

    # --- answers ----------------------------------------------------------------------------------

    def events_of(self, response: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[bytes]:
        """A scripted response as the events of a stream."""
        yield _event("response.created", response={"status": "in_progress", "output": []})
        size, output = response.get("chunkSize", 16), []
        for at, block in enumerate(response.get("content", ())):
            item = self._item(block, request)
            output.append(item)
            yield from _events_of_item(at, item, size)
        if failure := response.get("error"):
            yield _event("error", code=CODE_OF_KIND.get(failure["kind"]), message=failure["message"])
            return
        if not response.get("hang"):
            yield _terminal(response, output)

    def _item(self, block: Mapping[str, Any], request: Mapping[str, Any]) -> Item:
        number = next(self._numbers)
        if block["type"] == "thinking":
            item: Item = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
            if self._typed:
                item["content"] = [{"type": "reasoning_text", "text": block["text"]}]
            else:
                item["summary"].append({"type": "summary_text", "text": block["text"]})
            if ENCRYPTED in request.get("include", ()) and not self._typed:
                item["encrypted_content"] = seal(request["model"], block["text"])
        elif block["type"] == "text":
            part = {"type": "output_text", "text": block["text"], "annotations": []}
            item = {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
                "phase": block.get("phase"),
            }
        else:
            arguments = block.get("rawArguments")
            if arguments is None:
                arguments = json.dumps(block.get("arguments", {}), ensure_ascii=False)
            item = {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": block.get("id", f"call_{number}"),
                "name": block["name"],
                "arguments": arguments,
                "status": "completed",
            }
        return item


def seal(model: str, text: str) -> str:
    """What only this server can open, for one of its models."""
    return base64.b64encode(f"sealed for {model}:".encode()).decode().rstrip("=") + text.encode().hex()


# --- faults ---------------------------------------------------------------------------------------


def _tool_faults(body: Mapping[str, Any]) -> Iterator[str]:
    if body.get("tools") == []:
        yield "tools is empty"
    for number, tool in enumerate(body.get("tools", ())):
        if set(tool) != FIELDS_OF_TOOL or not isinstance(tool["strict"], bool):
            yield f"tools[{number}]: a tool has exactly {sorted(FIELDS_OF_TOOL)}"
        elif not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool["name"]):
            yield f"Invalid 'tools[{number}].name': string does not match pattern"
        elif tool["parameters"].get("type") != "object" or "properties" not in tool["parameters"]:
            yield f"tools[{number}]: parameters are no object with properties"
        elif fault := next(schema_faults(tool["name"], tool["parameters"]), None):
            yield fault
        elif tool["strict"] and tool["parameters"].get("additionalProperties") is not False:
            yield f"Invalid schema for function '{tool['name']}': 'additionalProperties' must be false"


def _item_faults(items: Sequence[Item]) -> Iterator[str]:
    for number, item in enumerate(items):
        type = item.get("type", "message")
        if type not in FIELDS_OF_ITEM:
            yield f"Invalid value: '{type}' in input[{number}]"
        elif unknown := sorted(set(item) - FIELDS_OF_ITEM[type]):
            yield f"Unknown parameter: 'input[{number}].{unknown[0]}'"
        elif type == "message":
            yield from _message_faults(number, item)
        elif type == "reasoning" and not isinstance(item.get("summary"), list):
            yield f"Missing required parameter: 'input[{number}].summary'"
        elif type == "function_call" and not _is_json_object(item.get("arguments")):
            yield f"input[{number}]: arguments are no JSON text of an object"
        elif type == "function_call" and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", item.get("name", "")):
            yield f"Invalid 'input[{number}].name'"
        elif type == "function_call_output":
            yield from _content_faults(number, item.get("output"), "input_text")
    for number, item in enumerate(items):
        if item.get("type", "").startswith("function_call") and not 0 < len(item.get("call_id", "")) <= 64:
            yield f"Invalid 'input[{number}].call_id': string too long. Expected at most 64"


def _message_faults(number: int, item: Item) -> Iterator[str]:
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"Invalid value: '{role}' in input[{number}].role"
    elif "phase" in item and item["phase"] not in ("commentary", "final_answer"):
        yield f"Invalid value: input[{number}].phase"
    yield from _content_faults(
        number, item.get("content"), "output_text" if role == "assistant" else "input_text"
    )


def _content_faults(number: int, content: Any, text_type: str) -> Iterator[str]:
    if isinstance(content, str):
        content = [{"type": text_type, "text": content}]
    if not isinstance(content, list) or not content:
        yield f"input[{number}]: the content is empty"
        return
    for part in content:
        if part.get("type") == "input_image" and text_type == "input_text":
            if not str(part.get("image_url")).startswith("data:image/"):
                yield f"input[{number}]: image_url is no data URL"
        elif part.get("type") != text_type:
            yield f"Invalid value: '{part.get('type')}'. Supported values are: '{text_type}'"
        elif not part.get("text", "").strip():
            yield f"input[{number}]: a text is blank"


def _pairing_faults(items: Sequence[Item]) -> Iterator[str]:
    waiting: set[str] = set()
    called: set[str] = set()
    for number, item in enumerate(items):
        type = item.get("type", "message")
        following = items[number + 1].get("type", "message") if number + 1 < len(items) else None
        is_ours = following == "message" and items[number + 1].get("role") != "assistant"
        if type == "reasoning" and (following in (None, "function_call_output") or is_ours):
            yield "Item of type 'reasoning' was provided without its required following item."
        elif type == "function_call":
            if item["call_id"] in called:
                yield f"call_id {item['call_id']} is used twice"
            called.add(item["call_id"])
            waiting.add(item["call_id"])
        elif type == "function_call_output":
            if item["call_id"] not in waiting:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            waiting.discard(item["call_id"])
        elif type == "message" and item.get("role") != "assistant" and waiting:
            yield f"No tool output found for function call {min(waiting)}."
    if waiting:
        yield f"No tool output found for function call {min(waiting)}."
    if items[-1].get("role") == "assistant":
        yield "the last item is from the assistant"


def _type_faults(items: Sequence[Item]) -> Iterator[str]:
    """What the SDK's types miss: `ResponseOutputMessageParam`, `ResponseReasoningItemParam`."""
    for number, item in enumerate(items):
        missing: set[str] = set()
        if item.get("role") == "assistant" and not isinstance(item["content"], str):
            parts = (set(part) for part in item["content"])
            missing = {"id", "status"} - set(item)
            missing |= {"annotations"}.difference(*parts)
        elif item.get("type") == "reasoning":
            missing = {"id", "summary"} - set(item)
        if missing:
            yield f"40 validation errors: input.{number}: Field required: {sorted(missing)}"


def _adjacency_faults(items: Sequence[Item]) -> Iterator[str]:
    open_calls = 0
    for item in items:
        type = item.get("type", "message")
        open_calls += (type == "function_call") - (type == "function_call_output")
        if open_calls and not type.startswith("function_call"):
            yield "No tool output found for tool call: an item lies between a call and its output"


def _is_json_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text, parse_constant=_no_number), dict)
    except ValueError:
        return False


def _no_number(word: str) -> None:
    raise ValueError(word)  # Python reads NaN and Infinity, JSON has neither


# --- events ---------------------------------------------------------------------------------------


def _events_of_item(at: int, item: Item, size: int) -> Iterator[bytes]:
    place = {"output_index": at, "item_id": item["id"]}
    begun = item | {"status": "in_progress"}
    if item["type"] == "function_call":
        yield _event("response.output_item.added", output_index=at, item=begun | {"arguments": ""})
        for piece in _pieces(item["arguments"], size):
            yield _event("response.function_call_arguments.delta", delta=piece, **place)
        yield _event("response.function_call_arguments.done", arguments=item["arguments"], **place)
    elif item["type"] == "message":
        yield _event("response.output_item.added", output_index=at, item=begun | {"content": []})
        text = item["content"][0]["text"]
        for piece in _pieces(text, size):
            yield _event("response.output_text.delta", content_index=0, delta=piece, **place)
        yield _event("response.output_text.done", content_index=0, text=text, **place)
    elif item["summary"]:
        partial = begun | {"summary": [], "encrypted_content": "partial"}
        yield _event("response.output_item.added", output_index=at, item=partial)
        text = item["summary"][0]["text"]
        for piece in _pieces(text, size):
            yield _event("response.reasoning_summary_text.delta", summary_index=0, delta=piece, **place)
        yield _event("response.reasoning_summary_text.done", summary_index=0, text=text, **place)
    else:
        yield _event("response.output_item.added", output_index=at, item=begun | {"content": []})
        for piece in _pieces(item["content"][0]["text"], size):
            yield _event("response.reasoning_text.delta", content_index=0, delta=piece, **place)
    yield _event("response.output_item.done", output_index=at, item=item)


def _terminal(response: Mapping[str, Any], output: Sequence[Item]) -> bytes:
    reason = REASONS.get(response.get("stopReason", ""))
    status = "incomplete" if reason else "completed"
    whole: Item = {"status": status, "output": list(output), "error": None, "incomplete_details": None}
    if reason:
        whole["incomplete_details"] = {"reason": reason}
    if usage := response.get("usage"):
        whole["usage"] = _usage(usage)
    return _event(f"response.{status}", response=whole)


def _usage(usage: Mapping[str, int]) -> dict[str, Any]:
    read, written, output = usage.get("cacheRead", 0), usage.get("cacheWrite", 0), usage.get("output", 0)
    count = usage.get("input", 0) + read + written
    return {
        "input_tokens": count,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
        "total_tokens": count + output,
    }


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _event(type: str, **fields: Any) -> bytes:
    data = json.dumps({"type": type} | fields, ensure_ascii=False)
    return f"event: {type}\ndata: {data}\n\n".encode()
