"""Sandboxes for tests, and commands in them."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentd.config.sandbox_settings import SandboxSettings, Wanted
from agentd.workspace import bubblewrap, landlock
from agentd.workspace.command import CommandResult
from agentd.workspace.own_program import program_places
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

PYTHON = os.path.realpath(sys.executable)
"""An interpreter that is there in the sandbox too, where the environment of these tests may be in `/tmp`."""

BACKENDS: tuple[Wanted, ...] = ("bubblewrap", "landlock")


def need(backend: str) -> None:
    """Skip where this backend is not there at all. Where it is there and does not work, the test fails."""
    if sys.platform != "linux":
        pytest.skip("the sandbox is for Linux")
    if backend == "bubblewrap" and not list(bubblewrap.programs()):
        pytest.skip("bubblewrap is not installed")
    if backend == "landlock" and landlock.version() < landlock.OLDEST:
        pytest.skip(f"this kernel has Landlock {landlock.version()}")


class Ground:
    """A workspace, a home and a sandbox."""

    def __init__(self, folder: Path, processes: Processes, settings: SandboxSettings) -> None:
        self.processes = processes
        self.root, self.home, self.own = folder / "workspace", folder / "home", folder / "own"
        for path in (self.root, self.home, self.own):
            path.mkdir(exist_ok=True)
        self.program = self.root / "tools" / "env"
        self.sandbox = Sandbox(
            processes, settings, own=[self.own], home=self.home, program=[*program_places(), self.program]
        )

    async def run(
        self, command: str, timeout: float = 60, root: Path | None = None, **variables: str
    ) -> CommandResult:
        """What a command in the sandbox came to."""
        result, _ = await self.run_and_look(command, timeout, root, **variables)
        return result

    async def run_and_look(
        self, command: str, timeout: float = 60, root: Path | None = None, **variables: str
    ) -> tuple[CommandResult, list[str]]:
        """The same, with the protected paths that it made or changed."""
        root = root or self.root
        enclosure = await self.sandbox.enclose(root)
        environment = {"PATH": os.defpath, "HOME": str(self.home), **variables}
        jailed = enclosure.wrap(["bash", "-c", command], root, environment)
        result = await self.processes.run(
            jailed.argv, cwd=root, env=jailed.env, timeout=timeout, jail=jailed.jail
        )
        return result, [str(path) for path in await enclosure.changes()]

    async def said(self, command: str, root: Path | None = None, **variables: str) -> str:
        """The output of a command that has to succeed."""
        result = await self.run(command, root=root, **variables)
        assert result.exit_code == 0, result.text
        return result.text.strip()


@asynccontextmanager
async def ground(
    folder: Path,
    backend: Wanted,
    *,
    network: bool = False,
    unix_sockets: bool = True,
    writable: tuple[Path, ...] = (),
) -> AsyncIterator[Ground]:
    """A workspace with a sandbox of this kind around its commands."""
    need(backend)
    settings = SandboxSettings(network, unix_sockets, writable, backend)
    async with Processes() as processes:
        made = Ground(folder, processes, settings)
        status = await made.sandbox.status()
        assert status.backend == backend, status.reason
        yield made
        made.sandbox.close()
