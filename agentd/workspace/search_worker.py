"""The process that searches: files by name, or lines by regular expression (Python's, always).

A regular expression can take for ever, and nothing inside a Python process can stop it. So the search runs in
a process of its own, which is killed when the time is up or the answer no longer wanted, and which ends
itself soon after (SIGALRM, which also ends a running match) should nobody be left to kill it.

It reads one `SearchJob` as JSON from stdin and writes one JSON object a line: `{"file": path}` or `{"file":
path, "lines": [[number, text, is_match], ...]}` for each file found, and last `{"end": {...}}` with the
fields of `SearchEnd`, or `{"error": text}`.
"""

import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentd.workspace import files
from agentd.workspace.beneath import Folders
from agentd.workspace.globs import compile_glob
from agentd.workspace.ignore import Parts, Walk
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.search_job import SearchEnd, SearchJob
from agentd.workspace.secrets import is_secret
from agentd.workspace.sieve import OutOfTime, Sieve, die_with_parent
from agentd.workspace.text import BinaryContent, decode, lines_of, visible

_MAX_MEMORY = 2 * 1024**3
_GRACE_SECONDS = 2
_WIDE = 500  # characters of a line that are shown whole; of a longer one, a window around the match
_BEFORE_MATCH = 200
_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")
_LINE_OVERHEAD = 10  # what stands between path and text
_LINES_PER_LOOK = 1024  # lines between two looks at the clock


class Search:
    """One search. `results` yields what main writes."""

    def __init__(self, job: SearchJob) -> None:
        self.job = job
        self.end = SearchEnd()
        self._deadline = time.monotonic() + job.seconds
        self._bytes = 0
        self._root = Path(job.root)
        self._glob = None if job.glob is None else compile_glob(job.glob)
        self._regex = re.compile(job.pattern or "", re.IGNORECASE if job.ignore_case else 0)
        plain = job.pattern is not None and not job.ignore_case and not _SPECIAL.search(job.pattern)
        self._literal = job.pattern if plain else None

    def results(self) -> Iterator[dict[str, Any]]:
        """One object for each file found; `end` is complete when it is exhausted."""
        root_fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            walk = Walk(root_fd)
            yield from self._names(walk) if self.job.pattern is None else self._contents(walk, root_fd)
            self.end.unreadable += walk.unreadable
        except OutOfTime:
            self.end.cut = "time"
        finally:
            os.close(root_fd)

    def _names(self, walk: Walk) -> Iterator[dict[str, Any]]:
        for parts in self._candidates(walk):
            self._look_at_clock()
            self.end.files += 1
            path = "/".join(parts)
            if not self._has_room(len(path)):
                return
            yield {"file": path}

    def _contents(self, walk: Walk, root_fd: int) -> Iterator[dict[str, Any]]:
        with Folders(root_fd) as folders, self._sieve(root_fd) as sieve:
            for parts, is_worth_it in sieve.sift(self._candidates(walk)):
                self._look_at_clock()
                result = self._searched(parts, folders, is_worth_it)
                if result is not None:
                    yield result
                if self.end.cut:
                    return

    def _sieve(self, root_fd: int) -> Sieve:
        job = self.job
        assert job.pattern is not None
        return Sieve(
            job.ripgrep, job.pattern, ignore_case=job.ignore_case, root_fd=root_fd, deadline=self._deadline,
            is_out=self._is_out,
        )  # fmt: skip

    def _is_out(self, parts: Parts) -> bool:
        """Whether it is not the file on the disk that counts, or it is not to be read."""
        if self.job.buffers and "/".join(parts) in self.job.buffers:
            return True
        return self._is_passed_over(parts)

    def _is_passed_over(self, parts: Parts) -> bool:
        return not self.job.with_secrets and is_secret(parts)

    def _candidates(self, walk: Walk) -> Iterator[Parts]:
        base = self.job.base
        if not (self._root.joinpath(*base)).is_dir():
            yield base  # named itself, so neither a glob nor .gitignore speaks against it
            return
        for parts in walk.files(base):
            self._look_at_clock()
            if self._is_named(parts):
                yield parts
        for relative in sorted(self.job.buffers):  # open documents that are not on the disk yet
            parts = tuple(relative.split("/"))
            below = parts[: len(base)] == base and not os.path.lexists(self._root / relative)
            if below and self._is_named(parts) and not walk.is_ignored(parts):
                yield parts

    def _is_named(self, parts: Parts) -> bool:
        if self._glob is None:
            return True
        below = "/".join(parts[len(self.job.base) :])
        return any(self._glob.fullmatch(path) for path in (below, "/".join(parts)))

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
            return decode(files.read_in(folders.open(parts[:-1]), Place(self._root, parts, path)).data).text
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
                self._look_at_clock(stop=not matched)
                if self.end.cut:
                    break
            match = self._regex.search(line)
            if match is None:
                continue
            window = _window(line, match)
            if not self._has_room(len(window.encode("utf-8", "replace")) + overhead):
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

    def _has_room(self, size: int) -> bool:
        if self.end.matches >= self.job.limit:
            self.end.cut = "limit"
        elif self._bytes + size > self.job.max_bytes:
            self.end.cut = "size"
        else:
            self.end.matches += 1
            self._bytes += size
        return self.end.cut is None

    def _look_at_clock(self, stop: bool = True) -> None:
        if time.monotonic() > self._deadline:
            self.end.cut = "time"
            if stop:
                raise OutOfTime


def _start(line: str) -> str:
    return visible(line if len(line) <= _WIDE else line[:_WIDE] + "... (truncated)")


def _window(line: str, match: re.Match[str]) -> str:
    if len(line) <= _WIDE:
        return visible(line)
    start = max(0, match.start() - _BEFORE_MATCH)
    end = min(len(line), start + _WIDE)
    return visible(("..." if start else "") + line[start:end] + "... (truncated)")


def main() -> None:
    """Do the job on stdin."""
    given = json.load(sys.stdin.buffer)
    job = SearchJob(**{**given, "base": tuple(given["base"])})
    die_with_parent(job.asked_by)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(job.seconds) + _GRACE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        search = Search(job)
        for result in search.results():
            _write(result)
        _write({"end": asdict(search.end)})
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        reason = (
            f"The pattern is not a valid regular expression: {error.msg}{where}. It is in Python's syntax; "
        )
        _write({"error": reason + "to find a special character itself, put a backslash before it."})
    except (OverflowError, RecursionError, MemoryError) as error:
        _write({"error": f"The search is too large ({type(error).__name__}). Use a simpler pattern."})
    except WorkspaceError as error:
        _write({"error": str(error)})
    except OSError as error:
        _write({"error": f"The search failed: {error.strerror}."})


def _write(result: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(result).encode("ascii") + b"\n")
    sys.stdout.buffer.flush()
