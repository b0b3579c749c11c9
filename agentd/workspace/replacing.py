"""Putting new content in the place of old, atomically.

The content is written beside the file and brought to the disk; then the two change places, and what comes out
is compared with what was to be replaced. So a write of another program in the last moment is seen, and put
back. Where the system cannot exchange names, the new file is renamed over the old one.

Where a new file would break something or cannot be (other hard links, an owner that cannot be given back, a
folder that takes no new file, a file that is mounted by itself), the old one is written in place, with room
for it reserved first and the old content put back when that fails. That alone is not atomic: a kill in the
midst of it leaves a mixture.
"""

import errno
import os
import stat
from typing import Protocol

from agentd.workspace.disk import write_all
from agentd.workspace.swapping import exchange, rename_over_nothing

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024 * 1024
_NEW_MODE = 0o666  # before the umask, as for any new file
_PRIVATE_MODE = 0o600  # until the old file's mode is given

_SET_ID = stat.S_ISUID | stat.S_ISGID

_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.EINVAL)


def create_file(parent: int, name: str, data: bytes, temporary: str, mode: int | None = None) -> None:
    """A new file, written under the name `temporary` first. Raises FileExistsError when there is one by now.

    `mode` are its permission bits, where they are not those of any new file. Raises OSError.
    """
    _write_temporary(parent, temporary, data, mode=mode)
    try:
        try:
            # A hard link, unlike a rename, never replaces what came in between.
            os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            _create_by_rename(parent, temporary, name)
            return
        os.unlink(temporary, dir_fd=parent)
    except BaseException:
        _discard(parent, temporary)
        raise
    _sync_directory(parent)


def replace_file(parent: int, name: str, before: "Before", data: bytes, temporary: str) -> bool:
    """New content for an existing file that was `before`. False: it is that no more. Raises OSError."""
    if before.status.st_nlink > 1:
        return _write_in_place(parent, name, before, data)
    try:
        _write_temporary(parent, temporary, data, like=(name, before.status))
    except PermissionError:  # the folder takes no new file, or none of the owner that it should have
        return _write_in_place(parent, name, before, data)
    try:
        replaced = _is_unchanged(parent, name, before.status) and _put_in_place(
            parent, temporary, name, before, data
        )
    except OSError as error:
        if error.errno != errno.EBUSY:  # a file that is mounted by itself, as containers do
            raise
        return _write_in_place(parent, name, before, data)
    finally:
        _discard(parent, temporary)
    if replaced:
        _sync_directory(parent)
    return replaced


def remove_file(parent: int, name: str, before: "Before", temporary: str) -> bool:
    """Remove a file or a link that was `before`. False: it is that no more, and stays. Raises OSError.

    It is moved to the name `temporary` first, looked at there, and moved back where it is another one's.
    """
    if not _is_unchanged(parent, name, before.status):
        return False
    os.rename(name, temporary, src_dir_fd=parent, dst_dir_fd=parent)
    is_ours = False
    try:
        is_ours = _is(parent, temporary, before.status, before.data)
    finally:
        if not is_ours:
            put_back(parent, temporary, name)
    if is_ours:
        os.unlink(temporary, dir_fd=parent)
        _sync_directory(parent)
    return is_ours


def put_back(parent: int, temporary: str, name: str) -> None:
    """Give what was moved aside its name again. Raises OSError.

    Who made something of that name meanwhile came last, so theirs stays, as if we had not been there.
    """
    try:
        rename_over_nothing(parent, temporary, parent, name)
    except FileExistsError:
        _discard(parent, temporary)


def move_file(parent: int, name: str, to: int, new: str, before: "Before") -> bool:
    """Give a file that was `before` another name. False: it is that no more, and stays where it is.

    Raises OSError: FileExistsError where something has that name, EXDEV for another file system.
    """
    if not _is_unchanged(parent, name, before.status):
        return False
    rename_over_nothing(parent, name, to, new)
    is_moved = False
    try:
        is_moved = _is(to, new, before.status, before.data)
    finally:
        # Where another program wrote to it in the last moment, it goes back, unless the name is taken by now.
        is_moved = is_moved or not _is_renamed(to, new, parent, name)
    if is_moved:
        _sync_directory(to)
        _sync_directory(parent)
    return is_moved


def _is_renamed(parent: int, name: str, to: int, new: str) -> bool:
    """Rename, and whether that was done: False where something has the new name. Raises OSError."""
    try:
        rename_over_nothing(parent, name, to, new)
    except FileExistsError:
        return False
    return True


class Before(Protocol):
    """What a file was when it was read."""

    @property
    def data(self) -> bytes:
        """Its content."""
        ...

    @property
    def status(self) -> os.stat_result:
        """Its state."""
        ...


def _put_in_place(parent: int, temporary: str, name: str, before: Before, data: bytes) -> bool:
    """Let the new file take the old one's place, which is under the name `temporary` then."""
    new = os.stat(temporary, dir_fd=parent, follow_symlinks=False)
    try:
        if not exchange(parent, name, temporary):
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            return True
    except FileNotFoundError:
        return False  # it was removed in the last moment
    if _is(parent, temporary, before.status, before.data):
        return True
    _put_back(parent, temporary, name, new, data)
    return False


def _put_back(parent: int, temporary: str, name: str, new: os.stat_result, data: bytes) -> None:
    """Give another program's file, which lies under the name `temporary`, its place back.

    As if we had never been there, the last to come stays: who removed or wrote over our file meanwhile came
    after the one whose file we hold.
    """
    try:
        exchange(parent, name, temporary)
        if not _is(parent, temporary, new, data):
            exchange(parent, name, temporary)
    except FileNotFoundError:
        return


def _is(parent: int, name: str, status: os.stat_result, data: bytes) -> bool:
    """Whether a name is a file in this state with this content, or a link that leads there.

    Not looked at are what a rename may change: the change time, and on an overlay the number of the file.
    """
    if stat.S_ISLNK(status.st_mode):
        return _leads_to(parent, name) == data
    try:
        fd = os.open(name, _LOOK, dir_fd=parent)
    except OSError:
        return False  # no file at all
    try:
        return _kept_by_renames(os.fstat(fd)) == _kept_by_renames(status) and _holds(fd, data)
    finally:
        os.close(fd)


def _leads_to(parent: int, name: str) -> bytes | None:
    try:
        return os.fsencode(os.readlink(name, dir_fd=parent))
    except OSError:
        return None  # no link


def _kept_by_renames(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_size, status.st_mtime_ns, status.st_uid, status.st_gid, status.st_mode, status.st_nlink
    )  # fmt: skip


def _holds(fd: int, data: bytes) -> bool:
    position = 0
    while chunk := os.read(fd, _CHUNK):
        if data[position : position + len(chunk)] != chunk:
            return False
        position += len(chunk)
    return position == len(data)


def _create_by_rename(parent: int, temporary: str, name: str) -> None:
    """For file systems without hard links."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        _sync_directory(parent)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def _write_temporary(
    parent: int,
    temporary: str,
    data: bytes,
    like: tuple[str, os.stat_result] | None = None,
    mode: int | None = None,
) -> None:
    """The new file, safe on the disk; with name and state of the old one, it takes after that."""
    first_mode = _NEW_MODE if like is None and mode is None else _PRIVATE_MODE
    fd = os.open(temporary, _NEW_FILE, first_mode, dir_fd=parent)
    try:
        try:
            write_all(fd, data)
            if mode is not None:
                os.fchmod(fd, mode & ~_SET_ID)
            if like is not None:
                _take_after(fd, parent, *like)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        _discard(parent, temporary)
        raise


def _take_after(fd: int, parent: int, name: str, like: os.stat_result) -> None:
    """Give the new file the old one's owner, mode, extended attributes and ACL.

    Not setuid, setgid and file capabilities: they were granted to the old content.
    """
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(fd, like.st_uid, like.st_gid)
    os.fchmod(fd, stat.S_IMODE(like.st_mode) & ~_SET_ID)
    if not hasattr(os, "listxattr"):
        return
    old = os.open(name, _LOOK, dir_fd=parent)
    try:
        for attribute in os.listxattr(old):
            if attribute != "security.capability":
                _copy_attribute(old, fd, attribute)
    finally:
        os.close(old)


def _copy_attribute(old: int, new: int, attribute: str) -> None:
    try:
        os.setxattr(new, attribute, os.getxattr(old, attribute))
    except OSError as error:
        if error.errno not in _UNSUPPORTED:  # what only the system may set, it sets itself
            raise


def _write_in_place(parent: int, name: str, before: Before, data: bytes) -> bool:
    old = before.data
    fd = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not _same_state(os.fstat(fd), before.status):
            return False
        try:
            if len(data) > len(old) and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, len(data))
            write_all(fd, data)
            os.ftruncate(fd, len(data))
            _drop_set_id(fd)
            os.fsync(fd)
        except OSError:
            os.lseek(fd, 0, os.SEEK_SET)
            write_all(fd, old)
            os.ftruncate(fd, len(old))
            raise
        return True
    finally:
        os.close(fd)


def _drop_set_id(fd: int) -> None:
    """Setuid and setgid were granted to the old content. The system drops them itself, but not for root."""
    mode = stat.S_IMODE(os.fstat(fd).st_mode)
    if mode & _SET_ID:
        os.fchmod(fd, mode & ~_SET_ID)


def _is_unchanged(parent: int, name: str, status: os.stat_result) -> bool:
    try:
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return _same_state(now, status)


def _same_state(now: os.stat_result, before: os.stat_result) -> bool:
    # ctime cannot be set back by a program, as mtime and size can.
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns) == (
        before.st_dev, before.st_ino, before.st_size, before.st_mtime_ns, before.st_ctime_ns,
    )  # fmt: skip


def _discard(parent: int, temporary: str) -> None:
    try:
        os.unlink(temporary, dir_fd=parent)
    except FileNotFoundError:
        return


def _sync_directory(parent: int) -> None:
    try:
        os.fsync(parent)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a directory
            raise
