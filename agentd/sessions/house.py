"""What all sessions of a process share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agentd.agent.host import Engine
from agentd.config.command_rules import CommandRules
from agentd.config.sources import Sources
from agentd.permissions.store import RuleStore
from agentd.protocol.errors import RpcError
from agentd.protocol.events import Notice
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

    def trusts(self, root: Path) -> bool:
        """Whether the user trusts this workspace folder."""
        ...

    def rules(self, root: Path) -> CommandRules:
        """The rules for commands that are written down: the user's, and stricter ones of the workspace."""
        ...

    @property
    def allow_full(self) -> bool:
        """Whether mode `full` may be chosen."""
        ...

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the user's configuration."""
        ...

    def model_in(self, root: Path) -> str | None:
        """The model of new sessions in this workspace folder."""
        ...

    def mode_in(self, root: Path) -> Mode:
        """The mode of new sessions in it."""
        ...

    def effort_in(self, root: Path) -> Effort | None:
        """The effort of new sessions in it."""
        ...

    def max_turns_in(self, root: Path) -> int | None:
        """How many turns a prompt may take in it, where that is said."""
        ...


@dataclass(frozen=True)
class House:
    """What sessions are given.

    `start_soon` runs a task in the daemon's root task group; `rules` keeps answers that outlive a session.
    """

    settings: Settings
    engines: Engines
    toolbox: Toolbox
    face: Face
    editor: Editor
    environment: Mapping[str, str]
    sources: Sources
    start_soon: Callable[..., object]
    rules: RuleStore | None = None
    _notified: list[bool] = field(default_factory=list)

    def notices(self) -> Iterator[Notice]:
        """What the user should know before the first prompt of the process; once."""
        if not self._notified:
            yield from (Notice(severity=p.severity, message=p.message) for p in self.settings.problems)
            self._notified.append(True)

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
