"""Frames, however the bytes of a stream are cut."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.protocol.frames import (
    MAX_HEADER_BYTES,
    MAX_SKIPPED_BYTES,
    BrokenFraming,
    FrameReader,
    Oversized,
    encode,
)

LIMIT = 100
BODIES = st.lists(st.binary(max_size=LIMIT), max_size=5)


def read(data: bytes, cuts: list[int] | None = None, limit: int = LIMIT) -> list[bytes | Oversized]:
    reader = FrameReader(limit)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    return [frame for start, end in pairwise(places) for frame in reader.feed(data[start:end])]


def header(*lines: str, end: str = "\r\n") -> bytes:
    return (end.join(lines) + end + end).encode("latin-1")


@settings(max_examples=80, deadline=None)
@given(BODIES, st.lists(st.integers(min_value=0), max_size=8))
def test_frames_are_the_same_however_they_are_cut(bodies: list[bytes], cuts: list[int]) -> None:
    data = b"".join(encode(body) for body in bodies)
    assert read(data, cuts) == bodies
    assert read(data, list(range(len(data)))) == bodies


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60), st.lists(st.integers(min_value=0), max_size=5))
def test_any_bytes_are_frames_or_broken_framing_and_nothing_else(data: bytes, cuts: list[int]) -> None:
    try:
        whole: object = read(data)
    except BrokenFraming as error:
        whole = str(error)
    try:
        cut: object = read(data, cuts)
    except BrokenFraming as error:
        cut = str(error)
    assert cut == whole


@pytest.mark.parametrize(
    "head",
    [
        header("Content-Length: 2"),
        header("content-length:2"),
        header("CONTENT-LENGTH :  2 "),
        header("Content-Length: 2", end="\n"),
        header("Content-Length: 2", "Content-Type: application/vscode-jsonrpc; charset=utf8"),
        header("X-Odd: \xff\xfe", "Content-Length: 2"),
        header("Content-Length: 002"),
    ],
)
def test_what_the_standard_leaves_open_is_read(head: bytes) -> None:
    assert read(head + b"{}" + encode(b"[]")) == [b"{}", b"[]"]


@pytest.mark.parametrize(
    "head",
    [
        header("Content-Type: x"),
        header("Content-Length: 2", "Content-Length: 2"),
        header("Content-Length: -2"),
        header("Content-Length: +2"),
        header("Content-Length: two"),
        header("Content-Length: 2.0"),
        header("Content-Length:"),
        header("Content-Length: 0x2"),
        header(f"Content-Length: {MAX_SKIPPED_BYTES + 1}"),
        header("Content-Length: 9" + "9" * 40),
        header(""),
        b"\n\n",
        b"{}\r\n\r\n",
        b"x" * (MAX_HEADER_BYTES + 1),
    ],
)
def test_what_is_no_frame_is_broken_framing_behind_the_frames_before_it(head: bytes) -> None:
    frames = FrameReader(LIMIT).feed(encode(b"first") + head + b"{}")
    assert next(frames) == b"first"
    with pytest.raises(BrokenFraming):
        next(frames)


def test_a_header_may_be_long_but_not_without_end() -> None:
    long = header("X: " + "x" * 8000, "Content-Length: 2")
    assert len(long) < MAX_HEADER_BYTES
    assert read(long + b"{}", list(range(0, len(long), 100))) == [b"{}"]


def test_an_empty_body_is_a_frame() -> None:
    assert read(encode(b"") + encode(b"x")) == [b"", b"x"]


@pytest.mark.parametrize("step", [1, 7, 64, 10_000])
def test_a_frame_that_is_too_large_is_skipped_whole_and_told_once(step: int) -> None:
    data = encode(b"a") + encode(b"x" * (LIMIT + 1)) + encode(b"b")
    assert read(data, list(range(0, len(data), step))) == [b"a", Oversized(LIMIT + 1), b"b"]


def test_a_frame_of_just_the_limit_is_read() -> None:
    assert read(encode(b"x" * LIMIT)) == [b"x" * LIMIT]


def test_what_is_skipped_is_not_kept() -> None:
    reader = FrameReader(10)
    assert list(reader.feed(b"Content-Length: 100000000\r\n\r\n")) == [Oversized(100_000_000)]
    for _ in range(100):
        assert list(reader.feed(b"x" * 1_000_000)) == []
        assert len(reader._buffer) == 0
    assert list(reader.feed(encode(b"next"))) == [b"next"]
