"""Gemini's generateContent from the server's side, as strict as the real one.

    with GeminiServer([{"content": [{"type": "text", "text": "Hello"}]}]) as server:
        ...  # point a provider of api "gemini" at server.base_url

Scripts, `Raw` answers and waiting are those of `ModelServer`. A scripted answer is signed as the models of
generation 3 do it, whatever model is asked for from 2.5 on: the first call, or else an empty text at the end.
`"stopReason"` may be a word of this API; `"reportsIds": false` sends calls without ids, and without
`rawArguments`, which go out as text, all calls are whole. What the real server refuses with a 400
(`gemini_faults`) is refused here, and is in `server.faults`.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fakes.gemini_faults import SIGNATURE, generation_of, model_of, request_fault, sign
from fakes.model_server import ModelServer, Raw, Recorded, json_answer
from fakes.openai_wire import STATUS_OF_KIND

STOPS = {"stop": "STOP", "length": "MAX_TOKENS", "tool_use": "STOP", "refusal": "SAFETY"}
STATUS_WORDS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


class GeminiServer(ModelServer):
    """A `ModelServer` that speaks generateContent."""

    path = ":streamGenerateContent"

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1beta"

    def fault_of(self, request: Recorded) -> str | None:
        return request_fault(request.path, request.body)

    def events(self, response: Mapping[str, Any], request: Recorded) -> Iterator[bytes]:
        return answer_events(response, model_of(request.path))

    def failure(self, failure: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
        payload = error_of(failure)
        # Over HTTP a streaming method puts its error into a list of one.
        return payload["error"]["code"], {"content-type": "application/json"}, json.dumps([payload]).encode()

    def refusal(self, status: int, message: str) -> Raw:
        return json_answer(error_of({"status": status, "kind": "bad_request", "message": message}), status)


@pytest.fixture
def gemini_server() -> Iterator[GeminiServer]:
    """A strict server with an empty script: `push` responses to it."""
    with GeminiServer() as server:
        yield server


# --- answers --------------------------------------------------------------------------------------


def stream(*chunks: Mapping[str, Any]) -> bytes:
    """Chunks as the events of a stream, with the line ends that Google sends."""
    return b"".join(event(each) for each in chunks)


def event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n"


def chunk(*parts: Mapping[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk: the parts of candidate 0, its finishReason, and fields beside the candidates."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "fake", "responseId": "r1", **fields}


def answer_events(response: Mapping[str, Any], model: str) -> Iterator[bytes]:
    """A scripted response as the events of a stream."""
    signs = generation_of(model) >= 2.5
    calls = False
    for block in response.get("content", ()):
        if block["type"] == "tool_call":
            part = {"functionCall": _call(block, response)}
            if signs and not calls:
                part[SIGNATURE] = sign(model, part)
            calls = True
            yield event(chunk(part))
        else:
            thought = {"thought": True} if block["type"] == "thinking" else {}
            size = response.get("chunkSize", 16)
            for at in range(0, len(block["text"]), size):
                yield event(chunk({"text": block["text"][at : at + size]} | thought))
    if failure := response.get("error"):
        yield json.dumps([error_of(failure)], indent=2).encode() + b"\n"
        return
    if response.get("hang"):
        return
    last: dict[str, Any] = {"text": ""}
    if signs and not calls and response.get("content"):
        last[SIGNATURE] = sign(model, last)
    stop = response.get("stopReason", "stop")
    usage = {"usageMetadata": _usage(response["usage"])} if response.get("usage") else {}
    yield event(chunk(last, finish=STOPS.get(stop, stop), **usage))


def error_of(failure: Mapping[str, Any]) -> dict[str, Any]:
    """A scripted error in Google's form."""
    status = failure.get("status") or STATUS_OF_KIND.get(failure["kind"], 500)
    error: dict[str, Any] = {
        "code": status, "message": failure["message"], "status": STATUS_WORDS.get(status, "UNKNOWN"),
    }  # fmt: skip
    details: list[dict[str, Any]] = []
    if failure["kind"] == "quota":
        violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]})
    if "retryAfterMs" in failure:
        delay = f"{failure['retryAfterMs'] / 1000:g}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return {"error": error | ({"details": details} if details else {})}


def _call(block: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    call: dict[str, Any] = {
        "name": block["name"],
        "args": block.get("rawArguments", block.get("arguments", {})),
    }
    if "id" in block and response.get("reportsIds", True):
        call["id"] = block["id"]
    return call


def _usage(usage: Mapping[str, int]) -> dict[str, int]:
    prompt = usage.get("input", 0) + usage.get("cacheRead", 0) + usage.get("cacheWrite", 0)
    output, thoughts = usage.get("output", 0), usage.get("reasoning", 0)
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": usage.get("cacheRead", 0),
        "candidatesTokenCount": output - thoughts,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": prompt + output,
    }
