"""Every recorded stream of the Messages API, read as its sidecar says, however it is cut."""

from pathlib import Path
from typing import Any

import pytest
from conversation import calls_in
from recorded import load, recordings

from agentd.protocol.messages import Usage
from agentd.providers.anthropic_decoder import MessagesDecoder
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta, ThinkingDelta
from agentd.providers.http_errors import Peer

PEER = Peer("recorded", "model", "http://127.0.0.1/v1/messages")
API = "anthropic-messages"


def decode(body: bytes, chunk: int) -> tuple[list[StreamEvent], StreamEnd]:
    decoder = MessagesDecoder(PEER)
    events: list[StreamEvent] = []
    for start in range(0, len(body), chunk):
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()


def expected_usage(raw: dict[str, Any]) -> Usage:
    cache_read, cache_write = raw["cache_read_tokens"] or 0, raw["cache_write_tokens"] or 0
    output = raw["output_tokens_incl_reasoning"]
    total = raw["input_tokens"] + output
    return Usage(
        input=raw["uncached_input_tokens"],
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=raw["reasoning_tokens"] or 0,
        total=total,
        context_tokens=total,
    )


@pytest.mark.parametrize("chunk", [1, 13, 10**9], ids=["byte-by-byte", "by-13", "whole"])
@pytest.mark.parametrize("path", recordings(API))
def test_a_recorded_stream_says_what_its_sidecar_expects(path: Path, chunk: int) -> None:
    recording = load(path)
    expected = recording.expected

    events, end = decode(recording.body, chunk)

    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (expected["text"] or "")
    thinking = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    assert thinking == (expected["reasoning_text"] or "")
    assert calls_in(events) == expected["tool_calls"]
    assert end.stop == expected["stop"]
    assert end.raw_stop == expected["stop_reason_raw"]
    assert end.usage == expected_usage(expected["usage"])


@pytest.mark.parametrize("path", recordings(API))
def test_what_a_message_does_not_hold_is_kept_in_its_place(path: Path) -> None:
    recording = load(path)
    _, end = decode(recording.body, 10**9)
    expected = [
        block
        for block in recording.expected["extra"]["blocks"]
        if block["type"] != "text" or block["text"].strip()
    ]
    kept = (end.provider_data or {}).get("blocks")
    if kept is None:
        assert {block["type"] for block in expected} <= {"text", "tool_use"}
        return
    assert [block["type"] for block in kept] == [block["type"] for block in expected]
    for block, told in zip(kept, expected, strict=True):
        if block["type"] == "thinking":
            assert (block["thinking"], block["signature"]) == (told["thinking"], told["signature"])
        elif block["type"] == "text":
            assert len(block.get("citations", ())) == told["citations"]


@pytest.mark.parametrize("path", recordings(API))
def test_blocks_are_numbered_in_the_order_they_appear(path: Path) -> None:
    events, _ = decode(load(path).body, 10**9)
    indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
    assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))


@pytest.mark.parametrize("path", recordings(API))
def test_a_recorded_stream_cut_before_its_last_event_is_never_taken_for_whole(path: Path) -> None:
    events = load(path).body.split(b"\n\n")
    last = next(number for number, event in enumerate(events) if b"message_stop" in event)
    for count in {*range(0, last, last // 10 + 1), last}:
        with pytest.raises(ProviderError, match="truncated") as caught:
            decode(b"\n\n".join(events[:count]), 10**9)
        assert (caught.value.kind, caught.value.retryable) == ("network", True)
