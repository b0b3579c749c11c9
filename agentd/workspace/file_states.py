"""What a file was and what became of it: states and changes, and the lines that tell of them on the disk."""

import hashlib
import os
import stat
from dataclasses import dataclass, replace
from typing import Any

from agentd.workspace.files import Snapshot
from agentd.workspace.untitled import is_of_untitled

Parts = tuple[str, ...]
"""The components of a file's path below the workspace folder, or the `parts` of an `Untitled`."""

LINK = stat.S_IFLNK
"""The mode that stands for a link: no permission bits have this value."""

_ALL_BITS = 0o7777


@dataclass(frozen=True)
class FileState:
    """A file as it was: the digest of its content, and its permission bits where they are known.

    The content of a link is where it leads; its mode is `LINK`. A file with several names has the number that
    its file system gives it as `inode`, so that it is known again.
    """

    digest: str
    mode: int | None = None
    inode: int | None = None

    @property
    def is_link(self) -> bool:
        """Whether it is a link and no file."""
        return self.mode == LINK


@dataclass(frozen=True)
class Change:
    """One change of a file. A state is None where there was no file.

    `origin` is the id of a prompt, or of a rewind where `is_rewind`. `made` is how many of the folders that
    the file lies in were made for it. `in_buffer`: it was made in the editor, where the file is open, and the
    disk may hold something else. `below`: it was made on the disk, below unsaved text of its document.
    """

    origin: str
    parts: Parts
    before: FileState | None
    after: FileState | None
    is_rewind: bool = False
    made: int = 0
    in_buffer: bool = False
    below: bool = False

    @property
    def reversed(self) -> "Change":
        """The change that takes it back."""
        return replace(self, before=self.after, after=self.before, made=0)


def state_of(snapshot: Snapshot | None) -> FileState | None:
    """The state of a file that was read."""
    if snapshot is None:
        return None
    return state_from(snapshot.status, hashlib.sha256(snapshot.data).hexdigest())


def state_from(status: os.stat_result, digest: str) -> FileState:
    """The state of a file whose content has this digest."""
    if stat.S_ISLNK(status.st_mode):
        return FileState(digest, LINK)
    return FileState(digest, stat.S_IMODE(status.st_mode), status.st_ino if status.st_nlink > 1 else None)


def same_content(one: FileState | None, other: FileState | None) -> bool:
    """Whether two states are both files or both links of the same content, or both none."""
    if one is None or other is None:
        return one is other
    return one.digest == other.digest and one.is_link == other.is_link


def line_of(change: Change) -> dict[str, Any]:
    """A change as a line of an index tells it."""
    return {
        "rewind" if change.is_rewind else "prompt": change.origin,
        "parts": change.parts,
        "before": _json_of(change.before),
        "after": _json_of(change.after),
        **({"made": change.made} if change.made else {}),
        **({"buffer": True} if change.in_buffer else {}),
        **({"below": True} if change.below else {}),
    }


def change_of(line: dict[str, Any]) -> Change:
    """What a line says. Raises ValueError, KeyError or TypeError for one that nobody here has written."""
    is_rewind = "rewind" in line
    parts = line["parts"]
    if not isinstance(parts, list) or not parts or not all(isinstance(part, str) for part in parts):
        raise ValueError(parts)
    if not all(map(_is_name, parts)) and not is_of_untitled(tuple(parts)):
        raise ValueError(parts)  # it would lead elsewhere
    return Change(
        str(line["rewind" if is_rewind else "prompt"]),
        tuple(parts),
        _state_from(line["before"]),
        _state_from(line["after"]),
        is_rewind,
        int(line.get("made", 0)),
        line.get("buffer") is True,
        line.get("below") is True,
    )


def _is_name(part: str) -> bool:
    return part not in ("", ".", "..") and "/" not in part and "\0" not in part


def _json_of(state: FileState | None) -> list[Any] | None:
    if state is None:
        return None
    return [state.digest, state.mode, *([] if state.inode is None else [state.inode])]


def _state_from(told: Any) -> FileState | None:
    if told is None:
        return None
    digest, mode, *rest = told
    if rest and (type(rest[0]) is not int or len(rest) > 1):
        raise ValueError(rest)
    if mode is not None and (type(mode) is not int or not (0 <= mode <= _ALL_BITS or mode == LINK)):
        raise ValueError(mode)
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ValueError(digest)
    return FileState(digest, mode, *rest)
