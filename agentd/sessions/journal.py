"""The one writer of a session's journal, an append-only file; `journal_form.py` says what it looks like.

Rules of the room:

* A record is appended whole, at an offset that is known, or not at all: what a failed write left is cut away
  before anything else is written. Nothing is ever rewritten, so an append costs the same at any length.
* What `append` returned from survives the death of the process, what `sync` returned from a power cut.
* The unfinished end that a killed writer leaves is kept in `<file>.torn` and cut off.
* The writer holds a `flock`, freed by the kernel however the process ends; `<file>.pid` only says who it is.
  Whether somebody holds it is asked of the lock, never of the note: its number may be another's by now.
"""

import errno
import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentd.sessions.journal_form import (
    SCHEMA,
    Contents,
    Damage,
    JournalError,
    JournalLocked,
    JournalTooNew,
    Scan,
    encode,
    failing_as,
    open_to_read,
    read,
    read_ends,
)
from agentd.workspace.disk import sync_folder

__all__ = [
    "SCHEMA",
    "Contents",
    "Damage",
    "Journal",
    "JournalError",
    "JournalLocked",
    "JournalTooNew",
    "holder",
    "read",
    "read_ends",
    "remove",
]

_COPY_BYTES = 1024 * 1024
_LOCK_ATTEMPTS = 5
_LOCK_PAUSE = 0.005
"""Seconds between attempts: who only asks for the holder is gone after some microseconds."""

_log = logging.getLogger(__name__)


# --- the writer -----------------------------------------------------------------------------------


class Journal:
    """The one writer of a session's journal.

    `append`, `close` and the awaiting of `sync` belong to one thread; `create` and `open` wait for the disk
    and may run in another.
    """

    def __init__(self, path: Path, fd: int, end: int, synced: int) -> None:
        """Not for callers: see `create` and `open`. `end` and `synced` are offsets in bytes."""
        self.path = path
        self._fd = fd
        self._end = end
        self._synced = synced
        self._tail_is_dirty = False
        self._sync_is_doubtful = False
        self._turn = anyio.Lock()  # one sync at a time; the others wait and mostly find their work done
        self._flight = threading.Lock()  # the same for threads, as a cancelled sync leaves its thread behind
        self._descriptor = threading.Lock()  # no thread takes `_fd` while it is being closed

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any]) -> "Journal":
        """Begin the journal of a new session; its name and header are on the disk on return.

        Missing folders are made for the user alone (0700), and so is the file (0600). Raises JournalError,
        also when the file exists, and ValueError for a header that is no JSON.
        """
        line = encode({**header, "schema": SCHEMA, "minReader": SCHEMA})
        with failing_as("created"):
            _make_folders(path.parent)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _lock(fd, path)
            with failing_as("created"):
                _begin(fd, path, line)
        except BaseException:
            os.close(fd)
            raise
        _write_pid(path)
        return cls(path, fd, len(line), len(line))

    @classmethod
    def open(cls, path: Path) -> tuple["Journal", Contents]:
        """Take a journal over: lock it, read it, and repair its end.

        What stands behind the last good record is copied to `<file>.torn` and cut away. Raises JournalLocked,
        JournalTooNew or JournalError, and then leaves the file as it was.
        """
        with failing_as("opened"):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            _lock(fd, path)
            with failing_as("read"), os.fdopen(fd, "rb", closefd=False) as file:
                scan = Scan(file)
            contents = scan.contents(scan.damage)
            if (needed := contents.header.get("minReader", SCHEMA)) > SCHEMA:
                raise JournalTooNew(needed)
            with failing_as("repaired"):
                end = _repair(fd, path, scan)
        except BaseException:
            _unlock(fd)
            os.close(fd)
            raise
        _write_pid(path)
        return cls(path, fd, end, synced=0), contents

    def append(self, record: Mapping[str, Any]) -> None:
        """Hand one record to the system, whole: on return it survives the death of this process.

        Raises JournalError when it cannot be written, and then nothing of it stays; the next append works as
        soon as the cause is gone. Raises ValueError for what is no JSON (lone surrogates, nesting over 255
        levels), before anything is written.
        """
        line = encode(record)
        try:
            if self._tail_is_dirty:
                self._cut_tail()
            self._tail_is_dirty = True
            _write(self._fd, line, self._end)
        except OSError as error:
            with suppress(OSError):  # where cutting fails too, it is done before the next write
                self._cut_tail()
            raise JournalError("written", error.errno) from error
        self._end += len(line)
        self._tail_is_dirty = False

    def _cut_tail(self) -> None:
        """Take away what a write that failed has left."""
        os.ftruncate(self._fd, self._end)
        self._tail_is_dirty = False

    async def sync(self) -> None:
        """Wait until all that was appended before this call is on the disk.

        Callers at the same time share the work. May be cancelled: the disk finishes on its own. Raises
        JournalError; the next sync then writes the bytes in doubt once more.
        """
        target = self._end
        if self._synced >= target:
            return
        async with self._turn:
            if self._synced >= target:
                return
            limiter = anyio.CapacityLimiter(1)  # its own thread: a pool full of stuck tools holds nothing up
            with failing_as("flushed to the disk"):
                await anyio.to_thread.run_sync(self._flush, target, abandon_on_cancel=True, limiter=limiter)

    def _flush(self, target: int) -> None:
        """Bring at least `target` bytes down; runs in a thread of its own.

        After a failed flush Linux counts the lost pages as clean, and the next one succeeds without writing
        them (fsync(2), "EIO"). So bytes in doubt are written once more before they are flushed.
        """
        with self._flight, self._duplicate() as fd:
            end = self._end
            if self._synced >= target:
                return
            if self._sync_is_doubtful:
                _write_again(fd, self._synced, end)
            self._sync_is_doubtful = True
            _flush_data(fd)
            self._sync_is_doubtful = False
            self._synced = end

    @contextmanager
    def _duplicate(self) -> Iterator[int]:
        """A descriptor that stays valid when the journal is closed meanwhile."""
        with self._descriptor:
            fd = os.dup(self._fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let go of the file and its lock. Does not sync. Closing twice is harmless."""
        with self._descriptor:
            if self._fd < 0:
                return
            with suppress(OSError):  # only a note to others, and theirs to overwrite
                _pid_file(self.path).unlink(missing_ok=True)
            _unlock(self._fd)  # said aloud, as a sync in flight has a descriptor of its own
            os.close(self._fd)
            self._fd = -1


# --- files ----------------------------------------------------------------------------------------


def _write(fd: int, data: bytes, offset: int) -> None:
    """Write it all at that offset. One call does it; a short one is followed by a second that says why."""
    written = os.pwrite(fd, data, offset)
    while written < len(data):
        more = os.pwrite(fd, data[written:], offset + written)
        if more == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        written += more


def _begin(fd: int, path: Path, header: bytes) -> None:
    """Write the first line and have it and the file's name on the disk."""
    try:
        _write(fd, header, 0)
        os.fsync(fd)
        sync_folder(path.parent)
    except OSError:
        path.unlink()  # without a header it would only stand in the way of the next attempt
        raise


def _write_again(fd: int, start: int, end: int) -> None:
    """Write the bytes of a range over themselves, so that the system has to flush them."""
    while start < end:
        data = os.pread(fd, min(_COPY_BYTES, end - start), start)
        if not data:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        _write(fd, data, start)
        start += len(data)


def _flush_data(fd: int) -> None:
    """Have the disk itself hold the data: on macOS fsync alone leaves it in the drive's cache."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def _repair(fd: int, path: Path, scan: Scan) -> int:
    """Set the end of a journal right for the next record, and give its offset."""
    if scan.unfinished:
        _write(fd, b"\n", scan.size)
        return scan.size + 1
    if scan.good_end < scan.size:
        _keep_torn(fd, path, scan.good_end)
        os.ftruncate(fd, scan.good_end)
    return scan.good_end


def _keep_torn(fd: int, path: Path, start: int) -> None:
    """Add everything from `start` on to the file of torn ends, and a line end."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path.with_name(path.name + ".torn"), flags, 0o600), "ab") as torn:
        while data := os.pread(fd, _COPY_BYTES, start):
            torn.write(data)
            start += len(data)
        torn.write(b"\n")
        torn.flush()
        os.fsync(torn.fileno())


def _make_folders(folder: Path) -> None:
    """Make the missing folders of a path, for the user alone, and have their names on the disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process made it just now
            each.mkdir(mode=0o700)
        sync_folder(each.parent)


def _lock(fd: int, path: Path) -> None:
    """Become the one writer, of the file that has this name now."""
    import fcntl  # not on Windows, where importing this room must still work

    for attempt in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if attempt == _LOCK_ATTEMPTS - 1:
                raise JournalLocked(_read_pid(path)) from None
            time.sleep(_LOCK_PAUSE)  # it may be somebody who only asks, see `holder`
        except OSError as error:
            raise JournalError("locked", error.errno) from error
    with failing_as("opened"):
        ours, named = os.fstat(fd), os.stat(path, follow_symlinks=False)
    if not os.path.samestat(ours, named) or not stat.S_ISREG(ours.st_mode):
        raise JournalError("opened", errno.ENOENT)


def _unlock(fd: int) -> None:
    import fcntl

    fcntl.flock(fd, fcntl.LOCK_UN)


def _pid_file(path: Path) -> Path:
    return path.with_name(path.name + ".pid")


def _write_pid(path: Path) -> None:
    """Say who holds the lock. Only a courtesy: a full disk must not keep a session shut."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(_pid_file(path), flags, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        _log.warning("the pid beside a session's journal was not written: %s", error.strerror)


def _read_pid(path: Path) -> int | None:
    """Who holds the lock, as far as it is known: a note whose process is gone is not believed."""
    try:
        pid = int(_pid_file(path).read_text())
        os.kill(pid, 0)  # whoever may read the note may signal the process: both are the user's own
    except (OSError, ValueError, OverflowError):
        return None
    return pid


def holder(path: Path) -> int | None:
    """The process that holds a session's journal, as far as it is known; None where nobody does.

    A note without a lock is what a killed process leaves. The lock is asked by taking a share of it for a
    moment, which holds up no other who asks, and a writer for that moment only.
    """
    pid = _read_pid(path)
    return pid if pid is not None and _is_locked(path) else None


def is_left(path: Path) -> bool:
    """Whether a session's last writer was killed before closing it, and nobody writes it now."""
    return _pid_file(path).exists() and not _is_locked(path)


def _is_locked(path: Path) -> bool:
    import fcntl

    try:
        with open_to_read(path) as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def remove(path: Path) -> None:
    """Remove a session's journal and all that lies beside it, for good.

    Raises JournalLocked while somebody writes it, JournalError where it cannot be removed.
    """
    with failing_as("opened"):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _lock(fd, path)
        with failing_as("removed"):
            for each in (path.with_name(path.name + ".torn"), _pid_file(path), path):
                each.unlink(missing_ok=True)
            sync_folder(path.parent)
    finally:
        os.close(fd)
