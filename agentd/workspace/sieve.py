"""Leaving out, with ripgrep's help, the files in which no match can be.

Reading and deciding is left to the one who searches, so that what is found does not depend on whether there
is a ripgrep. It is told the files by name and says which of them its looser pattern matches (see
`byte_pattern`). Where it fails, for whatever reason, all of those files are worth a look.

It gets no configuration, and as much time as the search has.
"""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from subprocess import Popen, TimeoutExpired
from typing import Self

from agentd.workspace.beneath import Folders
from agentd.workspace.byte_pattern import UNUSUAL, loosened
from agentd.workspace.files import MAX_BYTES
from agentd.workspace.ignore_rules import Parts
from agentd.workspace.ripgrep_process import start_ripgrep
from agentd.workspace.search_names import OutOfTime

_FIRST_FILES = 256  # the first batch is small, so that what is found at once is told at once
_GROWTH = 4
_MAX_FILES = 16_384
_NAME_OVERHEAD = 9  # what a name takes among arguments beside its bytes: its end and a pointer to it
_AT_ONCE = 2
_NOTHING_FOUND = 1

_OPTIONS = (
    "--no-config", "--text", "--encoding=none", "--no-mmap", "--no-ignore", "--hidden", "--no-messages",
    "--color=never", "--files-with-matches", "--null",
)  # fmt: skip


class Sieve:
    """Tells files apart. A context manager: at its end no ripgrep of its runs.

    `deadline` is on the monotonic clock, `is_out` tells files that nobody may hand on.
    """

    def __init__(
        self,
        program: str | None,
        pattern: str,
        *,
        ignore_case: bool,
        root_fd: int,
        deadline: float,
        is_out: Callable[[Parts], bool],
    ) -> None:
        self._pattern = loosened(pattern, ignore_case=ignore_case) if program else None
        self._program = program
        self._root_fd = root_fd
        self._deadline = deadline
        self._is_out = is_out
        self._max_names = os.sysconf("SC_ARG_MAX") // 2  # bytes; half of what the system takes in one call
        self._folders = Folders(root_fd)
        self._running: deque[_Batch] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folders.__exit__()
        for batch in self._running:
            batch.stop()

    def sift(self, candidates: Iterable[Parts]) -> Iterator[tuple[Parts, bool]]:
        """Each file in the given order, and whether it is worth a look. Raises OutOfTime."""
        if self._program is None or self._pattern is None:
            for parts in candidates:
                yield parts, True
            return
        rest = iter(candidates)
        size = _FIRST_FILES
        while True:
            while len(self._running) < _AT_ONCE and (batch := self._batch(rest, size)):
                size = min(size * _GROWTH, _MAX_FILES)
                self._running.append(batch)
            if not self._running:
                return
            yield from self._running[0].result(self._deadline)
            self._running.popleft()

    def _batch(self, rest: Iterator[Parts], size: int) -> "_Batch | None":
        """Start on the next files; None when there are no more."""
        assert self._program is not None
        batch = _Batch()
        room = self._max_names
        for parts in islice(rest, size):
            name = os.fsencode("./" + "/".join(parts)) if self._may_hand_on(parts) else None
            batch.files.append((parts, name))
            room -= len(name) + _NAME_OVERHEAD if name else 0
            if room < 0:
                break
        if not batch.files:
            return None
        names = [name for _, name in batch.files if name is not None]
        if names:
            pattern = f"--regexp=(?-u:{UNUSUAL})|{self._pattern}"
            batch.start([self._program, *_OPTIONS, pattern, "--", *names], self._root_fd, self._deadline)
        return batch

    def _may_hand_on(self, parts: Parts) -> bool:
        """Whether ripgrep would read what agentd would: a plain file, not too large, and open to it."""
        if self._is_out(parts):
            return False
        try:
            folder = self._folders.open(parts[:-1])
            status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            return (
                stat.S_ISREG(status.st_mode)
                and status.st_size <= MAX_BYTES
                and (os.geteuid() == 0 or os.access(parts[-1], os.R_OK, dir_fd=folder))
            )
        except OSError:
            return False


class _Batch:
    """Some files, of which those with a name are handed to ripgrep."""

    def __init__(self) -> None:
        self.files: list[tuple[Parts, bytes | None]] = []
        self._process: Popen[bytes] | None = None

    def start(self, command: list[str | bytes], root_fd: int, deadline: float) -> None:
        # Where it cannot be started, what was to be handed to it is searched all the same.
        self._process = start_ripgrep(command, root_fd, deadline)

    def result(self, deadline: float) -> Iterator[tuple[Parts, bool]]:
        found = self._found(deadline)
        for parts, name in self.files:
            yield parts, found is None or name is None or name in found

    def _found(self, deadline: float) -> set[bytes] | None:
        """The names that ripgrep gave; None when it cannot be relied on."""
        if self._process is None:
            return None
        try:
            output, _ = self._process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutExpired:
            raise OutOfTime from None
        return set(output.split(b"\0")) if self._process.returncode in (0, _NOTHING_FOUND) else None

    def stop(self) -> None:
        if self._process is not None:
            with self._process:
                self._process.kill()
