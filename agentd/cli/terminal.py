"""Writing to and asking on a terminal, a pipe or a file, without ever blocking the event loop."""

import os
import select
import sys
import termios
import unicodedata
from contextlib import suppress
from typing import TextIO

import anyio

from agentd.protocol.text import visible

PIECE_BYTES = 512
"""What POSIX promises to fit where a descriptor is writable at all (`_POSIX_PIPE_BUF`)."""


def one_line(text: str) -> str:
    """The same text on one line, visible."""
    return visible(" ".join(text.split()), kept="")


def width(text: str) -> int:
    """How many columns a line of visible text takes."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut(text: str, columns: int) -> str:
    """The text, shortened with `...` where it is wider than `columns`."""
    end = used = 0
    for position, character in enumerate(text, start=1):
        used += width(character)
        if used <= columns - 3:
            end = position
        if used > columns:
            return text[:end] + "..."
    return text


class Output:
    """One of the standard streams. `write` waits for a slow reader and can be cancelled meanwhile.

    A stream that is not `needed` may lose its reader, or have no room, without an error.
    """

    def __init__(self, stream: TextIO | None, *, needed: bool = True) -> None:
        self._needed = needed
        stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it was closed: `>&-`
        self._stream = stream
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self.is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.has_colour = self.is_terminal and not os.environ.get("NO_COLOR")

    @property
    def columns(self) -> int:
        """The width of the terminal."""
        with suppress(OSError):
            return os.get_terminal_size(self._fd).columns or 80
        return 80

    def can_show(self, text: str) -> bool:
        """Whether the stream's encoding has these characters."""
        try:
            text.encode(self._encoding)
        except UnicodeEncodeError:
            return False
        return True

    async def write(self, text: str) -> None:
        """Write all of it. Raises OSError where it is needed: `BrokenPipeError` once nobody reads."""
        try:
            await write(self._fd, text.encode(self._encoding, "backslashreplace"))
        except OSError:
            if self._needed:
                raise


async def write(fd: int, data: bytes) -> None:
    """Write `data` to a blocking descriptor in pieces that cannot block."""
    for start in range(0, len(data), PIECE_BYTES):
        piece = data[start : start + PIECE_BYTES]
        while piece:
            if not select.select([], [fd], [], 0)[1]:
                await anyio.wait_writable(fd)
            with suppress(BlockingIOError):  # somebody who shares the terminal made it non-blocking
                piece = piece[os.write(fd, piece) :]


class Terminal:
    """The user at a keyboard: where questions are asked, whatever stdout and stderr are connected to."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @staticmethod
    def open() -> "Terminal | None":
        """The terminal of this process; None without one, or when run in the background of one."""
        try:
            name = os.ttyname(sys.stdin.fileno()) if sys.stdin.isatty() else "/dev/tty"
            fd = os.open(name, os.O_RDWR | os.O_NOCTTY)
        except (OSError, ValueError):
            return None
        try:
            if os.tcgetpgrp(fd) == os.getpgrp():
                return Terminal(fd)
        except OSError:  # not our controlling terminal: whoever gave it to us as stdin sits at it
            return Terminal(fd)
        os.close(fd)
        return None

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)

    def discard_typed(self) -> None:
        """Forget what was typed so far: it is no answer to a question that did not stand there yet."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    async def show(self, text: str) -> None:
        """Write to the terminal itself."""
        await write(self._fd, text.encode("utf-8", "backslashreplace"))

    async def read_line(self) -> str | None:
        """What the user types up to the end of the line; None at the end of input."""
        line = b""
        while not line.endswith(b"\n"):
            await anyio.wait_readable(self._fd)
            data = os.read(self._fd, 4096)
            if not data:
                return None
            line += data
        return line.decode(errors="replace").strip()
