"""What a command changed: the files of the workspace, looked at before it and behind it.

A command can change any file, so the state of all that git would not ignore is looked at before it, and what
differs behind it is kept as any other change is. Where their contents are few they are read before it; where
they are many, only what git has no content of is read, and git is asked for the content of what the command
has changed (`git_index.py`). So there is one way of seeing, with or without git.

That has bounds, in number, size and time; where a workspace exceeds them, nothing of its commands is seen,
and the user is told so. Not seen either are ignored files, empty folders, files that were too large before,
and what a command did in whose midst the daemon was killed. Nothing tells a change of the command from one
that somebody else makes while it runs, but what other sessions and the user's editor tell (`writers.py`).
"""

import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentd.workspace import files
from agentd.workspace.beneath import directory, open_directory
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.file_states import Change, FileState, Parts, same_content, state_from, state_of
from agentd.workspace.files import Snapshot
from agentd.workspace.ignore import Entries, Walk
from agentd.workspace.paths import Place, WorkspaceError

if TYPE_CHECKING:
    from agentd.workspace.git_index import Index

log = logging.getLogger(__name__)

MOST_FILES = 5_000
MOST_BYTES = 32 * 1024 * 1024
"""How much is read before a command."""
MOST_WALKED = 200_000
"""Files that are looked at where git has the content of most."""
LARGEST = 4 * 1024 * 1024
"""Bytes of one file; the content of a larger one is not kept."""
SECONDS = 2.0
"""For the look before a command, which has to wait for it."""
SECONDS_WITH_GIT = 6.0
"""The same in a workspace of up to `MOST_WALKED` files."""
MOST_CHANGED = 10_000
MOST_CHANGED_BYTES = 64 * 1024 * 1024
"""How much of what one command changed is kept."""

UNSEEN = (
    "What commands change in this workspace cannot be taken back by a rewind: beside the files that git "
    f"ignores or has stored it has more than {MOST_FILES:,} files or {MOST_BYTES // 2**20} MB, or they could "
    f"not be looked at within {SECONDS_WITH_GIT:g} s. What agentd's own tools change can be."
)
TOO_MANY = (
    f"A command changed more than {MOST_CHANGED:,} files or {MOST_CHANGED_BYTES // 2**20} MB: a rewind "
    "cannot take all of it back."
)

_Signature = tuple[int, ...]

_TICK_NS = 50_000_000
"""Within so much of each other two changes of a file may bear the same time, on any system's clock."""


class TooLarge(Exception):
    """The workspace exceeds the bounds."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file in a picture: the state it was in, and its content or what git calls it."""

    status: os.stat_result
    data: bytes | None = None
    blob: str = ""

    @property
    def signature(self) -> _Signature:
        """What is another one once the file has changed."""
        return _signature(self.status)

    def state(self, data: bytes | None) -> FileState:
        """The file as it was, with this content; without it, a state that nobody has kept."""
        digest = hashlib.sha256(f"blob {self.blob}".encode() if data is None else data).hexdigest()
        return state_from(self.status, digest)


@dataclass(frozen=True)
class Picture:
    """The files of a workspace at one moment, and how many changes the session had made by then.

    `began` is when the look began, in nanoseconds of the system's clock. `others` are files that are there
    and whose content is not known, and what git ignores; of an ignored folder only the folder.
    """

    root: Path
    began: int
    found: Mapping[Parts, Known]
    others: frozenset[Parts]
    folders: frozenset[Parts]
    hidden: Parts | None
    changes: int

    def has_content_of(self, parts: Parts) -> bool:
        """Whether a file that is new now was really not there."""
        return not any(parts[:depth] in self.others for depth in range(1, len(parts) + 1))


@dataclass
class Looks:
    """What one look leaves for the next, so that only what has changed is read again.

    `beside` is the picture from before commands ran beside the prompt, in the background. It serves for all
    later looks of the prompt, as what was kept since is known.

    Beside a command others of the same prompt may run, and tools: `making` are the changes by tools that are
    kept and perhaps not made yet, each with its place among all. Where such a one is not made after all, what
    a look found of its file meanwhile is `owed`. `keeping` is held while changes are kept.
    """

    last: Picture | None = None
    beside: Picture | None = None
    needs_git: bool = False
    is_too_large: bool = False
    making: dict[Parts, int] = field(default_factory=dict)
    owed: dict[Parts, "Difference"] = field(default_factory=dict)
    keeping: threading.Lock = field(default_factory=threading.Lock)

    def known(self, checkpoints: Checkpoints) -> int:
        """How many changes are made for certain when a look begins now. Blocks. Raises OSError."""
        with self.keeping:
            return min([len(checkpoints.changes()), *self.making.values()])


@dataclass(frozen=True)
class Behind:
    """What a look behind a command found, and when: `changes` were kept by then, and tools were at `left`.

    The latter are as in `Looks.making`.
    """

    found: list["Difference"]
    is_all: bool
    left: Mapping[Parts, int]
    changes: int


@dataclass(frozen=True)
class Difference:
    """A file that is not as it was: what it was, and what it is as far as it was read.

    `saved` is what the user has saved in between. `below`: its document holds text that is not saved.
    """

    parts: Parts
    old: Known | None
    now: FileState | None
    data: bytes | None = None
    made: int = 0
    saved: FileState | None = None
    below: bool = False


# --- before ---------------------------------------------------------------------------------------


def look(
    checkpoints: Checkpoints, root: Path, looks: Looks, hidden: Path | None = None, *, with_git: bool = False
) -> Picture:
    """The workspace at this moment, without the folder `hidden`. Blocks. Raises TooLarge or OSError.

    `with_git`: what git has the content of is not read.
    """
    began, deadline = time.time_ns(), time.monotonic() + (SECONDS_WITH_GIT if with_git else SECONDS)
    changes = looks.known(checkpoints)
    with directory(root, ()) as fd:
        walk = _Walk(fd, _below(root, hidden))
        statuses = _statuses(fd, walk, deadline, with_git=with_git)
    index = _index(root, statuses) if with_git else None
    last = looks.last if looks.last is not None and looks.last.root == root else None
    settled = last.began - _TICK_NS if last is not None else 0
    room = _Room(deadline)
    found: dict[Parts, Known] = {}
    for parts, status in statuses.items():
        old = last.found.get(parts) if last is not None else None
        if old is not None and old.signature == _signature(status) and status.st_ctime_ns < settled:
            known: Known | None = old
        elif index is not None and (blob := index.blob(parts, status)) is not None:
            known = Known(status, blob=blob)
        else:
            known = _known(root, parts) if status.st_size <= LARGEST else None
        if known is not None:
            room.take(known.data)
            found[parts] = known
    others = walk.ignored | (walk.names - found.keys())
    return Picture(root, began, found, frozenset(others), frozenset(walk.folders), walk.hidden, changes)


def _statuses(root_fd: int, walk: "_Walk", deadline: float, *, with_git: bool) -> dict[Parts, os.stat_result]:
    """The files and links. Raises TooLarge, before anything is read."""
    found: dict[Parts, os.stat_result] = {}
    size = 0
    most_files = MOST_WALKED if with_git else MOST_FILES
    for number, parts in enumerate(walk.files(())):
        walk.names.add(parts)
        status = _status(root_fd, parts)
        if status is not None:
            found[parts] = status
            size += status.st_size if status.st_size <= LARGEST else 0
        is_too_much = size > MOST_BYTES and not with_git
        if number >= most_files or is_too_much or time.monotonic() > deadline:
            raise TooLarge
    return found


def _index(root: Path, statuses: Iterable[Parts]) -> "Index":
    from agentd.workspace.git_index import UnknownIndex, read_index  # only for what is too much to be read

    try:
        return read_index(root, [parts for parts in statuses if parts[-1] == ".gitattributes"])
    except UnknownIndex as error:
        raise TooLarge from error


class _Room:
    """What may still be read. Raises TooLarge."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._files = MOST_FILES
        self._bytes = MOST_BYTES

    def take(self, data: bytes | None) -> None:
        if time.monotonic() > self._deadline:
            raise TooLarge
        if data is not None:
            self._files -= 1
            self._bytes -= len(data)
        if self._files < 0 or self._bytes < 0:
            raise TooLarge


# --- behind ---------------------------------------------------------------------------------------


def look_behind(checkpoints: Checkpoints, before: Picture, looks: Looks) -> Behind:
    """Look once more, and give what differs. Blocks. Raises OSError."""
    with looks.keeping:
        left, changes = dict(looks.making), len(checkpoints.changes())
    found, is_all = differences(checkpoints, before)
    return Behind(found, is_all, left, changes)


def differences(checkpoints: Checkpoints, before: Picture) -> tuple[list[Difference], bool]:
    """Look once more, and give what differs, and whether that is all of it. Blocks. Raises OSError."""
    root = before.root
    changes = checkpoints.changes()[before.changes :]
    own = {change.parts for change in changes if not change.in_buffer}
    found: list[Difference] = []
    room = MOST_CHANGED_BYTES
    with directory(root, ()) as fd:
        walk = _Walk(fd, before.hidden)
        names = _names(walk, len(before.found))
        for parts in sorted({*names, *before.found, *own}):
            old = before.found.get(parts)
            status = _status(fd, parts) if parts in names else _status_beneath(fd, parts)
            if old is not None and status is not None and _signature(status) == old.signature:
                if parts not in own:
                    continue
            elif old is None and (status is None or not before.has_content_of(parts)) and parts not in own:
                continue
            if len(found) >= MOST_CHANGED or room < 0:
                return found, False
            now, data = (None, None) if status is None else _content(root, parts, status)
            room -= len(data or b"")
            made = _made(parts, before.folders) if old is None else 0
            found.append(Difference(parts, old, now, data, made))
    return found, True


def keep_behind(
    checkpoints: Checkpoints,
    before: Picture,
    behind: Behind,
    looks: Looks,
    blobs: Mapping[str, bytes],
    origin: str,
) -> None:
    """Keep what a look found, but not what others of the prompt have changed since. Like `keep`."""
    with looks.keeping:
        changes = checkpoints.changes()
        since: dict[Parts, list[Change]] = {each: [] for each in looks.making}
        for number, change in enumerate(changes):
            if number >= behind.left.get(change.parts, behind.changes):
                since.setdefault(change.parts, []).append(change)
        found = [each for each in behind.found if _came_to_nothing(since.get(each.parts))]
        looks.owed |= {each.parts: each for each in behind.found if each.parts in looks.making}
        keep(checkpoints, before, found, blobs, origin)


def _came_to_nothing(changes: Sequence[Change] | None) -> bool:
    """Whether these are none, or such as a tool has kept and then not made. An empty row is one under way."""
    return changes is None or (len(changes) > 1 and same_content(changes[0].before, changes[-1].after))


def keep(
    checkpoints: Checkpoints,
    before: Picture,
    found: Iterable[Difference],
    blobs: Mapping[str, bytes],
    origin: str,
) -> None:
    """Keep these differences as changes of prompt `origin`. Blocks. Raises OSError.

    `blobs` are contents that git had. What the session's own tools have changed meanwhile is kept already.
    """
    own: dict[Parts, FileState | None] = {}
    saved: dict[Parts, FileState | None] = {}
    for change in checkpoints.changes()[before.changes :]:
        (saved if change.in_buffer else own)[change.parts] = change.after
    changes: list[Change] = []
    contents: dict[str, bytes] = {}
    for each in found:
        was, data = _was(each.old, blobs)
        begin = own.get(each.parts, was)
        if each.parts in saved and same_content(saved[each.parts], each.now):
            begin = each.now  # what was changed in the editor was saved, too
        if each.saved is not None and not same_content(each.saved, begin):
            begin = replace(each.saved, mode=begin.mode if begin is not None else None)
        change = Change(origin, each.parts, begin, each.now, below=each.below)
        if not _differs(change):
            continue
        changes.append(replace(change, made=each.made) if change.before is None else change)
        for state, content in ((was, data), (each.now, each.data)):
            if state is not None and content is not None and state in (change.before, change.after):
                contents[state.digest] = content
    if changes:
        checkpoints.record(changes, contents, at_once=False)


def _was(old: Known | None, blobs: Mapping[str, bytes]) -> tuple[FileState | None, bytes | None]:
    """What a file was. A content of git's that has another size was converted on its way into the folder."""
    if old is None:
        return None, None
    if old.data is not None:
        return old.state(old.data), old.data
    data = blobs.get(old.blob)
    if data is not None and len(data) != old.status.st_size:
        data = None
    return old.state(data), data


class _Walk(Walk):
    """A walk that remembers what it came through and what it left out, and leaves out one folder."""

    def __init__(self, root_fd: int, hidden: Parts | None) -> None:
        super().__init__(root_fd)
        self.hidden = hidden
        self.names: set[Parts] = set()
        self.folders: set[Parts] = set()
        self.ignored: set[Parts] = set()

    def passed_over(self, parts: Parts) -> None:
        self.ignored.add(parts)

    def _entries(self, folder: Parts) -> Entries:
        self.folders.add(folder)
        found = super()._entries(folder)
        if self.hidden is None or folder != self.hidden[:-1]:
            return found
        return Entries(*([name for name in each if name != self.hidden[-1]] for each in found))


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


def _names(walk: Walk, known: int) -> set[Parts]:
    """The files that are there now. Of those beyond all bounds the first."""
    found = set()
    for parts in walk.files(()):
        found.add(parts)
        if len(found) > known + 2 * MOST_CHANGED:
            break
    return found


def _status(root_fd: int, parts: Parts) -> os.stat_result | None:
    """The state of a plain file or a link; None where there is neither."""
    try:
        status = os.stat("/".join(parts), dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) else None


def _status_beneath(root_fd: int, parts: Parts) -> os.stat_result | None:
    """The same where a link may have taken the place of a folder on the way, which is not followed."""
    try:
        folder = open_directory(root_fd, parts[:-1])
    except OSError:
        return None
    try:
        return _status(folder, parts[-1:])
    finally:
        os.close(folder)


def _read(root: Path, parts: Parts) -> Snapshot | None:
    try:
        return files.read_entry(Place(root, parts, "/".join(parts)))
    except WorkspaceError:
        return None  # not ours to read, too large, or gone by now


def _known(root: Path, parts: Parts) -> Known | None:
    snapshot = _read(root, parts)
    if snapshot is None:
        return None
    return Known(snapshot.status, snapshot.data)


def _content(root: Path, parts: Parts, status: os.stat_result) -> tuple[FileState | None, bytes | None]:
    """What a file is now, and its content where that is to be kept.

    One that cannot be read is in a state that no other is in: whoever wants to bring it back finds that.
    """
    snapshot = _read(root, parts)
    if snapshot is None:
        return FileState(hashlib.sha256(repr(_signature(status)).encode()).hexdigest()), None
    return state_of(snapshot), snapshot.data if len(snapshot.data) <= LARGEST else None


def _signature(status: os.stat_result) -> _Signature:
    """What changes when a file does: ctime cannot be set back by a program."""
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode
    )  # fmt: skip
