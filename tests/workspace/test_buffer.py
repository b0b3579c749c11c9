"""The text of open documents: positions in both encodings, and what a range change does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.workspace.buffer import Buffer, Encoding, Spot, Spots, index_of, width

TEXT = st.text(alphabet="ab\n\r😀é€\u2028\x0c\ud800", max_size=30)
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16")


def spots_of(text: str, encoding: Encoding) -> dict[int, Spot]:
    """Every index that has a position, and that position; the long way round."""
    found, line, start = {}, 0, 0
    for piece in re.findall("[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$", text) or [""]:
        content = piece.rstrip("\r\n")
        for index in range(len(content) + 1):
            data = content[:index].encode("utf-16-le" if encoding == "utf-16" else "utf-8", "surrogatepass")
            found[start + index] = Spot(line, len(data) // (2 if encoding == "utf-16" else 1))
        line, start = line + 1, start + len(piece)
    found[len(text)] = found.get(len(text), Spot(line, 0)) if text[-1:] not in ("\r", "\n") else Spot(line, 0)
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(st.data())
def test_a_buffer_holds_what_its_changes_make(encoding: Encoding, data: st.DataObject) -> None:
    text = data.draw(TEXT)
    buffer = Buffer(text, encoding)
    for _ in range(data.draw(st.integers(1, 6))):
        spots = spots_of(text, encoding)
        ends = sorted(data.draw(st.sampled_from(sorted(spots))) for _ in range(2))
        new = data.draw(TEXT)
        buffer.replace(spots[ends[0]], spots[ends[1]], new)
        text = text[: ends[0]] + new + text[ends[1] :]
        if data.draw(st.booleans()):  # else it stays unread, as most versions of a document do
            assert buffer.text == text
    assert buffer.text == text


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(TEXT)
def test_an_index_and_its_position_are_the_same_place(encoding: Encoding, text: str) -> None:
    spots = Spots(text, encoding)
    assert {index: spots.at(index) for index in spots_of(text, encoding)} == spots_of(text, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(st.text(alphabet="a😀é\ud800", max_size=8), st.integers(0, 40))
def test_a_unit_inside_a_character_is_that_character(encoding: Encoding, line: str, units: int) -> None:
    index = index_of(line, units, encoding)
    assert width(line[:index], encoding) <= units or index == 0
    assert index == len(line) or width(line[: index + 1], encoding) > units


@pytest.mark.parametrize(
    ("before", "start", "end", "new", "after"),
    [
        ("a\x0cb\nc\n", Spot(1, 0), Spot(1, 1), "Z", "a\x0cb\nZ\n"),
        ("a\u2028b\nc\n", Spot(1, 0), Spot(1, 1), "Z", "a\u2028b\nZ\n"),
        ("a\rb\r\nc", Spot(2, 0), Spot(2, 1), "Z", "a\rb\r\nZ"),
        ("ab\r\ncd", Spot(0, 99), Spot(0, 99), "!", "ab!\r\ncd"),
        ("ab", Spot(7, 3), Spot(9, 0), "!", "ab!"),
        ("ab", Spot(0, 2), Spot(0, 1), "!", "ab!"),
        ("", Spot(0, 0), Spot(0, 0), "x\n", "x\n"),
        ("a\r", Spot(1, 0), Spot(1, 0), "\nb", "a\r\nb"),
    ],
)
def test_lines_end_where_the_protocol_ends_them(
    before: str, start: Spot, end: Spot, new: str, after: str
) -> None:
    buffer = Buffer(before, "utf-16")
    buffer.replace(start, end, new)
    assert buffer.text == after
    buffer.replace(Spot(99, 0), Spot(99, 0), "$")
    assert buffer.text == after + "$"


def test_a_whole_text_takes_the_place_of_all() -> None:
    buffer = Buffer("a\nb\n", "utf-8")
    buffer.replace_all("c\nd")
    buffer.replace(Spot(1, 0), Spot(1, 1), "e")
    assert buffer.text == "c\ne"
