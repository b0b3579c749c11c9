"""What a workspace may say for itself: stricter things. All else is ignored and named."""

import os
from pathlib import Path
from typing import Any

import pytest
from config.forbidden_keys import FORBIDDEN

from agentd.config.command_rules import CommandRules, rule_words
from agentd.config.settings import load
from agentd.config.workspace_settings import UNSAID, WorkspaceFile, WorkspaceSettings


def said(root: Path, text: str, user_mode: Any = "edit") -> WorkspaceSettings:
    (root / ".agentd").mkdir(exist_ok=True)
    (root / ".agentd" / "config.toml").write_text(text)
    return WorkspaceFile(root).settings(user_mode)


def test_no_file_says_nothing(tmp_path: Path) -> None:
    assert WorkspaceFile(tmp_path).settings("ask") == UNSAID
    (tmp_path / ".agentd").touch()
    assert WorkspaceFile(tmp_path).settings("ask").model is None


def test_it_may_name_a_model_limits_and_stricter_permissions(tmp_path: Path) -> None:
    settings = said(
        tmp_path,
        'model = "openai/gpt-5"\neffort = "low"\nmax_turns = 20\nmode = "ask"\n'
        '[permissions]\ndeny = ["rm -rf"]\nask = ["git push"]\n',
    )
    assert settings.problems == ()
    assert (settings.model, settings.effort, settings.max_turns) == ("openai/gpt-5", "low", 20)
    assert settings.rules == CommandRules(deny=(("rm", "-rf"),), ask=(("git", "push"),))


@pytest.mark.parametrize(
    ("user", "workspace", "mode"),
    [("edit", "ask", "ask"), ("edit", "plan", "plan"), ("ask", "edit", "ask"), ("plan", "full", "plan"),
     ("ask", "ask", "ask"), ("auto", "edit", "edit"), ("full", "auto", "auto")],
)  # fmt: skip
def test_the_stricter_mode_holds(tmp_path: Path, user: Any, workspace: str, mode: str) -> None:
    settings = said(tmp_path, f'mode = "{workspace}"\n', user)
    assert settings.stricter_mode(user) == mode
    looser = workspace != mode
    assert [("looser" in problem.message, problem.line) for problem in settings.problems] == [
        (True, 0)
    ] * looser


@pytest.mark.parametrize(("text", "key"), FORBIDDEN, ids=[key for _, key in FORBIDDEN])
def test_what_is_not_a_workspaces_to_say_is_ignored_and_named(tmp_path: Path, text: str, key: str) -> None:
    settings = said(tmp_path, text)
    (problem,) = settings.problems
    assert settings == WorkspaceSettings(problems=settings.problems)
    assert f": {key}: " in problem.message
    assert (problem.severity, problem.uri) == ("error", (tmp_path / ".agentd" / "config.toml").as_uri())
    assert problem.line is not None
    assert "canary" not in problem.message


def test_it_is_read_anew_when_it_changes(tmp_path: Path) -> None:
    said(tmp_path, 'model = "a/b"')
    file = WorkspaceFile(tmp_path)
    assert file.settings("ask").model == "a/b"
    said(tmp_path, 'model = "a/other"')
    assert file.settings("ask").model == "a/other"
    (tmp_path / ".agentd" / "config.toml").unlink()
    assert file.settings("ask") == UNSAID


def test_a_link_a_fifo_and_junk_say_nothing_and_are_problems(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    said(outside, 'model = "a/b"')
    for number, make in enumerate(
        [
            lambda place: place.symlink_to(outside / ".agentd" / "config.toml"),
            os.mkfifo,
            lambda place: place.mkdir(),
            lambda place: place.write_bytes(b"\xff\xfe\x00"),
            lambda place: place.write_bytes(b"a" * 300_000),
            lambda place: place.write_text("model = "),
        ]
    ):
        root = tmp_path / str(number)
        (root / ".agentd").mkdir(parents=True)
        make(root / ".agentd" / "config.toml")
        settings = WorkspaceFile(root).settings("ask")
        assert (settings.model, len(settings.problems)) == (None, 1)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".agentd").symlink_to(outside / ".agentd")
    assert WorkspaceFile(tmp_path / "linked").settings("ask").model is None


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda place: place.symlink_to("/dev/null"), "it is a link, or its folder is one"),
        (lambda place: place.mkdir(), "it is no file;"),
        (lambda place: place.write_bytes(b"#" * 300_000), "it is larger than 262144 bytes"),
        (lambda place: place.write_text('modle = "a/b"'), 'modle: is no known key (did you mean "mode"?)'),
        (lambda place: place.write_text("allow_full = true"), "allow_full: may not be set by a workspace"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_as_it_is(tmp_path: Path, make: Any, why: str) -> None:
    (tmp_path / ".agentd").mkdir()
    make(tmp_path / ".agentd" / "config.toml")
    (problem,) = WorkspaceFile(tmp_path).settings("ask").problems
    assert why in problem.message


@pytest.mark.parametrize("kind", ["deny", "ask", "allow"])
def test_a_slip_in_one_rule_takes_no_other_one_out_of_force(tmp_path: Path, kind: str) -> None:
    text = f'[permissions]\n{kind} = ["git push", 5, "", "a; b", ["rm"], "curl"]\n'
    config = tmp_path / "config.toml"
    config.write_text(text)
    settings = load({"AGENTD_CONFIG": str(config)})
    assert getattr(settings.permissions, kind) == (("git", "push"), ("curl",))
    assert [f"permissions.{kind}: " in problem.message for problem in settings.problems] == (
        [True, True] if kind == "allow" else [True, True, True]
    )
    if kind != "allow":
        said(tmp_path, text)
        assert getattr(WorkspaceFile(tmp_path).settings("ask").rules, kind) == (("git", "push"), ("curl",))


@pytest.mark.parametrize(
    ("text", "are_unknown"),
    [
        ("permissions = 'rm'", True),
        ("[permissions]\ndeny = 'rm'", True),
        ("[permissions]\nask = {rm = true}", True),
        ("[permissions]\ndeny = ['rm', 5]", True),
        ("[permissions]\nask = ['rm', '']", True),
        ("[permissions]\ndeny = ['rm; true', 'rm']", True),
        ("[permissions]\ndney = ['rm']", True),
        ("[permissions]\nallow = 'rm'", False),
        ("[permissions]\nallow = ['rm; true', 5]", False),
        ("[permissions]\ndeny = []", False),
    ],
)
def test_what_may_be_a_rule_and_is_not_understood_has_every_command_asked_about(
    tmp_path: Path, text: str, are_unknown: bool
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(text)
    settings = load({"AGENTD_CONFIG": str(config)})
    said(tmp_path, text)
    for rules, problems in (
        (settings.permissions, settings.problems),
        (WorkspaceFile(tmp_path).settings("ask").rules, WorkspaceFile(tmp_path).settings("ask").problems),
    ):
        assert rules.are_unknown is are_unknown
        assert any("every command is asked about" in each.message for each in problems) is are_unknown


def test_the_users_rules_are_words_of_one_command(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[permissions]\ndeny = ["rm -rf", "git push --force"]\n'
        'ask = ["curl"]\nallow = ["npm test", "make *"]\n'
    )
    rules = load({"AGENTD_CONFIG": str(config)}).permissions
    assert rules.deny == (("rm", "-rf"), ("git", "push", "--force"))
    assert (rules.ask, rules.allow) == ((("curl",),), (("npm", "test"), ("make", "*")))
    for wrong in (
        "",
        "ls; rm",
        "ls && rm",
        "ls > f",
        "echo $HOME",
        "'ls",
        "*",
        "* x",
        "-rf",
        "A=b ls",
        "make * x",
        "ls | wc",
    ):
        assert isinstance(rule_words(wrong), str)
    config.write_text('[permissions]\nallow = ["ls; rm"]\nalow = ["ls"]\n')
    settings = load({"AGENTD_CONFIG": str(config)})
    assert settings.permissions.allow == ()
    assert [problem.line for problem in settings.problems] == [1, 2, 2]
