"""Searching the contents of files, line by line."""

import re
from collections.abc import Iterator
from typing import Any

from agentd.workspace import files
from agentd.workspace.beneath import Folders
from agentd.workspace.ignore import Parts, Walk
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
        text = self._text(parts, folders)
        if text is None:
            return None
        self.end.files += 1
        if self._literal is not None and self._literal not in text:
            return None
        path = "/".join(parts)
        lines = self._matching(lines_of(text), len(shown(path)) + _LINE_OVERHEAD)
        return {"file": path, "lines": lines} if lines else None

    def _text(self, parts: Parts, folders: Folders) -> str | None:
        path = "/".join(parts)
        if path in self.job.buffers:
            return self.job.buffers[path]
        try:
            return decode(files.read_in(folders.open(parts[:-1]), Place(self.root, parts, path)).data).text
        except BinaryContent:
            self.end.binary += 1
        except PermissionError:
            self.end.unreadable += 1
        except OSError:
            return None  # gone by now
        except WorkspaceError as error:
            if parts == self.job.base:
                raise
            if error.kind == "too_large":
                self.end.too_large += 1
            # else a link, which the walk meets where it leads
        return None

    def _matching(self, lines: list[str], overhead: int) -> list[tuple[int, str, bool]]:
        """The matching lines with their context, as far as there is room."""
        wanted: dict[int, str] = {}
        matched: set[int] = set()
        for index, line in enumerate(lines):
            if index % _LINES_PER_LOOK == 0:
                self.look_at_clock(stop=not matched)
                if self.end.cut:
                    break
            match = self._regex.search(line)
            if match is None:
                continue
            window = _window(line, match)
            if not self.has_room(len(window.encode("utf-8", "replace")) + overhead):
                break
            matched.add(index)
            for near in range(
                max(0, index - self.job.context), min(len(lines), index + self.job.context + 1)
            ):
                if near not in wanted:
                    wanted[near] = _start(lines[near])
                    self._bytes += len(wanted[near]) + overhead if near != index else 0
            wanted[index] = window
        return [(index + 1, wanted[index], index in matched) for index in sorted(wanted)]


def _start(line: str) -> str:
    return visible(line if len(line) <= _WIDE else line[:_WIDE] + "... (truncated)")


def _window(line: str, match: re.Match[str]) -> str:
    if len(line) <= _WIDE:
        return visible(line)
    start = max(0, match.start() - _BEFORE_MATCH)
    end = min(len(line), start + _WIDE)
    return visible(("..." if start else "") + line[start:end] + "... (truncated)")
