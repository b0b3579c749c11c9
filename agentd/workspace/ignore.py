"""Which files of a workspace are worth looking at: a walk that goes by .gitignore.

As in git, a `.gitignore` rules its own folder and what is below, a deeper one wins over a higher one, a later
line over an earlier one, and nothing inside an ignored folder comes back. `.git` itself is never entered and
links are never followed. Hidden files are looked at like any other.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agentd.workspace.beneath import open_directory
from agentd.workspace.globs import Glob
from agentd.workspace.write_notes import is_temporary

_MAX_RULES_BYTES = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Parts = tuple[str, ...]
_Entry = tuple[str, bool]  # name, and whether it is a folder

# What pathspec makes of "*" and of "*/".
_ANYTHING = "."
_ANY_FOLDER = "(?P<ps_d>/)"

_SPECIAL = re.compile(r"[*?\[\\]")


@dataclass(frozen=True)
class _Rule:
    """One line of a .gitignore.

    `speaks_of(path)` is whether it matches the path itself (that of a folder ends in `/`). pathspec also
    matches what is in a matching folder; git does not, which shows when a rule is taken back below.
    """

    ignores: bool
    speaks_of: Callable[[str], bool]


class _Rules:
    """The rules of one file, for the folder at `base` and below.

    Most rules end in a plain name or in `*.ext`, and most paths in neither. So rules are looked up by how
    a path ends, and only those that may match are tried, and parsed at all: most of the speed of a walk.
    """

    def __init__(self, base: Parts, lines: Iterable[str]) -> None:
        self._depth = len(base)
        self._lines: list[str] = []
        self._parsed: dict[int, _Rule | None] = {}
        self._by_name: dict[str, list[int]] = {}
        self._by_suffix: dict[str, list[int]] = {}
        self._by_nothing: list[int] = []
        for line in lines:
            if line.strip() and not line.startswith("#"):
                self._add(line)
        self._suffixes = tuple(self._by_suffix)

    def _add(self, line: str) -> None:
        end = line.strip().removeprefix("!").rstrip("/").rpartition("/")[2]
        if not _SPECIAL.search(end):
            group = self._by_name.setdefault(end, [])
        elif end.startswith("*") and len(end) > 1 and not _SPECIAL.search(end, 1):
            group = self._by_suffix.setdefault(end[1:], [])
        else:
            group = self._by_nothing
        group.append(len(self._lines))
        self._lines.append(line)

    def _rule(self, index: int) -> _Rule | None:
        if index not in self._parsed:
            self._parsed[index] = _parsed(self._lines[index])
        return self._parsed[index]

    def _tried(self, name: str) -> list[int]:
        """The rules that may match something of this name."""
        tried = self._by_name.get(name, self._by_nothing)
        if tried is not self._by_nothing:
            tried = tried + self._by_nothing
        if name.endswith(self._suffixes):
            tried = tried + [
                index for end in self._suffixes if name.endswith(end) for index in self._by_suffix[end]
            ]
        return tried

    def verdict(self, parts: Parts, is_directory: bool) -> bool | None:
        """Whether these rules ignore it; None when they do not mention it."""
        tried = self._tried(parts[-1])
        if not tried:
            return None
        path = _bytewise("/".join(parts[self._depth :])) + ("/" if is_directory else "")
        for index in sorted(tried, reverse=True):  # a later line wins over an earlier one
            rule = self._rule(index)
            if rule is not None and rule.speaks_of(path):
                return rule.ignores
        return None


_EVERYTHING = Glob("**")


def _go_on() -> None:
    """What is done between folders when nobody waits."""


@dataclass
class Walk:
    """A walk over the files below a root; `unreadable` counts folders that could not be listed on the way."""

    root_fd: int
    unreadable: int = field(default=0, init=False)

    def files(
        self, base: Parts, glob: Glob = _EVERYTHING, look: Callable[[], None] = _go_on
    ) -> Iterator[Parts]:
        """The files and links below `base` that the glob matches, in order of their names.

        `look` is called now and then, to stop the walk by an error. Raises OSError for `base` itself.
        """
        rules = () if self.is_ignored(base, is_directory=True) else self._rules_above(base)
        # A stack rather than recursion: a tree may be deeper than Python's stack.
        pending = [self._opened(base, rules, self._entries(base))]
        while pending:
            folder, rules, rest = pending[-1]
            for name, is_directory in rest:
                parts = (*folder, name)
                if is_directory:
                    look()
                    if name == ".git" or _ignores(rules, parts, True):
                        self.passed_over(parts)
                    elif below := self._listed(parts):
                        pending.append(self._opened(parts, rules, below))
                        break
                elif name == ".git":
                    self.passed_over(parts)
                elif glob.matches(parts):
                    if _ignores(rules, parts, False):
                        self.passed_over(parts)
                    else:
                        yield parts
            else:
                pending.pop()

    def passed_over(self, parts: Parts) -> None:
        """The walk has left out this file or folder: for walks that want to know."""

    def _opened(
        self, folder: Parts, rules: tuple[_Rules, ...], entries: list[_Entry]
    ) -> tuple[Parts, tuple[_Rules, ...], Iterator[_Entry]]:
        if any(name == ".gitignore" for name, _ in entries):
            rules = (*self._read_rules(folder), *rules)
        return folder, rules, iter(entries)

    def _listed(self, folder: Parts) -> list[_Entry]:
        try:
            return self._entries(folder)
        except OSError:  # removed meanwhile, or not ours to list
            self.unreadable += 1
            return []

    def is_ignored(self, parts: Parts, *, is_directory: bool = False) -> bool:
        """Whether this file, or a folder that it is in, is ignored."""
        rules: tuple[_Rules, ...] = ()
        for depth in range(1, len(parts) + 1):
            rules = (*self._read_rules(parts[: depth - 1]), *rules)
            if _ignores(rules, parts[:depth], is_directory or depth < len(parts)):
                return True
        return False

    def _entries(self, folder: Parts) -> list[_Entry]:
        """Names, and whether it is a folder, of all that can be looked at: no pipes, sockets and devices."""
        fd = open_directory(self.root_fd, folder)
        try:
            with os.scandir(fd) as entries:
                return sorted(
                    [
                        (entry.name, entry.is_dir(follow_symlinks=False))
                        for entry in entries
                        if (entry.is_file(follow_symlinks=False) or entry.is_symlink() or entry.is_dir())
                        and not is_temporary(entry.name)
                    ]
                )
        finally:
            os.close(fd)

    def _rules_above(self, base: Parts) -> tuple[_Rules, ...]:
        rules: tuple[_Rules, ...] = ()
        for depth in range(len(base)):
            rules = (*self._read_rules(base[:depth]), *rules)
        return rules

    def _read_rules(self, folder: Parts) -> tuple[_Rules, ...]:
        """The rules that a folder's .gitignore makes; none where there is none or it cannot be read."""
        try:
            fd = open_directory(self.root_fd, folder)
            try:
                data = _read_small(fd, ".gitignore")
            finally:
                os.close(fd)
        except OSError:
            return ()
        lines = data.decode("utf-8-sig", "surrogateescape").split("\n")
        return (_Rules(folder, lines),)


def _ignores(rules: Sequence[_Rules], parts: Parts, is_directory: bool) -> bool:
    for rule in rules:  # the deepest first
        verdict = rule.verdict(parts, is_directory)
        if verdict is not None:
            return verdict
    return False


def _parsed(line: str) -> _Rule | None:
    """The rule of a line; None for one that says nothing, to git either."""
    from pathspec import GitIgnoreSpec  # only a walk needs it

    line = _bytewise(line.removesuffix("\r"))
    inner_folders = line.rstrip().endswith("/**/")  # pathspec takes the folder itself for one of them
    try:
        (pattern,) = GitIgnoreSpec.from_lines([line.rstrip()[:-1] if inner_folders else line]).patterns
    except ValueError:
        return None
    if pattern.include is None or pattern.regex is None:
        return None
    speaks_of = _itself(pattern.regex)
    if inner_folders:
        return _Rule(pattern.include, lambda path: path.endswith("/") and speaks_of(path))
    return _Rule(pattern.include, speaks_of)


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


def _read_small(folder_fd: int, name: str) -> bytes:
    fd = os.open(name, _READ, dir_fd=folder_fd)
    try:
        return os.read(fd, _MAX_RULES_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
