"""Newline-delimited JSON, sans I/O: bytes in, lines out. Standard library only, as `boot.py` uses it."""

from collections.abc import Iterator

from agentd.protocol.frames import Oversized


def encode_line(body: bytes) -> bytes:
    """The line of a body, which holds no line end: JSON writes those inside texts as escapes."""
    return body + b"\n"


class LineReader:
    """Cuts a byte stream into lines of at most `max_line` bytes, without their ends; blank lines are passed.

    A longer line is skipped, its bytes are not kept, and told as `Oversized` once its end has come.
    """

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._buffer = bytearray()
        self._skipped = 0  # bytes of an oversized line so far
        self._searched = 0  # bytes of the buffer that hold no line end

    def feed(self, data: bytes) -> Iterator[bytes | Oversized]:
        """Take more bytes and give each line that is whole now."""
        self._buffer += data
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(memoryview(self._buffer)[:end])
            del self._buffer[: end + 1]
            skipped, self._skipped, self._searched = self._skipped, 0, 0
            if skipped or len(line) > self._max_line:
                yield Oversized(skipped + len(line))
            elif line.strip():
                yield line
        self._searched = len(self._buffer)
        if self._searched > self._max_line:
            self._skipped += self._searched
            self._buffer.clear()
            self._searched = 0
