"""What the model is told when a text is not in a file as it stands."""

import pytest

from agentd.tools import mismatch
from agentd.tools.replacement import replace
from agentd.workspace.paths import WorkspaceError


def refusal(text: str, old: str) -> str:
    with pytest.raises(WorkspaceError) as caught:
        replace(text, old, "new", every=False, name="f")
    assert caught.value.kind == "no_match"
    assert "Nothing was changed" in str(caught.value)
    str(caught.value).encode("utf-8")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "old", "reason"),
    [
        ("a = 1  \nb = 2\n", "a = 1\nb = 2", "whitespace at the ends of lines"),
        ("if x:\n\treturn 1\n", "if x:\n    return 1", "tabs against spaces"),
        ("  if x:\n    y()\n", "if x:\n  y()", "indentation"),
        ("say(“hi”)\n", 'say("hi")', "the form of quotes"),
        ("f(a,  b)\n", "f(a, b)", "whitespace"),
        ("a = 1\n", "a = 1  \n", "whitespace at the ends of lines"),
        ("cafe\u0301\n", "caf\u00e9", "the form of accents"),
        ("x — y\n", "x - y", "the form of dashes"),
        ("Hello World\n", "hello world", "upper and lower case"),
        ("a\udcff = 1\n", "a\ufffd = 1", "bytes that are not valid UTF-8"),
        ("a\u00a0= 1\n", "a = 1", "whitespace"),
        ("a\u200b = 1\n", "a = 1", "invisible characters"),
        ("it\u2019s\n", "it's", "the form of quotes"),
        ("`x`\n", "'x'", "the form of quotes"),
        ("wait\u2026\n", "wait...", "the form of characters (Unicode NFKC)"),
        ("a\n\n\nb\n", "a\n\nb", "blank lines or indentation"),
        ("say(\u201chi\u201d)  \n", 'Say("hi")', "whitespace, quotes, dashes, case or the form"),
    ],
)
def test_no_match_shows_the_region_and_the_reason(text: str, old: str, reason: str) -> None:
    said = refusal("# first\n" + text + "# last\n", old)
    assert f"differs from it only in {reason}" in said
    assert "\n    2 | " in said


@pytest.mark.parametrize(
    ("text", "old", "reason"),
    [
        ("def f():\n    return 1\n", "    2 | def f():\n    3 |     return 1", "line numbers of read_file"),
        ("a = 1\n\nb = 2\n", "    2 | a = 1\n    3 | \n    4 | b = 2\n", "line numbers of read_file"),
        ("a = 1\nb = 2\n", "a = 1\\nb = 2", "escapes such as"),
        ("if x:\n\treturn\n", "if x:\\n\\treturn", "escapes such as"),
        ('say("hi")\n', 'say(\\"hi\\")', "escapes such as"),
        ('print("a\\n")\n', 'print("a\n")', "line breaks or tabs where the file has the escapes"),
        ("if (a < b && c)\n", "if (a &lt; b &amp;&amp; c)", "HTML escapes"),
    ],
)
def test_a_text_that_was_written_in_another_way_is_recognised(text: str, old: str, reason: str) -> None:
    said = refusal("# first\n" + text + "# last\n", old)
    assert reason in said
    assert "The text meant is:\n    2 | " in said


def test_no_match_shows_the_nearest_region_or_says_there_is_none() -> None:
    text = "import os\n\ndef load(path):\n    return open(path).read()\n"
    said = refusal(text, "def load(name):\n    return open(name).read()")
    assert "The nearest region is:\n    3 | def load(path):\n    4 |     return open(path)" in said
    assert "leave that newline out" in refusal("a\nb", "a\nb\n")
    assert "Nothing in the file is like it" in refusal(text, "qqqqqqqqqqqqqqqqq")


def test_the_nearest_region_is_the_one_with_most_of_the_lines() -> None:
    block = "def {name}(path):\n    data = open(path)\n    return data\n\n"
    text = "".join(block.format(name=name) for name in ("one", "two", "three"))
    wanted = "def three(path):\n    data = open(path, 'rb')\n    return data\n"
    assert "The nearest region is:\n    9 | def three(path):\n   10 | " in refusal(text, wanted)


BIG = 10_000_000


def test_the_nearest_region_of_a_huge_file_is_found_wherever_it_is() -> None:
    line = "some_value_{0} = compute({0}, 'x')\n"
    filler = "".join(line.format(number) for number in range(BIG // len(line)))
    said = refusal(filler + "def late(one, two):\n    pass\n" + filler, "def late(one, two, three):")
    number = filler.count("\n") + 1
    assert f"The nearest region is:\n{number:5d} | def late(one, two):" in said
    said = refusal(filler + "x = “odd”\n", 'x = "odd"')
    assert f"only in the form of quotes:\n{number:5d} | x = “odd”" in said


@pytest.mark.parametrize(
    "filler", ["x" * BIG, "ab cd " * (BIG // 6), "\t \u00a0" * (BIG // 6), "\r\n" * (BIG // 2)]
)
def test_one_huge_line_or_ten_million_ends_are_no_hindrance(filler: str) -> None:
    said = refusal(filler + "needle_word(a, b)" + filler, "needle_word(a,  c)")
    assert len(said) < 3_000
    assert "needle_word(a, b)" in said or "Nothing in the file" in said


def test_a_long_line_is_shown_around_the_place() -> None:
    said = refusal("y" * 5_000 + " needle_word(“a”) " + "z" * 5_000, 'needle_word("a")')
    assert "only in the form of quotes" in said
    assert "needle_word(“a”)" in said
    assert len(said) < 1_000


def test_of_a_file_with_millions_of_lines_the_first_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mismatch, "_MAX_LINES", 10)
    text = "x\n" * 9 + "def one(path):\n" + "def two(path):\n"
    assert "   10 | def one(path):" in refusal(text, "def one(name):")
    assert "def two" not in refusal(text, "def two(name):")
