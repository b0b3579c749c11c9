"""The process that searches: files by name, or lines by regular expression (Python's, always).

A regular expression can take for ever, and nothing inside a Python process can stop it. So the search runs in
a process of its own, which is killed when the time is up or the answer no longer wanted, and which ends
itself soon after (SIGALRM, which also ends a running match) should nobody be left to kill it.

It reads one `SearchJob` as JSON from stdin and writes one JSON object a line: `{"file": path}` or `{"file":
path, "lines": [[number, text, is_match], ...]}` for each file found, and last `{"end": {...}}` with the
fields of `SearchEnd`, or `{"error": text}`.
"""

import json
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from agentd.workspace.paths import WorkspaceError
from agentd.workspace.ripgrep_process import die_with_parent
from agentd.workspace.search_job import SearchJob
from agentd.workspace.search_names import NameSearch

_MAX_MEMORY = 2 * 1024**3
_GRACE_SECONDS = 2
_TOGETHER_SECONDS = 0.05  # names found within this time are written at once


def search_for(job: SearchJob) -> NameSearch:
    """The search that does the job. Raises re.error for a bad pattern."""
    if job.pattern is None:
        return NameSearch(job)
    from agentd.workspace.search_contents import (
        ContentSearch,
    )  # costs as much time as finding a thousand names

    return ContentSearch(job)


def main() -> None:
    """Do the job on stdin."""
    given = json.load(sys.stdin.buffer)
    job = SearchJob(**{**given, "base": tuple(given["base"])})
    die_with_parent(job.asked_by)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(job.seconds) + _GRACE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        search = search_for(job)
        _write_all(search.results())
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


def _write_all(results: Iterator[dict[str, Any]]) -> None:
    """Each as it comes: what has been written counts when the time is up."""
    written = 0.0
    for result in results:
        _write(result, flush=False)
        if "lines" in result or time.monotonic() - written > _TOGETHER_SECONDS:
            sys.stdout.buffer.flush()
            written = time.monotonic()


def _write(result: dict[str, Any], *, flush: bool = True) -> None:
    sys.stdout.buffer.write(json.dumps(result).encode("ascii") + b"\n")
    if flush:
        sys.stdout.buffer.flush()
