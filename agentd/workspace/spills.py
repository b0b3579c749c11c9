"""Output that is too long for the model, kept in files that it may read.

    <data folder>/output/<16 hex digits>/output-1.txt

A session has one folder here, made with its first file, for its owner only, and removed when the session is
closed. The folder is locked (flock(2)) as long as its process lives: a folder that is not is what a killed
daemon left, and is swept when the next one starts.

A file is made when an output becomes too long to be shown, and begins at the output's beginning. It holds the
cleaned text, as the model would have seen it, up to a cap. Nothing here ever stops a command: when the disk
refuses, the file is removed, so that what is full gets room again, and the reason is told.
"""

import errno
import fcntl
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import anyio.to_thread

from agentd.workspace.disk import write_all
from agentd.workspace.left_folders import remove_if_left
from agentd.workspace.paths import Place, WorkspaceError

FILE_BYTES = 64 * 1024 * 1024
"""The most that is kept of one output."""

SESSION_BYTES = 8 * FILE_BYTES
"""The most that is kept of a session: beyond that the oldest files go."""

PATIENCE_SECONDS = 5.0
"""How long a command waits for a disk that hangs, before its output is no longer kept."""

_NAME_BYTES = 8
_CHUNK = 1024 * 1024
_WINDOW_BYTES = 1024 * 1024  # far more than a result shows
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ADD = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Spill:
    """The file of one output; there is none before something is written."""

    def __init__(self, owner: "Spills", name: str) -> None:
        self._owner = owner
        self.name = name
        self.size = 0
        self.is_capped = False
        self.flaw: str | None = None
        """Why there is no file though one was wanted: the system's reason."""

    @property
    def path(self) -> Path | None:
        """Where the file is, when there is one."""
        folder = self._owner.folder
        return folder / self.name if folder and self.size and self.flaw is None else None

    async def write(self, data: bytes) -> None:
        """Add to the file, as far as the cap lets it. Raises nothing but cancellation: the file ends."""
        if not data or self.is_capped or self.flaw is not None:
            return
        room = FILE_BYTES - self.size
        self.is_capped = len(data) > room
        with anyio.move_on_after(PATIENCE_SECONDS):
            try:
                await anyio.to_thread.run_sync(self._owner.append, self, data[:room], abandon_on_cancel=True)
            except OSError as error:
                self.flaw = error.strerror or str(error)
                with suppress(OSError):
                    await anyio.to_thread.run_sync(self._owner.remove, self, abandon_on_cancel=True)
            except anyio.get_cancelled_exc_class():
                self.flaw = "the disk did not take it in time"
                raise


class Spills:
    """The files of one session, made below `parent`; where that is None nothing is kept."""

    def __init__(self, parent: Path | None = None) -> None:
        self.folder: Path | None = None
        self._parent = parent
        self._files: dict[str, Spill] = {}
        self._count = 0
        self._lock = -1
        self._guard = threading.Lock()  # for what threads do: making the folder, adding, removing
        self._closed = False

    def new(self) -> Spill | None:
        """A file for one output, or None where nothing is kept."""
        if self._parent is None or self._closed:
            return None
        self._count += 1
        return Spill(self, f"output-{self._count}.txt")

    def find(self, given: str) -> Place | None:
        """The file that exactly this absolute path names, if it is one of this session's."""
        folder, name = os.path.split(given)
        if self.folder is None or folder != str(self.folder) or name not in self._files:
            return None
        return Place(self.folder, (name,), given)

    def holds(self, place: Place) -> bool:
        """Whether a place is that of one of these files."""
        return self.folder is not None and place.root == self.folder

    async def close(self) -> None:
        """Remove everything. What is still being written goes nowhere."""
        self._closed = True
        if self.folder is not None:
            await anyio.to_thread.run_sync(self._remove_all, abandon_on_cancel=True)

    # --- in threads -------------------------------------------------------------------------------

    def append(self, spill: Spill, data: bytes) -> None:
        """Add to a file, making it where it is not there. Raises OSError."""
        with self._guard:
            if spill.flaw is not None:  # it was taken away meanwhile
                return
            folder = self._open_folder()
            try:
                is_new = spill.name not in self._files
                fd = os.open(spill.name, _MAKE if is_new else _ADD, 0o600, dir_fd=folder)
            finally:
                os.close(folder)
            self._files[spill.name] = spill
            try:
                write_all(fd, data)
            finally:
                os.close(fd)
            spill.size += len(data)
            self._prune(spill)

    def remove(self, spill: Spill) -> None:
        """Take a file away. Raises OSError."""
        with self._guard:
            if self.folder is not None and self._files.pop(spill.name, None) is not None:
                os.unlink(self.folder / spill.name)

    def _prune(self, newest: Spill) -> None:
        """Let the oldest files go while all together are too large."""
        oldest = [spill for spill in self._files.values() if spill is not newest]
        while oldest and sum(spill.size for spill in self._files.values()) > SESSION_BYTES:
            spill = oldest.pop(0)
            del self._files[spill.name]
            spill.flaw = "newer output took its place"
            assert self.folder is not None
            with suppress(FileNotFoundError):
                os.unlink(self.folder / spill.name)

    def _open_folder(self) -> int:
        if self._closed or self._parent is None:
            raise OSError(errno.ESHUTDOWN, "the session was closed")
        if self.folder is None:
            self.folder, self._lock = _make_folder(self._parent)
        return os.open(self.folder, _LOOK | os.O_DIRECTORY)

    def _remove_all(self) -> None:
        with self._guard:
            if self.folder is None:
                return
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self.folder = None
            self._files.clear()


def sweep(parent: Path) -> None:
    """Remove what daemons that were killed have left below `parent`. Blocks; never raises."""
    with suppress(OSError):
        for entry in os.scandir(parent):
            if _is_ours(entry.name):
                remove_if_left(parent / entry.name)


def _is_ours(name: str) -> bool:
    return len(name) == 2 * _NAME_BYTES and all(character in "0123456789abcdef" for character in name)


def _make_folder(parent: Path) -> tuple[Path, int]:
    """A new folder and the descriptor that locks it. Raises OSError."""
    for each in (*reversed(parent.parents), parent):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700)
    while True:
        folder = parent / secrets.token_hex(_NAME_BYTES)
        folder.mkdir(mode=0o700)
        try:
            fd = os.open(folder, _LOOK | os.O_DIRECTORY)
        except FileNotFoundError:  # a sweep was faster than our lock
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_nlink and folder.exists():
                return folder, fd
        except BlockingIOError:  # the same, a moment later
            pass
        except OSError:
            os.close(fd)
            raise
        os.close(fd)


# --- reading --------------------------------------------------------------------------------------


class SpilledLines:
    """The lines of a spilled output, read where they are asked for: a file can hold millions.

    A line longer than `line_bytes` is cut, and only so many are given at once as a result could ever show.
    Blocks. Raises WorkspaceError where the file is gone.
    """

    def __init__(self, place: Place, line_bytes: int) -> None:
        self._place = place
        self._line_bytes = line_bytes
        with _opened(place) as fd:
            newlines, last = 0, b"\n"
            for chunk in _chunks(fd):
                newlines += chunk.count(b"\n")
                last = chunk[-1:]
        self._count = newlines + (last != b"\n")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice, /) -> list[str]:
        first, end, _ = part.indices(len(self))
        lines: list[str] = []
        size = 0
        with _opened(self._place) as fd:
            os.lseek(fd, _start_of(fd, first), os.SEEK_SET)
            with os.fdopen(fd, "rb", closefd=False) as file:
                while len(lines) < end - first and size < _WINDOW_BYTES:
                    line = file.readline(self._line_bytes)
                    if not line:  # a command has cut it off
                        break
                    lines.append(line.decode(errors="ignore").removesuffix("\n"))
                    size += len(line)
                    while line and not line.endswith(b"\n"):  # the rest of one that is too long
                        line = file.readline(_CHUNK)
        return lines


def _start_of(fd: int, line: int) -> int:
    """Where a line begins, in bytes; the end where there is no such line."""
    position = 0
    for chunk in _chunks(fd):
        newlines = chunk.count(b"\n")
        if newlines >= line:
            start = 0
            for _ in range(line):
                start = chunk.index(b"\n", start) + 1
            return position + start
        line -= newlines
        position += len(chunk)
    return position


def _chunks(fd: int) -> Iterator[bytes]:
    while chunk := os.read(fd, _CHUNK):
        yield chunk


@contextmanager
def _opened(place: Place) -> Iterator[int]:
    try:
        fd = os.open(place.path, _LOOK | os.O_NONBLOCK)
    except OSError as error:
        raise _gone(place) from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:  # a command put another in its place
            raise _gone(place)
        yield fd
    finally:
        os.close(fd)


def _gone(place: Place) -> WorkspaceError:
    return WorkspaceError("not_found", f"The output in {place.given} is not kept any more. Run it again.")
