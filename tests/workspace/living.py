"""Commands for tests, and which of their processes live: a mark in the environment tells, which every child
inherits and cannot shed by forking."""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import anyio

from agentd.workspace.command import CommandError, CommandResult
from agentd.workspace.process import Processes

PATH = os.environ["PATH"]


async def run(
    owner: Processes, command: str, timeout: float = 60, cwd: Path = Path("/"), **variables: str
) -> CommandResult:
    return await owner.run(["bash", "-c", command], cwd=cwd, env={"PATH": PATH, **variables}, timeout=timeout)


@asynccontextmanager
async def running(
    owner: Processes, command: str, mark: str, timeout: float = 60
) -> AsyncIterator[list[object]]:
    """The command, once it has said `ready`; cancelled at the end. What it came to is in the list."""
    ready, outcome = anyio.Event(), []

    async def watch(text: str, left_out: int) -> None:
        if "ready" in text:
            ready.set()

    async def call() -> None:
        env = {"PATH": PATH, "MARK": mark}
        try:
            outcome.append(
                await owner.run(
                    ["bash", "-c", command], cwd=Path("/"), env=env, timeout=timeout, output=watch
                )
            )
        except CommandError as error:
            outcome.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(30):
            await ready.wait()
        yield outcome
        tasks.cancel_scope.cancel()


def new_mark() -> str:
    return f"mark-{uuid4().hex}"


def living(mark: str) -> list[str]:
    """The command lines of all living processes with this mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it ended while we looked
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append(
                        f"{folder.name} {(folder / 'cmdline').read_bytes().replace(bytes(1), b' ')!r}"
                    )
    return found


def children(pid: int) -> list[int]:
    """The processes whose parent is this one."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(folder.name))
    return found


def environment_of(pid: int) -> bytes:
    """The environment block that a process was started with."""
    return Path(f"/proc/{pid}/environ").read_bytes()


def has_escaped(mark: str) -> bool:
    """Whether more than one process with this mark runs in time."""
    return _comes_true(lambda: len(living(mark)) > 1)


def all_gone(mark: str) -> bool:
    """Whether the last process with this mark ends in time."""
    return _comes_true(lambda: not living(mark))


def none_left(pids: list[int]) -> bool:
    """Whether all of these end in time."""
    return _comes_true(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


def appears(path: Path) -> bool:
    """Whether a file is made in time."""
    return _comes_true(path.exists)


def _comes_true(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
