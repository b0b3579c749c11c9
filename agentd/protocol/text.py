"""Text as the wire counts and carries it, and as people are shown it. Standard library only."""

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories that move the cursor, reorder or hide text."""
_JOINERS = "\u200c\u200d"
"""Of these categories, but part of ordinary spelling (Persian, Indic scripts, emoji) and harmless."""


def clean_text(text: str) -> str:
    """The same text with lone surrogates replaced, which no server takes and no UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def utf16_length(text: str) -> int:
    """How many UTF-16 code units a text has: the unit of all offsets on the wire."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def visible(text: str, *, kept: str = "\n\t") -> str:
    """The same text with control and invisible formatting characters spelled out (ESC as `\\x1b`).

    What models and tools say is not allowed to steer a terminal or to make a question look other than it is.
    """
    if text.isprintable():
        return text
    return "".join(
        _spelled(character)
        if unicodedata.category(character) in _HIDDEN and character not in kept + _JOINERS
        else character
        for character in text
    )


def one_line(text: str) -> str:
    """A text as a name: in one line, without characters that steer a terminal, reorder or hide others."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    shown = (c for c in words if unicodedata.category(c) not in _HIDDEN or c in _JOINERS)
    return " ".join("".join(shown).split())


def _spelled(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
