"""Every recorded Responses stream, read as its sidecar says, however it is cut."""

from pathlib import Path
from typing import Any

import pytest
from conversation import calls_in
from recorded import load, recordings

from agentd.protocol.messages import Usage
from agentd.providers.base import StreamEnd, StreamEvent, TextDelta, ThinkingDelta
from agentd.providers.http_errors import Peer
from agentd.providers.openai_responses_decoder import ResponsesDecoder
from agentd.providers.openai_responses_output import REPLAY_KEY

PEER = Peer("recorded", "model", "http://127.0.0.1/v1/responses")


def decode(body: bytes, chunk: int) -> tuple[list[StreamEvent], StreamEnd]:
    decoder = ResponsesDecoder(PEER)
    events: list[StreamEvent] = []
    for start in range(0, len(body), chunk):
        if decoder.done:
            break
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()


def expected_usage(raw: dict[str, Any]) -> Usage:
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
@pytest.mark.parametrize("path", recordings("openai-responses"))
def test_a_recorded_stream_says_what_its_sidecar_expects(path: Path, chunk: int) -> None:
    recording = load(path)
    expected = recording.expected

    events, end = decode(recording.body, chunk)

    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (expected["text"] or "")
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == (
        expected["reasoning_text"] or ""
    )
    names = ("id", "name", "arguments")
    assert calls_in(events) == [{name: call[name] for name in names} for call in expected["tool_calls"]]
    assert end.stop == expected["stop"]
    assert end.raw_stop == expected["stop_reason_raw"]
    assert end.usage == expected_usage(expected["usage"])


@pytest.mark.parametrize("path", recordings("openai-responses"))
def test_what_has_to_go_back_is_kept(path: Path) -> None:
    recording = load(path)
    _, end = decode(recording.body, 10**9)
    kept = (end.provider_data or {}).get(REPLAY_KEY, [])
    phases = [item["phase"] for item in kept if "phase" in item]
    assert phases == recording.expected["extra"].get("phases", [])
    encrypted = [len(item["encrypted_content"]) for item in kept if "encrypted_content" in item]
    items = recording.expected["extra"].get("reasoning_items", ())
    assert encrypted == [item["encrypted_content_len"] for item in items if item["has_encrypted_content"]]


@pytest.mark.parametrize("path", recordings("openai-responses"))
def test_blocks_are_numbered_in_the_order_they_appear(path: Path) -> None:
    events, _ = decode(load(path).body, 10**9)
    indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
    assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))


@pytest.mark.parametrize("path", recordings("openai-responses"))
def test_a_recorded_stream_without_its_second_half_is_never_taken_for_whole(path: Path) -> None:
    body = load(path).body
    half = body[: len(body) // 2]
    if b'"type":"response.completed"' in half:
        pytest.skip("this recording finishes in its first half")
    with pytest.raises(Exception, match="truncated"):
        decode(half, 10**9)
