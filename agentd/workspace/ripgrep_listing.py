"""The plain files of a tree that the rules let through, as ripgrep lists them.

The walk of a search sees each folder all the same: ripgrep names no links, does not tell what it could not
read, and goes by names while a folder may become a link to anywhere. So a file counts if ripgrep lists it and
the walk has seen it, and where rules (`Rules.are_plain`) or names (that end in a dot) do not mean to ripgrep
what they mean to git, the walk judges by itself, as it does for all if ripgrep fails. Its list counts only
when it is whole. While it is made, the walk looks ahead, so that hardly any time goes by with waiting.
"""

import os
import select
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from subprocess import Popen, TimeoutExpired
from typing import Self

from agentd.workspace.ignore import Walk
from agentd.workspace.ignore_rules import Parts, Rules
from agentd.workspace.ripgrep_process import start_ripgrep

_OPTIONS = (
    "--no-config", "--files", "--null", "--hidden", "--glob=!.git", "--no-require-git", "--no-ignore-parent",
    "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot", "--no-messages", "--color=never",
)  # fmt: skip
_TYPE = "agentd"
_PATIENCE_SECONDS = 1.0  # with a ripgrep that is not done when the walk is: it may hang at a pipe
_NOTHING_FOUND = 1
_READ_AT_ONCE = 1024 * 1024
_MAX_BYTES = 32 * 1024 * 1024  # of names; a longer list takes more memory than it saves time
_MAX_MEMORY = 4 * 1024**3  # of ripgrep, mostly address space of its threads
_MAX_THREADS = 8


class Listing:
    """What ripgrep lists below `base`, a `Judge` for this walk. A context manager: it runs within it.

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
        self._process: Popen[bytes] | None = None
        self._output = -1
        self._until = deadline
        self._rest = bytearray()  # what is no whole path yet
        self._bytes = 0
        self._listed: defaultdict[str, list[str]] = defaultdict(list)
        self._is_whole = False

    def __enter__(self) -> Self:
        rules_above = self._walk.rules_above(self._base)
        if _are_readable_from_root(rules_above):
            command = self._command(rules_above)
            process = start_ripgrep(command, self._walk.root_fd, self._deadline, memory=_MAX_MEMORY)
            if process is not None and process.stdout is not None:
                self._output = process.stdout.fileno()
                os.set_blocking(self._output, False)
                self._process = process
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def complete(self) -> None:
        """Have the walk look ahead until the list is there or given up. Raises OSError for `base` itself.

        The half of the time that is left goes by with it at most: the other is for telling what is there.
        """
        self._until = (time.monotonic() + self._deadline) / 2
        for _ in self._walk.look_ahead(self._base):
            if not self._is_running() or time.monotonic() > self._until:
                break
        until = min(self._until, time.monotonic() + _PATIENCE_SECONDS)
        while self._is_running() and (patience := until - time.monotonic()) > 0:
            select.select([self._output], [], [], patience)
        self._stop()

    def names(self, folder: Parts) -> set[str] | None:
        """The plain files in a folder that no rule ignores and whose name the glob may match.

        None as long as the list is not complete.
        """
        return set(self._listed.get(_path(folder), ())) if self._is_whole else None

    def _command(self, rules_above: Sequence[Rules]) -> list[str]:
        command = [self._program, *_OPTIONS, f"--threads={_threads()}"]
        if self._loose_name is not None:
            command += [f"--type-add={_TYPE}:{self._loose_name}", f"--type={_TYPE}"]
        command += [f"--ignore-file={_path((*rules.base, '.gitignore'))}" for rules in reversed(rules_above)]
        return [*command, "--", _path(self._base)]

    def _is_running(self) -> bool:
        """Take what ripgrep has written until now; False when no more is to come."""
        if self._process is None:
            return False
        try:
            while data := os.read(self._output, _READ_AT_ONCE):
                self._take(data)
                if self._bytes > _MAX_BYTES or time.monotonic() > self._until:
                    self._stop()
                    return False
        except BlockingIOError:
            return True
        with suppress(TimeoutExpired):
            # Else it could not read all.
            self._is_whole = self._process.wait(_PATIENCE_SECONDS) in (0, _NOTHING_FOUND)
        self._stop()
        return False

    def _take(self, data: bytes) -> None:
        self._bytes += len(data)
        self._rest += data
        end = self._rest.rfind(0) + 1
        for path in os.fsdecode(bytes(self._rest[:end])).split("\0")[:-1]:
            folder, _, name = path.rpartition("/")
            self._listed[folder].append(name)
        del self._rest[:end]

    def _stop(self) -> None:
        process, self._process = self._process, None
        self._rest.clear()
        if not self._is_whole:
            self._listed.clear()
        if process is not None:
            with process:
                process.kill()


def _are_readable_from_root(rules_above: Sequence[Rules]) -> bool:
    """Whether rules mean the same to a ripgrep that takes all of them for rules of the root."""
    return all(rules.are_plain and (not rules.base or rules.are_for_names) for rules in rules_above)


def _threads() -> int:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, _MAX_THREADS)


def _path(parts: Parts) -> str:
    return "/".join((".", *parts))
