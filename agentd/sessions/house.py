"""What all sessions of a process share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, get_args

from agentd.agent.host import Engine
from agentd.config.checker_settings import Checker
from agentd.config.command_rules import CommandRules
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.sources import Sources
from agentd.config.subagent_settings import SubagentSettings
from agentd.permissions.store import RuleStore
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.methods import Problem
from agentd.providers.base import Model
from agentd.sessions.face import Face
from agentd.tools.base import Toolbox
from agentd.workspace.beside import RunningCommands
from agentd.workspace.checkpoints import MOST_BYTES
from agentd.workspace.editor import Editor
from agentd.workspace.sandbox import Sandbox
from agentd.workspace.skills import SkillFolders
from agentd.workspace.write_notes import WriteNotes
from agentd.workspace.writers import Writers

if TYPE_CHECKING:
    from agentd.workspace.git import Git


class Engines(Protocol):
    """Models by name."""

    def engine(self, model: str | None, effort: Effort | None) -> Engine:
        """The model of that name and its provider. Raises `RpcError` noModel, saying the way out."""
        ...

    def learn_window(self, model: Model, tokens: int) -> Model:
        """A server has said how large a model's context window is; gives the model as it is known now."""
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

    @property
    def compaction(self) -> CompactionSettings:
        """When histories are made shorter by themselves."""
        ...

    @property
    def subagents(self) -> SubagentSettings:
        """What sub-agents may take."""
        ...

    @property
    def default_mode(self) -> Mode:
        """The mode that the user and the client want for new sessions."""
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

    def checkers_in(self, root: Path) -> tuple[Checker, ...]:
        """The user's checkers that are wanted in it; those of a workspace are none."""
        ...

    def max_turns_in(self, root: Path) -> int | None:
        """How many turns a prompt may take in it, where that is said."""
        ...


@dataclass(frozen=True)
class House:
    """What sessions are given.

    `start_soon` runs a task in the daemon's root task group. `spills` is the folder for output of commands
    that is too long to be shown; None where none is kept. `rules` keeps answers that outlive a session.
    `config_folder` is the user's own, with instructions for all work. `skills` finds skills. `git` is that of
    a workspace folder. `checkpoint_bytes` is how much is kept of what the files of one session were.
    `writers` knows which session wrote a file last, and `commands` what runs in any. `editor_for` gives the
    editor as a session sees it, where that is not the same for all.
    """

    settings: Settings
    engines: Engines
    toolbox: Toolbox
    face: Face
    editor: Editor
    environment: Mapping[str, str]
    sources: Sources
    start_soon: Callable[..., object]
    write_notes: WriteNotes = field(default_factory=WriteNotes)
    spills: Path | None = None
    sandbox: Sandbox | None = None
    rules: RuleStore | None = None
    config_folder: Path | None = None
    skills: SkillFolders = field(default_factory=SkillFolders)
    git: "Callable[[Path], Git] | None" = None
    checkpoint_bytes: int = MOST_BYTES
    writers: Writers = field(default_factory=Writers)
    commands: RunningCommands = field(default_factory=RunningCommands)
    editor_for: Callable[[str], Editor] | None = None
    gives_skills: bool = True  # whether the model may load skills, where there are any
    _told: list[bool] = field(default_factory=list)

    def of_session(self, session_id: str) -> "House":
        """The same, with the editor as this session sees it; a child sees that of its parent."""
        if self.editor_for is None:
            return self
        return replace(self, editor=self.editor_for(session_id.partition(".")[0]))

    @property
    def news(self) -> tuple[Problem, ...]:
        """What the user should know of the set-up with the first prompt of the process, until it is told."""
        return () if self._told else self.problems

    def news_is_told(self) -> None:
        """The user knows."""
        self._told.append(True)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the configuration, and with the sandbox as far as somebody has asked for it."""
        known = self.sandbox.known if self.sandbox is not None else None
        more = []
        if self.settings.default_mode == "auto" and known is not None and not known.works:
            message = f"Mode auto acts as ask, as there is no sandbox for commands: {known.reason}"
            more.append(Problem(severity="warning", message=message))
        elif known is not None and known.gaps:
            why = f" ({known.reason})" if known.reason else ""
            message = (
                f"The sandbox for commands is {known.backend}{why}. It has gaps: {'; '.join(known.gaps)}."
            )
            more.append(Problem(severity="info", message=message))
        return (*self.settings.problems, *more)

    async def find_out(self, *modes: Mode | None) -> None:
        """Know whether there is a sandbox, where one of these modes needs it; that takes a moment once."""
        if "auto" in modes and self.sandbox is not None:
            await self.sandbox.status()

    async def default_mode(self, root: Path) -> Mode:
        """The mode of a new session in a workspace folder: `auto` without a sandbox acts as `ask`."""
        mode = self.settings.mode_in(root)
        await self.find_out(mode)
        return "ask" if mode == "auto" and self._lack() is not None else mode

    def _lack(self) -> str | None:
        """Why there is no sandbox, None where there is one."""
        known = self.sandbox.known if self.sandbox is not None else None
        if known is None:
            return "this daemon has none."
        return None if known.works else known.reason

    def modes(self) -> tuple[Mode, ...]:
        """The modes that may be chosen here; `auto` also as long as nobody has looked for a sandbox."""
        is_known = self.sandbox is None or self.sandbox.known is not None
        refused = {"auto": is_known and self._lack() is not None, "full": not self.settings.allow_full}
        return tuple(mode for mode in get_args(Mode) if not refused.get(mode, False))

    def check_mode(self, mode: Mode | None) -> None:
        """Raise `RpcError` unsupported for a mode that may not be chosen here; `find_out` comes first."""
        if mode == "full" and not self.settings.allow_full:
            raise RpcError(
                "unsupported",
                "Mode full is not permitted: it runs everything without asking.",
                hint="Set allow_full = true in your configuration or start agentd with --allow-full.",
            )
        if mode == "auto" and (lack := self._lack()) is not None:
            raise RpcError(
                "unsupported",
                f"Mode auto needs a sandbox for commands, and there is none: {lack}",
                hint="Use mode edit: writes inside the workspace are free and commands ask. "
                "`agentd doctor` tells more.",
            )
