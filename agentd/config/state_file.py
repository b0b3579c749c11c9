"""Small JSON documents of the user's that several processes read and change: trust, and rules of permission.

Reading is a look at the file's status, and at its content where that has changed. A change holds a lock,
reads what is there, and puts the new document in the old one's place in one step. A document that is not
whole, or that others could have written, does not count at all: its readers grant nothing, and nobody
overwrites it.
"""

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Document = dict[str, Any]

_VERSION = 1
_MAX_BYTES = 4 * 1024 * 1024
_LOCK_SECONDS = 5.0
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class StateError(Exception):
    """A document that cannot be used, said for the user: the file, the reason, the way out."""


class StateFile:
    """One such document. Blocks on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._status: tuple[int, ...] | None = None
        self._document: Document = {}

    def read(self) -> Document:
        """The document, not to be changed; empty where there is none. Raises StateError."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):  # the latter where there is no place for it
            self._status, self._document = None, {}
            return {}
        except OSError as error:
            raise self._fault(f"cannot be read: {error.strerror}") from error
        key = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_mode,
        )
        if key != self._status:
            self._document = self._load()
            self._status = key
        return self._document

    def _load(self) -> Document:
        try:
            fd = os.open(self.path, _LOOK)
        except OSError as error:
            raise self._fault(f"cannot be read: {error.strerror}") from error
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
                raise self._fault("is no file of ours")
            if status.st_uid not in (os.geteuid(), 0) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise self._fault("can be written by others, so it may be theirs")
            with open(fd, "rb", closefd=False) as file:
                document = json.loads(file.read().decode())
        except (ValueError, RecursionError, OSError) as error:
            raise self._fault(f"is damaged ({type(error).__name__})") from error
        finally:
            os.close(fd)
        if not isinstance(document, dict) or document.get("version") != _VERSION:
            raise self._fault("is not of this version")
        return document

    @contextmanager
    def change(self) -> Iterator[Document]:
        """The document to be changed; what it is at the end of the block is written. Raises StateError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._fault(f"cannot be written: {error.strerror}") from error
        try:
            self._take(lock)
            document = json.loads(json.dumps(self.read()))
            yield document
            self._write({"version": _VERSION, **document})
        finally:
            os.close(lock)

    def _take(self, lock: int) -> None:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise self._fault("is held by another process that does not let go of it") from None
                time.sleep(0.01)

    def _write(self, document: Document) -> None:
        temporary = self.path.with_name(f".{self.path.name}.{os.urandom(6).hex()}.agentd~")
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(fd, "wb") as file:
                    file.write(json.dumps(document, indent=1).encode())
                    file.flush()
                    os.fsync(fd)
                os.replace(temporary, self.path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self._fault(f"cannot be written: {error.strerror}") from error

    def _fault(self, what: str) -> StateError:
        return StateError(f"{self.path} {what}; nothing in it counts. Repair it or remove it.")
