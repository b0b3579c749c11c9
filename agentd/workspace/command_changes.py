"""What a command changed: the files of the workspace, looked at before it and behind it.

A command can change any file, so all that git would not ignore are read before it, and what differs behind it
is kept as any other change is. That has bounds, in number, size and time; where a workspace exceeds them,
nothing of its commands is seen, and the user is told so. Not seen either are ignored files, links, single
large files, what a command in the background does, and what one did in whose midst the daemon was killed.
Nothing tells a change of the command from one that somebody else makes while it runs.
"""

import logging
import os
import stat
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentd.workspace import files
from agentd.workspace.beneath import directory
from agentd.workspace.checkpoints import Change, Checkpoints, FileState, Parts, same_content, state_of
from agentd.workspace.files import Snapshot
from agentd.workspace.ignore import Walk
from agentd.workspace.paths import Place, WorkspaceError

log = logging.getLogger(__name__)

MOST_FILES = 5_000
MOST_BYTES = 32 * 1024 * 1024
LARGEST = 4 * 1024 * 1024
"""Bytes of one file; larger ones are left out of the picture."""
SECONDS = 1.0
"""For the look before a command, which has to wait for it."""

UNSEEN = (
    "What commands change in this workspace cannot be taken back by a rewind: it has more than "
    f"{MOST_FILES:,} files or {MOST_BYTES // 2**20} MB beside those that git ignores, or they could not be "
    f"read within {SECONDS:g} s. What agentd's own tools change can be."
)

_Signature = tuple[int, ...]

_TICK_NS = 50_000_000
"""Within so much of each other two changes of a file may bear the same time, on any system's clock."""


class TooLarge(Exception):
    """The workspace exceeds the bounds."""


@dataclass(frozen=True)
class Picture:
    """The files of a workspace at one moment, and how many changes the session had made by then.

    `began` is when the look began, in nanoseconds of the system's clock.
    """

    root: Path
    began: int
    found: dict[Parts, tuple[_Signature, Snapshot]]
    large: frozenset[Parts]
    folders: frozenset[Parts]
    hidden: Parts | None
    changes: int


@dataclass
class Looks:
    """What one look leaves for the next, so that only what has changed is read again.

    `stillness` is held for each look and each change by a tool: beside a command others of the same prompt
    may run, and a change that is kept but not made yet would be taken for one of the command.
    """

    last: Picture | None = None
    is_too_large: bool = False
    stillness: threading.Lock = field(default_factory=threading.Lock)


def look(checkpoints: Checkpoints, root: Path, looks: Looks, hidden: Path | None = None) -> Picture:
    """The workspace before a command, without the folder `hidden`. Blocks. Raises TooLarge or OSError."""
    began, deadline = time.time_ns(), time.monotonic() + SECONDS
    changes = len(checkpoints.changes())
    with directory(root, ()) as fd:
        walk = _Walk(fd, _below(root, hidden))
        statuses = _statuses(fd, walk, deadline)
    large = frozenset(parts for parts, status in statuses.items() if status.st_size > LARGEST)
    known = looks.last.found if looks.last is not None and looks.last.root == root else {}
    settled = looks.last.began - _TICK_NS if looks.last is not None else 0
    found: dict[Parts, tuple[_Signature, Snapshot]] = {}
    for parts, status in statuses.items():
        if time.monotonic() > deadline:
            raise TooLarge
        old = known.get(parts)
        if old is not None and old[0] == _signature(status) and status.st_ctime_ns < settled:
            found[parts] = old
        elif parts not in large and (snapshot := _read(root, parts)) is not None:
            found[parts] = (_signature(snapshot.status), snapshot)
    return Picture(root, began, found, large, frozenset(walk.folders), walk.hidden, changes)


def _statuses(root_fd: int, walk: Walk, deadline: float) -> dict[Parts, os.stat_result]:
    """The plain files. Raises TooLarge, before anything is read."""
    found: dict[Parts, os.stat_result] = {}
    size = 0
    for number, parts in enumerate(walk.files(())):
        status = _status(root_fd, parts)
        if status is not None:
            found[parts] = status
            size += status.st_size if status.st_size <= LARGEST else 0
        if number >= MOST_FILES or size > MOST_BYTES or time.monotonic() > deadline:
            raise TooLarge
    return found


def keep(checkpoints: Checkpoints, before: Picture, origin: str) -> None:
    """Look once more, behind the command of prompt `origin`, and keep what differs. Blocks. Raises OSError.

    What the session's own tools have changed meanwhile is kept already.
    """
    root, own = before.root, _last(checkpoints.changes()[before.changes :])
    changes: list[Change] = []
    contents: dict[str, bytes] = {}
    with directory(root, ()) as fd:
        names = _names(_Walk(fd, before.hidden))
        for parts in sorted({*names, *before.found}):
            if parts in before.large:
                continue
            status = _status(fd, parts)
            old = before.found.get(parts)
            if old is not None and status is not None and _signature(status) == old[0] and parts not in own:
                continue
            if status is not None and status.st_size > LARGEST:
                continue
            now = None if status is None else _read(root, parts)
            if now is None and status is not None:
                continue
            was = state_of(None if old is None else old[1])
            change = Change(origin, parts, own.get(parts, was), state_of(now))
            if _differs(change):
                is_new = change.before is None
                changes.append(replace(change, made=_made(parts, before.folders) if is_new else 0))
                contents |= {
                    state.digest: snapshot.data
                    for snapshot in (now, None if old is None else old[1])
                    if snapshot is not None and (state := state_of(snapshot)) is not None
                }
    if changes:
        states = [state for each in changes for state in (each.before, each.after) if state is not None]
        needed = {state.digest: contents[state.digest] for state in states if state.digest in contents}
        checkpoints.record(changes, needed, at_once=False)


class _Walk(Walk):
    """A walk that remembers the folders it came through, and leaves out one."""

    def __init__(self, root_fd: int, hidden: Parts | None) -> None:
        super().__init__(root_fd)
        self.hidden = hidden
        self.folders: set[Parts] = set()

    def _entries(self, folder: Parts) -> list[tuple[str, bool]]:
        self.folders.add(folder)
        return [entry for entry in super()._entries(folder) if (*folder, entry[0]) != self.hidden]


def _below(root: Path, folder: Path | None) -> Parts | None:
    """The path of a folder from the root; None where it is not below."""
    real = Path(os.path.realpath(folder)) if folder is not None else None
    return real.relative_to(root).parts if real is not None and real.is_relative_to(root) else None


def _made(parts: Parts, folders: frozenset[Parts]) -> int:
    """How many of the folders that a file lies in were not there."""
    return sum(parts[:depth] not in folders for depth in range(1, len(parts)))


def _differs(change: Change) -> bool:
    before, after = change.before, change.after
    is_same_mode = before is None or after is None or before.mode in (None, after.mode)
    return not same_content(before, after) or not is_same_mode


def _last(changes: Iterable[Change]) -> dict[Parts, FileState | None]:
    return {change.parts: change.after for change in changes}


def _names(walk: Walk) -> Sequence[Parts]:
    found = []
    for parts in walk.files(()):
        found.append(parts)
        if len(found) > 2 * MOST_FILES:
            log.warning("a command made so many files that only %d of them are kept", len(found))
            break
    return found


def _status(root_fd: int, parts: Parts) -> os.stat_result | None:
    """The state of a plain file; None where there is none."""
    try:
        status = os.stat("/".join(parts), dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _read(root: Path, parts: Parts) -> Snapshot | None:
    try:
        return files.read(Place(root, parts, "/".join(parts)))
    except WorkspaceError:
        return None  # not ours to read, or gone by now


def _signature(status: os.stat_result) -> _Signature:
    """What changes when a file does: ctime cannot be set back by a program."""
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode
    )  # fmt: skip
