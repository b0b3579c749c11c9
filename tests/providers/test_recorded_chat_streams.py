"""Every recorded chat stream, read as its sidecar says, however it is cut."""

from pathlib import Path
from typing import Any

import pytest
from recorded import load, recordings

from agentd.protocol.messages import Usage
from agentd.providers.base import StreamEnd, StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta
from agentd.providers.http_errors import Peer
from agentd.providers.openai_chat_decoder import ChatDecoder

PEER = Peer("recorded", "model", "http://127.0.0.1/v1/chat/completions")


def decode(body: bytes, chunk: int) -> tuple[list[StreamEvent], StreamEnd]:
    decoder = ChatDecoder(PEER)
    events: list[StreamEvent] = []
    for start in range(0, len(body), chunk):
        if decoder.done:
            break
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()


def calls(events: list[StreamEvent]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for event in events:
        if isinstance(event, ToolCallDelta):
            call = found.setdefault(event.index, {"id": None, "name": None, "arguments": ""})
            call["id"] = event.id or call["id"]
            call["name"] = event.name or call["name"]
            call["arguments"] += event.arguments
    return [found[index] for index in sorted(found)]


def expected_usage(raw: dict[str, Any]) -> Usage | None:
    if not raw:
        return None
    cache_read, cache_write = raw["cache_read_tokens"] or 0, raw["cache_write_tokens"] or 0
    fresh = max(0, raw["input_tokens"] - cache_read - cache_write)
    output = raw["output_tokens_incl_reasoning"]
    total = fresh + cache_read + cache_write + output
    return Usage(
        input=fresh,
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=min(raw["reasoning_tokens"] or 0, output),
        total=total,
        context_tokens=total,
    )


@pytest.mark.parametrize("chunk", [1, 13, 10**9], ids=["byte-by-byte", "by-13", "whole"])
@pytest.mark.parametrize("path", recordings("openai-chat"))
def test_a_recorded_stream_says_what_its_sidecar_expects(path: Path, chunk: int) -> None:
    recording = load(path)
    expected = recording.expected

    events, end = decode(recording.body, chunk)

    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (expected["text"] or "")
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == (
        expected["reasoning_text"] or ""
    )
    assert calls(events) == expected["tool_calls"]
    assert end.stop == expected["stop"]
    assert end.raw_stop == expected["stop_reason_raw"]
    assert end.usage == expected_usage(expected["usage"])
    details = (end.provider_data or {}).get("reasoningDetails")
    assert details == expected["extra"].get("reasoning_details")


@pytest.mark.parametrize("path", recordings("openai-chat"))
def test_blocks_are_numbered_in_the_order_they_appear(path: Path) -> None:
    events, _ = decode(load(path).body, 10**9)
    indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
    assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))


@pytest.mark.parametrize("path", recordings("openai-chat"))
def test_a_recorded_stream_without_its_second_half_is_never_taken_for_whole(path: Path) -> None:
    body = load(path).body
    half = body[: len(body) // 2]
    if b'"finish_reason":"' in half or b'"finish_reason": "' in half:
        pytest.skip("this recording finishes in its first half")
    with pytest.raises(Exception, match="truncated"):
        decode(half, 10**9)
