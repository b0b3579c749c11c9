"""What only recorded Gemini streams have."""

from pathlib import Path

import pytest
from decoding import decode
from recorded import load, recordings

from agentd.providers.base import ProviderError

API = "gemini"


@pytest.mark.parametrize("path", recordings(API))
def test_every_signature_of_a_recorded_stream_is_kept(path: Path) -> None:
    recording = load(path)
    _, end = decode(API, recording.body)
    parts = (end.provider_data or {}).get("parts", [])
    kept = [part.get("thoughtSignature") or part.get("part", {}).get("thoughtSignature") for part in parts]
    lengths = [signature["len"] for signature in recording.expected["extra"].get("signatures", [])]
    assert [len(signature) for signature in kept if signature] == lengths


@pytest.mark.parametrize("path", recordings(API))
def test_a_recorded_stream_without_its_last_event_is_never_taken_for_whole(path: Path) -> None:
    events = load(path).body.split(b"\r\n\r\n")
    assert not events.pop().strip()
    events.pop()
    with pytest.raises(ProviderError, match="truncated") as caught:
        decode(API, b"\r\n\r\n".join(events))
    assert (caught.value.kind, caught.value.retryable) == ("network", True)
