"""Folders that are locked (flock(2)) while the process that made them lives, and those that a kill left."""

import fcntl
import os
import shutil
import time
from pathlib import Path


def remove_if_left(folder: Path, fresh_seconds: float = 0.0) -> None:
    """Remove a folder with all that is in it, where nobody holds its lock. Never raises OSError. Blocks.

    One that is younger than `fresh_seconds` stays: it may have been made this moment, and not be locked yet.
    """
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if fresh_seconds and time.time() - os.fstat(fd).st_mtime < fresh_seconds:
            return
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # its owner lives, or nobody can tell
        return
    finally:
        os.close(fd)
