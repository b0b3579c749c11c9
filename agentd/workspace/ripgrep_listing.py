"""Which files the rules of a tree let through, found out by ripgrep while the search walks that tree itself.

A walk has to see each folder: ripgrep names no links, does not tell what it could not read, and goes by
names while a folder may become a link to anywhere. So what it lists only stands in for judging: the plain
files that the walk sees need not be held against the rules any more, nor most of their names against the
glob. It is believed only when it is done, and only where every rule means to it what it means to git
(`Rules.are_plain`); what the walk comes by before that, it judges itself. So nobody ever waits for ripgrep,
and it is not even started for a walk that is done at once.
"""

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from subprocess import Popen
from typing import Self

from agentd.workspace.ignore import Walk
from agentd.workspace.ignore_rules import Parts, Rules
from agentd.workspace.ripgrep_process import start_ripgrep

_OPTIONS = (
    "--no-config", "--files", "--null", "--hidden", "--glob=!.git", "--no-require-git", "--no-ignore-parent",
    "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "--no-messages", "--color=never",
)  # fmt: skip
_TYPE = "agentd"
HEAD_START_SECONDS = 0.03  # a walk that is done by then would be no faster with help
_NOTHING_FOUND = 1
_READ_AT_ONCE = 1024 * 1024
_MAX_BYTES = 32 * 1024 * 1024  # of names; a longer list takes more memory than it saves time
_MAX_MEMORY = 4 * 1024**3  # of ripgrep, mostly address space of its threads
_MAX_THREADS = 8
_NICENESS = 19  # it gets what processors the walk and others leave: nobody waits for it


class Listing:
    """What ripgrep lists below `base`, a `Judge` for this walk. A context manager: at its end none runs.

    `loose_name` is a glob that leaves out no name that is looked for; `deadline` is on the monotonic clock.
    """

    def __init__(
        self, program: str, walk: Walk, base: Parts, *, loose_name: str | None, deadline: float
    ) -> None:
        self._program = program
        self._walk = walk
        self._base = base
        self._loose_name = loose_name
        self._deadline = deadline
        self._starts_at: float | None = time.monotonic() + HEAD_START_SECONDS
        self._process: Popen[bytes] | None = None
        self._data = bytearray()
        self._found: dict[str, set[str]] | None = None

    @property
    def is_running(self) -> bool:
        """Whether more may become known."""
        return self._process is not None or self._starts_at is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def names(self, folder: Parts) -> set[str] | None:
        """The plain files in a folder that no rule ignores and whose name the glob may match.

        None while ripgrep is at it, and for good if it failed.
        """
        if self._starts_at is not None and time.monotonic() >= self._starts_at:
            self._starts_at = None
            self._start()
        if self._process is not None:
            self._take(self._process)
        return None if self._found is None else self._found.get(_path(folder), set())

    def _start(self) -> None:
        rules_above = self._walk.rules_above(self._base)
        if not _are_readable_from_root(rules_above):
            return
        command = [self._program, *_OPTIONS, f"--threads={_threads()}"]
        if self._loose_name is not None:
            command += [f"--type-add={_TYPE}:{self._loose_name}", f"--type={_TYPE}"]
        command += [f"--ignore-file={_path((*rules.base, '.gitignore'))}" for rules in reversed(rules_above)]
        command += ["--", _path(self._base)]
        process = start_ripgrep(
            command, self._walk.root_fd, self._deadline, memory=_MAX_MEMORY, niceness=_NICENESS
        )
        if process is not None and process.stdout is not None:
            os.set_blocking(process.stdout.fileno(), False)
            self._process = process

    def _take(self, process: Popen[bytes]) -> None:
        """Take what ripgrep has written until now."""
        assert process.stdout is not None
        try:
            while data := os.read(process.stdout.fileno(), _READ_AT_ONCE):
                self._data += data
                if len(self._data) > _MAX_BYTES:
                    self._stop()
                    return
        except BlockingIOError:
            return
        status = process.poll()
        if status is None:
            return
        if status in (0, _NOTHING_FOUND):  # else there was something that it could not read
            self._found = _by_folder(self._data)
        self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        self._data = bytearray()
        if process is not None:
            with process:
                process.kill()


def _are_readable_from_root(rules_above: Sequence[Rules]) -> bool:
    """Whether rules mean the same to a ripgrep that takes all of them for rules of the root."""
    return all(rules.are_plain and (not rules.base or rules.are_for_names) for rules in rules_above)


def _threads() -> int:
    """One processor is left to the walk."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(count - 1, _MAX_THREADS))


def _path(parts: Parts) -> str:
    return "/".join((".", *parts))


def _by_folder(data: bytearray) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in os.fsdecode(bytes(data)).split("\0"):
        folder, _, name = path.rpartition("/")
        found[folder].add(name)
    return dict(found)
