import re
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_search_backends import PATTERNS, patterns

from agentd.workspace.byte_pattern import loosened


def is_let_through(pattern: str, line: bytes, *, ignore_case: bool = False) -> bool:
    """What ripgrep does with the looser pattern: Python's patterns for bytes are much like it."""
    loose = loosened(pattern, ignore_case=ignore_case)
    return loose is None or re.search(loose.removeprefix("(?-u)").encode("ascii"), line) is not None


letters = st.one_of(st.characters(), st.sampled_from("abkKsSiI_ é\u0130\u0131\u017f\u212a\x1c\x85"))
lines = st.text(letters, max_size=12).filter(lambda text: not {"\n", "\r", "\0"} & set(text))


@settings(max_examples=1000, deadline=None)
@given(
    patterns(),
    lines.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=3),
    st.booleans(),
)
@example("i", "İ".encode(), b"", True)
@example("[^k]", b"\xff", b"", True)
def test_every_line_that_matches_is_let_through(
    pattern: str, start: bytes, end: bytes, ignore_case: bool
) -> None:
    line = re.sub(rb"[\n\r\0]", b"", start + end)
    text = line.decode("utf-8", "surrogateescape")
    if re.search(pattern, text, re.IGNORECASE if ignore_case else 0):
        assert is_let_through(pattern, line, ignore_case=ignore_case)


def test_what_equals_an_ascii_letter_without_case_is_let_through() -> None:
    beyond = "".join(chr(code) for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    found = 0
    for code in range(128):
        letter = re.escape(chr(code))
        for character in re.findall(letter, beyond, re.IGNORECASE):
            found += 1
            for pattern in (letter, f"[{letter}\\x01]"):
                assert is_let_through(pattern, character.encode(), ignore_case=True)
    assert found > 0


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("needle", b"nedle"),
        (r"\bneedle\d", b"needle x"),
        ("TODO|FIXME", b"TOD FIX"),
        (r"def \w+\(", b"def (x"),
        ("[a-c]x", b"dx"),
        ("(?i)Needle", b"nedle"),
        (r"^import (os|re)$", b"import io"),
        ("a{3,}b", b"aab"),
        ("é", b"e"),
        ("[^a]b", b"ab"),
    ],
)  # fmt: skip
def test_what_a_pattern_demands_in_ascii_is_kept(pattern: str, line: bytes) -> None:
    assert not is_let_through(pattern, line)


@pytest.mark.parametrize("pattern", ["", "x*", "^$", "(?=needle)", "(a|)", "é" * 30_000])
def test_a_pattern_that_tells_nothing_apart_gives_none(pattern: str) -> None:
    assert loosened(pattern, ignore_case=False) is None


def test_a_parse_tree_of_unknown_form_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loosened("ab", ignore_case=False) is not None

    def parse(pattern: str, flags: int) -> list[str]:
        raise AttributeError(pattern)

    monkeypatch.setattr("re._parser.parse", parse)
    assert loosened("ab", ignore_case=False) is None


def test_all_that_python_parses_is_known() -> None:
    for pattern in PATTERNS:
        if not pattern.startswith(("(?i)", "(?x)")):  # flags belong at the start
            assert loosened("n" + pattern, ignore_case=False) is not None, pattern
