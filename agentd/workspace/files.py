"""Reading and writing whole files, byte for byte.

Reading never hangs: what a name leads to is looked at before it is opened, and it is opened so that a pipe or
a device put in its place does not block. Writing is atomic: the old content or the new, never half of one.
All of it blocks, so it is called in a thread.
"""

import codecs
import errno
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

from agentd.workspace.beneath import directory
from agentd.workspace.names import MissingFile
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.replacing import create_file, move_file, remove_file, replace_file
from agentd.workspace.text import BinaryContent
from agentd.workspace.write_notes import WriteNotes

MAX_BYTES = 32 * 1024 * 1024
"""The most that is read whole."""

MOST_SEARCHED = 1024 * 1024 * 1024
"""The most that is gone through line by line."""

_CHUNK = 1024 * 1024
_SPARE = 4096  # read beyond the size that is told, to meet the end with the first read

_PROC_SUPER_MAGIC = 0x9FA0  # linux/magic.h

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFDIR: "a directory; use list_directory",
    stat.S_IFIFO: "a named pipe, not a regular file",
    stat.S_IFSOCK: "a socket, not a regular file",
    stat.S_IFCHR: "a device, not a regular file",
    stat.S_IFBLK: "a device, not a regular file",
    stat.S_IFLNK: "a link that leads in a circle, or was put there just now",
}


_NO_NOTES = WriteNotes()


@dataclass(frozen=True)
class Snapshot:
    """A file's content, and the state of the file when it was read."""

    data: bytes
    status: os.stat_result


def read(place: Place) -> Snapshot:
    """The whole file. Raises MissingFile, or WorkspaceError: no file, too large, denied."""
    with _explained(place), _parent(place) as (parent, _):
        return read_in(parent, place)


def read_in(folder: int, place: Place) -> Snapshot:
    """The same by the open folder that holds the file, for many files of one folder. Raises OSError too."""
    with _opened_in(folder, place, MAX_BYTES) as (fd, status):
        return Snapshot(_read_all(place, fd, status.st_size), status)


def lines_in(folder: int, place: Place) -> Iterator[str]:
    """The lines of a file that is too large to be read whole, without their ends.

    It is UTF-8, more or less. Raises as `read_in`, and BinaryContent when its beginning is no such text.
    """
    with _opened_in(folder, place, MOST_SEARCHED) as (fd, _):
        beginning = os.pread(fd, _CHUNK, 0)
        if b"\0" in beginning or beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise BinaryContent
        with open(fd, encoding="utf-8-sig", errors="surrogateescape", closefd=False) as file:
            for line in file:  # ends of all three kinds have become one
                yield line.removesuffix("\n")


@contextmanager
def _opened_in(folder: int, place: Place, most: int) -> Iterator[tuple[int, os.stat_result]]:
    name = place.parts[-1]
    _check_readable(place, os.stat(name, dir_fd=folder, follow_symlinks=False), most)
    fd = os.open(name, _OPEN_FLAGS, dir_fd=folder)
    try:
        status = os.fstat(fd)
        _check_readable(place, status, most)
        if status.st_size == 0 and _is_in_proc(fd):
            raise WorkspaceError(
                "not_a_file", f"'{place.shown}' shows the state of the system (/proc) and is no regular file."
            )
        yield fd, status
    finally:
        os.close(fd)


def read_if_present(place: Place) -> Snapshot | None:
    """The whole file, or None when there is none. Raises as `read`."""
    try:
        return read(place)
    except MissingFile:
        return None


def read_entry(place: Place) -> Snapshot | None:
    """The file, or the link itself, whose content is where it leads; None where there is neither.

    A folder is neither, and where no folder is on the way there is nothing. Raises WorkspaceError.
    """
    try:
        folder = directory(place.root, place.parts[:-1])
        with folder as parent, _explained(place):
            status = os.stat(place.parts[-1], dir_fd=parent, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return Snapshot(os.fsencode(os.readlink(place.parts[-1], dir_fd=parent)), status)
            return None if stat.S_ISDIR(status.st_mode) else read_in(parent, place)
    except MissingFile:
        return None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV):
            return None
        raise os_error(place, error) from error


def write_link(place: Place, target: bytes) -> None:
    """Make a link where nothing is, and the folders that it lies in. Raises WorkspaceError."""
    with _explained(place):
        make_folders(place)
        with _parent(place) as (parent, name):
            os.symlink(os.fsdecode(target), name, dir_fd=parent)


def write(
    place: Place,
    data: bytes,
    before: Snapshot | None,
    notes: WriteNotes = _NO_NOTES,
    mode: int | None = None,
) -> None:
    """Make `data` the content of the file, which was `before` (None: it was not there).

    `mode` are the permission bits of a new file, where they are not to be those of any.

    Atomic, on the disk when this returns. Keeps mode (but no setuid), owner, extended attributes and ACL; a
    file with several names, or of another owner, is written in place, so that it stays one. Creates missing
    folders. `notes` tell the next daemon what this one leaves when it is killed.

    Raises WorkspaceError: `stale` when the file is no longer as it was, `denied` when it is read-only,
    `storage` when the disk refuses; the old content stays. What another program writes until the new content
    is in place is seen and kept; what one that has the old file open writes to it afterwards is lost, as with
    any program that replaces files.
    """
    with _explained(place):
        if before is None:
            make_folders(place)
        with _parent(place) as (parent, name):
            notes.note(place.root, place.parts[:-1])
            temporary = notes.temporary_name(name)
            if before is None:
                create_file(parent, name, data, temporary, mode)
                return
            check_writable(place, before.status)
            if replace_file(parent, name, before, data, temporary):
                return
    raise stale(place)


def remove(place: Place, before: Snapshot, notes: WriteNotes = _NO_NOTES) -> None:
    """Remove the file or link, which was `before`. Raises WorkspaceError, `stale` when it is that no more."""
    with _explained(place), _parent(place) as (parent, name):
        temporary = notes.temporary_name(name)
        notes.note(place.root, place.parts[:-1])
        notes.note_aside(temporary, name)
        if remove_file(parent, name, before, temporary):
            return
    raise stale(place)


def move(place: Place, target: Place, before: Snapshot) -> None:
    """Give the file, which was `before`, the name of another place, and make the folders that it lies in.

    Raises WorkspaceError: `stale` where it is that no more or something has the name by now, `storage` where
    the two are on different file systems. Then it is where it was.
    """
    with _explained(target):
        made = make_folders(target)
    try:
        with _explained(place), _parent(target) as (to, new), _parent(place) as (parent, name):
            if not _renamed(parent, name, to, new, before, target):
                raise stale(place)
    except BaseException:
        remove_folders(target, made)
        raise


def _renamed(parent: int, name: str, to: int, new: str, before: Snapshot, target: Place) -> bool:
    try:
        return move_file(parent, name, to, new, before)
    except FileExistsError as error:
        raise taken(target) from error
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        reason = f"'{target.shown}' is on another file system. Use bash with mv."
        raise WorkspaceError("storage", reason) from error


def taken(target: Place) -> WorkspaceError:
    """The refusal to put something in the place of something else."""
    return WorkspaceError(
        "stale",
        f"'{target.shown}' exists, and nothing is moved over it. Choose another name, or ask the user.",
    )


def remove_folders(place: Place, count: int) -> None:
    """Remove the last `count` folders that the place lies in, as far as they are empty."""
    for depth in range(len(place.parts) - 1, len(place.parts) - 1 - count, -1):
        try:
            with directory(place.root, place.parts[: depth - 1]) as parent:
                os.rmdir(place.parts[depth - 1], dir_fd=parent)
        except OSError:
            return  # not empty, so that those above are not either


def set_mode(place: Place, mode: int) -> None:
    """Set the file's permission bits. Raises WorkspaceError."""
    with _explained(place), _parent(place) as (parent, name):
        fd = os.open(name, _OPEN_FLAGS, dir_fd=parent)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                os.fchmod(fd, mode)
        finally:
            os.close(fd)


def check_writable(place: Place, status: os.stat_result) -> None:
    """Refuse a read-only file, also for root, for whom the system would not. Raises `denied`."""
    if not status.st_mode & 0o222:
        mode = stat.S_IMODE(status.st_mode)
        raise WorkspaceError(
            "denied",
            f"'{place.shown}' is read-only (mode {mode:04o}). Ask the user before making it writable with "
            "chmod.",
        )


def stale(place: Place) -> WorkspaceError:
    """The refusal of a change to a file that is not as it was."""
    return WorkspaceError(
        "stale",
        f"'{place.shown}' changed since it was read. Read it again with read_file, then repeat the change.",
    )


_locks: WeakValueDictionary[Path, threading.Lock] = WeakValueDictionary()
_locks_guard = threading.Lock()


@contextmanager
def changing(place: Place) -> Iterator[None]:
    """Hold the file's lock, which orders all changes of one file in this process. Blocks."""
    with _locks_guard:
        lock = _locks.get(place.path)
        if lock is None:
            lock = _locks[place.path] = threading.Lock()
    with lock:
        yield


@contextmanager
def _parent(place: Place) -> Iterator[tuple[int, str]]:
    """The open directory that holds the file, and the file's name in it."""
    if not place.parts:
        raise WorkspaceError("not_a_file", f"'{place.shown}' is {_KINDS[stat.S_IFDIR]}.")
    with directory(place.root, place.parts[:-1]) as fd:
        yield fd, place.parts[-1]


def make_folders(place: Place) -> int:
    """Make the folders that a place lies in, and give how many were missing. Raises OSError."""
    made = 0
    for depth in range(1, len(place.parts)):
        with directory(place.root, place.parts[: depth - 1]) as fd:
            try:
                os.mkdir(place.parts[depth - 1], dir_fd=fd)
                made += 1
            except FileExistsError:
                continue
    return made


def _check_readable(place: Place, status: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a regular file")
        raise WorkspaceError("not_a_file", f"'{place.shown}' is {kind}.")
    if status.st_size > most:
        raise _too_large(place, f"{status.st_size:,} bytes", status.st_size <= MOST_SEARCHED)


def _is_in_proc(fd: int) -> bool:
    """Whether it is a file of procfs: some never end, some wait, some hold the secrets of processes.

    They are known by their file system (statfs(2)), wherever that is mounted.
    """
    fstatfs = _fstatfs()
    return fstatfs is not None and fstatfs(fd) == _PROC_SUPER_MAGIC


@cache
def _fstatfs() -> Callable[[int], int] | None:
    """What gives the type of an open file's file system; Python's statvfs does not."""
    if sys.platform != "linux":
        return None
    import ctypes  # costs milliseconds at start that only file work should pay

    call = ctypes.CDLL(None).fstatfs
    call.argtypes = (ctypes.c_int, ctypes.c_void_p)

    def type_of(fd: int) -> int:
        status = (ctypes.c_long * 64)()  # struct statfs begins with f_type; it is far smaller than this
        return 0 if call(fd, status) else status[0]

    return type_of


def _read_all(place: Place, fd: int, size: int) -> bytes:
    """Read to the end, not to the size: logs grow meanwhile, and some file systems tell none."""
    chunk_size = min(size + _SPARE, _CHUNK)
    data = bytearray()
    while chunk := os.read(fd, chunk_size):
        data += chunk
        if len(data) > MAX_BYTES:
            raise _too_large(place, f"over {MAX_BYTES:,} bytes")
    return bytes(data)


def _too_large(place: Place, size: str, searched: bool = True) -> WorkspaceError:
    ways = "Use search_files with this path to find lines in it, or bash" if searched else "Use bash"
    return WorkspaceError(
        "too_large",
        f"'{place.shown}' is {size}; files over {MAX_BYTES // 2**20} MB are not read. {ways} with head, tail "
        "or sed -n to see a part.",
    )


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """Turn the system's errors into words about the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise MissingFile(place.given) from error
    except FileExistsError as error:
        raise stale(place) from error
    except OSError as error:
        raise os_error(place, error) from error


def os_error(place: Place, error: OSError) -> WorkspaceError:
    """The system's refusal, in words about the file."""
    if error.errno in (errno.ELOOP, errno.EXDEV):
        return WorkspaceError("not_a_file", f"'{place.shown}' leads through links that change or never end.")
    if error.errno == errno.ENOTDIR:
        return WorkspaceError("not_found", f"'{place.shown}' leads through something that is no directory.")
    if error.errno == errno.ENAMETOOLONG:
        return WorkspaceError("invalid_path", f"'{place.shown}' is too long a name for this disk.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return WorkspaceError("denied", f"'{place.shown}' is not open to agentd: {error.strerror}.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return WorkspaceError(
            "storage", f"'{place.shown}' was not written: {error.strerror}. It is as before."
        )
    return WorkspaceError("storage", f"'{place.shown}': {error.strerror}.")
