"""Remembered answers cover what was shown, to the letter."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.permissions.rules import Rules, options_for, rule_for
from agentd.protocol.messages import (
    CommandSubject,
    EditSubject,
    FetchSubject,
    McpSubject,
    PermissionSubject,
    ReadSubject,
)

ROOT = Path("/home/u/project")


def command(text: str, cwd: str = str(ROOT)) -> CommandSubject:
    return CommandSubject(command=text, cwd=cwd)


SUBJECTS: list[PermissionSubject] = [
    command("make test"),
    EditSubject(uri="file:///home/u/project/src/a.py", patch="+x"),
    ReadSubject(uri="file:///home/u/project/.env"),
    FetchSubject(url="https://example.org/a"),
    McpSubject(server="s", tool="t", arguments={"a": [1], "b": None}),
]

OTHERS: list[PermissionSubject] = [
    command("make test", cwd="/home/u/other"),
    EditSubject(uri="file:///home/u/project/src/b.py", patch="+x"),
    ReadSubject(uri="file:///home/u/project/.env.local"),
    ReadSubject(uri="file:///home/u/project/src/a.py"),
    FetchSubject(url="http://example.org/a"),
    FetchSubject(url="https://example.org:8443/a"),
    FetchSubject(url="https://sub.example.org/a"),
    FetchSubject(url="https://example.org.evil.test/a"),
    McpSubject(server="s", tool="t", arguments={"a": [2], "b": None}),
    McpSubject(server="s", tool="u", arguments={"a": [1], "b": None}),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.type)
def test_a_rule_covers_its_own_subject_of_its_own_tool_and_nothing_else(subject: PermissionSubject) -> None:
    rules = Rules()
    assert not rules.covers("x", subject)
    rules.remember("x", subject)
    assert rules.covers("x", subject)
    assert not rules.covers("y", subject)
    assert not any(rules.covers("x", each) for each in [*SUBJECTS, *OTHERS] if each != subject)


def test_an_edit_rule_covers_the_next_edit_of_the_same_file() -> None:
    rules = Rules()
    rules.remember("edit_file", EditSubject(uri="file:///a", patch="+1"))
    assert rules.covers("edit_file", EditSubject(uri="file:///a", patch="-2"))


def test_a_fetch_rule_covers_all_of_one_host() -> None:
    rules = Rules()
    rules.remember("web_fetch", FetchSubject(url="https://example.org/a"))
    assert rules.covers("web_fetch", FetchSubject(url="https://example.org:443/b?c=d"))


def test_the_order_of_arguments_makes_no_difference() -> None:
    rules = Rules()
    rules.remember("t", McpSubject(server="s", tool="t", arguments={"a": 1, "b": 2}))
    assert rules.covers("t", McpSubject(server="s", tool="t", arguments={"b": 2, "a": 1}))


PIECES = st.sampled_from(
    ["git status", "ls", " ", "\n", ";", "&&", "|", "$(touch p)", "`touch p`", "> p", "foo", "\t"]
)


@given(
    st.lists(PIECES, min_size=1, max_size=4).map("".join),
    st.lists(PIECES, max_size=6).map("".join) | st.text(),
)
def test_no_other_string_is_covered_by_a_remembered_command(allowed: str, other: str) -> None:
    rules = Rules()
    rules.remember("bash", command(allowed))
    for text in (other, allowed + other, other + allowed, allowed.strip(), allowed.upper()):
        assert rules.covers("bash", command(text)) is (text == allowed)


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (command("make test"), "exactly this command: make test"),
        (command("make test", str(ROOT / "sub")), "exactly this command: make test (in sub)"),
        (command("make test", "/tmp"), "exactly this command: make test (in /tmp)"),
        (
            command("ls\nrm -rf \x1b[2K\u202e\u200b"),
            "exactly this command: ls\\nrm -rf \\x1b[2K\\u202e\\u200b",
        ),
        (command("x" * 300), f"exactly this command: {'x' * 200}… (300 characters)"),
        (EditSubject(uri="file:///home/u/project/src/a%20b.py", patch=""), "edits to src/a b.py with tool"),
        (EditSubject(uri="untitled:Untitled-1", patch=""), "edits to untitled:Untitled-1 with tool"),
        (ReadSubject(uri="file:///home/u/project2/.env"), "reading /home/u/project2/.env with tool"),
        (FetchSubject(url="https://example.org/a"), "fetching anything from https://example.org"),
        (FetchSubject(url="http://[2001:db8::1]:80/a"), "fetching anything from http://[2001:db8::1]"),
        (FetchSubject(url="http://example.org:81/a?b"), "fetching anything from http://example.org:81"),
        (McpSubject(server="s", tool="t", arguments={}), "t of s with exactly these arguments"),
    ],
)
def test_a_rule_says_what_it_covers(subject: PermissionSubject, words: str) -> None:
    assert rule_for("tool", subject, ROOT) == words


def test_a_question_offers_once_the_session_and_no() -> None:
    options = options_for("bash", command("make test"), ROOT)
    assert [(each.option_id, each.kind, each.scope, each.rule) for each in options] == [
        ("allow_once", "allow_once", "once", None),
        ("allow_always", "allow_always", "session", "exactly this command: make test"),
        ("reject_once", "reject_once", "once", None),
    ]
    assert len({each.label for each in options}) == 3  # a client may give back the label alone
