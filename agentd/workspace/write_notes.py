"""How the temporary files that the writes of a killed daemon left are found again.

A write leaves a file beside its target for a moment. `kill -9` in that moment leaves it for good, anywhere in
a tree that may be too large to walk. So each daemon keeps a note outside the workspace of the folders that it
writes to, under a token that is part of its temporaries' names, and holds a lock on the note while it lives.
Whoever gets the lock of another's note knows that its writer is dead: no living one has files by that token.
A file that is removed lies under such a name for its last moment, too. What a kill leaves of that gets its
own name back, which the note tells: it was perhaps written to by another program in that moment.
Process ids would not tell: they mean nothing between containers that share a workspace, and are given anew.
"""

import errno
import fcntl
import itertools
import json
import logging
import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from agentd.workspace.beneath import directory
from agentd.workspace.replacing import put_back
from agentd.workspace.temporaries import is_temporary_of, temporary_name

log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[0-9a-f]{16}")
_NOTE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV)  # the last two: a link was put there

Folder = tuple[Path, tuple[str, ...]]
"""A workspace root, and the components of a folder below it."""


class WriteNotes:
    """The note of one process, kept in `folder`; without a folder, nothing is noted.

    The note is not taken back at the end: a write may go on until the very end of the process.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._token = os.urandom(8).hex()
        self._numbers = itertools.count(1)
        self._noted: set[Folder] = set()
        self._fd = -1
        self._lock = threading.Lock()

    def temporary_name(self, name: str) -> str:
        """A name for the temporary beside the file `name`; no other is like it."""
        return temporary_name(name, self._token, next(self._numbers))

    def note(self, root: Path, parts: Sequence[str]) -> None:
        """Have it on disk that this process writes to a folder, before it does. Blocks.

        A note that cannot be kept does not hinder the write: what is at stake is a file too many.
        """
        folder = (root, tuple(parts))
        if self._folder is None or folder in self._noted:
            return
        with self._lock:
            try:
                if self._fd < 0:
                    self._fd = self._begin(self._folder)
                os.write(self._fd, json.dumps([str(root), *parts]).encode("ascii") + b"\n")
                os.fsync(self._fd)
            except OSError as error:
                log.warning("no note of writes to %s is kept: %s", root, error.strerror)
            self._noted.add(folder)

    def note_aside(self, temporary: str, name: str) -> None:
        """Have it known that a file of this name gets that of a temporary, in a noted folder. Blocks.

        It is not brought to the disk by itself: a kill loses none of it, and what a power cut loses is a file
        that was about to be removed.
        """
        with self._lock:
            if self._fd < 0:
                return
            try:
                os.write(self._fd, json.dumps({"aside": temporary, "name": name}).encode("ascii") + b"\n")
            except OSError as error:
                log.warning("no note of the removal of a file is kept: %s", error.strerror)

    def _begin(self, folder: Path) -> int:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            fd = os.open(folder / self._token, _NOTE | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                kept = os.fstat(fd).st_nlink > 0
            except BaseException:
                os.close(fd)
                raise
            if kept:
                return fd
            os.close(fd)  # before it was locked, another daemon took it for a dead one's and removed it

    def sweep(self) -> int:
        """Clear away the temporaries of daemons that live no more; gives how many. Blocks, raises nothing."""
        if self._folder is None:
            return 0
        try:
            tokens = [name for name in os.listdir(self._folder) if _TOKEN.fullmatch(name)]
        except FileNotFoundError:
            return 0
        except OSError as error:
            log.warning("temporary files of killed daemons are not looked for: %s", error)
            return 0
        return sum(_sweep(self._folder / token) for token in tokens if token != self._token)


def _sweep(note: Path) -> int:
    """Remove what the writer of a note left, and the note, unless the writer lives. Gives how many files."""
    try:
        fd = os.open(note, _NOTE)
    except OSError:
        return 0  # another daemon has just swept it
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(fd).st_nlink:
            return 0  # so it has by now; what has this name since then is a living one's
        with open(fd, "rb", closefd=False) as file:
            folders, aside = _noted(file.read())
        swept = sum(_sweep_folder(folder, note.name, aside) for folder in folders)
        note.unlink()
        return swept
    except BlockingIOError:
        return 0
    except (OSError, ValueError) as error:
        log.warning("what a killed daemon left is not all removed, and tried again later: %s", error)
        return 0
    finally:
        os.close(fd)


def _noted(data: bytes) -> tuple[list[Folder], dict[str, str]]:
    """The folders of a note, and of what was moved aside the name that it had."""
    folders: list[Folder] = []
    aside: dict[str, str] = {}
    for line in data.splitlines():
        try:
            said = json.loads(line)
            if isinstance(said, dict):
                aside[said["aside"]] = said["name"]
            else:
                root, *parts = said
                folders.append((Path(root), tuple(parts)))
        except (ValueError, TypeError, KeyError):
            continue  # killed or out of room in the midst of a line: that write never began
    return folders, aside


def _sweep_folder(folder: Folder, token: str, aside: Mapping[str, str]) -> int:
    """Clear one token's temporaries out of a folder. Raises OSError for a folder that may be tried again."""
    root, parts = folder
    swept = 0
    try:
        with directory(root, parts) as fd:
            for name in os.listdir(fd):
                if is_temporary_of(name, token):
                    if name in aside:
                        put_back(fd, name, aside[name])
                    else:
                        os.unlink(name, dir_fd=fd)
                    swept += 1
    except OSError as error:
        if error.errno not in _GONE:
            raise
    return swept
