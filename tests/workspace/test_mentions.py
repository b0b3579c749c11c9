"""Which files a text refers to by `@path`, and what is only a word with an `@` in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.workspace.mentions import Mention, mentions

THERE = {"src/a.py", "README.md", "my file.txt", "src", "odd:7", "a,b", "Makefile"}


def found(text: str) -> list[Mention]:
    return mentions(text, THERE.__contains__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("look at @src/a.py please", [Mention("src/a.py")]),
        ("@src/a.py:10-20", [Mention("src/a.py", (10, 20))]),
        ("(see @src/a.py:3), and @README.md.", [Mention("src/a.py", (3, 3)), Mention("README.md")]),
        ('@"my file.txt":2-3 and @"my file.txt"', [Mention("my file.txt", (2, 3)), Mention("my file.txt")]),
        ("is it in @src?", [Mention("src")]),
        ("`@Makefile`", [Mention("Makefile")]),
        ("@odd:7 @a,b", [Mention("odd:7"), Mention("a,b")]),
        ("@src/a.py @src/a.py", [Mention("src/a.py")]),
    ],
)
def test_files_that_are_there(text: str, expected: list[Mention]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "write to me@src/a.py",
        "mail jo@README.md",
        "\\@src/a.py",
        "@property and @app.route('/x') and @pytest.mark.skip",
        "install @types/node",
        "@someone, what do you think?",
        "a @ b",
        "@@src/a.py",
        "@",
    ],
)
def test_what_is_no_file_stays_text(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("@src/missing.py", "src/missing.py"),
        ("see @missing.md.", "missing.md"),
        ('@"no such"', "no such"),
        ("@./x", "./x"),
        ("@../secret", "../secret"),
        ("@/etc/passwd", "/etc/passwd"),
        ("@nothing:3-4", "nothing"),
        ("@src/a.py:20-10", "src/a.py:20-10"),
        ("@src/a.py:0", "src/a.py:0"),
    ],
)
def test_what_can_only_be_meant_as_a_file_is_told_missing(text: str, path: str) -> None:
    (mention,) = found(text)
    assert (mention.path, mention.exists) == (path, False)


NAMES = st.text(st.characters(categories=("L", "N"), include_characters="_-/"), min_size=1)


@given(
    NAMES,
    st.none() | st.tuples(st.integers(1, 999), st.integers(0, 99)),
    st.sampled_from(["", ".", ")", "?"]),
)
def test_a_file_that_is_there_is_found_with_its_lines_and_whatever_follows(
    name: str, lines: tuple[int, int] | None, behind: str
) -> None:
    there = (lines[0], lines[0] + lines[1]) if lines is not None else None
    written = f"@{name}" + (f":{there[0]}-{there[1]}" if there is not None else "")
    expected = [Mention(name, there)]
    assert mentions(f"see ({written}{behind} now", {name}.__contains__) == expected
    quoted = f'@"{name}"' + (f":{there[0]}-{there[1]}" if there is not None else "")
    assert mentions(f"see {quoted}{behind} now", {name}.__contains__) == expected


@given(st.text())
def test_any_text_can_be_looked_through(text: str) -> None:
    assert all(not mention.exists for mention in mentions(text, lambda path: False))
