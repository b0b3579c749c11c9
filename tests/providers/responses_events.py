"""Responses events as servers send them, and short ways to read an answer made of them."""

from typing import Any

import pytest

from agentd.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta, ThinkingDelta
from agentd.providers.http_errors import Peer
from agentd.providers.openai_responses_decoder import ResponsesDecoder
from agentd.providers.openai_responses_output import REPLAY_KEY

PEER = Peer("local", "m", "http://127.0.0.1/v1/responses", secret="sk-canary")
ARGUMENTS = '{"path":"a"}'
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": ARGUMENTS}
COMPLETED = {"type": "response.completed", "response": {"status": "completed", "output": []}}
Payload = dict[str, Any]


def text(delta: str, at: int = 0, part: int = 0, **fields: Any) -> Payload:
    event = {"type": "response.output_text.delta", "output_index": at, "content_index": part}
    return event | {"delta": delta} | fields


def arguments(delta: str, at: int = 0) -> Payload:
    return {"type": "response.function_call_arguments.delta", "output_index": at, "delta": delta}


def added(item: Payload, at: int = 0) -> Payload:
    return {"type": "response.output_item.added", "output_index": at, "item": item}


def done(item: Payload, at: int = 0) -> Payload:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def message(*texts: str, id: str = "msg_1", **fields: Any) -> Payload:
    parts = [{"type": "output_text", "text": each} for each in texts]
    return {"type": "message", "id": id, "role": "assistant", "content": parts} | fields


def reasoning(*summary: str, content: tuple[str, ...] = (), **fields: Any) -> Payload:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": each} for each in summary],
        "content": [{"type": "reasoning_text", "text": each} for each in content],
    } | fields


def over(status: str, **response: Any) -> Payload:
    return {"type": f"response.{status}", "response": {"status": status} | response}


def decode(body: bytes, chunk: int = 10**9) -> tuple[list[StreamEvent], StreamEnd]:
    decoder, events = ResponsesDecoder(PEER), list[StreamEvent]()
    for start in range(0, len(body), chunk):
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()


def failure(body: bytes) -> tuple[list[StreamEvent], ProviderError]:
    decoder = ResponsesDecoder(PEER)
    events = decoder.feed(body) + decoder.close()
    with pytest.raises(ProviderError) as caught:
        decoder.end()
    assert caught.value.message
    return events, caught.value


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def thinking_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ThinkingDelta))


def kept(end: StreamEnd) -> list[Payload]:
    return (end.provider_data or {}).get(REPLAY_KEY, [])
