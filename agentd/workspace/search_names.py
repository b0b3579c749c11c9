"""Finding files by name: what every search begins with."""

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from agentd.workspace.globs import Glob
from agentd.workspace.ignore import Walk
from agentd.workspace.ignore_rules import Parts
from agentd.workspace.ripgrep_listing import Listing
from agentd.workspace.search_job import SearchEnd, SearchJob


class OutOfTime(Exception):
    """The search has had its time."""


class NameSearch:
    """One search. `results` yields what the worker writes."""

    def __init__(self, job: SearchJob) -> None:
        self.job = job
        self.end = SearchEnd()
        self.deadline = time.monotonic() + job.seconds
        self.root = Path(job.root)
        self._bytes = 0
        self._glob = Glob("**" if job.glob is None else job.glob, job.base)

    def results(self) -> Iterator[dict[str, Any]]:
        """One object for each file found; `end` is complete when it is exhausted."""
        root_fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            walk = Walk(root_fd)
            yield from self._found(walk)
            self.end.unreadable += walk.unreadable
        except OutOfTime:
            self.end.cut = "time"
        finally:
            os.close(root_fd)

    def _found(self, walk: Walk) -> Iterator[dict[str, Any]]:
        for parts in self.candidates(walk):
            self.end.files += 1
            path = "/".join(parts)
            if not self.has_room(len(path)):
                return
            yield {"file": path}

    def candidates(self, walk: Walk) -> Iterator[Parts]:
        """The files that are searched, in order. Raises OutOfTime."""
        base = self.job.base
        if not (self.root.joinpath(*base)).is_dir():
            yield base  # named itself, so neither a glob nor .gitignore speaks against it
            return
        with self._listing(walk) as listing:
            if listing is not None:
                listing.complete()
            for parts in walk.files(base, self._glob, self.look_at_clock, listing):
                self.look_at_clock()
                yield parts
        for relative in sorted(self.job.buffers):  # open documents that are not on the disk yet
            parts = tuple(relative.split("/"))
            below = parts[: len(base)] == base and not os.path.lexists(self.root / relative)
            if below and self._glob.matches(parts) and walk.would_find(base, parts):
                yield parts

    def _listing(self, walk: Walk) -> AbstractContextManager[Listing | None]:
        job = self.job
        if job.ripgrep is None or job.pattern is not None:  # then there is other work for it
            return nullcontext()
        return Listing(job.ripgrep, walk, job.base, loose_name=self._glob.loose_name, deadline=self.deadline)

    def has_room(self, size: int) -> bool:
        """Whether a match of so many bytes still has room; it is counted, or the search cut."""
        if self.end.matches >= self.job.limit:
            self.end.cut = "limit"
        elif self._bytes + size > self.job.max_bytes:
            self.end.cut = "size"
        else:
            self.end.matches += 1
            self._bytes += size
        return self.end.cut is None

    def add_size(self, size: int) -> None:
        """Count what is told beside matches, and never left out by itself."""
        self._bytes += size

    def look_at_clock(self, stop: bool = True) -> None:
        """Cut the search when its time is up. Raises OutOfTime then, if it is to stop."""
        if time.monotonic() > self.deadline:
            self.end.cut = "time"
            if stop:
                raise OutOfTime
