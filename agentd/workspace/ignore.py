"""Which files of a workspace are worth looking at: a walk that goes by .gitignore.

As in git, a `.gitignore` rules its own folder and what is below, a deeper one wins over a higher one, a later
line over an earlier one, and nothing inside an ignored folder comes back. `.git` itself is never entered and
links are never followed. Hidden files are looked at like any other.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from agentd.workspace.beneath import open_directory
from agentd.workspace.globs import Glob
from agentd.workspace.ignore_rules import Parts, Rules, are_ignored_by
from agentd.workspace.temporaries import is_temporary

_MAX_RULES_BYTES = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REPOSITORIES = frozenset({".git", ".jj"})
_RULES_OF_OTHERS = frozenset({".ignore", ".rgignore"})

_NAMELESS = "."  # what ends so has no name to ripgrep, so no rule and no type speaks of it

_EVERYTHING = Glob("**")


def _go_on() -> None:
    """What is done between folders when nobody waits."""


class Judge(Protocol):
    """Somebody else who knows which files are not ignored, where all rules are plain."""

    def names(self, folder: Parts) -> set[str] | None:
        """Those of the plain files in a folder, but those that the glob cannot match; None: not known."""


class Entries(NamedTuple):
    """The names of all in a folder. `others` are pipes, sockets and devices, which nobody looks at."""

    files: list[str]
    folders: list[str]
    links: list[str]
    others: list[str]


class Folder(NamedTuple):
    """A folder that is looked at; the rules in force in it, the deepest first, and whether all are plain."""

    parts: Parts
    entries: Entries
    rules: tuple[Rules, ...]
    is_plain: bool


@dataclass
class Walk:
    """A walk over the files below a root; `unreadable` counts folders that could not be listed on the way."""

    root_fd: int
    unreadable: int = field(default=0, init=False)
    _ahead: dict[Parts, Folder | None] = field(default_factory=dict, init=False)

    def files(
        self,
        base: Parts,
        glob: Glob = _EVERYTHING,
        look: Callable[[], None] = _go_on,
        judge: Judge | None = None,
    ) -> Iterator[Parts]:
        """The files and links below `base` that the glob matches, in order of their names.

        `look` is called now and then, to stop the walk by an error. What a `judge` knows is not found out
        anew. Raises OSError for `base` itself.
        """
        # A stack rather than recursion: a tree may be deeper than Python's stack.
        top = self._top(base, may_be_plain=judge is not None)
        pending = [(top, _rest(top, glob, judge))]
        while pending:
            folder, rest = pending[-1]
            for name, is_directory, is_judged in rest:
                if is_directory:
                    look()
                    if below := self._entered(folder, name):
                        pending.append((below, _rest(below, glob, judge)))
                        break
                    continue
                parts = (*folder.parts, name)
                if name == ".git":
                    self.passed_over(parts)
                elif glob.matches(parts):
                    if not is_judged and are_ignored_by(folder.rules, parts, False):
                        self.passed_over(parts)
                    else:
                        yield parts
            else:
                pending.pop()

    def look_ahead(self, base: Parts) -> Iterator[None]:
        """Look into a folder a step, for `files`, which then has no need to. Raises OSError for `base`.

        What cannot be listed is left to `files`: it is counted where the search comes by.
        """
        pending = [self._top(base, may_be_plain=True)]
        self._ahead[base] = pending[0]
        while pending:
            folder = pending.pop()
            entered = []
            for name in sorted(folder.entries.folders):
                parts = (*folder.parts, name)
                with suppress(OSError):
                    below = self._ahead[parts] = self._below(folder, parts)
                    if below is not None:
                        entered.append(below)
                yield
            pending += reversed(entered)

    def passed_over(self, parts: Parts) -> None:
        """The walk has left out this file or folder: for walks that want to know."""

    def _top(self, base: Parts, *, may_be_plain: bool) -> Folder:
        known = self._ahead.pop(base, None)
        return known or self._folder(base, self._entries(base), self.rules_above(base), may_be_plain)

    def _entered(self, above: Folder, name: str) -> Folder | None:
        """The folder of this name; None when it is ignored or cannot be listed."""
        parts = (*above.parts, name)
        if parts in self._ahead:
            return self._ahead.pop(parts)
        try:
            return self._below(above, parts)
        except OSError:  # removed meanwhile, or not ours to list
            self.unreadable += 1
            return None

    def _below(self, above: Folder, parts: Parts) -> Folder | None:
        """The folder at `parts`, which is in `above`; None when it is ignored. Raises OSError."""
        if parts[-1] == ".git" or are_ignored_by(above.rules, parts, True):
            self.passed_over(parts)
            return None
        return self._folder(parts, self._entries(parts), above.rules, above.is_plain)

    def _folder(self, parts: Parts, entries: Entries, rules: tuple[Rules, ...], is_plain: bool) -> Folder:
        """`rules` and `is_plain` are those of the folder above."""
        is_plain = is_plain and not _has_own_ways(entries, bool(rules))
        is_plain = is_plain and not (parts and parts[-1].endswith(_NAMELESS))
        if ".gitignore" in entries.files:
            own = self.rules_in(parts)
            is_plain = is_plain and len(own) == 1 and own[0].are_plain
            rules = (*own, *rules)
        elif ".gitignore" in entries.links:  # which git does not follow, but others do
            is_plain = False
        return Folder(parts, entries, rules, is_plain)

    def would_find(self, base: Parts, parts: Parts) -> bool:
        """Whether `files` would come to a file at `parts`, below `base`, were it there."""
        if any(name == ".git" or is_temporary(name) for name in parts[len(base) :]):
            return False
        return not self._is_ignored(parts, self.rules_above(base), len(base))

    def _entries(self, folder: Parts) -> Entries:
        fd = open_directory(self.root_fd, folder)
        try:
            with os.scandir(fd) as entries:
                found = list(entries)
                files = [entry.name for entry in found if entry.is_file(follow_symlinks=False)]
                if len(files) == len(found):
                    return Entries(files, [], [], [])
                rest = [entry for entry in found if not entry.is_file(follow_symlinks=False)]
                folders = [entry.name for entry in rest if entry.is_dir(follow_symlinks=False)]
                links = [entry.name for entry in rest if entry.is_symlink()]
                known = {*folders, *links}
                others = [entry.name for entry in rest if entry.name not in known]
                return Entries(files, folders, links, others)
        finally:
            os.close(fd)

    def rules_above(self, base: Parts) -> tuple[Rules, ...]:
        """The rules of higher folders that are in force below `base`, the deepest first.

        None are where `base` is ignored itself: whoever goes there all the same wants to see what is there.
        """
        rules: tuple[Rules, ...] = ()
        if self._is_ignored(base, rules, 0, is_directory=True):
            return rules
        for depth in range(len(base)):
            rules = (*self.rules_in(base[:depth]), *rules)
        return rules

    def _is_ignored(
        self, parts: Parts, rules: tuple[Rules, ...], known: int, *, is_directory: bool = False
    ) -> bool:
        """Whether it, or a folder that it is in, is ignored; `rules` are those above the `known`-th part."""
        for depth in range(known + 1, len(parts) + 1):
            rules = (*self.rules_in(parts[: depth - 1]), *rules)
            if are_ignored_by(rules, parts[:depth], is_directory or depth < len(parts)):
                return True
        return False

    def rules_in(self, folder: Parts) -> tuple[Rules, ...]:
        """The rules that a folder's .gitignore makes; none where there is none or it cannot be read."""
        try:
            fd = open_directory(self.root_fd, folder)
            try:
                data = _read_small(fd, ".gitignore")
            finally:
                os.close(fd)
        except OSError:
            return ()
        return (Rules(folder, data),)


def _rest(folder: Folder, glob: Glob, judge: Judge | None) -> Iterator[tuple[str, bool, bool]]:
    """What is in a folder, in order: a name, whether it is a folder's, and whether it is judged already."""
    files, folders, links, _ = folder.entries
    known = judge.names(folder.parts) if judge is not None and folder.is_plain else None
    others = files if known is None else [name for name in files if name.endswith(_NAMELESS)]
    judged = () if known is None else known.intersection(files).difference(others)
    rest = [(name, False, True) for name in glob.select(judged)]
    rest += [(name, False, False) for name in glob.select([*others, *links])]
    rest += [(name, True, False) for name in folders]
    return iter(sorted(each for each in rest if not is_temporary(each[0])))


def _has_own_ways(entries: Entries, has_rules_above: bool) -> bool:
    """Whether ripgrep may go by other rules than git in a folder with these entries."""
    marks = _REPOSITORIES | _RULES_OF_OTHERS if has_rules_above else _RULES_OF_OTHERS
    return not all(marks.isdisjoint(names) for names in entries)


def _read_small(folder_fd: int, name: str) -> bytes:
    fd = os.open(name, _READ, dir_fd=folder_fd)
    try:
        return os.read(fd, _MAX_RULES_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
