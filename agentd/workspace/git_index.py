"""Which files git has the content of, by its index, without running it or reading them.

The index keeps for each file the state in which git last read it. A file that is still in that state, down to
the change time, is what git stored of it, unless it was converted on the way: what attributes say is filtered
or encoded otherwise is left out here, and whoever reads a content compares its size.

Nothing of a repository is executed or written. An index of a form that is not known here counts as none.

Sources: gitformat-index(5), gitattributes(5), gitrepository-layout(5).
"""

import hashlib
import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentd.workspace.guarded import GITDIR, pointed_to

Parts = tuple[str, ...]

_MOST_BYTES = 256 * 1024 * 1024
_MOST_ATTRIBUTES = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HEAD = struct.Struct(">4sLL")
_STAT = struct.Struct(">10L")
_CONVERTING = ("filter", "working-tree-encoding", "ident", "eol", "crlf")
_EXTENDED, _INTENT_TO_ADD, _STAGE = 0x4000, 0x2000, 0x3000


class UnknownIndex(Exception):
    """There is no index, or none of a form that is known here."""


@dataclass(frozen=True)
class Index:
    """What git has of the files below a folder: by path, the state they had (see `state`) and their blob.

    `time` is when it was written, in nanoseconds: what was changed in that moment may differ unseen.
    """

    time: int
    entries: Mapping[Parts, tuple[bytes, str]]

    def blob(self, parts: Parts, status: os.stat_result) -> str | None:
        """The id of what git has of this file in this state."""
        entry = self.entries.get(parts)
        if entry is None or status.st_mtime_ns >= self.time or entry[0] != state(status):
            return None
        return entry[1]


def state(status: os.stat_result) -> bytes:
    """A file's state as an index keeps it, without device and mode."""
    seconds = [divmod(each, 1_000_000_000) for each in (status.st_ctime_ns, status.st_mtime_ns)]
    numbers = [*seconds[0], *seconds[1], status.st_ino, status.st_uid, status.st_gid, status.st_size]
    return struct.pack(">8L", *(number & 0xFFFFFFFF for number in numbers))


def read_index(root: Path, attributes: Iterable[Parts]) -> Index:
    """The index of the repository that `root` is in, for what is below `root`. Blocks.

    `attributes` are the `.gitattributes` files below `root`. Raises UnknownIndex.
    """
    try:
        top, folder = _repository(root)
        data, time = _whole(folder / "index", _MOST_BYTES)
        below = root.relative_to(top).parts
        above = [(top.joinpath(*below[:depth]), below[depth:]) for depth in range(len(below))]
        converted = _Converted()
        for place, rest in above:
            converted.read(place / ".gitattributes", (), deeper=rest)
        converted.read(_common(folder) / "info" / "attributes", (), deeper=below)
        for parts in attributes:
            converted.read(root.joinpath(*parts), parts[:-1])
        return Index(time, dict(_below(_entries(data), below, converted)))
    except (OSError, ValueError, struct.error, IndexError) as error:
        raise UnknownIndex(str(error)) from error


def _repository(root: Path) -> tuple[Path, Path]:
    """The top of the repository's working tree, and the folder of its index. Raises OSError or ValueError."""
    for top in (root, *root.parents):
        place = top / ".git"
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(mode):
            return top, place
        said = _whole(place, 4096)[0]
        if not said.startswith(GITDIR):
            raise ValueError("a .git that is no repository")
        return top, top / pointed_to(said.removeprefix(GITDIR))
    raise ValueError("no repository")


def _common(folder: Path) -> Path:
    """The folder that all working trees of a repository share."""
    try:
        return folder / pointed_to(_whole(folder / "commondir", 4096)[0])
    except OSError:
        return folder


def _whole(path: Path, most: int) -> tuple[bytes, int]:
    """A plain file's content and the time of its last change. Raises OSError or ValueError."""
    fd = os.open(path, _READ)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise ValueError(f"{path} is no file that can be read")
        with open(fd, "rb", closefd=False) as file:
            return file.read(most), status.st_mtime_ns
    finally:
        os.close(fd)


def _below(
    entries: Iterator[tuple[bytes, bytes, str]], below: Parts, converted: "_Converted"
) -> Iterator[tuple[Parts, tuple[bytes, str]]]:
    prefix = b"".join(os.fsencode(part) + b"/" for part in below)
    for name, known, blob in entries:
        if name.startswith(prefix):
            parts = tuple(os.fsdecode(name[len(prefix) :]).split("/"))
            if not converted.speaks_of(parts):
                yield parts, (known, blob)


def _entries(data: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Name, state and blob of each plain file. Raises ValueError, struct.error or IndexError."""
    length = _length_of_ids(data)
    magic, version, count = _HEAD.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("an index of another version")
    at, name = _HEAD.size, b""
    for _ in range(count):
        start = at
        fields = _STAT.unpack_from(data, at)
        at += _STAT.size
        blob = data[at : at + length]
        at += length
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 2
        more = 0
        if flags & _EXTENDED:
            more = int.from_bytes(data[at : at + 2], "big")
            at += 2
        if version == 4:
            cut, at = _number(data, at)
            if cut > len(name):
                raise ValueError("a name that is cut too far")
            name = name[: len(name) - cut]
        else:
            name = b""
        end = data.index(b"\0", at)
        name += data[at:end]
        at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        if stat.S_ISREG(fields[6]) and not flags & _STAGE and not more & _INTENT_TO_ADD:
            yield name, struct.pack(">8L", *fields[:4], fields[5], *fields[7:10]), blob.hex()
    while at < len(data) - length:
        if data[at : at + 4] == b"link":
            raise ValueError("an index in two parts")
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")


def _length_of_ids(data: bytes) -> int:
    """How long ids are, by the digest that an index ends with. Raises ValueError for a damaged one."""
    for length, digest in ((20, hashlib.sha1), (32, hashlib.sha256)):
        if digest(data[:-length], usedforsecurity=False).digest() == data[-length:]:
            return length
    if not any(data[-20:]):  # index.skipHash
        return 20
    raise ValueError("an index that is damaged")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length (that of gitformat-pack's offsets), and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | (byte & 0x7F)
    return value, at + 1


class _Converted:
    """The files that attributes say git keeps in another form; rather too many than too few."""

    def __init__(self) -> None:
        self._rules: list[tuple[Parts, Callable[[str], bool] | None]] = []

    def read(self, path: Path, base: Parts, deeper: Parts = ()) -> None:
        """Take what one file says of the folder `base` and below; of one above, `deeper` leads to us."""
        try:
            lines = _whole(path, _MOST_ATTRIBUTES)[0].decode(errors="surrogateescape").splitlines()
        except FileNotFoundError:
            return
        except (OSError, ValueError):
            lines = ["[attr] filter"]  # nobody knows what it says
        for line in map(str.strip, lines):
            pattern, *said = line.split() or ("#",)
            if not pattern.startswith("#") and any(
                each.lstrip("-!").startswith(_CONVERTING) for each in said
            ):
                self._rules.append((base, _matching(pattern, deeper)))

    def speaks_of(self, parts: Parts) -> bool:
        """Whether a file may be kept in another form."""
        return any(
            parts[: len(base)] == base and (matches is None or matches("/".join(parts[len(base) :])))
            for base, matches in self._rules
        )


def _matching(pattern: str, deeper: Parts) -> Callable[[str], bool] | None:
    """Whether a path matches; None where that cannot be said, so that all do."""
    from pathspec import GitIgnoreSpec  # only where attributes say such a thing

    if pattern.startswith(("[attr]", '"', "!")):
        return None
    try:
        match = GitIgnoreSpec.from_lines([pattern]).match_file
    except ValueError:
        return None
    prefix = "".join(part + "/" for part in deeper)
    return lambda path: match(prefix + path)
