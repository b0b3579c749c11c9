"""The tool that runs shell commands."""

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentd.permissions.patterns import rebuilt
from agentd.protocol.messages import CommandSubject, ToolKind
from agentd.protocol.text import visible
from agentd.tools.background import started
from agentd.tools.base import Action, Description, ToolContext, ToolError, ToolResult
from agentd.tools.command_results import command_details, ending, kept_output
from agentd.tools.sandbox_notes import sandbox_notes
from agentd.tools.unsaved import NOT_WANTED, save_first
from agentd.workspace.background import MOST_RUNNING
from agentd.workspace.command import CommandError, CommandResult
from agentd.workspace.enclosure import SandboxError, enclosed
from agentd.workspace.paths import shown
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.shell import shell_call

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
_TITLE_LENGTH = 80


class Bash:
    """Runs a command line, in a shell of its own each time that starts where the last one ended.

    Standard input is empty and there is no terminal. What the command leaves running is stopped when it ends;
    one that is run in the background goes on beside the session's prompts. A command that fails or runs out
    of time is an error result with its output.
    """

    name = "bash"
    description = (
        "Run a shell command and return its output (stdout and stderr together). The first one runs in the "
        "workspace folder. `cd` lasts for later calls as long as it stays inside the workspace; variables do "
        "not last, and paths of the other tools are always relative to the workspace folder. There is no "
        "terminal and no input: pass flags such as --yes or -m instead of answering questions. Processes "
        "that a command leaves behind (`&`) are stopped when it ends: for a server or a watcher set "
        "run_in_background, then read it with bash_output and stop it with bash_kill. Long output keeps its "
        "beginning and end (50 KB), and all of it in a file that read_file and search_files can read. It may "
        "run in a sandbox without network, in which only the workspace and $TMPDIR can be written to."
    )
    kind: ToolKind = "execute"

    def __init__(self, processes: Processes, sandbox: Sandbox | None = None) -> None:
        """Without a sandbox there is none, and mode `auto` asks."""
        self._processes = processes
        self._sandbox = sandbox
        self.parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line, for `bash -c`."},
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_TIMEOUT_MS,
                    "description": (
                        f"When to stop it, in milliseconds. Default {DEFAULT_TIMEOUT_MS}; in the background "
                        "there is no limit unless you set one."
                    ),
                },
                "run_in_background": {
                    "type": "boolean",
                    "default": False,
                    "description": (
                        "Start it and return at once with its id. It goes on until it ends, bash_kill stops "
                        "it or the session is closed, also when this prompt ends or is cancelled. At most "
                        f"{MOST_RUNNING} at once."
                    ),
                },
                "unsandboxed": {
                    "type": "string",
                    "description": "Only for a command that the sandbox kept from its work: why it has to "
                    "run outside, which the user is asked about.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        """The command's first line, shortened, with control characters made visible, and where it runs."""
        command = arguments.get("command")
        lines = command.strip().splitlines() if isinstance(command, str) else []
        if not lines:
            return Description(title=self.name)
        line = visible(lines[0][: _TITLE_LENGTH + 1], kept="")
        if len(lines) > 1 or len(line) > _TITLE_LENGTH:
            line = line[: _TITLE_LENGTH - 2].rstrip() + " …"
        place = f" (in {where})" if (where := context.shell.directory.name) else ""
        manner = " (in the background)" if arguments.get("run_in_background") is True else ""
        outside = arguments.get("unsandboxed")
        is_outside = isinstance(outside, str) and outside.strip()
        return Description(title=("Outside the sandbox: " if is_outside else "") + line + place + manner)

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        """The command as it will run, and where. Raises `ToolError` for one that cannot."""
        command: str = arguments["command"]
        timeout_ms: int | None = arguments.get("timeout_ms")
        if not command.strip():
            raise ToolError("The command is blank. Pass the command line to run.")
        if "\0" in command:
            raise ToolError("The command holds a NUL character, which no shell can take. Leave it out.")
        if not await anyio.Path(context.root).is_dir():
            raise ToolError(f"The workspace folder {context.root} does not exist any more.")
        cwd, note = await anyio.to_thread.run_sync(context.shell.directory.look, context.root)
        told = [] if note is None else [note]
        reason = (arguments.get("unsandboxed") or "").strip() or None
        subject = CommandSubject(command=command, cwd=_told(cwd), reason=reason)

        async def run(text: str = command, sandbox: Sandbox | None = None) -> ToolResult:
            if await anyio.to_thread.run_sync(os.path.realpath, cwd) != str(cwd):
                raise ToolError(
                    f"{_told(cwd)} leads elsewhere than when the command was judged. Look at it first."
                )
            unsaved = await save_first(context)
            if unsaved is None:
                return ToolResult.error(NOT_WANTED)
            before = [*told, *unsaved]
            if arguments.get("run_in_background"):
                return await self._start(text, timeout_ms, context, cwd, before, sandbox)
            return await self._run(text, timeout_ms or DEFAULT_TIMEOUT_MS, context, cwd, before, sandbox)

        async def run_rebuilt() -> ToolResult:
            text = rebuilt(subject, context.root)
            if text is None:
                raise ToolError("The command is not what the rule has judged any more. Run it once more.")
            return await run(text)

        is_sandboxable = reason is None and self._has_sandbox
        return Action(
            run=run,
            subject=subject,
            sandboxed=partial(run, sandbox=self._sandbox) if is_sandboxable else None,
            rebuilt=run_rebuilt if reason is None else None,
        )

    @property
    def _has_sandbox(self) -> bool:
        """Whether there is one that works, as far as is known: whoever chooses mode `auto` has found out."""
        known = self._sandbox.known if self._sandbox is not None else None
        return known is not None and known.works

    async def _run(
        self,
        command: str,
        timeout_ms: int,
        context: ToolContext,
        cwd: Path,
        before: Sequence[str],
        sandbox: Sandbox | None = None,
    ) -> ToolResult:
        async def show(text: str, left_out: int) -> None:
            await context.output("stdout", text, left_out)

        call = shell_call(command, context.environment)
        spill = context.shell.spills.new()
        try:
            enclosure = await sandbox.enclose(context.root) if sandbox is not None else None
            jailed = enclosed(enclosure, call.argv, cwd, call.env)
            async with context.checkpoint.watching(context.root):
                with context.shell.running():
                    result = await self._processes.run(
                        jailed.argv,
                        cwd=cwd,
                        env=jailed.env,
                        timeout=timeout_ms / 1000,
                        output=show,
                        spill=spill,
                        aside=call.aside,
                        jail=jailed.jail,
                    )
        except (CommandError, SandboxError) as error:
            raise ToolError(str(error)) from error
        follow = context.shell.directory.follow
        notes = [
            *_notes(result, timeout_ms),
            *kept_output(result.truncated, spill),
            *before,
            *await anyio.to_thread.run_sync(follow, context.root, cwd, result),
            *_ended_note(context.shell.background.newly_ended()),
            *(await sandbox_notes(enclosure, result) if enclosure is not None else ()),
        ]
        text = "\n".join([result.text.rstrip("\n") or "(no output)", *notes])
        details = command_details(result, spill, printed=result.printed)
        if result.timed_out or result.exit_code != 0:
            return ToolResult.error(text, details)
        return ToolResult.text(text, details)

    async def _start(
        self,
        command: str,
        timeout_ms: int | None,
        context: ToolContext,
        cwd: Path,
        before: Sequence[str],
        sandbox: Sandbox | None = None,
    ) -> ToolResult:
        call = shell_call(command, context.environment)
        try:
            enclosure = await sandbox.enclose(context.root) if sandbox is not None else None
            await context.checkpoint.look_beside(context.root, begins=True)
            background = context.shell.background.start(
                self._processes,
                enclosed(enclosure, call.argv, cwd, context.environment),  # it need not tell where it ends
                command=command,
                cwd=cwd,
                timeout=math.inf if timeout_ms is None else timeout_ms / 1000,
                spill=context.shell.spills.new(),
                enclosure=enclosure,
            )
        except (CommandError, SandboxError) as error:
            raise ToolError(str(error)) from error
        return await started(background, context, before)


def _told(folder: Path) -> str:
    """The path, or where its bytes are no text, how it is shown."""
    path = str(folder)
    return path if path.isascii() or path.encode(errors="ignore").decode() == path else shown(path)


def _notes(result: CommandResult, timeout_ms: int) -> list[str]:
    """What the model must know besides the output, one line each."""
    notes = [f"[timed out after {timeout_ms / 1000:g} s and was stopped]"] if result.timed_out else []
    if not result.timed_out and result.exit_code != 0:
        notes.append(f"[{ending(result)}]")
    if result.leftovers:
        notes.append("[background processes that it left were stopped]")
    if result.survivors:
        notes.append(f"[{result.survivors} of its processes could not be stopped and may still run]")
    return notes


def _ended_note(ids: Sequence[str]) -> list[str]:
    return [f"[ended in the background: {', '.join(ids)}; bash_output tells how]"] if ids else []
