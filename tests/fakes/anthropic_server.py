"""Anthropic's Messages API from the server's side, as strict as the real one.

    with AnthropicServer([{"content": [{"type": "text", "text": "Hello"}]}]) as server:
        ...  # point a provider of api "anthropic" at server.base_url

Scripts, `Raw` answers and waiting are those of `ModelServer`, with two things more in a scripted response: a
thinking block is signed (`"signature": ""` sends none), and `"stopReason"` may be a word of this API. What
the real server refuses with a 400 (`anthropic_faults`) is refused here, and is in `server.faults`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fakes.anthropic_faults import request_fault, sign
from fakes.model_server import ModelServer, Raw, Recorded, json_answer
from fakes.openai_wire import STATUS_OF_KIND

STOPS = {"stop": "end_turn", "length": "max_tokens"}
ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
    504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


class AnthropicServer(ModelServer):
    """A `ModelServer` that speaks the Messages API."""

    path = "/v1/messages"

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fault_of(self, request: Recorded) -> str | None:
        return request_fault(request.headers, request.body)

    def events(self, response: Mapping[str, Any], request: Recorded) -> Iterator[bytes]:
        return message_events(response, request.body)

    def failure(self, failure: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
        status = _status(failure)
        headers = {"content-type": "application/json", "request-id": "req_fake"}
        if "retryAfterMs" in failure:
            headers["retry-after-ms"] = str(failure["retryAfterMs"])
        return status, headers, json.dumps(_error(status, failure["message"])).encode()

    def refusal(self, status: int, message: str) -> Raw:
        return json_answer(_error(status, message), status)


# --- answers --------------------------------------------------------------------------------------


def stream(*events: Mapping[str, Any], stop: bool = True) -> bytes:
    """Events as bytes, named by their type, with a `message_stop` at the end."""
    ended = [*events, {"type": "message_stop"}] if stop else events
    return b"".join(event(each) for each in ended)


def event(payload: Mapping[str, Any]) -> bytes:
    text = json.dumps(payload, ensure_ascii=False)
    # The real server pads its lines with blanks of varying length.
    return f"event: {payload['type']}\ndata: {text[:-1]}{' ' * (len(text) % 7)}}}\n\n".encode()


def start(id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 1}
    message = {"id": id, "type": "message", "role": "assistant", "content": [], "usage": usage}
    return {"type": "message_start", "message": message | fields}


def begin(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": dict(block)}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def finish(reason: str | None = "end_turn", usage: Any = None, **fields: Any) -> dict[str, Any]:
    told = {"stop_reason": reason, "stop_sequence": None, **fields}
    return {"type": "message_delta", "delta": told, "usage": usage or {"output_tokens": 7}}


def message_events(response: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[bytes]:
    """A scripted response as the events of a stream."""
    usage = response.get("usage", {})
    counts = {
        "input_tokens": usage.get("input", 0),
        "cache_read_input_tokens": usage.get("cacheRead", 0),
        "cache_creation_input_tokens": usage.get("cacheWrite", 0),
    }
    yield event(start(model=request["model"], usage=counts | {"output_tokens": 1}))
    yield event({"type": "ping"})
    calls = False
    for index, block in enumerate(response.get("content", ())):
        calls = calls or block["type"] == "tool_call"
        yield from map(event, _block_events(index, block, response.get("chunkSize", 16), request["model"]))
    if failure := response.get("error"):
        yield event(_error(_status(failure), failure["message"]))
        return
    if response.get("hang"):
        return
    stop = response.get("stopReason") or ("tool_use" if calls else "end_turn")
    yield event(finish(STOPS.get(stop, stop), counts | {"output_tokens": usage.get("output", 0)}))
    yield event({"type": "message_stop"})


def _block_events(index: int, block: Mapping[str, Any], size: int, model: str) -> Iterator[Mapping[str, Any]]:
    if block["type"] == "tool_call":
        text = block.get("rawArguments")
        if text is None:
            text = json.dumps(block["arguments"], ensure_ascii=False) if block.get("arguments") else ""
        id = block.get("id", f"toolu_{index}")
        yield begin(index, {"type": "tool_use", "id": id, "name": block["name"], "input": {}})
        for piece in ["", *_pieces(text, size)]:
            yield delta(index, "input_json_delta", partial_json=piece)
    elif block["type"] == "thinking":
        yield begin(index, {"type": "thinking", "thinking": "", "signature": ""})
        for piece in _pieces(block["text"], size):
            yield delta(index, "thinking_delta", thinking=piece)
        if signature := block.get("signature", sign(model, block["text"])):
            yield delta(index, "signature_delta", signature=signature)
    elif block["type"] == "text":
        yield begin(index, {"type": "text", "text": ""})
        for piece in _pieces(block["text"], size):
            yield delta(index, "text_delta", text=piece)
    else:
        yield begin(index, block)
    yield end(index)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _status(failure: Mapping[str, Any]) -> int:
    status = failure.get("status") or STATUS_OF_KIND.get(failure["kind"], 500)
    return 529 if status == 503 else status


def _error(status: int, message: str) -> dict[str, Any]:
    kind = ERROR_TYPES.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}
