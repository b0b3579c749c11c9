"""What a journal file looks like, and how it is read. `journal.py` is the room of its one writer.

* The first line is the header, every other line one record. A line is `{"crc":<number>,"record":<JSON>}`; the
  number is the CRC-32 of the raw bytes of the record, so that checking needs no second way to write JSON.
* Lines end at `\\n` and nowhere else: JSON escapes it inside strings, and U+2028 is a letter like any other.
* Damage costs the lines it hit. It is reported, and everything around it is read.
* Readers need no lock: what they may meet of a line in the making is an unfinished last line.
"""

import errno
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

SCHEMA = 1
"""The version of this form: written into the header, and the newest `minReader` that is understood."""

_HEAD_BYTES = 16 * 1024
_PREFIX = b'{"crc":'
_MIDDLE = b',"record":'
_SUFFIX = b"}"

# --- failures -------------------------------------------------------------------------------------

_FREE_SPACE = "Free some disk space, then go on."
_FEWER_FILES = "Close sessions that are not needed, or raise the limit of open files (ulimit -n)."
_FOLDER_RIGHTS = "Make agentd's data folder writable, or name another one in AGENTD_DATA."
_WAY_OUT = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EFBIG: "Raise the file size limit of the process (ulimit -f), then go on.",
    errno.EMFILE: _FEWER_FILES,
    errno.ENFILE: _FEWER_FILES,
    errno.EACCES: _FOLDER_RIGHTS,
    errno.EPERM: _FOLDER_RIGHTS,
    errno.EROFS: _FOLDER_RIGHTS,
    errno.ENOENT: "It was moved or deleted; start a new session.",
    errno.EEXIST: "Choose another session id.",
    errno.ELOOP: "A symbolic link stands in its place; remove it.",
    errno.EBADF: "It was closed; open the session again.",
}


class JournalError(Exception):
    """The journal could not be read or written (error kind "storage"). `errno` is the system's number.

    The message names what failed, the system's reason and the way out, never a path of ours.
    """

    def __init__(self, what: str, number: int | None = None, reason: str | None = None) -> None:
        reason = reason or (os.strerror(number) if number is not None else "unknown reason")
        way_out = _WAY_OUT.get(number or 0, "Check the disk that holds agentd's data folder.")
        super().__init__(f"The session's journal could not be {what}: {reason}. {way_out}")
        self.errno = number


class JournalLocked(Exception):
    """Another process, `pid` where it is known, or another part of this one has the session open."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"session locked by pid {pid}" if pid else "session locked by another process")
        self.pid = pid


class JournalTooNew(Exception):
    """A newer agentd wrote this journal in a form that must not be appended to here. `read` still works."""

    def __init__(self, needed: int) -> None:
        super().__init__(
            f"The session was written by a newer agentd (form {needed}, this one knows {SCHEMA}). "
            "It can be read; update agentd to go on with it."
        )
        self.needed = needed


@contextmanager
def failing_as(what: str) -> Iterator[None]:
    """Turn system errors inside into a `JournalError` that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise JournalError(what, error.errno) from error


# --- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Damage:
    """Bytes that were no record. `line` counts from 1.

    `reason` is "torn" for the unfinished last line of a writer that was killed, which nobody was told was
    safe; "nul" for a block of NUL bytes, "check" for a wrong check value, "form" for anything else.
    """

    line: int
    bytes: int
    reason: str


@dataclass(frozen=True)
class Contents:
    """What a journal holds. `header` is empty when the first line is damaged and others are not."""

    header: dict[str, Any]
    records: list[dict[str, Any]]
    damage: tuple[Damage, ...]


def encode(record: Mapping[str, Any]) -> bytes:
    """A record as a line. Raises ValueError for what is no JSON: lone surrogates, nesting over 255 levels."""
    body = to_json(record, inf_nan_mode="null")
    return b"".join((_PREFIX, str(zlib.crc32(body)).encode(), _MIDDLE, body, _SUFFIX, b"\n"))


def _body(line: bytes) -> bytes | str:
    """The raw record of a line that has no line end, where its check value fits; else the reason why not."""
    middle = line.find(_MIDDLE, 0, len(_PREFIX) + 20)
    number = line[len(_PREFIX) : middle]
    if not line.startswith(_PREFIX) or middle < 0 or not line.endswith(_SUFFIX) or not number.isdigit():
        return "form"
    body = line[middle + len(_MIDDLE) : -len(_SUFFIX)]
    return body if zlib.crc32(body) == int(number) else "check"


def sound_body(line: bytes) -> bytes | None:
    """The raw record of a line that has no line end; None where its check value does not vouch for it."""
    body = _body(line)
    return body if isinstance(body, bytes) else None


def _decode(line: bytes) -> dict[str, Any] | str:
    """The record of a line that has no line end, or the reason why there is none."""
    body = _body(line)
    if isinstance(body, str):
        return body
    try:
        record = parse(body)
    except ValueError:
        return "form"
    return record if isinstance(record, dict) else "form"


def parse(body: bytes) -> Any:
    """JSON. pydantic_core reads 200 levels of nesting but writes 255; the slower parser reads them all."""
    try:
        return from_json(body)
    except ValueError:
        return json.loads(body)


def is_header(record: dict[str, Any]) -> bool:
    """Whether this is the first line of a journal."""
    return type(record.get("schema")) is int and type(record.get("minReader")) is int


class Scan:
    """One pass over a journal, a line at a time.

    `good_end` is the offset behind the last whole record, `size` the offset where reading ended, and
    `unfinished` tells that only the line end of the last record is missing.
    """

    def __init__(self, file: BufferedReader) -> None:
        self.header: dict[str, Any] = {}
        self.records: list[dict[str, Any]] = []
        self.damage: list[Damage] = []
        self.good_end = self.size = 0
        self.unfinished = False
        for number, line in enumerate(file, 1):
            self._take(number, line)
            if not line.endswith(b"\n"):
                break  # the end, as it was: a writer may be making the rest of this line right now

    def _take(self, number: int, line: bytes) -> None:
        """Look at one line; only the last one can lack its line end."""
        self.size += len(line)
        whole = line.endswith(b"\n")
        text = line.rstrip(b"\n").lstrip(b"\0")  # a power cut may leave NUL bytes in front of a good record
        record = _decode(text)
        if isinstance(record, str):
            reason = "nul" if b"\0" in line else record if whole else "torn"  # no writer writes a NUL byte
            self.damage.append(Damage(number, len(line), reason))
            return
        if skipped := len(line) - len(text) - whole:
            self.damage.append(Damage(number, skipped, "nul"))
        self.good_end, self.unfinished = self.size, not whole
        if number == 1 and is_header(record):
            self.header = record
        else:
            self.records.append(record)

    def contents(self, damage: list[Damage]) -> Contents:
        """What was found, with this damage. Raises JournalError when nothing was."""
        if not self.header and not self.records:
            raise JournalError("read", reason="it holds no header and no record")
        return Contents(self.header, self.records, tuple(damage))


def read(path: Path) -> Contents:
    """What a journal holds, also while another process writes it: no lock, no repair.

    A last line that is not finished is left out without a word, for it may be in the making. A journal that
    is too new to append to is read as far as it is understood. Raises JournalError.
    """
    with failing_as("read"), open_to_read(path) as file:
        scan = Scan(file)
    return scan.contents([damage for damage in scan.damage if damage.reason != "torn"])


def read_ends(
    path: Path, tail_bytes: int = 65536, head_bytes: int = _HEAD_BYTES
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header, then the records in the first `head_bytes` and in the last `tail_bytes`, oldest first.

    The middle is not read, whatever the size of the file; damaged lines are left out. Where the tail holds no
    whole record it is widened until it does. Raises JournalError.
    """
    with failing_as("read"), open_to_read(path) as file:
        first = _decode(file.readline().rstrip(b"\n").lstrip(b"\0"))
        header = first if isinstance(first, dict) and is_header(first) else {}
        head = [first] if isinstance(first, dict) and not header else []
        head_end = file.tell()
        while head_end < head_bytes and (line := file.readline(head_bytes)).endswith(b"\n"):
            head += _records((line,))
            head_end += len(line)
        tail = _read_tail(file, head_end, tail_bytes)
    if not header and not head and not tail:
        raise JournalError("read", reason="it holds no header and no record")
    return header, head + tail


def _read_tail(file: BufferedReader, floor: int, tail_bytes: int) -> list[dict[str, Any]]:
    """The records of the whole lines that begin in the last `tail_bytes`, but behind `floor`."""
    size = file.seek(0, os.SEEK_END)
    while True:
        start = max(floor, size - tail_bytes)
        file.seek(start)
        if start > floor:
            file.seek(start - 1)
            file.readline()  # the rest of a line that began before, its mere end where `start` begins a line
        records = list(_records(file))
        if records or start == floor:
            return records
        tail_bytes *= 4


def lines_backwards(file: BufferedReader, block_bytes: int) -> Iterator[bytes]:
    """The whole lines of a journal without their ends, the last one first, read in blocks of about this size.

    What stands behind the last line end may be in the making, and is left out.
    """
    return (line for _, line in places_backwards(file, block_bytes))


def places_backwards(file: BufferedReader, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The same lines, each behind the offset at which it begins."""
    start = file.seek(0, os.SEEK_END)
    rest, has_end = b"", False  # what was read of a line whose beginning was not, and whether it has its end
    while start > 0:
        stop, start = start, max(0, start - block_bytes)
        file.seek(start)
        rest = file.read(stop - start) + rest
        if b"\n" not in rest:
            block_bytes *= 2  # a line of many blocks is not put together block by block
            continue
        first, *lines = rest.split(b"\n")
        if not has_end:
            lines[-1:], has_end = [], True
        begins = accumulate((len(line) + 1 for line in lines), initial=start + len(first) + 1)
        yield from reversed(list(zip(begins, lines, strict=False)))
        rest = first
    if has_end:
        yield 0, rest


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The records of those lines that hold one."""
    for line in lines:
        if not line.endswith(b"\n"):
            return  # in the making, as in `Scan`
        if (record := record_of(line)) is not None:
            yield record


def record_of(line: bytes) -> dict[str, Any] | None:
    """The record of a whole line; None for a damaged one."""
    record = _decode(line.rstrip(b"\n").lstrip(b"\0"))
    return record if isinstance(record, dict) else None


def open_to_read(path: Path) -> BufferedReader:
    """A journal, and never what a symbolic link in its place names."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb")
