"""Requests for what there is: how the daemon does, its models, tools and commands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from agentd import __version__
from agentd.daemon.door import Method, Request
from agentd.daemon.lifetime import Lifetime
from agentd.protocol import methods as wire
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Mode
from agentd.server.connection import Connection
from agentd.sessions.conversation import LOOK_SECONDS
from agentd.sessions.engines import ConfiguredEngines
from agentd.sessions.house import House
from agentd.sessions.store import Sessions
from agentd.sessions.words import commands_in
from agentd.tools.skill import NAME as SKILL
from agentd.tools.skill import with_skills
from agentd.workspace.skills import NO_SKILLS, Skills


@dataclass(frozen=True)
class OverviewRequests:
    """What clients ask of agentd itself."""

    connection: Connection
    house: House
    engines: ConfiguredEngines
    sessions: Sessions
    lifetime: Lifetime
    looking: anyio.Lock = field(default_factory=anyio.Lock)
    telling: anyio.Lock = field(default_factory=anyio.Lock)

    def requests(self) -> Mapping[str, Method]:
        """The requests that are served here."""
        return {
            "agentd/status": Method(wire.Empty, self.status),
            "agentd/models": Method(wire.ModelsParams, self.models),
            "agentd/tools": Method(wire.ToolsParams, self.tools),
            "agentd/commands": Method(wire.CommandsParams, self.commands),
        }

    async def status(self, params: wire.Empty, request: Request) -> wire.StatusResult:
        """How the daemon does."""
        async with self.telling:  # answers come in the order of their requests, though the disk is looked at
            more = (*await self._skill_problems(), *await self._command_problems())
        sessions = tuple(
            wire.SessionStatus(
                session_id=(info := session.info).session_id,
                state=info.state,
                last_activity_at=info.updated_at,
                instructions=session.state.instructions,
            )
            for session in self.sessions.opened
        )
        return wire.StatusResult(
            version=__version__,
            uptime_ms=self.lifetime.uptime_ms,
            sessions=sessions,
            problems=(
                *self.house.problems,
                *self.engines.problems(),
                *self.sessions.problems,
                *more,
            ),
            mode=self._mode(),
            modes=self.house.modes(),
            sandbox=self._sandbox_status(),
        )

    def _mode(self) -> Mode:
        """The mode of new sessions in the client's first folder, for showing before there is one."""
        roots = self.connection.folders
        wanted = self.connection.mode_in(roots[0]) if roots else self.connection.default_mode
        return wanted if wanted in self.house.modes() else "ask"

    async def models(self, params: wire.ModelsParams, request: Request) -> wire.ModelsResult:
        """The models that can be named; of one provider as its server tells them."""
        default = self.connection.default_model
        if params.provider is None:
            return wire.ModelsResult(models=self.engines.models(), default=default)
        return wire.ModelsResult(models=await self.engines.models_of(params.provider), default=default)

    def _sandbox_status(self) -> wire.SandboxStatus | None:
        """What is known of the sandbox: nothing before a command or mode `auto` has needed it."""
        status = self.house.sandbox.known if self.house.sandbox is not None else None
        if status is None:
            return None
        return wire.SandboxStatus(backend=status.backend, reason=status.reason or None, gaps=status.gaps)

    async def _skill_problems(self) -> list[wire.Problem]:
        """What is wrong with skills, the user's and those of every folder that is worked in."""
        roots = (*self.connection.roots, *(session.root for session in self.sessions.opened))
        told: dict[wire.Problem, None] = {}
        for root in dict.fromkeys(roots) or (None,):
            found = await self._skills_in(root)
            is_trusted = root is not None and self.connection.trusts(root)
            told |= dict.fromkeys(found.problems(trusted=is_trusted))
        return list(told)

    async def _skills_in(self, root: Path | None) -> Skills:
        """The skills for work in a folder. One look at a time: requests are answered in their order."""
        async with self.looking:
            with anyio.move_on_after(LOOK_SECONDS):
                return await anyio.to_thread.run_sync(self.house.skills.find, root, abandon_on_cancel=True)
        return NO_SKILLS

    def _root_if_clear(self, workspace_uri: str | None) -> Path | None:
        """The workspace folder that is named, or meant; None where nobody can say. Raises `RpcError`."""
        try:
            return self.connection.root(workspace_uri)
        except RpcError:
            if workspace_uri is not None:
                raise
            return None

    async def tools(self, params: wire.ToolsParams, request: Request) -> wire.ToolsResult:
        """The tools that the model may call in a workspace folder: skills only where there are any."""
        root = self._root_if_clear(params.workspace_uri)
        found, trusted = await self._skills_in(root), root is not None and self.connection.trusts(root)
        reasons = {}
        if not found.loadable(trusted=trusted):
            reasons[SKILL] = (
                "There are no skills here."
                if trusted or not found.projects
                else "The skills here are the workspace's, which is not trusted."
            )
        return wire.ToolsResult(
            tools=tuple(
                wire.ToolInfo(
                    name=tool.name,
                    description=tool.description,
                    parameters=tool.parameters,
                    kind=tool.kind,
                    source="built-in",
                    available=tool.name not in reasons,
                    reason=reasons.get(tool.name),
                )
                for tool in with_skills(self.house.toolbox).tools
            )
        )

    async def commands(self, params: wire.CommandsParams, request: Request) -> wire.CommandsResult:
        """The commands that a prompt may name in a workspace folder."""
        root = self.connection.root(params.workspace_uri)
        found = await anyio.to_thread.run_sync(commands_in(root, self.house).catalogue)
        return wire.CommandsResult(commands=found.infos())

    async def _command_problems(self) -> tuple[wire.Problem, ...]:
        """What is wrong with commands, as far as the disk tells in time."""
        found: dict[str, wire.Problem] = {}
        with anyio.move_on_after(LOOK_SECONDS):
            for root in self.connection.roots:
                commands = commands_in(root, self.house)
                look = commands.catalogue
                catalogue = await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
                found |= {problem.message: problem for problem in catalogue.problems}
        return tuple(found.values())
