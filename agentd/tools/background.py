"""The tools for commands that run in the background: `bash_output` reads one, `bash_kill` stops one.

Neither needs a permission: they touch nothing but what the session was permitted to start.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from agentd.protocol.messages import CommandDetails, ToolKind
from agentd.protocol.text import visible
from agentd.tools.base import Action, Description, ToolContext, ToolError, ToolResult
from agentd.tools.command_results import command_details, ending, kept_output
from agentd.tools.sandbox_notes import sandbox_notes
from agentd.workspace.background import BackgroundCommand
from agentd.workspace.command import CommandError

MAX_WAIT_MS = 60_000

_FIRST_LOOK_SECONDS = 0.3
"""Until a command counts as running: one that fails at once says so in the call that started it."""
_MAX_SHOWN_ID = 40

_ID = {"type": "string", "description": "The id that bash gave, such as `bg_1`."}


class BashOutput:
    """Shows what a background command has printed since the last look, and once how it ended."""

    name = "bash_output"
    description = (
        "Show the output of a background command since the last look, and whether it still runs. Once it has "
        "ended its exit code is told, one time; then its id is forgotten."
    )
    kind: ToolKind = "read"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {
            "id": _ID,
            "wait_ms": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_WAIT_MS,
                "default": 0,
                "description": "How long to wait for new output or its end, in milliseconds.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Output of bg_1`."""
        return Description(title=f"Output of {_shown_id(arguments)}")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the command. Raises `ToolError` where there is none of that id."""
        command = _find(arguments, context)
        seconds = (arguments.get("wait_ms") or 0) / 1000

        async def run() -> ToolResult:
            with anyio.move_on_after(seconds):
                await command.wait()
            return await _look(command, context, f"{command.id} is running")

        return Action(run)


class BashKill:
    """Stops a background command and all it started."""

    name = "bash_kill"
    description = "Stop a background command and everything that it started, and show its last output."
    kind: ToolKind = "execute"
    parameters: dict[str, Any] = {  # noqa: RUF012 - a schema, never changed
        "type": "object",
        "properties": {"id": _ID},
        "required": ["id"],
        "additionalProperties": False,
    }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """`Stop bg_1`."""
        return Description(title=f"Stop {_shown_id(arguments)}")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """Finds the command. Raises `ToolError` where there is none of that id."""
        command = _find(arguments, context)

        async def run() -> ToolResult:
            await command.stop()
            return await _look(command, context, f"{command.id} could not be stopped")

        return Action(run)


async def started(command: BackgroundCommand, context: ToolContext, notes: Sequence[str]) -> ToolResult:
    """The result of a call that started a command in the background."""
    with anyio.move_on_after(_FIRST_LOOK_SECONDS):
        await command.ended.wait()
    running = f"{command.id} runs in the background: bash_output shows its output, bash_kill stops it"
    return await _look(command, context, running, notes, is_start=True)


async def _look(
    command: BackgroundCommand,
    context: ToolContext,
    running: str,
    notes: Sequence[str] = (),
    *,
    is_start: bool = False,
) -> ToolResult:
    """The news of a command; when it has ended, that is told for the first and last time."""
    has_ended = command.ended.is_set()
    await context.checkpoint.look_beside(context.root)
    news = command.take()
    state = _end_of(command) if has_ended else running
    if command.enclosure is not None and command.result is not None:
        notes = [*notes, *await sandbox_notes(command.enclosure, command.result)]
    text = "\n".join(
        [
            news.text.rstrip("\n") or "(no new output)",
            *kept_output(news.truncated, command.spill),
            *notes,
            f"[{state}]",
        ]
    )
    if not has_ended:
        return ToolResult.text(text)
    context.shell.background.forget(command)
    details = _details(command)
    failed = command.failure is not None or (is_start and details is not None and details.exit_code != 0)
    return ToolResult.error(text, details) if failed else ToolResult.text(text, details)


def _end_of(command: BackgroundCommand) -> str:
    result = command.result
    if result is None:
        reason = command.failure or "the daemon is ending"
        return f"{command.id} has ended: {reason}"
    if command.is_stopped:
        return f"{command.id} was stopped"
    if result.timed_out:
        return f"{command.id} ran out of time and was stopped"
    left = "; processes that it left were stopped" if result.leftovers else ""
    return f"{command.id} has ended: {ending(result)}{left}"


def _details(command: BackgroundCommand) -> CommandDetails | None:
    return command_details(command.result, command.spill) if command.result is not None else None


def _find(arguments: Mapping[str, Any], context: ToolContext) -> BackgroundCommand:
    try:
        return context.shell.background.get(arguments["id"])
    except CommandError as error:
        raise ToolError(str(error)) from error


def _shown_id(arguments: Mapping[str, Any]) -> str:
    given = arguments.get("id")
    return visible(given[:_MAX_SHOWN_ID], kept="") if isinstance(given, str) and given else "a command"
