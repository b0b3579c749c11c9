"""Repositories that make git run a program: the daemon's own calls of git run none outside the jail.

Each is proven to be dangerous first: plain git runs its program. Then the daemon's calls are made, once in
each jail, and once in a jail that confines nothing, to see that the programs are switched off as well.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sandboxes import BACKENDS, ground

from agentd.config.sandbox_settings import Wanted
from agentd.workspace.enclosure import Status
from agentd.workspace.git import Git
from agentd.workspace.policy import Policy
from agentd.workspace.sandbox import Sandbox

ENVIRONMENT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


class Hostile:
    """A repository with one commit, and the program that it wants to be run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir(exist_ok=True)
        self.canary = folder / "canary"
        self.program = f"touch {self.canary};cat"
        self.git("init", "-q")
        (self.root / "file").write_text("one\n")
        self.git("add", "file")
        self.commit()

    def git(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            env={**ENVIRONMENT, "HOME": str(self.root.parent)},
            input="",
            capture_output=True,
            text=True,
            check=check,
            timeout=30,
        )
        return done.stdout.strip()

    def commit(self) -> None:
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "message")

    def set(self, *settings: tuple[str, str]) -> None:
        for name, value in settings:
            self.git("config", name, value)

    def attributes(self, text: str) -> None:
        (self.root / ".git" / "info" / "attributes").write_text(text + "\n")

    def touch(self) -> None:
        """A change that makes git look into the file again."""
        (self.root / "file").write_text("two\n")

    def hook(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        hook = folder / "post-index-change"
        hook.write_text(f"#!/bin/sh\n{self.program} >/dev/null\n")
        hook.chmod(0o755)
        os.utime(self.root / "file", (1, 1))


@dataclass(frozen=True)
class Probe:
    """How a repository is made hostile, and the plain command that shows it is."""

    make: Callable[[Hostile], object]
    trigger: tuple[str, ...] = ("status",)


def filter_(key: str) -> Callable[[Hostile], None]:
    def make(hostile: Hostile) -> None:
        hostile.attributes("* filter=evil")
        hostile.set((f"filter.evil.{key}", hostile.program))
        hostile.touch()

    return make


def driver(key: str) -> Callable[[Hostile], None]:
    def make(hostile: Hostile) -> None:
        hostile.attributes("* diff=evil")
        hostile.set((f"diff.evil.{key}", f"sh -c '{hostile.program} \"$1\"' sh"))
        hostile.touch()

    return make


def attribute_macro(hostile: Hostile) -> None:
    (hostile.root / ".gitattributes").write_text("[attr]fine filter=evil\n* fine\n")
    hostile.set(("filter.evil.clean", hostile.program))
    hostile.touch()


def odd_filter_name(hostile: Hostile) -> None:
    hostile.attributes("* filter=a=b.c")
    hostile.set(("filter.a=b.c.clean", hostile.program))
    hostile.touch()


def required_filter(hostile: Hostile) -> None:
    filter_("clean")(hostile)
    hostile.set(("filter.evil.required", "true"))


def planted_bare_repository(hostile: Hostile) -> None:
    """The workspace is a folder that is laid out as a bare repository, as a clone can bring one along."""
    hostile.set(("core.fsmonitor", hostile.program), ("core.bare", "false"), ("core.worktree", "."))
    for path in list((hostile.root / ".git").iterdir()):
        path.rename(hostile.root / path.name)
    (hostile.root / ".git").rmdir()


def common_folder(hostile: Hostile) -> None:
    own = hostile.root / "own"
    shutil.copytree(hostile.root / ".git", own)
    with (own / "config").open("a") as file:
        file.write(f'[core]\n\tfsmonitor = "{hostile.program}"\n')
    (hostile.root / ".git" / "commondir").write_text("../own\n")


def included(section: str) -> Callable[[Hostile], None]:
    def make(hostile: Hostile) -> None:
        (hostile.root / "more").write_text(f'[core]\n\tfsmonitor = "{hostile.program}"\n')
        hostile.set((section, str(hostile.root / "more")))

    return make


def worktree_configuration(hostile: Hostile) -> None:
    hostile.set(("extensions.worktreeConfig", "true"))
    hostile.git("config", "--worktree", "core.fsmonitor", hostile.program)


def work_tree_elsewhere(hostile: Hostile) -> None:
    hostile.set(("core.fsmonitor", hostile.program), ("core.worktree", str(hostile.root.parent)))


def pointer_to_another_folder(hostile: Hostile) -> None:
    hostile.set(("core.fsmonitor", hostile.program), ("core.worktree", ".."))
    (hostile.root / ".git").rename(hostile.root / "hidden")
    (hostile.root / ".git").write_text("gitdir: hidden\n")


def submodule(hostile: Hostile) -> None:
    (hostile.root / "lib").mkdir()
    inner = Hostile(hostile.root / "lib")
    inner.root.rename(hostile.root / "sub")
    shutil.rmtree(hostile.root / "lib")
    sub = hostile.root / "sub"
    subprocess.run(
        ["git", "-C", str(sub), "config", "core.fsmonitor", hostile.program], env=ENVIRONMENT, check=True
    )
    hostile.git("add", "sub")
    hostile.commit()


def signed(hostile: Hostile) -> None:
    """A commit with a signature that the configuration wants to be checked, by its own program."""
    content = hostile.git("cat-file", "commit", "HEAD")
    header, _, message = content.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    path = hostile.root.parent / "commit"
    path.write_text(f"{header}\n{signature}\n\n{message}\n")
    hostile.git("reset", "-q", hostile.git("hash-object", "-t", "commit", "-w", str(path)))
    program = hostile.root / "gpg"
    program.write_text(f"#!/bin/sh\n{hostile.program}\n")
    program.chmod(0o755)
    hostile.set(("log.showSignature", "true"), ("gpg.program", str(program)))


def missing_objects(url: str, *settings: tuple[str, str]) -> Callable[[Hostile], None]:
    """Objects that git fetches when they are read: from a server that is a program."""

    def make(hostile: Hostile) -> None:
        blob = hostile.git("rev-parse", "HEAD:file")
        (hostile.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
        hostile.set(("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"))
        program = hostile.root / "program"
        program.write_text(f"#!/bin/sh\ntouch {hostile.canary}\nexit 1\n")
        program.chmod(0o755)
        hostile.set(("remote.origin.promisor", "true"), ("remote.origin.url", url.format(program)))
        hostile.set(*((name, value.format(program)) for name, value in settings))

    return make


def alias(hostile: Hostile) -> None:
    hostile.set(*((f"alias.{name}", f"!{hostile.program}") for name in ("status", "log", "st")))


LOG = ("log", "-p")
PROBES = {
    "core.fsmonitor": Probe(lambda hostile: hostile.set(("core.fsmonitor", hostile.program))),
    "filter.clean": Probe(filter_("clean")),
    "filter.process": Probe(filter_("process")),
    "filter.smudge": Probe(filter_("smudge"), ("checkout", "file")),
    "filter that is required": Probe(required_filter),
    "filter with an odd name": Probe(odd_filter_name),
    "attribute macro": Probe(attribute_macro),
    "hook": Probe(lambda hostile: hostile.hook(hostile.root / ".git" / "hooks")),
    "core.hooksPath": Probe(
        lambda hostile: (hostile.set(("core.hooksPath", "own")), hostile.hook(hostile.root / "own"))
    ),
    "diff.external": Probe(
        lambda hostile: (hostile.set(("diff.external", f"{hostile.program} /dev/null;:")), hostile.touch()),
        ("diff",),
    ),
    "diff driver": Probe(driver("command"), ("diff",)),
    "textconv": Probe(driver("textconv"), LOG),
    "planted bare repository": Probe(planted_bare_repository),
    "commondir": Probe(common_folder),
    "include.path": Probe(included("include.path")),
    "includeIf": Probe(included("includeIf.gitdir:**.path")),
    "config.worktree": Probe(worktree_configuration),
    "core.worktree": Probe(work_tree_elsewhere),
    "pointer to another folder": Probe(pointer_to_another_folder),
    "submodule": Probe(submodule),
    "gpg.program": Probe(signed, ("log",)),
    "remote that is a program": Probe(missing_objects("ext::{}", ("protocol.ext.allow", "always")), LOG),
    "core.sshCommand": Probe(missing_objects("ssh://host/path", ("core.sshCommand", "{}")), LOG),
    "alias": Probe(alias, ("st",)),
}


@pytest.fixture(params=PROBES)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Hostile:
    """A hostile repository that plain git has run a program of."""
    probe = PROBES[request.param]
    for folder in (tmp_path / "shown", tmp_path / "ground"):
        folder.mkdir()
    shown = Hostile(tmp_path / "shown")
    probe.make(shown)
    shown.git(*probe.trigger, check=False)
    assert shown.canary.exists(), "this probe is harmless, so it shows nothing"
    made = Hostile(tmp_path / "ground")
    probe.make(made)
    return made


async def read_everything(git: Git) -> None:
    """All that the daemon may ask git. What git refuses in such a repository does not matter here."""
    for arguments in (
        ["status"],
        ["status", "--porcelain"],
        ["diff"],
        ["diff", "HEAD"],
        ["log", "-p", "--stat"],
        ["show"],
        ["ls-files", "-m"],
        ["rev-parse", "HEAD"],
        ["symbolic-ref", "HEAD"],
        ["config", "--list"],
    ):
        await git.run(arguments)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_no_program_of_a_repository_runs_outside(
    hostile: Hostile, tmp_path: Path, backend: Wanted
) -> None:
    before = sorted(hostile.root.rglob("*"))
    async with ground(tmp_path / "ground", backend) as made:
        await read_everything(Git(hostile.root, made.processes, made.sandbox))
    assert not hostile.canary.exists()
    assert sorted(hostile.root.rglob("*")) == before


async def test_the_programs_are_switched_off_too(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_jail(self: Sandbox, root: Path, scratch: Path) -> tuple[Status, Policy]:
        return await self.status(), Policy(writable=(Path("/"),), network=True)

    monkeypatch.setattr(Sandbox, "read_only", open_jail)
    async with ground(tmp_path / "ground", "landlock") as made:
        await read_everything(Git(hostile.root, made.processes, made.sandbox))
    assert not hostile.canary.exists()


def test_there_are_at_least_twenty_of_them() -> None:
    assert len(PROBES) >= 20
