"""Running the user's checkers, in the sandbox where there is one, and reading what they print."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from agentd.config.checker_settings import Checker
from agentd.protocol.documents import Diagnostic
from agentd.protocol.messages import Position, Range
from agentd.workspace.command import CommandError, CommandResult
from agentd.workspace.enclosure import SandboxError, enclosed
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.spills import Spill

_MOST_BYTES = 8 * 1024 * 1024
_LAST_LINES = 5
_LAST_CHARACTERS = 600
_MOST_TRIED = 50
_BRACKET = re.compile(r"\[(?=\s*[{\]])")
"""Where a JSON array of objects may begin."""
_SEVERITIES = {"error": 1, "fatal error": 1, "warning": 2, "info": 3, "information": 3, "note": 3, "hint": 4}
_GNU = re.compile(
    r"(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? ?"
    r"(?:(?P<severity>fatal error|error|warning|note|info|hint):)? ?(?P<message>.+)"
)
_TSC = re.compile(
    r"(?P<file>[^\n(]+)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>error|warning) (?P<code>TS\d+): "
    r"(?P<message>.+)"
)

Found = dict[Path, list[Diagnostic]]


class CheckerError(Exception):
    """Why a checker told nothing, in words for the model."""


@dataclass(frozen=True)
class Finding:
    """A diagnostic and the file it is of, as the checker names it. `line` and `column` are from 1."""

    file: str
    line: int
    column: int
    message: str
    severity: int | None = None
    code: str | None = None


async def check(
    checker: Checker,
    root: Path,
    environment: Mapping[str, str],
    processes: Processes,
    sandbox: Sandbox | None,
    spill: Spill | None = None,
) -> Found:
    """What a checker finds in a workspace folder, by file. `spill` keeps output that is long.

    Raises `CheckerError` where it does not run, does not end in time or prints something else.
    """
    try:
        has_sandbox = sandbox is not None and (await sandbox.status()).works
        enclosure = await sandbox.enclose(root) if sandbox is not None and has_sandbox else None
        jailed = enclosed(enclosure, checker.command, root, environment)
        result = await processes.run(
            jailed.argv, cwd=root, env=jailed.env, timeout=checker.timeout_s, spill=spill, jail=jailed.jail
        )
    except (CommandError, SandboxError) as error:
        raise CheckerError(f"{checker.name} did not run: {error}") from error
    if result.timed_out:
        raise CheckerError(f"{checker.name} was stopped after {checker.timeout_s} s.")
    if (ended_by := _signal(result)) is not None:  # what it had printed by then is perhaps not all
        raise CheckerError(f"{checker.name} was ended by {ended_by}.")
    return await anyio.to_thread.run_sync(_read, checker, root, result, spill, abandon_on_cancel=True)


def _signal(result: CommandResult) -> str | None:
    """The name of the signal that ended it, also where a shell or a sandbox says so by its exit code."""
    if result.signal is not None or result.exit_code is None:
        return result.signal
    try:
        return signal.Signals(result.exit_code - 128).name
    except ValueError:
        return None


def _whole(checker: Checker, spill: Spill | None) -> str:
    if spill is None or spill.path is None or spill.size > _MOST_BYTES:
        raise CheckerError(f"{checker.name} printed more than can be read.")
    return spill.path.read_bytes().decode("utf-8", "replace")


def _read(checker: Checker, root: Path, result: CommandResult, spill: Spill | None) -> Found:
    """What it printed, understood. Blocks: it may be megabytes, and each path is looked up."""
    text = _whole(checker, spill) if result.truncated else result.text
    found: Found = {}
    try:
        for finding in _READERS[checker.format](text):
            path = Path(os.path.realpath(root / finding.file))
            found.setdefault(path, []).append(_diagnostic(finding, checker.name))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckerError(_odd(checker, text, result)) from error
    if not found and result.exit_code != 0:
        raise CheckerError(_odd(checker, text, result))
    return found


def _odd(checker: Checker, text: str, result: CommandResult) -> str:
    last = "\n".join(text.strip().splitlines()[-_LAST_LINES:])[-_LAST_CHARACTERS:]
    if not last:
        return f"{checker.name} ended with exit code {result.exit_code} and printed nothing."
    return (
        f"{checker.name} ended with exit code {result.exit_code}, and what it printed is not what was "
        f"expected:\n{last}"
    )


def _diagnostic(finding: Finding, source: str) -> Diagnostic:
    start = Position(line=max(finding.line - 1, 0), character=max(finding.column - 1, 0))
    return Diagnostic(
        range=Range(start=start, end=start),
        message=finding.message,
        severity=finding.severity,
        code=finding.code,
        source=source,
    )


# --- what they print ------------------------------------------------------------------------------


def _json(text: str) -> list[dict[str, Any]]:
    """The first JSON array of objects in a text: some programs print a word or two around it.

    In those words there may be brackets as well (``warning: `[tool.ruff]` is …``, `select = []`), so an empty
    array counts where no other one is there. Raises ValueError.
    """
    is_empty = False
    for match in islice(_BRACKET.finditer(text), _MOST_TRIED):
        with suppress(ValueError):
            found = json.JSONDecoder().raw_decode(text, match.start())[0]
            if found and all(isinstance(each, dict) for each in found):
                return cast("list[dict[str, Any]]", found)
            is_empty = is_empty or not found
    if is_empty:
        return []
    raise ValueError(text[:_LAST_CHARACTERS])


def _ruff(text: str) -> Iterator[Finding]:
    for each in _json(text):
        at = each["location"] or {"row": 1, "column": 1}
        severity = _SEVERITIES.get(each.get("severity") or "error", 1)
        yield Finding(each["filename"], at["row"], at["column"], each["message"], severity, each["code"])


def _eslint(text: str) -> Iterator[Finding]:
    for file in _json(text):
        for each in file["messages"]:
            at = each.get("line") or 1, each.get("column") or 1
            severity = 1 if each["severity"] == 2 else 2
            yield Finding(file["filePath"], *at, each["message"], severity, each.get("ruleId"))


def _lines(form: re.Pattern[str]) -> Callable[[str], Iterator[Finding]]:
    def read(text: str) -> Iterator[Finding]:
        for line in text.splitlines():
            if (match := form.fullmatch(line.rstrip())) is not None:
                said = match.groupdict()
                severity = _SEVERITIES.get(said.get("severity") or "error")
                at = int(said["line"]), int(said.get("column") or 1)
                yield Finding(said["file"], *at, said["message"], severity, said.get("code"))

    return read


_READERS: dict[str, Callable[[str], Iterator[Finding]]] = {
    "ruff": _ruff,
    "eslint": _eslint,
    "tsc": _lines(_TSC),
    "gnu": _lines(_GNU),
}
