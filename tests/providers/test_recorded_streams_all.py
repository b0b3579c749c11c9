"""Every recorded stream of every API, read as its sidecar says, however it is cut."""

from pathlib import Path
from typing import Any

import pytest
from conversation import calls_in
from decoding import DECODERS, decode
from recorded import STREAMS, expected_calls, load, recordings, usage_in

from agentd.providers.base import StreamEnd, TextDelta, ThinkingDelta


def of_all_apis() -> list[Any]:
    """A parameter pair per recording: the API it is of, and its path."""
    return [
        pytest.param(api, *found.values, marks=found.marks, id=f"{api}-{found.id}")
        for api in DECODERS
        for found in recordings(api)
    ]


@pytest.mark.parametrize("chunk", [1, 13, 10**9], ids=["byte-by-byte", "by-13", "whole"])
@pytest.mark.parametrize(("api", "path"), of_all_apis())
def test_a_recorded_stream_says_what_its_sidecar_expects(api: str, path: Path, chunk: int) -> None:
    recording = load(path)
    expected = recording.expected
    events, end = decode(api, recording.body, chunk)
    thought = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (expected["text"] or "")
    assert thought == (expected["reasoning_text"] or "")
    assert calls_in(events) == expected_calls(expected)
    assert end.stop == expected["stop"]
    assert end.raw_stop == expected["stop_reason_raw"]
    assert end.usage == usage_in(expected["usage"])


@pytest.mark.parametrize(("api", "path"), of_all_apis())
def test_blocks_are_numbered_in_the_order_they_appear(api: str, path: Path) -> None:
    events, _ = decode(api, load(path).body)
    indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
    assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))


def test_every_recorded_stream_is_read_here() -> None:
    found = set(STREAMS.rglob("*.sse"))
    if not found:
        pytest.skip(f"no recorded streams in {STREAMS}; point AGENTD_STREAMS at them")
    assert found == {parameter.values[1] for parameter in of_all_apis()}


def test_every_recorded_stream_has_its_sidecar() -> None:
    assert [path.name for path in STREAMS.rglob("*.sse") if not path.with_suffix(".json").exists()] == []
