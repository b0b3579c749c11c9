"""What a search is asked for and how it went, as it goes between the daemon and the worker."""

import os
from dataclasses import dataclass, field
from typing import Literal

Cut = Literal["limit", "size", "time"]


@dataclass(frozen=True)
class SearchJob:
    """What to look for. `buffers` holds the text of open documents that stand for what is on disk.

    `ripgrep` is the program that helps, None for none: what is found is the same. `asked_by` is the process
    to die with.
    """

    root: str
    base: tuple[str, ...]
    glob: str | None
    limit: int
    seconds: float
    pattern: str | None = None
    ignore_case: bool = False
    context: int = 0
    with_secrets: bool = False
    max_bytes: int = 40_000
    buffers: dict[str, str] = field(default_factory=dict)
    ripgrep: str | None = None
    asked_by: int = field(default_factory=os.getpid)


@dataclass
class SearchEnd:
    """How it went: why it stopped early, if so, and what was passed over."""

    matches: int = 0
    files: int = 0
    cut: Cut | None = None
    secret: int = 0
    binary: int = 0
    too_large: int = 0
    unreadable: int = 0
