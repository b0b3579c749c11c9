"""What only recorded chat streams have."""

from pathlib import Path

import pytest
from decoding import decode
from recorded import load, recordings

API = "openai-chat"


@pytest.mark.parametrize("path", recordings(API))
def test_the_details_of_reasoning_are_kept(path: Path) -> None:
    recording = load(path)
    _, end = decode(API, recording.body)
    details = (end.provider_data or {}).get("reasoningDetails")
    assert details == recording.expected["extra"].get("reasoning_details")


@pytest.mark.parametrize("path", recordings(API))
def test_a_recorded_stream_without_its_second_half_is_never_taken_for_whole(path: Path) -> None:
    body = load(path).body
    half = body[: len(body) // 2]
    if b'"finish_reason":"' in half or b'"finish_reason": "' in half:
        pytest.skip("this recording finishes in its first half")
    with pytest.raises(Exception, match="truncated"):
        decode(API, half)
