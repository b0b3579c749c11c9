"""Running a search in its own process (see `search_worker`), so that it can be stopped at any moment.

What is found is the same with ripgrep and without: a `.gitignore` is read as git reads it, globs are those
of `globs`, patterns are Python's. ripgrep lists the files that the rules let through (`ripgrep_listing`), and
tells in which of them a match may be (`sieve`); links and folders the worker's own walk sees.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio.to_thread

from agentd.workspace.paths import WorkspaceError
from agentd.workspace.ripgrep import find_ripgrep
from agentd.workspace.search_job import SearchEnd, SearchJob
from agentd.workspace.worker_process import run_worker

_PATIENCE_SECONDS = 1  # for the worker to stop by itself when its time is up
_MAX_OUTPUT = 8 * 1024 * 1024


@dataclass
class SearchOutcome:
    """What was found, in order; `stuck` when the worker had to be killed in the midst of a match."""

    found: list[dict[str, Any]] = field(default_factory=list)
    end: SearchEnd = field(default_factory=SearchEnd)
    stuck: bool = False


async def run_search(job: SearchJob) -> SearchOutcome:
    """Do the job; what was found until the time is up counts. Raises WorkspaceError for a bad pattern.

    Cancelling kills the worker at once, and what it started.
    """
    data = bytearray()
    job = replace(job, ripgrep=await _ripgrep(job.root))
    in_time = await run_worker(
        "agentd.workspace.search_worker",
        json.dumps(asdict(job)).encode("ascii"),
        data,
        seconds=job.seconds + _PATIENCE_SECONDS,
        limit=_MAX_OUTPUT,
    )
    outcome = SearchOutcome(stuck=not in_time)
    ended = outcome.stuck
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        result = json.loads(line)
        if "error" in result:
            raise WorkspaceError("search", result["error"])
        if "end" in result:
            outcome.end, ended = SearchEnd(**result["end"]), True
        else:
            outcome.found.append(result)
    if not ended:
        raise WorkspaceError(
            "search", "The search process ended before it was done. Try again with a narrower path."
        )
    if outcome.stuck:
        outcome.end.cut = "time"
        outcome.end.matches = sum(_matches(result) for result in outcome.found)
    return outcome


async def _ripgrep(root: str) -> str | None:
    found = await anyio.to_thread.run_sync(
        find_ripgrep, Path(root), os.environ.get("PATH", ""), abandon_on_cancel=True
    )
    return None if found is None else found.path


def _matches(result: Mapping[str, Any]) -> int:
    return sum(is_match for _, _, is_match in result["lines"]) if "lines" in result else 1
