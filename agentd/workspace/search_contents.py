"""Searching the contents of files, line by line."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from agentd.workspace import files
from agentd.workspace.beneath import Folders
from agentd.workspace.ignore import Walk
from agentd.workspace.ignore_rules import Parts
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.search_job import SearchJob
from agentd.workspace.search_names import NameSearch
from agentd.workspace.secrets import is_secret
from agentd.workspace.sieve import Sieve
from agentd.workspace.text import BinaryContent, decode, lines_of, visible

_WIDE = 500  # characters of a line that are shown whole; of a longer one, a window around the match
_BEFORE_MATCH = 200
_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")
_LINE_OVERHEAD = 10  # what stands between path and text
_LINES_PER_LOOK = 1024  # lines between two looks at the clock


class ContentSearch(NameSearch):
    """A search for a pattern in files that are found by name."""

    def __init__(self, job: SearchJob) -> None:
        super().__init__(job)
        self._regex = re.compile(job.pattern or "", re.IGNORECASE if job.ignore_case else 0)
        plain = job.pattern is not None and not job.ignore_case and not _SPECIAL.search(job.pattern)
        self._literal = job.pattern if plain else None

    def _found(self, walk: Walk) -> Iterator[dict[str, Any]]:
        with Folders(walk.root_fd) as folders, self._sieve(walk.root_fd) as sieve:
            for parts, is_worth_it in sieve.sift(self.candidates(walk)):
                self.look_at_clock()
                result = self._searched(parts, folders, is_worth_it)
                if result is not None:
                    yield result
                if self.end.cut:
                    return

    def _sieve(self, root_fd: int) -> Sieve:
        job = self.job
        assert job.pattern is not None
        return Sieve(
            job.ripgrep, job.pattern, ignore_case=job.ignore_case, root_fd=root_fd, deadline=self.deadline,
            is_out=self._is_out,
        )  # fmt: skip

    def _is_out(self, parts: Parts) -> bool:
        """Whether it is not the file on the disk that counts, or it is not to be read."""
        if self.job.buffers and "/".join(parts) in self.job.buffers:
            return True
        return self._is_passed_over(parts)

    def _is_passed_over(self, parts: Parts) -> bool:
        return not self.job.with_secrets and is_secret(parts)

    def _searched(self, parts: Parts, folders: Folders, is_worth_it: bool) -> dict[str, Any] | None:
        if self._is_passed_over(parts):
            self.end.secret += 1
            return None
        if not is_worth_it:
            self.end.files += 1
            return None
        lines = self._lines(parts, folders)
        if lines is None:
            return None
        self.end.files += 1
        found = self._matching(lines, len(shown("/".join(parts))) + _LINE_OVERHEAD)
        return {"file": "/".join(parts), "lines": found} if found else None

    def _lines(self, parts: Parts, folders: Folders) -> Iterable[str] | None:
        """The lines of a file; None for one that is not searched."""
        path = "/".join(parts)
        try:
            text = self._text(parts, folders)
        except BinaryContent:
            self.end.binary += 1
        except PermissionError:
            self.end.unreadable += 1
        except OSError:
            return None  # gone by now
        except WorkspaceError as error:
            if parts == self.job.base and error.kind == "too_large":  # it is named itself
                return files.lines_in(folders.open(parts[:-1]), Place(self.root, parts, path))
            if parts == self.job.base:
                raise
            if error.kind == "too_large":
                self.end.too_large += 1
            # else a link, which the walk meets where it leads
        else:
            return () if self._literal is not None and self._literal not in text else lines_of(text)
        return None

    def _text(self, parts: Parts, folders: Folders) -> str:
        path = "/".join(parts)
        if path in self.job.buffers:
            return self.job.buffers[path]
        return decode(files.read_in(folders.open(parts[:-1]), Place(self.root, parts, path)).data).text

    def _matching(self, lines: Iterable[str], overhead: int) -> list[tuple[int, str, bool]]:
        """The matching lines with their context, as far as there is room."""
        found: list[tuple[int, str, bool]] = []
        before: deque[tuple[int, str]] = deque(maxlen=self.job.context)
        after = 0  # lines of context still to come
        try:
            for number, line in enumerate(lines, 1):
                if number % _LINES_PER_LOOK == 0:
                    self.look_at_clock(stop=not found)
                    if self.end.cut == "time":
                        break
                match = None if self.end.cut else self._regex.search(line)
                if match is not None:
                    window = _window(line, match)
                    if self.has_room(len(window.encode("utf-8", "replace")) + overhead):
                        for each, text in before:
                            self._add_context(found, each, text, overhead)
                        before.clear()
                        found.append((number, window, True))
                        after = self.job.context
                        continue
                if after:
                    self._add_context(found, number, line, overhead)
                    after -= 1
                elif self.end.cut:
                    break
                else:
                    before.append((number, line))
        except BinaryContent:
            self.end.binary += 1
        return found

    def _add_context(self, found: list[tuple[int, str, bool]], number: int, line: str, overhead: int) -> None:
        text = _start(line)
        self.add_size(len(text) + overhead)
        found.append((number, text, False))


def _start(line: str) -> str:
    return visible(line if len(line) <= _WIDE else line[:_WIDE] + "... (truncated)")


def _window(line: str, match: re.Match[str]) -> str:
    if len(line) <= _WIDE:
        return visible(line)
    start = max(0, match.start() - _BEFORE_MATCH)
    end = min(len(line), start + _WIDE)
    return visible(("..." if start else "") + line[start:end] + "... (truncated)")
