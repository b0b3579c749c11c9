"""Text of files, so that every byte that is not changed comes back.

The encoding is told by a byte order mark, else it is UTF-8 in which bytes that are not UTF-8 are kept as
Python's `surrogateescape` keeps them. Nothing is guessed: a guess that is wrong damages the file.
"""

import codecs
import re
from dataclasses import dataclass, replace

from agentd.workspace.paths import WorkspaceError, shown

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINES = re.compile("[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class BinaryContent(Exception):
    """Bytes that are no text."""


@dataclass(frozen=True)
class Text:
    """A file's text without its byte order mark, and how it was written. `encode` gives the bytes back."""

    text: str
    codec: str = "utf-8"
    mark: bytes = b""

    @property
    def is_clean(self) -> bool:
        """Whether all of it was valid in its encoding."""
        return self.text.isascii() or _SURROGATES.search(self.text) is None  # the first takes no time

    def with_text(self, text: str) -> "Text":
        """Other text, written the same way."""
        return replace(self, text=text)

    def encode(self) -> bytes:
        """The bytes."""
        errors = "surrogateescape" if self.codec == "utf-8" else "strict"
        return self.mark + self.text.encode(self.codec, errors)


def decode(data: bytes) -> Text:
    """The text of a file; `decode(data).encode() == data`. Raises BinaryContent (a NUL character tells)."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            text = _decoded(data[len(mark) :], codec)
            if text is not None:
                return Text(text, codec, mark)
    text = _decoded(data, "utf-8")
    if text is None:
        raise BinaryContent
    return Text(text)


def _decoded(data: bytes, codec: str) -> str | None:
    try:
        text = data.decode(codec, "surrogateescape" if codec == "utf-8" else "strict")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def visible(text: str) -> str:
    """The text as it is shown: what is not valid becomes U+FFFD, since JSON in UTF-8 cannot carry it."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def lines_of(text: str) -> list[str]:
    """The lines without their ends, which are `\\r\\n`, `\\n` and a lone `\\r` (as in LSP), nothing else."""
    lines = lines_split(text)
    if not lines[-1]:
        lines.pop()
    return lines


def lines_split(text: str) -> list[str]:
    """The text between line ends; one more piece than there are ends."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def same_lines(one: str, other: str) -> bool:
    """Whether two texts differ at most in how their lines end."""
    return one == other or lines_split(one) == lines_split(other)


def lines_with_ends(text: str) -> list[str]:
    """The lines with their ends; joined they are the text."""
    return _LINES.findall(text)


def check_insertable(new: str, into: Text | None, name: str) -> None:
    """Refuse what cannot be written into a file without damage.

    That is a lone surrogate, and text beyond ASCII in a file that is not valid UTF-8: the file is in some
    older encoding, and two encodings in one file are valid in none. Raises WorkspaceError of kind `encoding`.
    """
    stray = _SURROGATES.search(new)
    if stray is not None:
        raise WorkspaceError(
            "encoding",
            f"The new text for '{shown(name)}' holds half of a character (a lone surrogate, "
            f"U+{ord(stray[0]):04X}, at character {stray.start()}). Send the whole character.",
        )
    if into is not None and not into.is_clean and not new.isascii():
        raise WorkspaceError(
            "encoding",
            f"'{shown(name)}' is not valid UTF-8; it is probably in an older encoding such as Shift-JIS "
            "(cp932), GBK or Latin-1. Text beyond ASCII would damage it. Keep the new text to ASCII, or "
            "convert the file to UTF-8 first.",
        )
