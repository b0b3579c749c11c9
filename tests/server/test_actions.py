"""The editor's menu: which actions a place offers, and what they say to the model."""

from pathlib import Path
from typing import Any

import pytest

from agentd.protocol.messages import Range
from agentd.server import orders
from agentd.server.actions import Action, CodeActionParams, Target, actions, asking_lines

URI = "file:///w/src/app.py"
ROOT = Path("/w")


def rng(start: tuple[int, int], end: tuple[int, int]) -> Range:
    return Range.model_validate(
        {
            "start": {"line": start[0], "character": start[1]},
            "end": {"line": end[0], "character": end[1]},
        }
    )


CURSOR = rng((1, 4), (1, 4))
SELECTION = rng((0, 0), (2, 0))
UNUSED: dict[str, Any] = {
    "range": {"start": {"line": 1, "character": 7}, "end": {"line": 1, "character": 9}},
    "message": "`os` imported but\n  unused",
    "severity": 1,
    "source": "ruff",
    "code": "F401",
}


def offered(where: Range, text: str | None = "", diagnostics: Any = (), only: Any = None) -> list[Action]:
    context = {"diagnostics": list(diagnostics)} | ({} if only is None else {"only": only})
    params = CodeActionParams.model_validate(
        {"textDocument": {"uri": URI}, "range": where.model_dump(), "context": context}
    )
    return actions(params, text, running=["s1"], asking=["q1", "q2"])


def commands(found: list[Action]) -> list[str]:
    return [action.command for action in found]


def test_a_cursor_is_offered_what_concerns_the_file_and_what_runs() -> None:
    assert commands(offered(CURSOR)) == [
        "agentd.explain",
        "agentd.test",
        "agentd.approve",
        "agentd.reject",
        "agentd.cancel",
    ]


def test_a_selection_can_be_rewritten_too() -> None:
    assert commands(offered(SELECTION, only=["refactor"])) == ["agentd.edit"]


def test_a_diagnostic_is_offered_a_fix_that_names_it() -> None:
    (fix,) = offered(CURSOR, diagnostics=[UNUSED], only=["quickfix"])
    assert (fix.title, fix.command) == ("agentd: fix this problem", "agentd.fix")
    literal = fix.on_wire(as_literal=True)
    assert literal["diagnostics"][0].message == UNUSED["message"]
    assert literal["command"]["arguments"][0].uri == URI


def test_a_client_without_literals_is_given_commands() -> None:
    (fix,) = offered(CURSOR, diagnostics=[UNUSED], only=["quickfix"])
    assert fix.on_wire(as_literal=False).keys() == {"title", "command", "arguments"}


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        ([], set()),
        ([""], {"quickfix", "refactor.rewrite", "source"}),
        (["source.fixAll"], set()),
        (["refactor.rewrite.function"], set()),
        (["refactor.rewrite"], {"refactor.rewrite"}),
        (["quick"], set()),
    ],
)
def test_only_kinds_that_were_asked_for_are_offered(only: list[str], kinds: set[str]) -> None:
    found = offered(SELECTION, diagnostics=[UNUSED], only=only)
    assert {action.kind for action in found} == kinds


@pytest.mark.parametrize(
    "line",
    [
        "# agentd: rename it",
        "    // agentd:   rename it  ",
        "/* agentd: rename it */",
        " * agentd: rename it",
        "-- agentd: rename it",
        "<!-- agentd: rename it -->",
        ";; agentd: rename it",
        "% agentd: rename it",
        '" agentd: rename it',
        "(* agentd: rename it *)",
        "{# agentd: rename it #}",
        "REM agentd: rename it",
    ],
)
def test_a_comment_that_asks_is_found_in_any_language(line: str) -> None:
    assert asking_lines(f"first\n{line}\r\nlast", CURSOR) == [(1, "rename it")]


@pytest.mark.parametrize(
    "line",
    ["x = 1  # agentd: rename it", "agentd: rename it", "# agentd:", "# the agentd: x", 'log("# agentd: x")'],
)
def test_a_line_of_code_or_prose_asks_for_nothing(line: str) -> None:
    assert asking_lines(f"first\n{line}\nlast", CURSOR) == []


def test_only_lines_of_the_selection_ask() -> None:
    text = "# agentd: a\n# agentd: b\n# agentd: c\n"
    assert asking_lines(text, SELECTION) == [(0, "a"), (1, "b")]
    assert asking_lines(text, rng((2, 0), (2, 5))) == [(2, "c")]
    assert asking_lines(text, rng((9, 0), (9, 0))) == []


def test_a_comment_is_an_action_under_its_own_words() -> None:
    words = "do this and that " * 9
    (asked,) = offered(CURSOR, f"x\n# agentd: {words}\n", only=["quickfix"])
    assert asked.title.startswith("agentd: do this and that")
    assert len(asked.title) < 80
    assert asked.arguments[0] == words.strip()
    said = orders.asked_in(asked.arguments[0], asked.arguments[1], ROOT)
    assert "comment in line 2 of src/app.py" in said


def test_a_finding_of_ours_has_a_fix_of_its_own() -> None:
    findings = [
        {**UNUSED, "source": "agentd", "message": text} for text in ("off by\n one", "leaks \u202ea file")
    ]
    (one,) = offered(CURSOR, diagnostics=findings[:1], only=["quickfix"])
    assert (one.title, one.command) == ("agentd: fix: off by one", "agentd.fix")
    assert orders.fix(one.arguments[0], ROOT).endswith("Then report the findings that are left.")
    found = offered(CURSOR, diagnostics=[UNUSED, *findings], only=["quickfix"])
    assert [action.title for action in found] == [
        "agentd: fix: off by one",
        "agentd: fix: leaks \\u202ea file",
        "agentd: fix these 3 problems",
    ]
    assert [len(action.arguments[0].diagnostics) for action in found] == [1, 1, 3]


def test_a_comment_cannot_look_other_than_it_is() -> None:
    text = "x\n# agentd: rename\x1b[2J \u202eit " + "\u200b" * 9 + "now\n"
    (asked,) = offered(CURSOR, text, only=["quickfix"])
    assert asked.title == "agentd: rename\\x1b[2J \\u202eit [9 invisible characters left out]now"
    assert "\u200b" not in asked.arguments[0]


@pytest.mark.parametrize(
    "line", ["# agentd: a" + " " * 100_000 + "b", " " * 200_000 + "x", "# agentd:" + "*" * 100_000]
)
def test_no_line_takes_long(line: str) -> None:
    found = asking_lines(f"first # agentd:\n{line}\nlast", CURSOR)
    assert [words[:1] for _, words in found] in ([], ["a"], ["*"])


def test_a_fix_lists_no_more_than_a_model_reads() -> None:
    target = Target.model_validate({"uri": URI, "diagnostics": [{**UNUSED, "message": "x" * 5000}] * 80})
    said = orders.fix(target, ROOT)
    assert said.splitlines()[-1] == "- and 30 more"
    assert len(said) < 30_000


def test_a_fix_says_line_severity_words_and_source() -> None:
    target = Target.model_validate({"uri": URI, "range": CURSOR.model_dump(), "diagnostics": [UNUSED]})
    assert orders.fix(target, ROOT) == (
        "Fix this problem in line 2 of src/app.py.\n- 2:8: error: `os` imported but unused (F401 ruff)"
    )


def test_an_order_takes_the_users_own_words() -> None:
    target = Target.model_validate(
        {"uri": URI, "range": SELECTION.model_dump(), "instruction": "use pathlib"}
    )
    assert orders.edit(target, ROOT) == "In lines 1 to 2 of src/app.py: use pathlib"
    assert orders.explain(target, ROOT).endswith("\nuse pathlib")
    assert orders.test(target, Path("/elsewhere")).startswith("Write tests for lines 1 to 2 of /w/src/app.py")
