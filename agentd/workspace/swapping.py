"""What a plain rename cannot (`renameat2(2)`): exchange two names of one folder, write over nothing."""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_RENAME_NOREPLACE = 1  # linux/fs.h
_RENAME_EXCHANGE = 2
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)  # a file system or a container

_NO_LINKS = (*_CANNOT, errno.EACCES, errno.EMLINK)  # folders never have several names

_Rename = Callable[[int, bytes, int, bytes, int], int]


def exchange(parent: int, name: str, other: str) -> bool:
    """Let `name` and `other` change places in an open folder. False where the system cannot.

    A watcher of the folder (inotify) is told of the move away from `name` first and of the one to it last, so
    that it does not take the file for removed; with the names the other way round it would.
    Raises OSError, FileNotFoundError when either is missing.
    """
    call = _system_call()
    if call is None:
        return False
    code = call(parent, os.fsencode(name), parent, os.fsencode(other), _RENAME_EXCHANGE)
    if code and code not in _CANNOT:
        raise OSError(code, os.strerror(code), name)
    return not code


def rename_over_nothing(parent: int, name: str, to: int, new: str) -> None:
    """Give a file of an open folder another name, perhaps in another folder, where nothing has that name.

    Raises OSError: FileExistsError where something has it, FileNotFoundError, EXDEV for another file system.
    Where the system cannot do it in one step, the file has both names for a moment; and where it has no hard
    links either, what comes to the new name in the last moment is written over.
    """
    call = _system_call()
    if call is not None:
        code = call(parent, os.fsencode(name), to, os.fsencode(new), _RENAME_NOREPLACE)
        if code and code not in _CANNOT:
            raise OSError(code, os.strerror(code), new)
        if not code:
            return
    try:
        os.link(name, new, src_dir_fd=parent, dst_dir_fd=to, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_after_a_look(parent, name, to, new)
    else:
        os.unlink(name, dir_fd=parent)


def _rename_after_a_look(parent: int, name: str, to: int, new: str) -> None:
    try:
        os.stat(new, dir_fd=to, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=to)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)


@cache
def _system_call() -> _Rename | None:
    """The call, which gives 0 or an errno; None where the C library has none (glibc before 2.28, macOS)."""
    if sys.platform != "linux":
        return None
    import ctypes  # costs milliseconds at start that only file work should pay

    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return None
    renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def call(parent: int, name: bytes, to: int, other: bytes, flags: int) -> int:
        failed = renameat2(parent, name, to, other, flags)
        return ctypes.get_errno() if failed else 0

    return call
