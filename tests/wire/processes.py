"""What happens outside the wire: waiting for it, and processes that a test can find again."""

import contextlib
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEADLINE = 20.0
"""Seconds until a missing answer counts as a hang. Generous: it is no statement about speed."""


def until(condition: Callable[[], Any], what: str, timeout: float = DEADLINE) -> Any:
    """Wait for a condition outside the wire (a file, a process) and give its value."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {timeout} s: {what}"
        time.sleep(0.01)
    return value


def processes_with(marker: str) -> list[int]:
    """The living processes whose command line holds `marker` (a zombie has no command line)."""
    return [pid for pid, arguments in _command_lines() if marker.encode() in b" ".join(arguments)]


def sleepers(sleep: str) -> list[int]:
    """The living processes that are this `unique_sleep` themselves, and not a shell that is to start it."""
    return [pid for pid, arguments in _command_lines() if sleep.split()[-1].encode() in arguments]


def _command_lines() -> list[tuple[int, list[bytes]]]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found.append((int(entry.name), (entry / "cmdline").read_bytes().split(b"\0")))
    return found


_markers = itertools.count(1)


def unique_sleep() -> str:
    """A command that sleeps for a minute and can be told from every other one in the process list."""
    return f"sleep 60.{os.getpid()}{next(_markers):05d}"


def children_of(parent: int) -> list[int]:
    """The processes that this one has started."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def is_alive(pid: int) -> bool:
    """Whether a process is there and more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
