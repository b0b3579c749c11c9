"""Calls of the command tools as the loop makes them, in one session."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from file_calls import FakeEditor

from agentd.protocol.messages import CommandDetails, TextContent
from agentd.tools.background import BashKill, BashOutput
from agentd.tools.base import Action, Channel, Tool, ToolContext, ToolResult
from agentd.tools.bash import Bash
from agentd.tools.read_file import ReadFile
from agentd.tools.search_files import SearchFiles
from agentd.workspace.environment import command_environment
from agentd.workspace.process import Processes
from agentd.workspace.seen import SeenFiles
from agentd.workspace.shell import Shell


class ShellCalls:
    """One session's calls in `root`; long output goes to `spills`."""

    def __init__(self, processes: Processes, root: Path, spills: Path | None = None) -> None:
        self.tool = Bash(processes)
        tools: tuple[Tool, ...] = (self.tool, BashOutput(), BashKill(), ReadFile(), SearchFiles())
        self.tools = {tool.name: tool for tool in tools}
        self.editor = FakeEditor()
        self.live: list[tuple[Channel, str]] = []
        self.tasks: list[asyncio.Future[Any]] = []
        environment = command_environment(os.environ) | {"HOME": str(root)}  # editors leave files there
        self.shell = Shell(self._start_soon, spills)
        self.context = ToolContext(root, self.editor, SeenFiles(), environment, self._show, shell=self.shell)

    def _start_soon(self, function: Callable[..., Awaitable[Any]], *args: object) -> None:
        self.tasks.append(asyncio.ensure_future(function(*args)))

    async def _show(self, channel: Channel, text: str, left_out: int = 0) -> None:
        self.live.append((channel, text))

    async def prepare(self, name: str, **arguments: Any) -> Action:
        return await self.tools[name].prepare(arguments, self.context)

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await (await self.prepare(name, **arguments)).run()

    async def run(self, command: str, **arguments: Any) -> ToolResult:
        return await self.call("bash", command=command, **arguments)

    def title(self, command: object, **arguments: Any) -> str:
        return self.tool.describe({"command": command, **arguments}, self.context).title


def said(result: ToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def details(result: ToolResult) -> CommandDetails:
    assert isinstance(result.details, CommandDetails)
    return result.details
