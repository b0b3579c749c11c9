"""LSP base protocol framing, sans I/O: bytes in, frame bodies out.

Standard library only, for `boot.py` reads its first frame with it. The reader is tolerant in what the LSP
text leaves open (header names in any case, lines that end in LF alone, unknown headers) and strict where a
mistake would shift every later frame: once the stream is no sequence of frames, only a new process can help.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_HEADER_BYTES = 8 * 1024
MAX_SKIPPED_BYTES = 1024**3
"""A body larger than the caller's limit is skipped up to this size; beyond it the length is no length."""

_END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,19})[ \t]*", re.IGNORECASE)


class BrokenFraming(Exception):
    """The byte stream is no sequence of frames."""


@dataclass(frozen=True)
class Oversized:
    """A frame that was skipped because its body is too large, in bytes."""

    size: int


def encode(body: bytes) -> bytes:
    """The frame of a body."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameReader:
    """Cuts a byte stream into frame bodies of at most `max_body` bytes."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._length: int | None = None  # of the body we are in; None while in a header
        self._skip = 0  # bytes of an oversized body still to come

    def feed(self, data: bytes) -> Iterator[bytes | Oversized]:
        """Take more bytes and give each frame that is whole now.

        Raises `BrokenFraming` where the stream cannot be read on; frames before that are given first.
        """
        self._buffer += data
        while True:
            if self._skip:
                dropped = min(self._skip, len(self._buffer))
                del self._buffer[:dropped]
                self._skip -= dropped
                if self._skip:
                    return
            if self._length is None:
                self._length = self._read_header()
                if self._length is None:
                    return
                if self._length > self._max_body:
                    yield Oversized(self._length)
                    self._skip, self._length = self._length, None
                    continue
            if len(self._buffer) < self._length:
                return
            body = bytes(memoryview(self._buffer)[: self._length])
            del self._buffer[: self._length]
            self._length = None
            yield body

    def _read_header(self) -> int | None:
        """The body length of the header block at the start of the buffer, None while it is not whole."""
        end = _END_OF_HEADER.search(self._buffer, 0, MAX_HEADER_BYTES)
        if end is None:
            if len(self._buffer) >= MAX_HEADER_BYTES:
                raise BrokenFraming(f"no end of a header within {MAX_HEADER_BYTES} bytes")
            return None
        lines = re.split(rb"\r?\n", bytes(self._buffer[: end.start()]))
        del self._buffer[: end.end()]
        return _body_length(lines)


def _body_length(lines: list[bytes]) -> int:
    """The one Content-Length among the header lines."""
    stated = [line for line in lines if line.split(b":", 1)[0].strip().lower() == b"content-length"]
    if len(stated) != 1:
        what = "no Content-Length" if not stated else f"{len(stated)} Content-Length headers"
        raise BrokenFraming(f"{what} in a header block that begins {lines[0][:80]!r}")
    match = _LENGTH.fullmatch(stated[0])
    if match is None:
        raise BrokenFraming(f"the Content-Length is no number: {stated[0][:80]!r}")
    length = int(match[1])
    if length > MAX_SKIPPED_BYTES:
        raise BrokenFraming(f"a Content-Length of {length} bytes")
    return length
