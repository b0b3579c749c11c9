"""The whole table of modes, kinds, trust and secrets."""

from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from agentd.config.command_rules import CommandRules
from agentd.permissions.policy import Allow, Ask, Decision, Deny, Proposal, decide
from agentd.permissions.rules import Rules
from agentd.protocol.messages import (
    CommandSubject,
    EditSubject,
    FetchSubject,
    McpSubject,
    Mode,
    PermissionSubject,
    ReadSubject,
    ToolKind,
)

READ = ReadSubject(uri="file:///w/a.py")
EDIT = EditSubject(uri="file:///w/a.py", patch="+x")
COMMAND = CommandSubject(command="make > log", cwd="/w")
FETCH = FetchSubject(url="https://example.org")
MCP = McpSubject(server="s", tool="t", arguments={})

MODES: tuple[Mode, ...] = get_args(Mode)
KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
READING = ("read", "search", "think")


def decided(mode: Mode, kind: ToolKind, subject: PermissionSubject | None, **options: Any) -> Decision:
    about = {name: options.pop(name) for name in ("secret", "sandboxable", "rebuildable") if name in options}
    given: dict[str, Any] = {"trusted": True, "remembered": Rules(), **options}
    return decide(Proposal("tool", kind, subject, **about), mode=mode, **given)


def word(decision: Decision) -> str:
    return type(decision).__name__.lower()


@pytest.mark.parametrize(
    ("kind", "subject", "plan", "ask", "edit", "auto", "full"),
    [
        ("read", READ, "allow", "allow", "allow", "allow", "allow"),
        ("read", None, "allow", "allow", "allow", "allow", "allow"),
        ("search", READ, "allow", "allow", "allow", "allow", "allow"),
        ("think", None, "allow", "allow", "allow", "allow", "allow"),
        ("edit", EDIT, "deny", "ask", "allow", "allow", "allow"),
        ("delete", EDIT, "deny", "ask", "allow", "allow", "allow"),
        ("move", EDIT, "deny", "ask", "allow", "allow", "allow"),
        ("execute", COMMAND, "deny", "ask", "ask", "ask", "allow"),
        ("fetch", FETCH, "deny", "ask", "ask", "ask", "allow"),
        ("other", MCP, "deny", "ask", "ask", "ask", "allow"),
        ("read", MCP, "ask", "ask", "ask", "ask", "allow"),  # a server may call its tools what it likes
        ("read", EDIT, "ask", "ask", "ask", "ask", "allow"),
        ("edit", COMMAND, "deny", "ask", "ask", "ask", "allow"),
        ("execute", EDIT, "deny", "ask", "ask", "ask", "allow"),
        ("execute", None, "deny", "allow", "allow", "allow", "allow"),  # nothing that could need asking
    ],
)
def test_each_mode_lets_run_what_it_says(
    kind: ToolKind, subject: PermissionSubject | None, plan: str, ask: str, edit: str, auto: str, full: str
) -> None:
    assert [word(decided(mode, kind, subject)) for mode in MODES] == [plan, ask, edit, auto, full]


def test_an_untrusted_workspace_makes_every_mode_but_plan_act_as_ask() -> None:
    for kind, subject, secret in product(KINDS, (None, READ, EDIT, COMMAND, FETCH, MCP), (False, True)):
        expected = decided("ask", kind, subject, secret=secret)
        for mode in ("ask", "edit", "auto", "full"):
            assert decided(mode, kind, subject, secret=secret, trusted=False) == expected
        assert decided("plan", kind, subject, secret=secret, trusted=False) == decided(
            "plan", kind, subject, secret=secret
        )


def test_a_secret_asks_in_every_mode_but_full() -> None:
    assert [word(decided(mode, "read", READ, secret=True)) for mode in MODES] == [*["ask"] * 4, "allow"]
    assert [word(decided(mode, "edit", EDIT, secret=True)) for mode in MODES] == [
        "deny",
        *["ask"] * 3,
        "allow",
    ]
    assert word(decided("auto", "execute", COMMAND, secret=True, sandboxable=True)) == "ask"
    assert word(decided("full", "read", READ, secret=True, trusted=False)) == "ask"


def test_a_secret_that_cannot_be_asked_about_is_denied() -> None:
    assert word(decided("ask", "read", None, secret=True)) == "deny"


def test_plan_denies_with_the_mode_the_tool_and_the_way_out() -> None:
    decision = decided("plan", "execute", COMMAND)
    assert isinstance(decision, Deny)
    for words in ('Mode "plan"', "tool may not run", 'switch to mode "ask"'):
        assert words in decision.reason


def remembering(*subjects: PermissionSubject) -> Rules:
    """The rules of a session in which these were allowed."""
    rules = Rules(Path("/w"))
    for number, subject in enumerate(subjects):
        (option,) = [o for o in rules.options("tool", subject) if o.scope == "session"]
        rules.remember(f"q{number}", "tool", subject, option, "")
    return rules


def test_a_remembered_answer_spares_the_question() -> None:
    rules = remembering(COMMAND, READ, EDIT)
    assert decided("ask", "execute", COMMAND, remembered=rules) == Allow()
    assert word(decided("plan", "read", READ, secret=True, remembered=rules)) == "allow"
    assert decided("edit", "edit", EDIT, remembered=rules) == Allow()  # the mode allows it by itself
    other = CommandSubject(command="make; rm -rf /", cwd="/w")
    assert decided("ask", "execute", other, remembered=rules) == Ask()


def test_what_a_rule_has_judged_runs_rebuilt_or_not_at_all() -> None:
    rules = remembering(CommandSubject(command="make", cwd="/w"))
    make = CommandSubject(command="make", cwd="/w")
    assert decided("ask", "execute", make, remembered=rules, rebuildable=True) == Allow("rebuilt")
    assert decided("ask", "execute", make, remembered=rules, rebuildable=False) == Ask()
    assert decided("auto", "execute", make, remembered=rules, rebuildable=True, sandboxable=True) == Allow(
        "sandboxed"
    )


def written(**rules: tuple[tuple[str, ...], ...]) -> Rules:
    return Rules(Path("/w"), None, lambda: CommandRules(**rules))


def test_a_rule_that_denies_holds_in_every_mode() -> None:
    rules = written(deny=(("make",),))
    for mode, trusted in product(MODES, (False, True)):
        decision = decided(mode, "execute", COMMAND, remembered=rules, sandboxable=True, trusted=trusted)
        assert isinstance(decision, Deny)
        assert mode == "plan" or 'denies "make"' in decision.reason


def test_a_rule_that_asks_holds_in_every_mode_but_full() -> None:
    rules = written(ask=(("make",),), allow=(("make", "*"),))
    for mode in MODES:
        told = word(decided(mode, "execute", COMMAND, remembered=rules, sandboxable=True, rebuildable=True))
        assert told == {"plan": "deny", "full": "allow"}.get(mode, "ask")


def test_no_remembered_answer_makes_plan_write() -> None:
    rules = remembering(COMMAND, EDIT)
    for kind in KINDS:
        if kind not in READING:
            assert word(decided("plan", kind, COMMAND, remembered=rules)) == "deny"
            assert word(decided("plan", kind, EDIT, remembered=rules)) == "deny"


def test_no_mode_but_full_runs_a_command_unasked() -> None:
    for mode, kind, trusted in product(MODES, KINDS, (False, True)):
        decision = decided(mode, kind, COMMAND, trusted=trusted)
        assert isinstance(decision, Allow) is (mode == "full" and trusted)


def test_auto_runs_in_the_sandbox_what_can_run_there_and_asks_about_the_rest() -> None:
    assert decided("auto", "execute", COMMAND, sandboxable=True) == Allow("sandboxed")
    assert decided("auto", "execute", COMMAND, sandboxable=False) == Ask()
    for mode in ("ask", "edit"):
        assert decided(mode, "execute", COMMAND, sandboxable=True) == Ask()
    assert decided("full", "execute", COMMAND, sandboxable=True) == Allow("plain")
    assert decided("auto", "execute", COMMAND, sandboxable=True, trusted=False) == Ask()


def test_what_was_allowed_to_run_outside_covers_no_other_command() -> None:
    outside = COMMAND.model_copy(update={"reason": "it has to"})
    rules = remembering(outside)
    other = outside.model_copy(update={"command": f"{outside.command} install"})
    assert decided("auto", "execute", other, remembered=rules, rebuildable=True) == Ask()
    assert decided("auto", "execute", outside, remembered=rules) == Allow("plain")
    assert decided("auto", "execute", COMMAND, sandboxable=True, remembered=rules) == Allow("sandboxed")


def test_a_rule_for_a_command_does_not_let_it_out_of_the_sandbox() -> None:
    make = CommandSubject(command="make", cwd="/w")
    rules = remembering(make)
    assert decided("ask", "execute", make, remembered=rules, rebuildable=True) == Allow("rebuilt")
    outside = make.model_copy(update={"reason": "it has to"})
    assert decided("auto", "execute", outside, remembered=rules, rebuildable=True) == Ask()
