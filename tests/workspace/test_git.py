"""Git as the daemon uses it: what it tells of a repository, and when it is not run."""

import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from sandboxes import BACKENDS, Ground, ground

from agentd.config.sandbox_settings import Wanted
from agentd.workspace.enclosure import SandboxError
from agentd.workspace.git import Change, Git, GitError
from agentd.workspace.sandbox import Sandbox

ENVIRONMENT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def plain(root: Path, *arguments: str) -> str:
    author = ("-c", "user.name=t", "-c", "user.email=t@t")
    done = subprocess.run(
        ["git", "-C", str(root), *author, *arguments],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


class Fixture:
    def __init__(self, made: Ground) -> None:
        self.made = made
        self.root = made.root
        self.git = Git(made.root, made.processes, made.sandbox, {**ENVIRONMENT, "HOME": str(made.home)})


@pytest_asyncio.fixture(params=BACKENDS)
async def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Fixture]:
    backend: Wanted = request.param
    async with ground(tmp_path, backend) as made:
        yield Fixture(made)


async def test_a_folder_that_is_no_repository_is_none(fixture: Fixture) -> None:
    git = fixture.git
    assert (await git.top(), await git.head(), await git.branch()) == (None, None, None)
    with pytest.raises(GitError, match=r"git status failed in .*not a git repository"):
        await git.status()
    assert (await git.version()).startswith("2.")


async def test_a_repository_tells_its_commit_branch_and_changes(fixture: Fixture) -> None:
    git, root = fixture.git, fixture.root
    plain(root, "init", "-q", "-b", "trunk/ü")
    assert (await git.head(), await git.branch()) == (None, "trunk/ü")
    for name in ("kept", "changed", "moved", "a\nb"):
        (root / name).write_text(f"{name}\n" * 10)
    plain(root, "add", ".")
    plain(root, "commit", "-qm", "first")
    assert await git.status() == []
    (root / "changed").write_text("x")
    (root / "a\nb").write_text("x")
    (root / "new é").write_text("x")
    plain(root, "mv", "moved", "elsewhere")
    assert await git.head() == plain(root, "rev-parse", "HEAD")
    changes = await git.status()
    assert sorted(changes, key=lambda change: change.path) == [
        Change(" M", "a\nb"),
        Change(" M", "changed"),
        Change("R ", "elsewhere", "moved"),
        Change("??", "new é"),
    ]
    plain(root, "checkout", "-q", "--detach")
    assert await git.branch() is None


async def test_a_part_of_a_repository_knows_its_top(fixture: Fixture) -> None:
    plain(fixture.root, "init", "-q")
    part = fixture.root / "part"
    part.mkdir()
    made = fixture.made
    assert await Git(part, made.processes, made.sandbox).top() == fixture.root


async def test_the_users_ignore_file_counts_and_no_other_configuration(fixture: Fixture) -> None:
    plain(fixture.root, "init", "-q")
    (fixture.root / "file.log").touch()
    folder = fixture.made.home / ".config" / "git"
    folder.mkdir(parents=True)
    (folder / "ignore").write_text("*.log\n")
    (folder / "config").write_text("[status]\n\tshowUntrackedFiles = no\n")
    (fixture.root / "other").touch()
    assert await fixture.git.status() == [Change("??", "other")]


async def test_a_failure_is_a_result_with_what_git_said(fixture: Fixture) -> None:
    plain(fixture.root, "init", "-q")
    result = await fixture.git.run(["log"])
    assert (result.exit_code, result.output) == (128, b"")
    assert "does not have any commits yet" in result.errors


async def test_output_is_bounded(fixture: Fixture) -> None:
    plain(fixture.root, "init", "-q")
    (fixture.root / "file").write_bytes(b"x" * 100_000)
    plain(fixture.root, "add", ".")
    plain(fixture.root, "commit", "-qm", "first")
    assert len((await fixture.git.run(["show", "HEAD:file"])).output) == 100_000
    with pytest.raises(GitError, match="says more than 1000 bytes"):
        await fixture.git.run(["show", "HEAD:file"], limit=1000)


async def test_a_call_that_takes_too_long_is_stopped(fixture: Fixture) -> None:
    plain(fixture.root, "init", "-q")
    (fixture.root / ".git" / "HEAD").unlink()
    os.mkfifo(fixture.root / ".git" / "HEAD")
    with pytest.raises(GitError, match=r"took longer than 0\.5 s"):
        await fixture.git.run(["rev-parse", "HEAD"], timeout=0.5)


async def test_only_commands_that_read_are_run(fixture: Fixture) -> None:
    for command in ("commit", "st", "gc", "-c", "../x"):
        with pytest.raises(ValueError, match="only reads"):
            await fixture.git.run([command])


async def test_git_of_the_workspace_is_not_run(fixture: Fixture, tmp_path: Path) -> None:
    planted = fixture.root / "bin" / "git"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    made = fixture.made
    environment = {"PATH": f"{planted.parent}:bin:.:{os.defpath}"}
    assert (await Git(fixture.root, made.processes, made.sandbox, environment).version()).startswith("2.")
    with pytest.raises(GitError, match="git is not installed"):
        await Git(fixture.root, made.processes, made.sandbox, {"PATH": str(planted.parent)}).version()


async def test_without_a_sandbox_git_is_not_run(fixture: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(self: Sandbox, root: Path, scratch: Path) -> None:
        raise SandboxError("There is no sandbox: none.")

    monkeypatch.setattr(Sandbox, "read_only", none)
    with pytest.raises(GitError, match=r"git is not run here, .* There is no sandbox: none"):
        await fixture.git.version()
