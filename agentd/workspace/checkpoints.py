"""What files were before a session changed them, and what it left: the ground of rewind, diff and original.

Each session has a folder outside of the workspace, beside its journal. In it lie the contents, each under its
SHA-256, and an index with one line per change, which names the prompt, the file, its state before and after.

* A line and the content before are on the disk before the file is changed, so no kill loses what was there. A
  line whose change a kill prevented does no harm: such a file is as it was before, which counts as well.
* Contents that only stood between two changes of one prompt are given up again.
* The lines of one file are a chain. Where one does not begin as the one before ended, somebody else changed
  the file in between.
"""

import hashlib
import json
import logging
import os
import shutil
import threading
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from pathlib import Path
from typing import Protocol

from agentd.workspace.disk import sync_folder, write_all
from agentd.workspace.file_states import Change, FileState, Parts, change_of, line_of, same_content
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place

log = logging.getLogger(__name__)

MOST_BYTES = 512 * 1024 * 1024
"""The room for contents of one session, unless the user's configuration says otherwise."""

FULL = (
    "What files were before is not kept any more in this session, beyond {} MB: changes from here on may be "
    "such that a rewind cannot take them back, and names these as conflicts. `checkpoints.max_mb` in the "
    "configuration is that limit."
)

_INDEX = "index.jsonl"
_REWIND = "rewind.json"
_SUFFIX = ".files"
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Checkpoint(Protocol):
    """What keeps the state of files before one prompt changes them."""

    def changing(
        self, place: Place, before: Snapshot | None, after: bytes | None, *, in_buffer: bool = False
    ) -> AbstractContextManager[None]:
        """A context in which the file is changed, or removed where `after` is None.

        `in_buffer`: it is changed in the editor, where it is open.

        Raises WorkspaceError `storage` before anything is.
        """
        ...

    def watching(self, root: Path) -> AbstractAsyncContextManager[None]:
        """A context in which a command runs that may change any file of the workspace."""
        ...

    async def look_beside(self, root: Path, *, begins: bool = False) -> None:
        """Keep what commands in the background have changed since they began, or the prompt did.

        `begins`: one is about to run, or runs as the prompt begins.
        """
        ...


class NoCheckpoint:
    """Keeps nothing: for tools outside of a session."""

    @contextmanager
    def changing(
        self, place: Place, before: Snapshot | None, after: bytes | None, *, in_buffer: bool = False
    ) -> Iterator[None]:
        """Nothing is kept."""
        yield

    @asynccontextmanager
    async def watching(self, root: Path) -> AsyncIterator[None]:
        """Nothing is looked at."""
        yield

    async def look_beside(self, root: Path, *, begins: bool = False) -> None:
        """Nothing is looked at."""


class Checkpoints:
    """The changes of one session. Its methods block and may be called from any thread."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        """Nothing is read or made before it is needed.

        Contents take up to `most_bytes`. Changes beyond that are known, but cannot be taken back.
        """
        self._folder = folder
        self._most_bytes = most_bytes
        self._is_full = False
        self._size: int | None = None  # bytes of all contents, once they were counted
        self._lock = threading.RLock()
        self._changes: list[Change] | None = None
        self._needed: Counter[str] = Counter()  # content -> how many changes need it
        self._last: dict[tuple[str, Parts], Change] = {}  # the last change of each file by each origin
        self._fd = -1

    @staticmethod
    def beside(journal: Path, most_bytes: int = MOST_BYTES) -> "Checkpoints":
        """Those of the session that has this journal."""
        return Checkpoints(folder_beside(journal), most_bytes)

    @property
    def folder(self) -> Path:
        """Where all of it lies."""
        return self._folder

    @property
    def notice(self) -> str | None:
        """What the user should know, once something was not kept for lack of room."""
        return FULL.format(self._most_bytes // 2**20) if self._is_full else None

    # --- reading ----------------------------------------------------------------------------------

    def changes(self) -> tuple[Change, ...]:
        """All changes, oldest first. A line that cannot be read is left out. Raises OSError."""
        with self._lock:
            return tuple(self._read())

    def content(self, state: FileState) -> bytes | None:
        """The content of a state; None where it was not kept, or is not what it was."""
        try:
            data = (self._folder / state.digest).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == state.digest else None

    def _read(self) -> list[Change]:
        if self._changes is None:
            self._changes = []
            try:
                data = (self._folder / _INDEX).read_bytes()
            except FileNotFoundError:
                data = b""
            for line in data.splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    self._take(change_of(json.loads(line)))
        return self._changes

    def _take(self, change: Change) -> None:
        """Add a change to what is known."""
        assert self._changes is not None
        self._changes.append(change)
        last = self._last.get((change.origin, change.parts))
        self._last[change.origin, change.parts] = change
        if last is None or not same_content(last.after, change.before):
            self._need(change.before)
        elif last.after is not None:
            self._needed[last.after.digest] -= 1  # it stood in between only
        self._need(change.after)

    def _need(self, state: FileState | None) -> None:
        if state is not None:
            self._needed[state.digest] += 1

    # --- writing ----------------------------------------------------------------------------------

    def record(
        self,
        changes: Sequence[Change],
        contents: Mapping[str, bytes],
        *,
        at_once: bool = True,
        is_owed: bool = False,
    ) -> None:
        """Have changes on the disk that are about to be made, and the contents (by digest) that they need.

        Without `at_once`, for changes that were made already, a power cut may take their contents away again.
        `is_owed`: they are kept however much there is, as what a rewind takes away has to come back. Raises
        OSError; what is written of it by then does no harm.
        """
        with self._lock:
            self._read()
            self._make_folder()
            self._store(self._kept(contents, is_owed), at_once)
            self._append(changes)
            old = {
                last.after.digest
                for change in changes
                if (last := self._last.get((change.origin, change.parts))) and last.after
            }
            for change in changes:
                self._take(change)
            self._give_up(old)

    def _kept(self, contents: Mapping[str, bytes], is_owed: bool) -> dict[str, bytes]:
        """The contents that are not kept yet and that there is room for."""
        if self._size is None:
            self._size = sum(size for digest in self._needed if (size := self._size_of(digest)) is not None)
        kept: dict[str, bytes] = {}
        room = self._most_bytes - self._size
        for digest, data in contents.items():
            if self._size_of(digest) == len(data):
                continue
            if not is_owed and len(data) > room:
                self._is_full = True
                continue
            kept[digest] = data
            room -= len(data)
        return kept

    def _size_of(self, digest: str) -> int | None:
        try:
            return (self._folder / digest).stat().st_size
        except OSError:
            return None

    def _store(self, contents: Mapping[str, bytes], at_once: bool) -> None:
        for digest, data in contents.items():
            temporary = self._folder / f"{digest}.new"
            try:
                with os.fdopen(os.open(temporary, _WRITE | os.O_TRUNC, 0o600), "wb") as file:
                    file.write(data)
                    file.flush()
                    if at_once:
                        os.fsync(file.fileno())
                temporary.rename(self._folder / digest)
            except OSError:
                with suppress(OSError):  # what is full gets its room back
                    temporary.unlink()
                raise
            self._size = (self._size or 0) + len(data)
        if contents:
            sync_folder(self._folder)

    def _append(self, changes: Iterable[Change]) -> None:
        lines = b"".join(json.dumps(line_of(change)).encode("ascii") + b"\n" for change in changes)
        if self._fd < 0:
            self._fd = self._open_index()
        end = os.fstat(self._fd).st_size
        try:
            write_all(self._fd, lines)
            os.fsync(self._fd)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, end)
            raise

    def _open_index(self) -> int:
        """The index, to be added to; what a kill or a full disk left of a last line is closed off."""
        fd = os.open(self._folder / _INDEX, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size = os.fstat(fd).st_size
        try:
            if size and os.pread(fd, 1, size - 1) != b"\n":
                write_all(fd, b"\n")
            sync_folder(self._folder)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _give_up(self, digests: Collection[str]) -> None:
        for digest in digests:
            if self._needed[digest] <= 0 and (size := self._size_of(digest)) is not None:
                with suppress(OSError):  # a content too many does no harm
                    (self._folder / digest).unlink()
                    self._size = (self._size or 0) - size

    def _make_folder(self) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o700)
            sync_folder(self._folder.parent)

    # --- a rewind under way -----------------------------------------------------------------------

    def begin_rewind(self, changes: Sequence[Change]) -> None:
        """Have on the disk what a rewind is about to do, until `end_rewind`. Raises OSError."""
        with self._lock:
            self._make_folder()
            temporary = self._folder / f"{_REWIND}.new"
            with os.fdopen(os.open(temporary, _WRITE | os.O_TRUNC, 0o600), "wb") as file:
                file.write(json.dumps([line_of(change) for change in changes]).encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._folder / _REWIND)
            sync_folder(self._folder)

    def open_rewind(self) -> tuple[Change, ...]:
        """What a rewind that has not ended was about to do; nothing where there is none. Raises OSError."""
        try:
            return tuple(map(change_of, json.loads((self._folder / _REWIND).read_bytes())))
        except FileNotFoundError:
            return ()
        except (ValueError, KeyError, TypeError):
            log.warning("the plan of a rewind cannot be read: the disk may have a fault")
            return ()

    def end_rewind(self) -> None:
        """The rewind is done, or taken back. Raises OSError."""
        (self._folder / _REWIND).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the index."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


# --- files ----------------------------------------------------------------------------------------


def folder_beside(journal: Path) -> Path:
    """The folder of the session that has this journal."""
    return journal.with_name(journal.name + _SUFFIX)


def remove_beside(journal: Path) -> None:
    """Remove all that was kept for a session."""
    shutil.rmtree(folder_beside(journal), ignore_errors=True)


def with_open_rewind(sessions: Path) -> list[Path]:
    """The journals of sessions in which a daemon died in the midst of a rewind. Blocks. Raises OSError."""
    found = sessions.glob(f"*/*.jsonl{_SUFFIX}/{_REWIND}")
    return [each.parent.with_name(each.parent.name.removesuffix(_SUFFIX)) for each in found]


def sweep(sessions: Path) -> int:
    """Remove what was kept for sessions that are gone; gives of how many. Blocks. Raises OSError."""
    gone = [
        folder
        for folder in sessions.glob(f"*/*.jsonl{_SUFFIX}")
        if not folder.with_name(folder.name.removesuffix(_SUFFIX)).exists()
    ]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    return len(gone)
