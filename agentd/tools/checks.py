"""What an edit did to what is wrong in its file, said behind the edit's result.

An editor is asked, or listened to. Where none tells, the user's checkers are run before an edit and behind
it, each for a few seconds at most. They look at the whole workspace, so what one found behind an edit is
known before the next; and one that takes too long is not run for edits again.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from agentd.config.checker_settings import Checker
from agentd.protocol.documents import Diagnostic
from agentd.protocol.text import visible
from agentd.tools.base import ToolContext
from agentd.tools.findings import told_difference
from agentd.workspace.diagnostics import Known
from agentd.workspace.files import Snapshot
from agentd.workspace.held import Held
from agentd.workspace.paths import Place, shown
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.secrets import is_secret
from agentd.workspace.seen import digest

_TICK_NS = 50_000_000
"""Within so much of each other a change and a look may bear the same time, on any system's clock."""

_Found = dict[Path, Sequence[Diagnostic]]


@dataclass(frozen=True)
class Before:
    """What was wrong in a file before an edit, as its editor knows it or by checker; None where nobody says.

    `failures` are checkers that did not say it, each with the reason.
    """

    known: Known | None = None
    by_checker: Mapping[str, Sequence[Diagnostic]] | None = None
    failures: Sequence[str] = ()


@dataclass(frozen=True)
class _Look:
    """What a checker found, when it began (nanoseconds of the system's clock), and behind which edit."""

    began: int
    found: _Found
    edited: tuple[Path, str] | None

    def knows(self, path: Path, now: Snapshot) -> bool:
        """Whether the file was what it is now when the checker saw it."""
        is_older = now.status.st_ctime_ns < self.began - _TICK_NS
        return is_older or self.edited == (path, digest(now.data))


class EditChecks:
    """Looks before an edit and behind it; for all sessions."""

    def __init__(self, processes: Processes | None = None, sandbox: Sandbox | None = None) -> None:
        """Checkers run under `processes`, in the sandbox where there is one; without the former none runs."""
        self._processes = processes
        self._sandbox = sandbox
        self._last: dict[tuple[Path, Checker], _Look] = {}
        self._given_up: set[tuple[Path, Checker]] = set()
        self._told: dict[tuple[Path, Checker], str] = {}

    async def before(self, context: ToolContext, place: Place, now: Held) -> Before:
        """Look before an edit of a file that holds this."""
        known = await context.editor.diagnostics([place.path])
        if known is not None or is_secret(place.names) or now.document is not None:
            return Before(known)  # what is in the editor only no checker sees
        checkers = [each for each in context.checkers if self._is_run(context, each)]
        if not checkers:
            return Before()
        by_checker: dict[str, Sequence[Diagnostic]] = {}
        missing = []
        for checker in checkers:
            last = self._last.get((context.root, checker))
            if now.snapshot is None:
                by_checker[checker.name] = ()
            elif last is not None and last.knows(place.path, now.snapshot):
                by_checker[checker.name] = last.found.get(place.path, ())
            else:
                missing.append(checker)
        found, failures = await self._run(context, missing, None)
        for checker in found:
            by_checker[checker.name] = found[checker].get(place.path, ())
        return Before(None, by_checker, failures)

    async def after(self, context: ToolContext, place: Place, before: Before, content: bytes) -> str:
        """What the edit did that left this content, to be said behind its result; nothing where nothing."""
        if is_secret(place.names):
            return ""
        if before.known is not None:
            after = await context.editor.fresh_diagnostics(place.path, before.known)
            old = before.known.by_file.get(place.path, ())
            return "" if after is None else told_difference("the editor", old, after)
        if before.by_checker is None:
            return ""
        checkers = [each for each in context.checkers if self._is_run(context, each)]
        found, failures = await self._run(context, checkers, (place.path, digest(content)))
        told = [
            told_difference(checker.name, before.by_checker[checker.name], found[checker].get(place.path, ()))
            for checker in found
            if checker.name in before.by_checker
        ]
        return "".join([*told, *(f"\n[{failure}]" for failure in (*before.failures, *failures))])

    def _is_run(self, context: ToolContext, checker: Checker) -> bool:
        is_wanted = checker.after_edit_s > 0 and self._processes is not None
        return is_wanted and (context.root, checker) not in self._given_up

    async def _run(
        self, context: ToolContext, checkers: Sequence[Checker], edited: tuple[Path, str] | None
    ) -> tuple[dict[Checker, _Found], list[str]]:
        """Run these side by side, and give what they found, and why some found nothing."""
        looks: dict[Checker, _Look] = {}
        failures: list[str] = []
        async with anyio.create_task_group() as tasks:
            for checker in checkers:
                tasks.start_soon(self._run_one, context, checker, looks, failures)
        for checker, look in looks.items():
            self._last[context.root, checker] = replace(look, edited=edited)
        return {each: looks[each].found for each in checkers if each in looks}, failures

    async def _run_one(
        self, context: ToolContext, checker: Checker, looks: dict[Checker, _Look], failures: list[str]
    ) -> None:
        from agentd.workspace.checkers import CheckerError, check  # only where nobody else tells

        assert self._processes is not None, "without them none is to be run"
        began, spill, here = time.time_ns(), context.shell.spills.new(), (context.root, checker)
        try:
            with anyio.move_on_after(checker.after_edit_s):
                one = await check(
                    checker, context.root, context.environment, self._processes, self._sandbox, spill
                )
                looks[checker] = _Look(began, dict(one), None)
                return
            self._given_up.add(here)
            failures.append(
                f"{shown(checker.name)} takes more than {checker.after_edit_s:g} s, so it is not run behind "
                "edits any more; the tool diagnostics runs it"
            )
        except CheckerError as error:
            why = visible(" ".join(str(error).split()))
            if self._told.get(here) != why:  # once, and not behind each edit
                self._told[here] = why
                failures.append(why)
