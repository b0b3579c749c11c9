"""Exchanging two names of one folder in one step: `renameat2(2)` with RENAME_EXCHANGE."""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_RENAME_EXCHANGE = 2  # linux/fs.h
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)  # a file system or a container

_Exchange = Callable[[int, bytes, bytes], int]


def exchange(parent: int, name: str, other: str) -> bool:
    """Let `name` and `other` change places in an open folder. False where the system cannot.

    A watcher of the folder (inotify) is told of the move away from `name` first and of the one to it last, so
    that it does not take the file for removed; with the names the other way round it would.
    Raises OSError, FileNotFoundError when either is missing.
    """
    call = _system_call()
    if call is None:
        return False
    code = call(parent, os.fsencode(name), os.fsencode(other))
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), name)
    return not code


@cache
def _system_call() -> _Exchange | None:
    """The call, which gives 0 or an errno; None where the C library has none (glibc before 2.28, macOS)."""
    if sys.platform != "linux":
        return None
    import ctypes  # costs milliseconds at start that only file work should pay

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return None
    renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def call(parent: int, name: bytes, other: bytes) -> int:
        failed = renameat2(parent, name, parent, other, _RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return call
