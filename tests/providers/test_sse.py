"""The event-stream rules of the WHATWG HTML standard, at any chunking."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.providers.sse import EventStream, ServerSentEvent, TruncatedEventStream


def decode(data: bytes, *cuts: int) -> list[ServerSentEvent]:
    stream = EventStream()
    edges = [0, *sorted(cuts), len(data)]
    events = [event for a, b in pairwise(edges) for event in stream.feed(data[a:b])]
    return events + stream.close()


def data_of(data: bytes) -> list[str]:
    return [event.data for event in decode(data)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a \n\n", [" a "]),
        (b"data: one\ndata: two\n\n", ["one\ntwo"]),
        (b"data\n\n", [""]),
        (b": comment\n\n:\n\ndata: a\n: between\ndata: b\n\n", ["a\nb"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", ["b"]),
        (b"id: 7\nretry: 10\nunknown: x\n data: no\n\ndata: a\n\n", ["a"]),
        (b"event: x\n\ndata: a\n\n", ["a"]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_data_is_framed_as_the_standard_says(stream: bytes, expected: list[str]) -> None:
    assert data_of(stream) == expected


def test_an_event_has_the_name_its_block_gives_it() -> None:
    events = decode(b"event: ping\ndata: a\n\ndata: b\n\n")
    assert events == [ServerSentEvent("a", "ping"), ServerSentEvent("b", "message")]


def test_a_lone_cr_ends_a_line_without_waiting_for_what_follows() -> None:
    stream = EventStream()
    assert stream.feed(b"data: a\r\r") == [ServerSentEvent("a")]
    assert stream.feed(b"\ndata: b\n\n") == [ServerSentEvent("b")]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r", b"\r\n"])
def test_data_before_the_end_of_the_stream_is_an_event_without_its_blank_line(end: bytes) -> None:
    assert data_of(b"data: a\n\ndata: [DONE]" + end) == ["a", "[DONE]"]


def test_a_field_named_error_is_an_event_of_that_name() -> None:
    events = decode(b'data: a\n\nerror: {"code":500}\n\ndata: b\n\n')
    assert events == [
        ServerSentEvent("a"),
        ServerSentEvent('{"code":500}', "error"),
        ServerSentEvent("b"),
    ]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_stream_that_ends_inside_a_character_is_truncated(cut: int) -> None:
    stream = EventStream()
    stream.feed(b"data: hi " + "🌍".encode()[:cut])
    with pytest.raises(TruncatedEventStream):
        stream.close()


def test_bytes_that_are_no_utf8_do_not_stop_the_stream() -> None:
    assert data_of(b"data: a\xffb\n\ndata: c\n\n") == ["a\ufffdb", "c"]


LINES = st.sampled_from(
    [
        b"data: x",
        b"data:",
        b"data: \xf0\x9f\x8c\x8d",
        b": c",
        b"event: e",
        b"error: z",
        b"",
        b"id",
        b"\xef\xbb\xbf",
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=12).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@given(STREAMS, st.data())
@settings(max_examples=100)
def test_any_chunking_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    whole = decode(stream)
    assert decode(stream, *cuts) == whole
    assert decode(stream, *range(len(stream))) == whole


def test_a_megabyte_of_data_byte_by_byte_is_linear_work() -> None:
    stream = EventStream()
    line = b"data: " + b"x" * 1_000_000
    started = time.process_time()
    for position in range(len(line)):
        stream.feed(line[position : position + 1])
    events = stream.feed(b"\n\n")
    assert len(events[0].data) == 1_000_000
    assert time.process_time() - started < 30  # quadratic work takes minutes


def test_lines_that_are_no_field_are_kept_up_to_a_limit() -> None:
    stream = EventStream()
    stream.feed(b'data: a\n\n: comment\nid: 1\nretry: 2\nevent: x\n{\n  "error": 1\n}\n')
    assert stream.stray == ["{", '  "error": 1', "}"]
    stream.feed(b"x" * 70_000 + b"\n" + b"y\n")
    assert stream.stray[3:] == ["y"]
