"""What all sessions of a process share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentd.agent.host import Engine
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.sources import Sources
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.methods import Problem
from agentd.sessions.face import Face
from agentd.tools.base import Toolbox
from agentd.workspace.editor import Editor


class Engines(Protocol):
    """Models by name."""

    def engine(self, model: str | None, effort: Effort | None) -> Engine:
        """The model of that name and its provider. Raises `RpcError` noModel, saying the way out."""
        ...


class Settings(Protocol):
    """The settings that sessions look at; they may change while sessions live."""

    @property
    def trusted(self) -> bool:
        """Whether the user trusts the workspace."""
        ...

    @property
    def allow_full(self) -> bool:
        """Whether mode `full` may be chosen."""
        ...

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the user's configuration."""
        ...

    @property
    def compaction(self) -> CompactionSettings:
        """When histories are made shorter by themselves."""
        ...

    @property
    def default_model(self) -> str | None:
        """The model of new sessions."""
        ...

    @property
    def default_mode(self) -> Mode:
        """The mode of new sessions."""
        ...


@dataclass(frozen=True)
class House:
    """What sessions are given. `start_soon` runs a task in the daemon's root task group."""

    settings: Settings
    engines: Engines
    toolbox: Toolbox
    face: Face
    editor: Editor
    environment: Mapping[str, str]
    sources: Sources
    start_soon: Callable[..., object]
    _told: list[bool] = field(default_factory=list)

    @property
    def news(self) -> tuple[Problem, ...]:
        """What the user should know of the set-up with the first prompt of the process, until it is told."""
        return () if self._told else self.settings.problems

    def news_is_told(self) -> None:
        """The user knows."""
        self._told.append(True)

    def check_mode(self, mode: Mode | None) -> None:
        """Raise `RpcError` unsupported for a mode that may not be chosen here."""
        if mode == "full" and not self.settings.allow_full:
            raise RpcError(
                "unsupported",
                "Mode full is not permitted: it runs everything without asking.",
                hint="Set allow_full = true in your configuration or start agentd with --allow-full.",
            )
        if mode == "auto":
            raise RpcError(
                "unsupported",
                "Mode auto needs a sandbox for commands, which this version does not have.",
                hint="Use mode edit: writes inside the workspace are free and commands ask.",
            )
