import os
from pathlib import Path

import pytest

from agentd.workspace import ripgrep
from agentd.workspace.ripgrep import Ripgrep, find_ripgrep


@pytest.fixture(autouse=True)
def only_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "_installed", lambda: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def program(folder: Path, says: str = "ripgrep 14.1.0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\n{says if says.startswith('exit') else f'echo {says}'}\n")
    path.chmod(0o755)
    return path


def test_the_first_ripgrep_on_path_is_found(tmp_path: Path, root: Path) -> None:
    found = program(tmp_path / "bin")
    path = os.pathsep.join(["/nowhere", "", str(tmp_path / "bin"), str(program(tmp_path / "more").parent)])
    assert find_ripgrep(root, path) == Ripgrep(str(found), "14.1.0")
    assert find_ripgrep(root, "") is None


def test_the_one_that_was_installed_with_agentd_comes_first(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = program(tmp_path / "mine", "ripgrep 14.0.0")
    monkeypatch.setattr(ripgrep, "_installed", lambda: mine)
    found = find_ripgrep(root, str(program(tmp_path / "bin").parent))
    assert found == Ripgrep(str(mine), "14.0.0")


def test_none_of_the_workspace_is_used(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = program(root / "bin")
    (tmp_path / "linked").symlink_to(root / "bin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rg").symlink_to(inside)
    outward = root / "outward"
    outward.mkdir()
    (outward / "rg").symlink_to(program(tmp_path / "real"))
    (tmp_path / "root").symlink_to(root)
    monkeypatch.chdir(root)
    entries = [root / "bin", tmp_path / "linked", tmp_path / "bin", outward, tmp_path / "root/bin"]
    for path in (*map(str, entries), "bin", ".", "./bin", ""):
        assert find_ripgrep(root, path) is None, path
        assert find_ripgrep(tmp_path / "root", path) is None, path
    assert find_ripgrep(tmp_path / "real-other", str(root / "bin")) is not None


def test_a_relative_folder_on_path_does_not_count(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ripgrep, "_version", lambda *program: "14.1.0")  # whatever is asked says yes
    program(tmp_path / "bin")
    monkeypatch.chdir(tmp_path)
    assert find_ripgrep(root, str(tmp_path / "bin")) is not None
    assert find_ripgrep(root, "bin") is None
    monkeypatch.chdir(tmp_path / "bin")
    assert find_ripgrep(root, f".{os.pathsep}") is None


@pytest.mark.parametrize("says", ["ripgrep 11.0.2", "rg 1.0", "exit 1", "exit 0", "ripgrep x"])
def test_what_is_no_ripgrep_or_too_old_is_passed_over(tmp_path: Path, root: Path, says: str) -> None:
    assert find_ripgrep(root, str(program(tmp_path / "bin", says).parent)) is None


@pytest.mark.parametrize("mode", [0o644, 0o757])
def test_one_that_is_no_program_or_that_anyone_can_change_is_passed_over(
    tmp_path: Path, root: Path, mode: int
) -> None:
    program(tmp_path / "bin").chmod(mode)
    assert find_ripgrep(root, str(tmp_path / "bin")) is None


def test_one_in_a_folder_that_anyone_can_change_is_passed_over(tmp_path: Path, root: Path) -> None:
    program(tmp_path / "bin")
    (tmp_path / "bin").chmod(0o777)
    assert find_ripgrep(root, str(tmp_path / "bin")) is None
    (tmp_path / "bin/rg").unlink()
    (tmp_path / "bin/rg").mkdir()
    assert find_ripgrep(root, str(tmp_path / "bin")) is None


def test_it_is_asked_once_until_it_changes(tmp_path: Path, root: Path) -> None:
    found = program(tmp_path / "bin", f"ripgrep 14.1.0; echo >> {tmp_path}/asked")
    for _ in range(3):
        assert find_ripgrep(root, str(found.parent)) is not None
    assert (tmp_path / "asked").read_text() == "\n"
    program(tmp_path / "bin", "exit 1")
    os.utime(found, ns=(0, 0))
    assert find_ripgrep(root, str(found.parent)) is None
