"""Checkers: the user describes them, a workspace only chooses among them."""

from pathlib import Path

import pytest

from agentd.config.checker_settings import Checker, chosen
from agentd.config.settings import Settings, load
from agentd.config.workspace_settings import WorkspaceFile

RUFF = Checker("ruff", ("ruff", "check", "--output-format", "json"), "ruff")
TSC = Checker("tsc", ("npx", "tsc", "--noEmit"), "tsc", 300)


def loaded(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load({"AGENTD_CONFIG": str(file), "AGENTD_DATA": str(tmp_path), "HOME": str(tmp_path)})


def test_checkers_are_read_in_their_order(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        '[checkers.ruff]\ncommand = ["ruff", "check", "--output-format", "json"]\nformat = "ruff"\n'
        '[checkers.tsc]\ncommand = ["npx", "tsc", "--noEmit"]\nformat = "tsc"\ntimeout_s = 300\n',
    )
    assert settings.problems == ()
    assert settings.checkers == (RUFF, TSC)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('format = "ruff"', "command: is missing"),
        ('command = []\nformat = "ruff"', "command: is missing"),
        ('command = "ruff check"\nformat = "ruff"', "has to be an array"),
        ('command = ["ruff"]', "format: is missing"),
        ('command = ["ruff"]\nformat = "xml"', '"xml" is not known'),
        ('command = ["ruff"]\nformat = "ruff"\ntimeout_s = 0', "has to be above 0"),
        ('command = ["ruff"]\nformat = "ruff"\nafter_edit_s = -1', "has to be 0 or more"),
    ],
)
def test_a_checker_that_is_described_wrongly_is_a_problem_and_left_out(
    tmp_path: Path, table: str, problem: str
) -> None:
    settings = loaded(tmp_path, f"[checkers.it]\n{table}\n")
    assert settings.checkers == ()
    (found,) = settings.problems
    assert problem in found.message


def test_an_unknown_key_is_a_problem_and_leaves_the_checker_out(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '[checkers.it]\ncommand = ["x"]\nformat = "gnu"\nshell = true\n')
    assert settings.checkers == ()
    assert "shell" in settings.problems[0].message


@pytest.mark.parametrize(("names", "left"), [(None, [RUFF, TSC]), (["tsc", "evil"], [TSC]), ([], [])])
def test_a_workspace_chooses_among_them(names: list[str] | None, left: list[Checker]) -> None:
    assert list(chosen((RUFF, TSC), names)) == left


def test_a_workspace_describes_none(tmp_path: Path) -> None:
    (tmp_path / ".agentd").mkdir()
    (tmp_path / ".agentd" / "config.toml").write_text('[checkers.evil]\ncommand = ["rm"]\nformat = "gnu"\n')
    settings = WorkspaceFile(tmp_path).settings("ask")
    assert settings.checkers is None
    assert "has to be an array" in settings.problems[0].message


def test_how_long_an_edit_waits_for_a_checker_can_be_said(tmp_path: Path) -> None:
    table = '[checkers.it]\ncommand = ["it"]\nformat = "gnu"\n'
    waits = [
        loaded(tmp_path, table + more).checkers[0].after_edit_s
        for more in ("", "after_edit_s = 0\n", "after_edit_s = 1.5\n")
    ]
    assert waits == [5.0, 0, 1.5]
