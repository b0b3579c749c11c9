"""A folder in which command lines may do their worst, and how to tell what they did."""

import os
import subprocess
from pathlib import Path

from agentd.workspace.environment import command_environment

DEADLINE = 20


class Scratch:
    """Files to read, a program `evil` that leaves a mark, and a repository that runs it."""

    def __init__(self, folder: Path) -> None:
        folder = Path(os.path.realpath(folder))
        self.root = folder / "work"
        self._mark = folder / "mark"
        programs = folder / "bin"
        programs.mkdir(parents=True)
        self._program(programs / "evil")
        (self.root / "sub").mkdir(parents=True)
        (self.root / "evilbin").mkdir()
        self.environment = command_environment(
            {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "TMPDIR": str(folder)}
        )
        for name in "fg":
            (self.root / name).write_text("one\ntwo\n")
        (self.root / "x.sh").write_text("evil\n")
        (self.root / "x.sh").chmod(0o755)
        self._program(self.root / "evilbin" / "git")
        self._git("init", "-q", ".")
        self._git("add", "f")
        self._git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
        (self.root / "f").write_text("one\nchanged\n")
        hostile = self.root / "hostile"
        hostile.mkdir()
        self._git("init", "-q", ".", cwd=hostile)
        self._git("config", "core.fsmonitor", "evil", cwd=hostile)
        self._clear()
        self._before = self._state()

    def _program(self, path: Path) -> None:
        path.write_text(f"#!/bin/sh\ntouch {self._mark}\n")
        path.chmod(0o755)

    def _git(self, *words: str, cwd: Path | None = None) -> None:
        subprocess.run(
            ["git", *words], cwd=cwd or self.root, env=self.environment, check=True, capture_output=True
        )

    def _state(self) -> dict[str, bytes]:
        """Every file but what git itself keeps up to date when it only looks."""
        return {
            str(path): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.name != "index" and ".git" not in path.parts[:-2]
        }

    def _clear(self) -> None:
        self._mark.unlink(missing_ok=True)

    def run(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Have bash run it, as the tool does."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE,
            check=False,
        )

    def harmed(self) -> bool:
        """Whether anything ran or changed that should not have."""
        return self._mark.exists() or self._state() != self._before
