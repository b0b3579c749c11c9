"""What a template says with its arguments."""

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.agent.command_arguments import MAX_LENGTH, TooLong, filled_in, split


@pytest.mark.parametrize(
    ("template", "arguments", "said"),
    [
        ("Fix $1 in $2.", "the bug", "Fix the in bug."),
        ("Fix $1 in $2.", "'the bug' a.py", "Fix the bug in a.py."),
        ("Fix $ARGUMENTS!", " all of 'it' ", "Fix all of 'it'!"),
        ("$1, $2 and $3", "one", "one,  and "),
        ("costs $$1 and $$ARGUMENTS", "", "costs $1 and $ARGUMENTS"),
        ("$10", "a", "a0"),
        ("$0 $HOME ${1} $ARGUMENTSX $", "a", "$0 $HOME ${1} $ARGUMENTSX $\n\nArguments: a"),
        ("No place.", "a b", "No place.\n\nArguments: a b"),
        ("No place.", "  ", "No place."),
        ("$1", "$2 second", "$2"),
        ("$ARGUMENTS", "$1 $$", "$1 $$"),
        ("!`rm -rf x` $1", "`id`", "!`rm -rf x` `id`"),
    ],
)
def test_places_are_filled_in_once(template: str, arguments: str, said: str) -> None:
    assert filled_in(template, arguments) == said


@pytest.mark.parametrize(
    ("arguments", "singles"),
    [
        ("don't stop", ("don't", "stop")),
        ("a\\ b \"c d\" ''", ("a b", "c d", "")),
        ('look @"my file.txt":3-4 "and here"', ("look", '@"my file.txt":3-4', "and here")),
        ("a 'b c", ("a", "'b", "c")),
        ("1 2 3 4 5 6 7 8 9 10", tuple("123456789")),
        ("", ()),
    ],
)
def test_arguments_are_quoted_as_in_a_shell(arguments: str, singles: tuple[str, ...]) -> None:
    assert split(arguments) == singles


@given(st.text(alphabet=" \t\n\xa0ab'\"\\$@", max_size=40).filter(lambda text: '@"' not in text))
def test_any_arguments_are_parted_as_python_parts_words_of_a_shell(arguments: str) -> None:
    try:
        words = shlex.split(arguments)
    except ValueError:
        return  # quotes that do not match, which may be so behind the last argument that has a place
    assert split(arguments) == tuple(words[:9])


def test_a_large_argument_said_often_is_refused_and_not_built() -> None:
    with pytest.raises(TooLong, match="characters"):
        filled_in("$ARGUMENTS" * 1000, "x" * (MAX_LENGTH // 2))


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(
    lambda word: not word.startswith('@"')
)


@given(st.lists(WORDS, max_size=9))
def test_what_a_shell_would_quote_comes_back_word_by_word(words: list[str]) -> None:
    arguments = shlex.join(words)
    assert split(arguments) == tuple(words)
    template = "|".join(f"${number}" for number in range(1, len(words) + 1))
    if words:
        assert filled_in(template, arguments) == "|".join(words)


@given(st.text(), st.text())
def test_no_argument_is_ever_read_as_a_template(template: str, arguments: str) -> None:
    """Filling in with marks in the places of dollars, and the dollars put back, is the same."""
    masked = filled_in(template, arguments.replace("$", "\x00")).replace("\x00", "$")
    template_has_no_mark = "\x00" not in template and "\x00" not in arguments
    if template_has_no_mark:
        assert filled_in(template, arguments) == masked


@given(st.text().filter(lambda text: "$" not in text), st.text())
def test_a_template_without_a_dollar_is_said_as_it_is(template: str, arguments: str) -> None:
    said = filled_in(template, arguments)
    assert said.startswith(template)
    rest = said[len(template) :]
    assert rest == (f"\n\nArguments: {arguments.strip()}" if arguments.strip() else "")


@given(st.text(alphabet="$123ARGUMENTS a"))
def test_every_dollar_that_is_no_place_stays(template: str) -> None:
    places = re.findall(r"\$(?:\$|ARGUMENTS\b|[1-9])", template)
    kept = template.count("$") - sum(place.count("$") for place in places) + places.count("$$")
    assert filled_in(template, "").count("$") == kept
