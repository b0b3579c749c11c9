import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.workspace.paths import WorkspaceError
from agentd.workspace.text import (
    BinaryContent,
    Text,
    check_insertable,
    decode,
    lines_of,
    lines_with_ends,
    visible,
)

SAMPLE = "héllo\r\nwörld\r日本\n"


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp932", "gbk"])
def test_text_of_any_encoding_comes_back_byte_for_byte(codec: str) -> None:
    data = SAMPLE.replace("é", "e").replace("ö", "o").encode(codec)
    assert decode(data).encode() == data


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_a_byte_order_mark_tells_the_codec_and_is_not_part_of_the_text(codec: str) -> None:
    assert decode(("\ufeff" + SAMPLE).encode(codec)).text == SAMPLE


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_any_bytes_are_binary_or_come_back(data: bytes) -> None:
    for mark in (b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"):
        try:
            text = decode(mark + data)
        except BinaryContent:
            continue
        assert text.encode() == mark + data
        visible(text.text).encode("utf-8")


@pytest.mark.parametrize(
    "data", [b"a\0b", b"\x7fELF\0", b"\xef\xbb\xbfa\0", b"\xff\xfe\0\xd8", b"x" * 100_000 + b"\0"]
)
def test_a_nul_makes_it_binary_wherever_it_is(data: bytes) -> None:
    with pytest.raises(BinaryContent):
        decode(data)


def test_lines_end_as_in_lsp_and_nowhere_else() -> None:
    assert lines_of("a\r\nb\nc\rd\u2028e\x85f\x0cg\x0bh") == ["a", "b", "c", "d\u2028e\x85f\x0cg\x0bh"]
    assert [lines_of(text) for text in ("", "\n", "a\n", "a\n\n", "\r\r\n")] == [
        [],
        [""],
        ["a"],
        ["a", ""],
        ["", ""],
    ]


@given(st.text(alphabet="ab\r\n\u2028", max_size=40))
@settings(max_examples=100)
def test_lines_with_their_ends_are_the_text_and_as_many_as_without(text: str) -> None:
    assert "".join(lines_with_ends(text)) == text
    assert [line.rstrip("\r\n") for line in lines_with_ends(text)] == lines_of(text)


def test_text_beyond_ascii_is_refused_in_a_file_that_is_not_utf_8() -> None:
    legacy = decode("設定=1\n".encode("cp932"))
    check_insertable("ascii", legacy, "x")
    check_insertable("日本", decode("設定".encode()), "x")
    check_insertable("日本", None, "x")
    with pytest.raises(WorkspaceError, match="not valid UTF-8"):
        check_insertable("日本", legacy, "x")


@pytest.mark.parametrize("stray", ["\ud800", "a\udcff"])
def test_half_a_character_is_refused_everywhere(stray: str) -> None:
    for into in (None, Text("")):
        with pytest.raises(WorkspaceError, match="lone surrogate"):
            check_insertable(stray, into, "x")
