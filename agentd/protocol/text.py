"""Text as the wire counts and carries it, and as people are shown it. Standard library only."""

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories that move the cursor, reorder or hide text."""
_JOINERS = "\u200c\u200d"
"""Of these categories, but part of ordinary spelling (Persian, Indic scripts, emoji) and harmless."""


_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
"""The flag of a part of a country: https://www.unicode.org/reports/tr51/#valid-emoji-tag-sequences"""
_UNSEEN = re.compile(
    f"({_FLAG})"
    "|[\U000e0000-\U000e007f]+"  # tags: a second ASCII without a shape
    "|[\U000e0100-\U000e01ef\ufe00-\ufe0f]{2,}"  # more variations than a letter can have
    "|[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]{4,}"
)
"""Runs of characters that a reader does not see and that can spell out words for a model."""


def clean_text(text: str) -> str:
    """The same text with lone surrogates replaced, which no server takes and no UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def without_unseen(text: str) -> str:
    """The same text with a word in the place of what a reader does not see and a model may read as words.

    What spelling, emoji and flags need of such characters stays.
    """
    return text if text.isascii() else _UNSEEN.sub(_told, text)


def _told(run: re.Match[str]) -> str:
    return run[1] or f"[{len(run[0])} invisible characters left out]"


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
