"""The text of an open document as an editor counts it: lines, and characters in the agreed encoding.

A change costs what it touches, not what the document holds: the lines are a list, and the whole text is put
together only when somebody wants it. Lines end at CR LF, LF and a lone CR and nowhere else (LSP 3.17, "Text
Documents"); pygls also ends them at form feeds and U+2028, after which its text is not the editor's.
"""

import io
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16"]
"""How an editor counts the characters of a line: in bytes of UTF-8, or in code units of UTF-16."""

_CONTINUATION = bytes(range(0x80, 0xC0))


class Spot(NamedTuple):
    """A position of LSP: both from 0, `character` in units of the encoding."""

    line: int
    character: int


class Buffer:
    """Text that changes by ranges."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self._encoding = encoding
        self._lines = _lines(text)
        self._text: str | None = text

    @property
    def text(self) -> str:
        """All of it."""
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def replace_all(self, text: str) -> None:
        """Other text in place of all."""
        self._lines, self._text = _lines(text), text

    def replace(self, start: Spot, end: Spot, new: str) -> None:
        """Other text in place of a range. What lies beyond a line or the document is taken for its end."""
        first, begin = self._place(start)
        last, finish = self._place(max(start, end))
        head = self._lines[first][:begin]
        piece = head + new + self._lines[last][finish:]
        if first and piece[:1] == "\n" and self._lines[first - 1].endswith("\r"):
            first -= 1  # the two become one line end
            piece = self._lines[first] + piece
        pieces = _lines(piece)
        if last + 1 < len(self._lines):
            pieces.pop()  # what follows the last line end, which is nothing
        self._lines[first : last + 1] = pieces
        self._text = None

    def _place(self, spot: Spot) -> tuple[int, int]:
        """The line and the index in it."""
        if spot.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        content = self._lines[spot.line].rstrip("\r\n")
        return spot.line, index_of(content, spot.character, self._encoding)


class Spots:
    """Positions of a text by index."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self._encoding = encoding
        self._lines = _lines(text)
        self._starts: Sequence[int] = [0, *accumulate(map(len, self._lines))]

    def at(self, index: int) -> Spot:
        """The position of a character; not of one between `\\r` and `\\n`, which has none."""
        line = min(bisect_right(self._starts, index), len(self._lines)) - 1
        before = self._lines[line][: index - self._starts[line]]
        return Spot(line, width(before, self._encoding))


def width(text: str, encoding: Encoding) -> int:
    """How many units a text has."""
    if text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def index_of(line: str, units: int, encoding: Encoding) -> int:
    """The index of the character that begins at so many units, or holds that unit; at most the length."""
    if line.isascii():
        return min(units, len(line))
    if encoding == "utf-8":
        data = line.encode("utf-8", "surrogatepass")
        cut = units < len(data) and data[units] in _CONTINUATION
        return len(data[:units].translate(None, _CONTINUATION)) - cut
    data = line.encode("utf-16-le", "surrogatepass")[: 2 * units]
    index = len(data.decode("utf-16-le", "surrogatepass"))
    is_half = index > 0 and line[index - 1] > "\uffff" and 0xD8 <= data[-1] <= 0xDB
    return index - is_half


def _lines(text: str) -> list[str]:
    """The lines with their ends; the last has none, and is often empty."""
    lines = list(io.StringIO(text, newline=""))
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines
