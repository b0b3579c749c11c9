"""Workspaces that are too large to be read before each command: git is asked for what was there."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
import pytest_asyncio
from sandboxes import BACKENDS, Ground, ground
from test_git_index import git, settle

from agentd.config.sandbox_settings import Wanted
from agentd.workspace import command_changes, restoring
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.command_changes import Looks
from agentd.workspace.git import Git
from agentd.workspace.prompt_checkpoint import PromptCheckpoint
from agentd.workspace.wants import wanted
from agentd.workspace.write_notes import WriteNotes

ENVIRONMENT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
COUNT = 40


class Large:
    """A repository with more files than are read."""

    def __init__(self, made: Ground, kept: Path) -> None:
        self.root = made.root
        environment = {**ENVIRONMENT, "HOME": str(made.home)}
        self.git: Git | None = Git(made.root, made.processes, made.sandbox, environment)
        self.checkpoints = Checkpoints(kept)
        self.told: list[str] = []
        self.looks = Looks()
        git(self.root, "init", "-q")
        for number in range(COUNT):
            self.path(number).parent.mkdir(exist_ok=True)
            self.path(number).write_text(f"content {number}\n")
        (self.root / ".gitignore").write_text("ignored/\n")
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "first")
        settle(self.root)

    def path(self, number: int) -> Path:
        return self.root / f"dir{number % 3}" / f"{number}.txt"

    async def after(self, command: str) -> None:
        """Run a command as a prompt does."""
        checkpoint = PromptCheckpoint(self.checkpoints, "p", self.looks, self.told.append, git=self.git)
        async with checkpoint.watching(self.root):
            await anyio.run_process(["bash", "-ec", command], cwd=self.root)

    def files(self) -> dict[str, tuple[int, bytes]]:
        found = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.root)): (path.stat().st_mode, path.read_bytes()) for path in found}

    def rewind(self) -> dict[str, str | None]:
        """Go back to before the prompt; gives the files with their conflicts."""
        wants = wanted(self.checkpoints.changes(), {"p"})
        found = restoring.plan(self.checkpoints, self.root, wants, ())
        steps = [step for step in found if step.conflict is None]
        restoring.restore(self.checkpoints, "r", steps, WriteNotes())
        return {step.place.shown: step.conflict for step in found}


@pytest_asyncio.fixture(params=BACKENDS)
async def large(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Large]:
    backend: Wanted = request.param
    monkeypatch.setattr(command_changes, "MOST_FILES", COUNT // 2)
    async with ground(tmp_path, backend) as made:
        yield Large(made, tmp_path / "kept")


COMMANDS = {
    "files change": "echo x > dir0/0.txt; chmod 755 dir2/2.txt",
    "files go and come": "rm dir1/1.txt; mkdir n; echo y > n/new",
    "what was changed before already": "echo y >> dir0/3.txt; rm staged; echo z > untracked",
    "a commit": "echo x > dir0/0.txt; git add -A; git -c user.name=t -c user.email=t@t commit -qm second",
    "another branch": "git checkout -q other",
    "a reset": "git reset -q --hard; git clean -fdq",
    "everything": "rm -rf dir0 dir1 dir2",
}  # fmt: skip


@pytest.mark.parametrize("what", COMMANDS)
async def test_what_a_command_did_is_taken_back_from_what_git_has(large: Large, what: str) -> None:
    root = large.root
    git(root, "checkout", "-q", "-b", "other")
    for number in range(0, COUNT, 2):
        large.path(number).write_text("on another branch")
    git(root, "commit", "-qam", "other")
    git(root, "checkout", "-q", "-")
    (root / "dir0" / "3.txt").write_text("not committed")
    (root / "staged").write_text("staged")
    git(root, "add", "staged")
    (root / "untracked").write_text("untracked")
    settle(root)
    before = large.files()
    await large.after(COMMANDS[what])
    assert large.looks.needs_git
    assert large.told == []
    assert large.files() != before
    assert set(large.rewind().values()) == {None}
    assert large.files() == before


async def test_a_second_command_of_the_prompt_is_seen_as_well(large: Large) -> None:
    before = large.files()
    await large.after("echo 1 > dir0/0.txt")
    await large.after("echo 2 > dir0/0.txt; echo 2 > dir1/1.txt")
    assert set(large.rewind()) == {"dir0/0.txt", "dir1/1.txt"}
    assert large.files() == before


async def test_nothing_of_the_repository_changes_and_nothing_that_it_names_runs(large: Large) -> None:
    root, mark = large.root, large.root.parent / "ran"
    (root / ".git" / "hooks").mkdir(exist_ok=True)
    for hook in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        (root / ".git" / "hooks" / hook).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (root / ".git" / "hooks" / hook).chmod(0o755)
    with (root / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = touch {mark}\n\tsshCommand = touch {mark}\n")
        config.write(
            f'[filter "x"]\n\tsmudge = touch {mark}\n\tclean = touch {mark}\n\tprocess = touch {mark}\n'
        )
    (root / ".gitattributes").write_text("dir0/* filter=x\n")
    repository = {path: path.read_bytes() for path in (root / ".git").rglob("*") if path.is_file()}
    await large.after("echo 1 > dir0/0.txt; echo 1 > dir1/1.txt")
    assert set(large.rewind().values()) == {None}
    assert {path: path.read_bytes() for path in (root / ".git").rglob("*") if path.is_file()} == repository
    assert not mark.exists()


async def test_a_content_that_was_converted_is_a_conflict_and_never_written(large: Large) -> None:
    git(large.root, "config", "core.autocrlf", "true")
    large.path(1).unlink()
    git(large.root, "checkout", "-q", ".")
    settle(large.root)
    assert large.path(1).read_bytes() == b"content 1\r\n"
    await large.after("echo x > dir1/1.txt; echo x > dir0/0.txt")
    assert large.rewind() == {"dir0/0.txt": None, "dir1/1.txt": restoring.NOT_KEPT}
    assert large.path(1).read_bytes() == b"x\n"


async def test_an_object_that_is_not_what_its_name_says_is_not_written(large: Large) -> None:
    import zlib

    blob = git(large.root, "rev-parse", "HEAD:dir0/0.txt").strip()
    path = large.root / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 10\0hostile!!\n"))
    await large.after("echo x > dir0/0.txt; echo x > dir1/1.txt")
    assert large.rewind() == {"dir0/0.txt": restoring.NOT_KEPT, "dir1/1.txt": None}


async def test_where_git_has_too_little_of_it_the_user_is_told_once(large: Large) -> None:
    for number in range(COUNT):
        (large.root / f"untracked{number}").touch()
    await large.after("echo 1 > dir0/0.txt")
    await large.after("echo 2 > dir0/0.txt")
    assert large.told == [command_changes.UNSEEN]
    assert large.checkpoints.changes() == ()


async def test_without_git_the_user_is_told(large: Large) -> None:
    large.git = None
    await large.after("echo 1 > dir0/0.txt")
    assert large.told == [command_changes.UNSEEN]


async def test_more_than_is_kept_of_one_command_is_told(
    large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_changes, "MOST_CHANGED", 3)
    await large.after("for f in dir*/*; do echo x > $f; done")
    assert large.told == [command_changes.TOO_MANY]
    assert len(large.checkpoints.changes()) == 3
