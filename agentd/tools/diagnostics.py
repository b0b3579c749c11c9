"""`diagnostics`: what is wrong, as the editor knows it, or without one as the user's checkers find it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentd.protocol.documents import Diagnostic
from agentd.protocol.messages import ToolKind
from agentd.tools.base import Action, Description, ToolContext, ToolResult
from agentd.tools.findings import listed
from agentd.tools.targets import MAX_RESULT_BYTES, argument, place_of, refusal
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

_RESERVE = 2_000
_UNKNOWN = (
    "Nothing is known of diagnostics: the editor tells none, and the user has configured no checker for this "
    "workspace. Run the project's own checks with bash instead."
)


class Diagnostics:
    """Lists errors and warnings of files. It reads, and runs nothing but what the user has configured."""

    name = "diagnostics"
    description = (
        "List the errors and warnings that the user's editor (language servers, linters) knows, or without "
        "one, those that the checkers find which the user has configured. Look here after changes, before "
        "you say that something works."
    )
    kind: ToolKind = "read"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "paths": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only those of these files, or of files in these folders. Default: all.",
            },
        },
        "additionalProperties": False,
    }

    def __init__(self, processes: Processes, sandbox: Sandbox | None = None) -> None:
        """Checkers run under `processes`, in the sandbox where there is one."""
        self._processes = processes
        self._sandbox = sandbox

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Look at diagnostics`."""
        return Description("Look at diagnostics")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the places; they need not exist."""
        try:
            places = [await place_of(context, each) for each in argument(arguments, "paths", [])]
        except WorkspaceError as error:
            return refusal(error)

        async def run() -> ToolResult:
            return await self._run(context, places)

        return Action(run)

    async def _run(self, context: ToolContext, places: Sequence[Place]) -> ToolResult:
        known = await context.editor.diagnostics()
        found: dict[Path, Sequence[Diagnostic]] = {}
        failures: list[str] = []
        if known is not None:
            found, by = dict(known.by_file), "The editor"
        elif context.checkers:
            found, failures = await self._check(context)
            by = ", ".join(each.name for each in context.checkers)
        else:
            return ToolResult.error(_UNKNOWN)
        wanted = [place.path for place in places]
        if wanted:
            found = {path: each for path, each in found.items() if _is_below(path, wanted)}
        lines, count = listed(found, context.root, MAX_RESULT_BYTES - _RESERVE)
        head = f"{by}: {count} diagnostic{'' if count == 1 else 's'}."
        more = [f"({count - len(lines)} more; name paths to see them)"] if count > len(lines) else []
        text = "\n".join([head, *lines, *more, *failures])
        return ToolResult.error(text) if failures and not found else ToolResult.text(text)

    async def _check(self, context: ToolContext) -> tuple[dict[Path, Sequence[Diagnostic]], list[str]]:
        from agentd.workspace.checkers import CheckerError, check  # only where nobody else tells

        found: dict[Path, list[Diagnostic]] = {}
        failures = []
        for checker in context.checkers:
            spill = context.shell.spills.new()
            try:
                one = await check(
                    checker, context.root, context.environment, self._processes, self._sandbox, spill
                )
            except CheckerError as error:
                failures.append(str(error))
                continue
            for path, diagnostics in one.items():
                found.setdefault(path, []).extend(diagnostics)
        return dict(found), failures


def _is_below(path: Path, places: Sequence[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)
