"""Running a search in its own process (see `search_worker`), so that it can be stopped at any moment.

What is found is the same with ripgrep and without: a `.gitignore` is read as git reads it, globs are those of
`globs`, patterns are Python's. ripgrep only makes it fast to tell in which files a match may be (`sieve`).
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import Process

from agentd.workspace.paths import WorkspaceError
from agentd.workspace.ripgrep import find_ripgrep
from agentd.workspace.search_job import SearchEnd, SearchJob

_PATIENCE_SECONDS = 1  # for the worker to stop by itself when its time is up
_KILL_SECONDS = 2
_MAX_OUTPUT = 8 * 1024 * 1024

_START = "import sys; sys.path[:] = sys.argv[1:]; from agentd.workspace.search_worker import main; main()"


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
    if job.pattern is not None:
        job = replace(job, ripgrep=await _ripgrep(job.root))
    with anyio.move_on_after(job.seconds + _PATIENCE_SECONDS) as patience:
        await _work(job, data)
    outcome = SearchOutcome(stuck=patience.cancelled_caught)
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


async def _work(job: SearchJob, data: bytearray) -> None:
    """Give the worker the job and append what it writes to `data`."""
    process = await anyio.open_process(
        [sys.executable, "-I", "-S", "-W", "ignore", "-c", _START, *_import_path()],
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", env=_environment(), start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await process.stdin.send(json.dumps(asdict(job)).encode("ascii"))
            await process.stdin.aclose()
        except anyio.BrokenResourceError:
            return  # it died at the start; the missing end says so
        async for chunk in process.stdout:
            data += chunk
            if len(data) > _MAX_OUTPUT:
                return
        # Its output has ended, so it will. asyncio must learn of it before anything else asks.
        await process.wait()
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(_KILL_SECONDS):
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it ended by itself just now
                os.killpg(process.pid, signal.SIGKILL)  # ripgrep below it as well
            await process.wait()
        await process.aclose()


def _import_path() -> list[str]:
    """Where the daemon imports from; never the working directory, which may be an untrusted workspace."""
    package = str(Path(__file__).resolve().parents[2])
    return [package, *(entry for entry in sys.path if os.path.isabs(entry))]


def _environment() -> dict[str, str]:
    """Nothing but what some Python builds need to find their library."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
