"""Opening directories beneath a root with no link on the way.

Checking a path and then opening it by name leaves a gap in which a component can become a link to anywhere.
So the last step is always relative to an open directory, and the directory is reached without following any
link: by `openat2(2)` with RESOLVE_BENEATH where the kernel has it, else one O_NOFOLLOW step per component.
"""

import errno
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_SYS_OPENAT2 = 437  # the same number on every architecture that Python runs on, but alpha
# linux/openat2.h; RESOLVE_NO_SYMLINKS implies RESOLVE_NO_MAGICLINKS.
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_OPEN_HOW = struct.Struct("=QQQ")  # flags, mode, resolve
_ATTEMPTS = 64  # openat2 gives EAGAIN while a rename goes on elsewhere

_Openat2 = Callable[[int, bytes], int]


@contextmanager
def directory(root: Path, parts: Sequence[str]) -> Iterator[int]:
    """The directory at `parts` below `root`, open while the block runs.

    `root` is resolved: it is no link itself. Raises OSError: ELOOP or ENOTDIR when a component is a link,
    ENOENT when it is missing.
    """
    root_fd = os.open(root, _DIRECTORY | os.O_NOFOLLOW)
    try:
        fd = open_directory(root_fd, parts)
    finally:
        os.close(root_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def open_directory(root_fd: int, parts: Sequence[str]) -> int:
    """A new descriptor of the directory at `parts` below `root_fd`; the caller closes it. Raises as above."""
    if any(part in ("", ".", "..") or "/" in part or "\0" in part for part in parts):
        raise ValueError(f"not resolved: {parts!r}")
    if not parts:
        return os.open(".", _DIRECTORY, dir_fd=root_fd)
    openat2 = _openat2()
    if openat2 is not None:
        return openat2(root_fd, os.fsencode("/".join(parts)))
    return _walk(root_fd, parts)


class Folders:
    """Directories below `root_fd`, the last one kept open: files of one folder follow each other."""

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._open: tuple[Sequence[str], int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def open(self, parts: Sequence[str]) -> int:
        """The directory, open until the next call or the end of the block. Raises as `directory`."""
        if self._open is None or self._open[0] != parts:
            self._close()
            self._open = (parts, open_directory(self._root_fd, parts))
        return self._open[1]

    def _close(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None


def _walk(root_fd: int, parts: Sequence[str]) -> int:
    fd = os.dup(root_fd)
    for part in parts:
        try:
            below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


@cache
def _openat2() -> _Openat2 | None:
    """The system call, or None where it does not work: it is tried, since a container may forbid it."""
    if sys.platform != "linux":
        return None
    import ctypes  # costs milliseconds at start that only file work should pay

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    how = _OPEN_HOW.pack(_DIRECTORY, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)

    def openat2(root_fd: int, name: bytes) -> int:
        for _ in range(_ATTEMPTS):
            fd: int = libc.syscall(
                ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(root_fd), ctypes.c_char_p(name),
                ctypes.c_char_p(how), ctypes.c_size_t(len(how)),
            )  # fmt: skip
            if fd >= 0:
                return fd
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                raise OSError(code, os.strerror(code), os.fsdecode(name))
        raise OSError(errno.EAGAIN, "the path kept changing", os.fsdecode(name))

    probe = os.open("/", _DIRECTORY)
    try:
        os.close(openat2(probe, b"."))
    except OSError:
        return None
    finally:
        os.close(probe)
    return openat2
