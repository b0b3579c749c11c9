"""The settings that sessions look at, as the user has set them. A client may say more."""

from pathlib import Path

from agentd.config.checker_settings import Checker, chosen
from agentd.config.command_rules import CommandRules
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.settings import Settings
from agentd.config.subagent_settings import SubagentSettings
from agentd.config.trust import Trust
from agentd.config.workspace_settings import (
    FILE,
    FOLDER,
    UNSAID,
    WorkspaceFile,
    WorkspaceSettings,
    is_there,
)
from agentd.permissions.store import RuleStore
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.methods import Problem


class UserSettings:
    """The user's settings, and what a workspace that they trust says; `sessions.house.Settings`."""

    def __init__(self, settings: Settings, allow_full: bool, trust: Trust, rules: RuleStore) -> None:
        self._settings = settings
        self._trust = trust
        self._rules = rules
        self._files: dict[Path, WorkspaceFile] = {}  # of every workspace folder that was asked about
        self._allow_full = allow_full or settings.allow_full or settings.mode == "full"

    @property
    def allow_full(self) -> bool:
        """Whether mode `full` may be chosen: the user's configuration or the command line says so."""
        return self._allow_full

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the user's configuration."""
        more = [*self._trust.problems(), *self._rules.problems(self.roots)]
        for root in self.roots:
            more += self._workspace_problems(root)
        return (*self._settings.problems, *more)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The workspace folders that were asked about."""
        return tuple(self._files)

    def trusts(self, root: Path) -> bool:
        """Whether the user trusts a workspace folder, by what they told agentd."""
        return self._trust.trusts(root)

    def workspace(self, root: Path) -> WorkspaceSettings:
        """What the workspace says of itself: nothing, as long as it is not trusted."""
        file = self._files.setdefault(root, WorkspaceFile(root))
        return file.settings(self.default_mode) if self.trusts(root) else UNSAID

    def rules(self, root: Path) -> CommandRules:
        """The user's rules for commands, and those of the workspace that deny or ask."""
        return self._settings.permissions.stricter(self.workspace(root).rules)

    def model_in(self, root: Path) -> str | None:
        """The model of new sessions: the workspace's, else the user's."""
        return self.workspace(root).model or self._settings.model

    def mode_in(self, root: Path) -> Mode:
        """The mode of new sessions; a workspace can only make it stricter."""
        return self.workspace(root).stricter_mode(self.default_mode)

    def effort_in(self, root: Path) -> Effort | None:
        """The effort of new sessions."""
        return self.workspace(root).effort

    def checkers_in(self, root: Path) -> tuple[Checker, ...]:
        """The user's checkers that are wanted in it."""
        return chosen(self._settings.checkers, self.workspace(root).checkers)

    def max_turns_in(self, root: Path) -> int | None:
        """How many turns a prompt may take."""
        return self.workspace(root).max_turns

    @property
    def compaction(self) -> CompactionSettings:
        """When histories are made shorter by themselves."""
        return self._settings.compaction

    @property
    def subagents(self) -> SubagentSettings:
        """What sub-agents may take."""
        return self._settings.subagents

    @property
    def default_model(self) -> str | None:
        """The model of new sessions."""
        return self._settings.model

    @property
    def default_mode(self) -> Mode:
        """The mode of new sessions, as the configuration wants it."""
        return self._settings.mode

    def _workspace_problems(self, root: Path) -> tuple[Problem, ...]:
        if self.trusts(root) or not is_there(root):
            return self.workspace(root).problems
        path = root / FOLDER / FILE
        message = f"{path} is not read: the workspace is not trusted."
        return (Problem(severity="info", message=message, uri=path.as_uri()),)
