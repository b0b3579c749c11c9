"""Every recorded Gemini stream, read as its sidecar says, however it is cut."""

from pathlib import Path
from typing import Any

import pytest
from conversation import calls_in
from recorded import load, recordings

from agentd.protocol.messages import Usage
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta, ThinkingDelta
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.http_errors import Peer

PEER = Peer("recorded", "model", "http://127.0.0.1/v1beta/models/model:streamGenerateContent")


def decode(body: bytes, chunk: int) -> tuple[list[StreamEvent], StreamEnd]:
    decoder = GeminiDecoder(PEER)
    events: list[StreamEvent] = []
    for start in range(0, len(body), chunk):
        if decoder.done:
            break
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()


def expected_usage(raw: dict[str, Any]) -> Usage | None:
    if not raw:
        return None
    cache_read, prompt = raw["cache_read_tokens"] or 0, raw["input_tokens"]
    output = raw["output_tokens_incl_reasoning"]
    return Usage(
        input=prompt - cache_read,
        output=output,
        cache_read=cache_read,
        reasoning=raw["reasoning_tokens"] or 0,
        total=prompt + output,
        context_tokens=prompt + output,
    )


def expected_calls(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: call[key] for key in ("id", "name", "arguments")} for call in raw]


@pytest.mark.parametrize("chunk", [1, 13, 10**9], ids=["byte-by-byte", "by-13", "whole"])
@pytest.mark.parametrize("path", recordings("gemini"))
def test_a_recorded_stream_says_what_its_sidecar_expects(path: Path, chunk: int) -> None:
    recording = load(path)
    expected = recording.expected

    events, end = decode(recording.body, chunk)

    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == (expected["text"] or "")
    assert "".join(e.text for e in events if isinstance(e, ThinkingDelta)) == (
        expected["reasoning_text"] or ""
    )
    assert calls_in(events) == expected_calls(expected["tool_calls"])
    assert end.stop == expected["stop"]
    assert end.raw_stop == expected["stop_reason_raw"]
    assert end.usage == expected_usage(expected["usage"])


@pytest.mark.parametrize("path", recordings("gemini"))
def test_every_signature_of_a_recorded_stream_is_kept(path: Path) -> None:
    recording = load(path)
    _, end = decode(recording.body, 10**9)
    parts = (end.provider_data or {}).get("parts", [])
    kept = [part.get("thoughtSignature") or part.get("part", {}).get("thoughtSignature") for part in parts]
    lengths = [signature["len"] for signature in recording.expected["extra"].get("signatures", [])]
    assert [len(signature) for signature in kept if signature] == lengths


@pytest.mark.parametrize("path", recordings("gemini"))
def test_blocks_are_numbered_in_the_order_they_appear(path: Path) -> None:
    events, _ = decode(load(path).body, 10**9)
    indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
    assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))


@pytest.mark.parametrize("path", recordings("gemini"))
def test_a_recorded_stream_without_its_last_event_is_never_taken_for_whole(path: Path) -> None:
    events = load(path).body.split(b"\r\n\r\n")
    assert not events.pop().strip()
    events.pop()
    with pytest.raises(ProviderError, match="truncated") as caught:
        decode(b"\r\n\r\n".join(events), 10**9)
    assert (caught.value.kind, caught.value.retryable) == ("network", True)
