"""What only recorded streams of the Messages API have."""

from pathlib import Path

import pytest
from decoding import decode
from recorded import load, recordings

from agentd.providers.base import ProviderError

API = "anthropic"


@pytest.mark.parametrize("path", recordings(API))
def test_what_a_message_does_not_hold_is_kept_in_its_place(path: Path) -> None:
    recording = load(path)
    _, end = decode(API, recording.body)
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
def test_a_recorded_stream_cut_before_its_last_event_is_never_taken_for_whole(path: Path) -> None:
    events = load(path).body.split(b"\n\n")
    last = next(number for number, event in enumerate(events) if b"message_stop" in event)
    for count in {*range(0, last, last // 10 + 1), last}:
        with pytest.raises(ProviderError, match="truncated") as caught:
            decode(API, b"\n\n".join(events[:count]))
        assert (caught.value.kind, caught.value.retryable) == ("network", True)
