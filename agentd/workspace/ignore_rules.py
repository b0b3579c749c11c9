"""What a `.gitignore` says about one path, as git reads it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentd.workspace.brackets import rewritten

Parts = tuple[str, ...]

# What pathspec makes of "*" and of "*/".
_ANYTHING = "."
_ANY_FOLDER = "(?P<ps_d>/)"

_BEFORE_SPECIAL = re.compile(r"[^*?\[\]\\]*")
_BEHIND_SPECIAL = re.compile(r"[^*?\[\]\\]*\Z")

# Lines that git and every ripgrep read alike; others differ in corners (braces, escapes, byte order marks,
# what a bracket may hold, blanks, what is not ASCII).
_PLAIN_PIECE = r"(?!\.\.?(?:/|\Z))(?:\*|\*?(?:(?:[\w.~@+=,$%^&'()-]|\[(?:[A-Za-z0-9]|0-9|a-z|A-Z)+\])\*?)+)"
_PLAIN = re.compile(
    rf"#.*|(?:!?/?(?:\*\*/)?{_PLAIN_PIECE}(?:/(?:\*\*/)?{_PLAIN_PIECE})*(?:/\*\*|/)?)? *\r?",
    re.ASCII | re.DOTALL,
)
_MAX_PLAIN_BYTES = 16 * 1024  # ripgrep drops all rules of a file whose automaton is too large: 50 KB may be
_NAME_AT_ANY_DEPTH = re.compile(r"!?[^/]*/? *\r?")


@dataclass(frozen=True)
class _Rule:
    """One line of a .gitignore.

    `speaks_of(path)` is whether it matches the path itself (that of a folder ends in `/`). pathspec also
    matches what is in a matching folder; git does not, which shows when a rule is taken back below.
    """

    ignores: bool
    speaks_of: Callable[[str], bool]


class _Lookup:
    """Numbers of rules by what the names that they may match are, begin with or end in."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[int]] = {}
        self._by_start: dict[str, list[int]] = {}
        self._by_end: dict[str, list[int]] = {}
        self._others: list[int] = []
        self._starts: tuple[str, ...] = ()
        self._ends: tuple[str, ...] = ()

    def add(self, number: int, name: str) -> None:
        """`name` is the last component of a rule."""
        start, end = _BEFORE_SPECIAL.match(name), _BEHIND_SPECIAL.search(name)
        if not name or "]" in name.partition("[")[0]:  # cut in the midst of brackets that hold a slash
            group = self._others
        elif start is not None and start[0] == name:
            group = self._by_name.setdefault(name, [])
        elif start is not None and start[0]:
            group = self._by_start.setdefault(start[0], [])
        elif end is not None and end[0]:
            group = self._by_end.setdefault(end[0], [])
        else:
            group = self._others
        group.append(number)
        self._starts, self._ends = tuple(self._by_start), tuple(self._by_end)

    def tried(self, name: str) -> list[int]:
        """The rules that may match something of this name."""
        found = self._by_name.get(name, self._others)
        if found is not self._others:
            found = found + self._others
        if name.startswith(self._starts):
            found = found + [
                number for start in self._starts if name.startswith(start) for number in self._by_start[start]
            ]
        if name.endswith(self._ends):
            found = found + [
                number for end in self._ends if name.endswith(end) for number in self._by_end[end]
            ]
        return found


class Rules:
    """The rules of one file, for the folder at `base` and below.

    Most rules end in a plain name or in `*.ext`, and most paths in neither. So rules are looked up by how
    a path's name is, and only those that may match are tried, and parsed at all: most of the speed of a walk.
    """

    def __init__(self, base: Parts, data: bytes) -> None:
        self.base = base
        self._data = data
        self._lines: list[str] = []
        self._parsed: dict[int, _Rule | None] = {}
        self._for_files = _Lookup()
        self._for_folders = _Lookup()
        for line in data.decode("utf-8-sig", "surrogateescape").split("\n"):
            if line.strip(" \r") and not line.startswith("#"):
                self._add(line)

    def _add(self, line: str) -> None:
        said = line.removesuffix("\r").rstrip(" ")
        name = said.removeprefix("!").rstrip("/").rpartition("/")[2]
        if said.strip() != said:  # whoever reads it might take blanks away
            name = ""
        if not said.endswith("/") or "\\" in said:
            self._for_files.add(len(self._lines), name)
        self._for_folders.add(len(self._lines), name)
        self._lines.append(line)

    @cached_property
    def are_plain(self) -> bool:
        """Whether they mean to every ripgrep what they mean to git."""
        if len(self._data) > _MAX_PLAIN_BYTES:
            return False
        try:
            lines = self._data.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            return False
        return b"\0" not in self._data and all(_PLAIN.fullmatch(line) for line in lines)

    @cached_property
    def are_for_names(self) -> bool:
        """Whether all of them speak of names at any depth, so that they mean the same in a higher folder."""
        return all(_NAME_AT_ANY_DEPTH.fullmatch(line) for line in self._lines)

    def _rule(self, number: int) -> _Rule | None:
        if number not in self._parsed:
            self._parsed[number] = _parsed(self._lines[number])
        return self._parsed[number]

    def verdict(self, parts: Parts, is_directory: bool) -> bool | None:
        """Whether these rules ignore it; None when they do not mention it."""
        tried = (self._for_folders if is_directory else self._for_files).tried(parts[-1])
        if not tried:
            return None
        path = _bytewise("/".join(parts[len(self.base) :])) + ("/" if is_directory else "")
        for number in sorted(tried, reverse=True):  # a later line wins over an earlier one
            rule = self._rule(number)
            if rule is not None and rule.speaks_of(path):
                return rule.ignores
        return None


def are_ignored_by(rules: Sequence[Rules], parts: Parts, is_directory: bool) -> bool:
    """Whether the path is ignored where these rules are in force, the deepest first."""
    for each in rules:
        verdict = each.verdict(parts, is_directory)
        if verdict is not None:
            return verdict
    return False


def _parsed(line: str) -> _Rule | None:
    """The rule of a line; None for one that says nothing, to git either."""
    from pathspec import GitIgnoreSpec  # only a walk needs it

    line = _trimmed(_bytewise(line.removesuffix("\r")))
    inner_folders = line.endswith("/**/")  # pathspec takes the folder itself for one of them
    try:
        line = _kept_whole(rewritten(line))
        (pattern,) = GitIgnoreSpec.from_lines([line[:-1] if inner_folders else line]).patterns
    except (ValueError, re.error):
        return None
    if pattern.include is None or pattern.regex is None:
        return None
    # A name may hold a newline, over which pathspec's dots do not go.
    speaks_of = _itself(re.compile(pattern.regex.pattern, pattern.regex.flags | re.DOTALL))
    if inner_folders:
        return _Rule(pattern.include, lambda path: path.endswith("/") and speaks_of(path))
    return _Rule(pattern.include, speaks_of)


def _trimmed(line: str) -> str:
    """A rule without the spaces at its end; a backslash keeps one."""
    rest = line.rstrip(" ")
    return line[: len(rest) + _ends_in_escape(rest)]


def _kept_whole(line: str) -> str:
    """A rule of which pathspec strips nothing: to it the last byte of "à" is a blank, too."""
    last = line[-1:]
    if last == " " or not last.isspace() or line.rfind("[") > line.rfind("]"):
        return line
    rest = line[:-1]
    return f"{rest[:-1] if _ends_in_escape(rest) else rest}[{last}]"


def _ends_in_escape(text: str) -> bool:
    """Whether it ends in a backslash that speaks of what comes behind it."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _bytewise(text: str) -> str:
    """A character for each byte: git's `?` is one byte, and so is what its brackets match."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def _itself(regex: "re.Pattern[str]") -> Callable[[str], bool]:
    """Whether a path itself, not a folder it is in, matches what pathspec made of a rule."""
    search = regex.search
    if regex.pattern == _ANYTHING:
        return lambda path: True
    if regex.pattern == _ANY_FOLDER:
        return lambda path: path.endswith("/")
    if regex.pattern.endswith("/"):  # "x/**": all that is in x, but not x itself
        return lambda path: (match := search(path)) is not None and match.end() < len(path)
    return lambda path: (match := search(path)) is not None and match.end() == len(path)
