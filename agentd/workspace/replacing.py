"""Putting new content in the place of old, atomically.

The content is written beside the file, brought to the disk, and renamed over it. Where a rename would break
something (other hard links, an owner that cannot be given back, a folder that takes no new file), the file is
written in place, with room for it reserved first and the old content put back when that fails.
"""

import errno
import os
import stat

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_MODE = 0o666  # before the umask, as for any new file
_PRIVATE_MODE = 0o600  # until the old file's mode is given
_MAX_STEM = 80  # bytes of the file's name kept in the temporary's, whose name must not grow too long

_UNSUPPORTED = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EACCES, errno.ENODATA, errno.EINVAL)


def create_file(parent: int, name: str, data: bytes) -> None:
    """A new file. Raises FileExistsError when there is one by now, OSError."""
    temporary = _write_temporary(parent, name, data, None)
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


def replace_file(parent: int, name: str, data: bytes, old: bytes, status: os.stat_result) -> bool:
    """New content for an existing file that was `old` and had `status`. False: it has changed. OSError."""
    if status.st_nlink > 1 or not _owner_can_be_kept(status):
        return _write_in_place(parent, name, data, old, status)
    try:
        temporary = _write_temporary(parent, name, data, status)
    except PermissionError:
        return _write_in_place(parent, name, data, old, status)  # the folder takes no new file
    try:
        if not _is_unchanged(parent, name, status):
            _discard(parent, temporary)
            return False
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        _discard(parent, temporary)
        raise
    _sync_directory(parent)
    return True


def _create_by_rename(parent: int, temporary: str, name: str) -> None:
    """For file systems without hard links."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        _sync_directory(parent)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def _write_temporary(parent: int, name: str, data: bytes, like: os.stat_result | None) -> str:
    stem = os.fsdecode(os.fsencode(name)[:_MAX_STEM])
    temporary = f".{stem}.{os.urandom(6).hex()}.agentd~"
    fd = os.open(temporary, _NEW_FILE, _NEW_MODE if like is None else _PRIVATE_MODE, dir_fd=parent)
    try:
        try:
            _write_all(fd, data)
            if like is not None:
                _take_after(fd, parent, name, like)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        _discard(parent, temporary)
        raise
    return temporary


def _take_after(fd: int, parent: int, name: str, like: os.stat_result) -> None:
    """Give the new file the old one's owner, mode, extended attributes and ACL.

    Not setuid, setgid and file capabilities: they were granted to the old content.
    """
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (like.st_uid, like.st_gid):
        os.fchown(fd, like.st_uid, like.st_gid)
    os.fchmod(fd, stat.S_IMODE(like.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
    if not hasattr(os, "listxattr"):
        return
    old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
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


def _write_in_place(parent: int, name: str, data: bytes, old: bytes, status: os.stat_result) -> bool:
    fd = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not _same_state(os.fstat(fd), status):
            return False
        try:
            if len(data) > len(old) and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, len(data))
            _write_all(fd, data)
            os.ftruncate(fd, len(data))
            os.fsync(fd)
        except OSError:
            os.lseek(fd, 0, os.SEEK_SET)
            _write_all(fd, old)
            os.ftruncate(fd, len(old))
            raise
        return True
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


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


def _owner_can_be_kept(status: os.stat_result) -> bool:
    if os.geteuid() == 0:
        return True
    return status.st_uid == os.geteuid() and status.st_gid in (os.getegid(), *os.getgroups())


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
