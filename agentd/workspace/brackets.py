"""The brackets of a `.gitignore` (`[a-c]`), as git reads them.

pathspec hands them to Python's `re`, which reads another language: a range that goes backwards is an error
there, a backslash ends nothing, and `[:digit:]` is none. So such brackets are written anew, in the words that
both have: the very characters that git takes.
"""

import re
import string
from collections.abc import Iterable

_OTHERS = re.compile(r"\\|\[[:\[]|.-.|&&|~~|\|\|", re.DOTALL)
"""What may be in brackets that `re` reads otherwise, or may come to."""

_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
_ALL = frozenset(map(chr, range(1, 256))) - {"/"}  # a character stands for a byte
_LAST = "[!^-"
"""They mean something where they come first, or between others."""


class NoRule(ValueError):
    """Git takes a line with such brackets for one that matches nothing."""


def rewritten(line: str) -> str:
    """A rule with brackets that pathspec reads as git reads the given ones. Raises `NoRule`."""
    if "[" not in line or _OTHERS.search(line) is None:
        return line
    written, at = "", 0
    while at < len(line):
        if line[at] == "[":
            taken, end = _taken(line, at + 1)
            # One that holds a slash ties the rule to its folder, so it stays.
            written += line[at:end] if "/" in line[at:end] else _written(taken)
            at = end
        else:
            size = 2 if line[at] == "\\" else 1
            written += line[at : at + size]
            at += size
    return written


def _taken(line: str, at: int) -> tuple[frozenset[str], int]:
    """The characters that brackets match, whose first one is at `at`, and where the text goes on."""
    is_negated = line[at : at + 1] in ("!", "^")
    at += is_negated
    taken: set[str] = set()
    previous, is_first = "", True
    while is_first or line[at : at + 1] != "]":
        is_first = False
        if line[at : at + 1] == "-" and previous and line[at + 1 : at + 2] not in ("", "]"):
            last, at = _one(line, at + 1)
            taken.update(map(chr, range(ord(previous), ord(last) + 1)))
            previous = ""
        elif (named := _class(line, at)) is not None:
            taken.update(named[0])
            previous, at = "", named[1]
        else:
            previous, at = _one(line, at)
            taken.add(previous)
    return _ALL - taken if is_negated else _ALL & taken, at + 1


def _one(line: str, at: int) -> tuple[str, int]:
    at += line[at : at + 1] == "\\"
    if at >= len(line):
        raise NoRule
    return line[at], at + 1


def _class(line: str, at: int) -> tuple[str, int] | None:
    if not line.startswith("[:", at):
        return None
    end = line.find("]", at + 2)
    if end < 0:
        raise NoRule
    if end == at + 2 or line[end - 1] != ":":
        return None  # a bracket like any other character
    name = line[at + 2 : end - 1]
    if name not in _CLASSES:
        raise NoRule
    return _CLASSES[name], end + 1


def _written(taken: frozenset[str]) -> str:
    if not taken:
        raise NoRule
    if len(taken) == 1:
        return "\\" + next(iter(taken))
    if taken <= set(_LAST):
        return f"[!{_inner(_ALL - taken)}]"
    return f"[{_inner(taken)}]"


def _inner(taken: Iterable[str]) -> str:
    """What stands between the brackets: ranges, with what could be misread at a place where it is not."""
    first = "]" if "]" in taken else ""
    last = "".join(each for each in _LAST if each in taken)
    return first + "".join(_ranges(sorted(set(taken) - {"]", *_LAST}))) + last


def _ranges(characters: list[str]) -> Iterable[str]:
    start = 0
    for index, each in enumerate(characters):
        is_last = index + 1 == len(characters) or ord(characters[index + 1]) != ord(each) + 1
        if is_last:
            first = characters[start]
            yield first if first == each else f"{first}-{each}"
            start = index + 1
