"""The tool that runs shell commands."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from agentd.permissions.patterns import rebuilt
from agentd.protocol.messages import CommandDetails, CommandSubject, ToolKind
from agentd.protocol.text import visible
from agentd.tools.base import Action, Description, ToolContext, ToolError, ToolResult
from agentd.workspace.command import CommandError, CommandResult
from agentd.workspace.process import Processes

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
_TITLE_LENGTH = 80
_NAMED_FILES = 10


class Bash:
    """Runs a command line in the workspace folder, in a shell of its own each time.

    Standard input is empty and there is no terminal. What the command leaves running is stopped when it ends.
    A command that fails or runs out of time is an error result with its output.
    """

    name = "bash"
    description = (
        "Run a shell command in the workspace folder and return its output (stdout and stderr together). "
        "Each call starts a new shell there: `cd` and variables do not last. There is no terminal and no "
        "input: pass flags such as --yes or -m instead of answering questions. Background processes are "
        "stopped when the command ends. Long output keeps its beginning and end (50 KB)."
    )
    kind: ToolKind = "execute"

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line, for `bash -c`."},
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_TIMEOUT_MS,
                    "default": DEFAULT_TIMEOUT_MS,
                    "description": "When to stop it, in milliseconds.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """The command's first line, shortened, with control characters made visible."""
        command = arguments.get("command")
        lines = command.strip().splitlines() if isinstance(command, str) else []
        if not lines:
            return Description(title=self.name)
        line = visible(lines[0][: _TITLE_LENGTH + 1], kept="")
        if len(lines) > 1 or len(line) > _TITLE_LENGTH:
            line = line[: _TITLE_LENGTH - 2].rstrip() + " …"
        return Description(title=line)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """The command as it will run. Raises `ToolError` for one that cannot."""
        command: str = arguments["command"]
        timeout_ms: int = arguments.get("timeout_ms", DEFAULT_TIMEOUT_MS)
        if not command.strip():
            raise ToolError("The command is blank. Pass the command line to run.")
        if "\0" in command:
            raise ToolError("The command holds a NUL character, which no shell can take. Leave it out.")
        if not await anyio.Path(context.root).is_dir():
            raise ToolError(f"The workspace folder {context.root} does not exist any more.")

        async def run() -> ToolResult:
            return await self._run(command, timeout_ms, context)

        subject = CommandSubject(command=command, cwd=str(context.root))

        async def run_rebuilt() -> ToolResult:
            text = rebuilt(subject, context.root)
            if text is None:
                raise ToolError("The command is not what the rule has judged any more. Run it once more.")
            return await self._run(text, timeout_ms, context)

        return Action(run=run, subject=subject, rebuilt=run_rebuilt)

    async def _run(self, command: str, timeout_ms: int, context: ToolContext) -> ToolResult:
        async def show(text: str, left_out: int) -> None:
            await context.output("stdout", text, left_out)

        unsaved = await context.editor.dirty_paths()
        shell = shutil.which("bash", path=context.environment.get("PATH")) or "sh"
        try:
            result = await self._processes.run(
                [shell, "-c", command],
                cwd=context.root,
                env=context.environment,
                timeout=timeout_ms / 1000,
                output=show,
            )
        except CommandError as error:
            raise ToolError(str(error)) from error
        notes = _notes(result, timeout_ms) + _unsaved_note(unsaved, context.root)
        text = "\n".join([result.text.rstrip("\n") or "(no output)", *notes])
        if result.timed_out or result.exit_code != 0:
            return ToolResult.error(text, _details(result))
        return ToolResult.text(text, _details(result))


def _details(result: CommandResult) -> CommandDetails:
    return CommandDetails(
        exit_code=result.exit_code,
        signal=result.signal,
        duration_ms=round(result.duration * 1000),
        truncated=result.truncated,
        total_bytes=result.total_bytes,
    )


def _notes(result: CommandResult, timeout_ms: int) -> list[str]:
    """What the model must know besides the output, one line each."""
    notes = []
    if result.timed_out:
        notes.append(f"[timed out after {timeout_ms / 1000:g} s and was stopped]")
    elif result.signal:
        notes.append(f"[killed by {result.signal}]")
    elif result.exit_code:
        notes.append(f"[exit code {result.exit_code}]")
    if result.leftovers:
        notes.append("[background processes that it left were stopped]")
    if result.survivors:
        notes.append(f"[{result.survivors} of its processes could not be stopped and may still run]")
    return notes


def _unsaved_note(unsaved: Sequence[Path], root: Path) -> list[str]:
    """A line that names the files whose text in the editor the command did not see."""
    if not unsaved:
        return []
    names = sorted(
        os.path.relpath(path, root) if path.is_relative_to(root) else str(path) for path in unsaved
    )
    more = f" and {len(names) - _NAMED_FILES} more" if len(names) > _NAMED_FILES else ""
    return [
        "[unsaved in the editor, so the command saw the older text on disk: "
        f"{', '.join(names[:_NAMED_FILES])}{more}]"
    ]
