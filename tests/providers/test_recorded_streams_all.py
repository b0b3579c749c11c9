"""Every recording belongs to an API whose test reads it: none lies there unread."""

import pytest
from recorded import STREAMS, recordings

FOLDERS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
"""Where the recordings of each API are; a test per API reads each of them at chunk sizes 1, 13 and whole."""


def test_every_recorded_stream_is_read_by_the_test_of_its_api() -> None:
    found = set(STREAMS.rglob("*.sse"))
    if not found:
        pytest.skip(f"no recorded streams in {STREAMS}; point AGENTD_STREAMS at them")
    assert found == {parameter.values[0] for folder in FOLDERS for parameter in recordings(folder)}


def test_every_recorded_stream_has_its_sidecar() -> None:
    assert [path.name for path in STREAMS.rglob("*.sse") if not path.with_suffix(".json").exists()] == []
