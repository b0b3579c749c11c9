"""Front matter is read as plain data, with bounds, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from agentd.config.front_matter import MAX_BYTES, FrontMatterError, read


def test_what_a_file_says_of_itself_is_parted_from_the_rest() -> None:
    text = "---\ndescription: Review a change\ncount: 3\ntags: [a, b]\n---\nDo it.\n---\nMore.\n"
    assert read(text) == (
        {"description": "Review a change", "count": 3, "tags": ["a", "b"]},
        "Do it.\n---\nMore.\n",
    )


@pytest.mark.parametrize("text", ["", "Just text.", "\n---\na: 1\n---\n", "----\na: 1\n---\n", "a: 1\n---\n"])
def test_a_file_without_front_matter_is_all_text(text: str) -> None:
    assert read(text) == ({}, text)


def test_windows_line_ends_and_a_byte_order_mark_are_taken() -> None:
    assert read("\ufeff---\r\nname: x\r\n---\r\nBody\r\n") == ({"name": "x"}, "Body\r\n")


def test_empty_front_matter_says_nothing() -> None:
    assert read("---\n---\nBody") == ({}, "Body")
    assert read("---\n# a comment\n---\nBody") == ({}, "Body")


def test_what_everybody_writes_without_quotes_is_text() -> None:
    values, _ = read("---\nargument-hint: [file] [line]\ndescription: Fix: all of 'it'\nother: @x\n---\n")
    assert values == {"argument-hint": "[file] [line]", "description": "Fix: all of 'it'", "other": "@x"}


def test_dates_stay_text_and_keys_are_words() -> None:
    assert read("---\nwhen: 2024-01-02\n1: one\nyes: two\n---\n")[0] == {
        "when": "2024-01-02",
        "1": "one",
        "yes": "two",
    }


BOMB = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x]"]
    + [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
)


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        (BOMB, "aliases"),
        ("a: !!python/object/apply:os.system [id]", "no kind of value"),
        ("a: !!binary aGk=", "no kind of value"),
        ("a: !!set {x}", "no kind of value"),
        ("a: " + "[" * 5000, "deep"),
        ("a: 1\na: 2", "twice"),
        ("? [a, b]\n: 1", "a key has to be a word"),
        ("- a\n- b", "key: value"),
        ("just words", "key: value"),
        ("{", "no YAML"),
        ("a: 'open", "no YAML"),
        ("a: \x01", "no YAML"),
        ("a: " + "9" * 10_000, "cannot be read"),
        ("a: [0x" + "f" * 10_000 + "]", "too large"),
        ("a: " + "x" * MAX_BYTES, "longer than"),
    ],
)
def test_what_is_no_plain_small_data_is_refused_with_the_reason(inner: str, why: str) -> None:
    with pytest.raises(FrontMatterError, match=why):
        read(f"---\n{inner}\n---\nBody")


def test_an_error_names_the_line_of_the_file() -> None:
    with pytest.raises(FrontMatterError) as caught:
        read("---\na: 1\nb: 2\na: 3\n---\n")
    assert caught.value.line == 3


def test_front_matter_that_is_not_closed_is_an_error() -> None:
    with pytest.raises(FrontMatterError, match="not closed"):
        read("---\na: 1\nBody")


@given(st.text(alphabet=st.sampled_from("ab:-[]{}!&*'\"#|>%@`,? \t\n01.~<="), max_size=200))
def test_any_text_is_data_as_json_has_it_or_an_error_of_its_own(inner: str) -> None:
    try:
        values, body = read(f"---\n{inner}\n---\nBody")
    except FrontMatterError:
        return
    assert all(isinstance(key, str) for key in values)
    to_json(values)
    assert body.endswith("Body")
