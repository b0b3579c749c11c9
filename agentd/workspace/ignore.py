"""Which files of a workspace are worth looking at: a walk that goes by .gitignore.

As in git, a `.gitignore` rules its own folder and what is below, a deeper one wins over a higher one, a later
line over an earlier one, and nothing inside an ignored folder comes back. `.git` itself is never entered and
links are never followed. Hidden files are looked at like any other.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentd.workspace.beneath import open_directory
from agentd.workspace.write_notes import is_temporary

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_RULES_BYTES = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Parts = tuple[str, ...]
_Entry = tuple[str, bool]  # name, and whether it is a folder


@dataclass(frozen=True)
class _Rules:
    """The rules of one file, for the folder at `base` and below."""

    base: Parts
    lines: tuple[str, ...]
    spec: "GitIgnoreSpec"

    def verdict(self, parts: Parts, is_directory: bool) -> bool | None:
        """Whether these rules ignore it; None when they do not mention it."""
        path = "/".join(parts[len(self.base) :])
        if not is_directory:
            return self.spec.check_file(path).include
        result = self.spec.check_file(path + "/")
        if result.index is not None and self.lines[result.index].rstrip().endswith("/**"):
            # "x/**" is all that is in x, but not x itself; pathspec takes "x/" to be in x.
            return self.spec.check_file(path).include
        return result.include


@dataclass
class Walk:
    """A walk over the files below a root; `unreadable` counts folders that could not be listed on the way."""

    root_fd: int
    unreadable: int = field(default=0, init=False)

    def files(self, base: Parts) -> Iterator[Parts]:
        """The files and links below `base`, in order of their names. Raises OSError for `base` itself."""
        rules = () if self.is_ignored(base, is_directory=True) else self._rules_above(base)
        yield from self._below(base, rules, self._entries(base))

    def is_ignored(self, parts: Parts, *, is_directory: bool = False) -> bool:
        """Whether this file, or a folder that it is in, is ignored."""
        rules: tuple[_Rules, ...] = ()
        for depth in range(1, len(parts) + 1):
            rules = (*self._read_rules(parts[: depth - 1]), *rules)
            if _ignores(rules, parts[:depth], is_directory or depth < len(parts)):
                return True
        return False

    def _below(self, base: Parts, rules: tuple[_Rules, ...], entries: list[_Entry]) -> Iterator[Parts]:
        # A stack rather than recursion: a tree may be deeper than Python's stack.
        pending = [(base, self._with_own(base, rules, entries), iter(entries))]
        while pending:
            folder, rules, rest = pending[-1]
            entry = next(rest, None)
            if entry is None:
                pending.pop()
                continue
            name, is_directory = entry
            parts = (*folder, name)
            if name == ".git" or _ignores(rules, parts, is_directory):
                continue
            if not is_directory:
                yield parts
                continue
            try:
                below = self._entries(parts)
            except OSError:  # removed meanwhile, or not ours to list
                self.unreadable += 1
                continue
            pending.append((parts, self._with_own(parts, rules, below), iter(below)))

    def _with_own(
        self, folder: Parts, rules: tuple[_Rules, ...], entries: list[_Entry]
    ) -> tuple[_Rules, ...]:
        has_own = any(name == ".gitignore" for name, _ in entries)
        return (*self._read_rules(folder), *rules) if has_own else rules

    def _entries(self, folder: Parts) -> list[_Entry]:
        """Names, and whether it is a folder, of all that can be looked at: no pipes, sockets and devices."""
        fd = open_directory(self.root_fd, folder)
        try:
            with os.scandir(fd) as entries:
                return sorted(
                    (entry.name, entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if (entry.is_symlink() or entry.is_dir() or entry.is_file())
                    and not is_temporary(entry.name)
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
        lines = tuple(line for line in data.decode("utf-8-sig", "surrogateescape").splitlines() if line)
        return (_Rules(folder, *_parsed(lines)),) if lines else ()


def _ignores(rules: Sequence[_Rules], parts: Parts, is_directory: bool) -> bool:
    for rule in rules:  # the deepest first
        verdict = rule.verdict(parts, is_directory)
        if verdict is not None:
            return verdict
    return False


def _parsed(lines: tuple[str, ...]) -> "tuple[tuple[str, ...], GitIgnoreSpec]":
    """The rules, without those lines that git would not understand either."""
    from pathspec import GitIgnoreSpec  # only a walk needs it

    try:
        return lines, GitIgnoreSpec.from_lines(lines)
    except ValueError:
        good = tuple(line for line in lines if _is_rule(line))
        return good, GitIgnoreSpec.from_lines(good)


def _is_rule(line: str) -> bool:
    from pathspec import GitIgnoreSpec  # as above

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _read_small(folder_fd: int, name: str) -> bytes:
    fd = os.open(name, _READ, dir_fd=folder_fd)
    try:
        return os.read(fd, _MAX_RULES_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
