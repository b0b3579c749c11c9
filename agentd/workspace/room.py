"""Whether a file can come back to its place: what stands there, or in the way to it."""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from agentd.workspace.beneath import directory, open_directory

Parts = tuple[str, ...]


def room_for(root_fd: int, parts: Parts, gone: Collection[Parts]) -> tuple[int, Parts | None]:
    """How many of its folders are missing, and what is in the way once the files `gone` are gone. Blocks.

    In the way are a file or a link where a folder should be, and a folder at the place itself that holds
    anything else.
    """
    for depth in range(1, len(parts)):
        mode = _mode(root_fd, parts[:depth])
        if mode is not None and stat.S_ISDIR(mode):
            continue
        obstacle = parts[:depth] if mode is not None and parts[:depth] not in gone else None
        return len(parts) - depth, obstacle
    mode = _mode(root_fd, parts)
    if mode is None or not stat.S_ISDIR(mode):
        return 0, None
    return 0, next(_staying(root_fd, parts, gone), None)


def clear_room(root: Path, parts: Parts) -> None:
    """Remove a folder at the place of a file, and those in it, as far as they are empty. Blocks."""
    with directory(root, ()) as root_fd:
        mode = _mode(root_fd, parts)
        folders = [parts] if mode is not None and stat.S_ISDIR(mode) else []
        with suppress(OSError):  # what could not be removed is found by who makes the file
            for folder in folders:
                folders += [(*folder, name) for name, is_folder in _entries(root_fd, folder) if is_folder]
            for folder in reversed(folders):
                with directory(root, folder[:-1]) as parent:
                    os.rmdir(folder[-1], dir_fd=parent)


def _mode(root_fd: int, parts: Parts) -> int | None:
    try:
        return os.stat("/".join(parts), dir_fd=root_fd, follow_symlinks=False).st_mode
    except OSError:
        return None


def _staying(root_fd: int, folder: Parts, gone: Collection[Parts]) -> Iterator[Parts]:
    """What of a folder is there when those are gone. Folders go that hold nothing else and are not empty."""
    pending = [folder]
    while pending:
        parts = pending.pop()
        try:
            entries = _entries(root_fd, parts)
        except OSError:
            yield parts
            continue
        if not entries:
            yield parts
        for name, is_folder in entries:
            entry = (*parts, name)
            if is_folder:
                pending.append(entry)
            elif entry not in gone:
                yield entry


def _entries(root_fd: int, folder: Parts) -> list[tuple[str, bool]]:
    fd = open_directory(root_fd, folder)
    try:
        with os.scandir(fd) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(fd)
