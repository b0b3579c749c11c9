"""`@path` in a text: which files it refers to.

`@src/a.py`, `@src/a.py:10-20`, `@"a name with spaces.txt":7`. Not every `@` is meant so: what stands in the
midst of a word (an e-mail address) or behind a backslash never is, and a word that is no file (a decorator, a
user's name) stays a word, unless it can be meant in no other way.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_MENTION = re.compile(
    r"""
    (?<![^\s(\[{"'`])@                         # at the start of a word, perhaps in brackets or quotes
    (?: "(?P<quoted>[^"\n]{1,4096})"(?P<lines>:\d[\d-]*)?
      | (?P<plain>[^\s"@]\S{0,4095})
    )
    """,
    re.VERBOSE,
)
_LINES = re.compile(r"(?P<path>.+):(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?")
_SEEMING_LINES = re.compile(r":[\d-]+$")
_MOST_PUNCTUATION = 8  # characters behind a name
_PUNCTUATION = ".,;:!?)]}\"'`>"
_SUFFIXES = re.compile(
    r"bash|c|cc|cfg|cpp|cs|css|csv|go|h|hpp|html|ini|ipynb|java|jpe?g|jsx?|jsonl?|kt|lock|lua|md|mjs|pdf|php|png"
    r"|pyi?|rb|rs|rst|scss|sh|sql|svelte|svg|swift|toml|tsx?|txt|vue|xml|ya?ml|zig",
    re.IGNORECASE,
)
"""Endings of names that nobody takes for an attribute, as in `@app.route`."""


@dataclass(frozen=True)
class Mention:
    """A file that a text refers to. `lines` are 1-based, the last one included; None: the whole file."""

    path: str
    lines: tuple[int, int] | None = None
    exists: bool = True

    @property
    def shown(self) -> str:
        """How it was written, or near it."""
        lines = f":{self.lines[0]}-{self.lines[1]}" if self.lines is not None else ""
        return f"@{self.path}{lines}"


def mentions(text: str, exists: Callable[[str], bool]) -> list[Mention]:
    """What a text refers to, in order, each once; `exists` tells whether a path is there.

    Among them what is not there and can be meant as nothing but a file: its `exists` is false.
    """
    found: dict[Mention, None] = {}
    for match in _MENTION.finditer(text):
        written, quoted = match["plain"], match["quoted"]
        if quoted is not None:
            written = quoted + (match["lines"] or "")
            readings = [_with_lines(written) or Mention(written)] if match["lines"] else [Mention(quoted)]
        else:
            readings = list(_readings(written))
        there = next((each for each in readings if exists(each.path)), None)
        if there is not None:
            found[there] = None
        elif quoted is not None or any(_can_only_be_a_file(each) for each in readings):
            last = readings[-1]
            found[Mention(last.path, last.lines, exists=False)] = None
    return list(found)


def _readings(written: str) -> Iterator[Mention]:
    """What a word may name: all of it, or without lines, or without the punctuation that follows it."""
    for _ in range(_MOST_PUNCTUATION):
        yield Mention(written)
        if (with_lines := _with_lines(written)) is not None:
            yield with_lines
        if written[-1] not in _PUNCTUATION or len(written) == 1:
            return
        written = written[:-1]


def _with_lines(written: str) -> Mention | None:
    match = _LINES.fullmatch(written)
    if match is None:
        return None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return Mention(match["path"], (first, last)) if 1 <= first <= last else None


def _can_only_be_a_file(mention: Mention) -> bool:
    if mention.lines is not None or mention.path.startswith(("/", "./", "../", "~/")):
        return True
    path = _SEEMING_LINES.sub("", mention.path)
    folder, _, name = path.rpartition("/")
    stem, _, suffix = name.rpartition(".")
    if folder and not any(each in path for each in "()<>"):
        return bool(stem) and suffix.isalnum()
    return bool(stem) and _SUFFIXES.fullmatch(suffix) is not None
