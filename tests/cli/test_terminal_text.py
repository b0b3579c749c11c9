"""Text of others on its way to a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.cli.question import allowing_options
from agentd.cli.terminal import cut, one_line, visible, width
from agentd.protocol.messages import CommandSubject, EditSubject

ANYTHING = st.text(st.characters(codec=None), max_size=60)
EDIT = EditSubject(uri="file:///w/a", patch="")
COMMAND = CommandSubject(command="ls", cwd="/w")


@given(ANYTHING)
def test_nothing_that_steers_or_hides_is_left(text: str) -> None:
    for character in visible(text):
        assert character in "\n\t\u200c\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 👩‍💻", "plain é 日本 👩‍💻"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\rb\x08\x9b", "a\\rb\\x08\\x9b"),
        ("txt\u202egpj", "txt\\u202egpj"),
        ("\ud800", "\\ud800"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_what_is_hidden_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text("ab日é\u0301", max_size=40), st.integers(4, 30))
def test_a_cut_line_fits(text: str, columns: int) -> None:
    short = cut(text, columns)
    assert width(short) <= columns
    assert short == text or (short.endswith("...") and text.startswith(short[:-3]))
    assert (short == text) == (width(text) <= columns)


@pytest.mark.parametrize(
    ("subject", "mode", "trusted", "options"),
    [
        (EDIT, None, True, "--mode edit"),
        (EDIT, "ask", False, "--mode edit --trust"),
        (EDIT, "edit", True, "--mode full --allow-full"),
        (COMMAND, "edit", True, "--mode full --allow-full"),
        (COMMAND, "full", False, "--allow-full --trust"),
    ],
)
def test_the_way_out_names_the_options_that_are_missing(
    subject: EditSubject | CommandSubject, mode: str | None, trusted: bool, options: str
) -> None:
    assert allowing_options(subject, mode, trusted) == options
