"""What only recorded Responses streams have."""

from pathlib import Path

import pytest
from decoding import decode
from recorded import load, recordings

from agentd.providers.openai_responses_output import REPLAY_KEY

API = "openai-responses"


@pytest.mark.parametrize("path", recordings(API))
def test_what_has_to_go_back_is_kept(path: Path) -> None:
    recording = load(path)
    _, end = decode(API, recording.body)
    kept = (end.provider_data or {}).get(REPLAY_KEY, [])
    phases = [item["phase"] for item in kept if "phase" in item]
    assert phases == recording.expected["extra"].get("phases", [])
    encrypted = [len(item["encrypted_content"]) for item in kept if "encrypted_content" in item]
    items = recording.expected["extra"].get("reasoning_items", ())
    assert encrypted == [item["encrypted_content_len"] for item in items if item["has_encrypted_content"]]


@pytest.mark.parametrize("path", recordings(API))
def test_a_recorded_stream_without_its_second_half_is_never_taken_for_whole(path: Path) -> None:
    body = load(path).body
    half = body[: len(body) // 2]
    if b'"type":"response.completed"' in half:
        pytest.skip("this recording finishes in its first half")
    with pytest.raises(Exception, match="truncated"):
        decode(API, half)
