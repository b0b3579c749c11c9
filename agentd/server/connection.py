"""What is known of the client and its workspace, from `initialize` on; the settings that sessions look at."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from agentd.config.checker_settings import Checker, chosen
from agentd.config.command_rules import CommandRules
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.editor_settings import EditorSettings
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
from agentd.protocol.capabilities import MAX_PROCESS_ID
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.methods import ClientOptions, Problem
from agentd.protocol.wire import Many, Wire, absent
from agentd.server.client_profile import ClientProfile
from agentd.server.parsing import validate
from agentd.workspace.paths import WorkspaceError, path_of

log = logging.getLogger(__name__)


class WorkspaceFolder(Wire):
    """A folder of the client's workspace."""

    uri: str


class InitializeParams(Wire):
    """What of LSP's `initialize` agentd looks at."""

    process_id: int | None = Field(default=None, ge=1, le=MAX_PROCESS_ID)
    root_uri: str | None = absent()
    root_path: str | None = absent()
    workspace_folders: Many[WorkspaceFolder] | None = absent()
    capabilities: dict[str, Any]
    client_info: Any = None
    initialization_options: Any = None
    trace: Any = None


class FoldersChange(Wire):
    """The folders that came and went."""

    added: Many[WorkspaceFolder]
    removed: Many[WorkspaceFolder]


class FoldersParams(Wire):
    """`workspace/didChangeWorkspaceFolders`."""

    event: FoldersChange


class TraceParams(Wire):
    """`$/setTrace`."""

    value: str


class ProgressCancelParams(Wire):
    """`window/workDoneProgress/cancel`."""

    token: str | int


def client_options(params: InitializeParams) -> ClientOptions | None:
    """What the client says of itself in an `agentd` object. Raises `RpcError` naming the path."""
    holders = (
        ("/initializationOptions/agentd", params.initialization_options),
        ("/capabilities/experimental/agentd", params.capabilities.get("experimental")),
    )
    for path, holder in holders:
        if isinstance(holder, dict) and holder.get("agentd") is not None:
            return validate_options(holder["agentd"], path)
    return None


def validate_options(options: Any, path: str) -> ClientOptions:
    """The client's options. Raises `RpcError` invalidParams."""
    if not isinstance(options, dict):
        raise RpcError("invalidParams", f"{path}: must be an object")
    validated = validate(ClientOptions, options, path)
    assert isinstance(validated, ClientOptions)
    return validated


class Connection:
    """The client's settings and folders; `sessions.house.Settings`."""

    def __init__(self, settings: Settings, allow_full: bool, trust: Trust, rules: RuleStore) -> None:
        self.trusted: bool | None = None  # the client's own word on its workspace; None: it has said nothing
        self.options: ClientOptions | None = None
        self.editor_settings = EditorSettings()
        self.client = ClientProfile()
        self._settings = settings
        self._trust = trust
        self._rules = rules
        self._files: dict[Path, WorkspaceFile] = {}  # of every workspace folder that was asked about
        self._allow_full = allow_full or settings.allow_full or settings.mode == "full"
        self._folders: dict[str, Path] = {}
        self._unusable: dict[str, str] = {}  # folders of the client that cannot be worked in, and why

    @property
    def allow_full(self) -> bool:
        """Whether mode `full` may be chosen: the user's configuration or the command line says so."""
        return self._allow_full

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the user's configuration."""
        more = [Problem(severity="error", message=message) for message in self._unusable.values()]
        more += self.editor_settings.problems
        more += [*self._trust.problems(), *self._rules.problems(self.roots)]
        for root in self.roots:
            more += self._workspace_problems(root)
        return (*self._settings.problems, *more)

    # --- trust, and what a workspace may say --------------------------------------------------------

    def trusts(self, root: Path) -> bool:
        """Whether the user trusts a workspace folder: by the client's word, else by what agentd was told."""
        return self._trust.trusts(root) if self.trusted is None else self.trusted

    def workspace(self, root: Path) -> WorkspaceSettings:
        """What the workspace says of itself: nothing, as long as it is not trusted."""
        file = self._files.setdefault(root, WorkspaceFile(root))
        return file.settings(self.default_mode) if self.trusts(root) else UNSAID

    def rules(self, root: Path) -> CommandRules:
        """The user's rules for commands, and those of the workspace that deny or ask."""
        return self._settings.permissions.stricter(self.workspace(root).rules)

    def model_in(self, root: Path) -> str | None:
        """The model of new sessions: the client's, else the workspace's, else the user's."""
        chosen = self.options.model if self.options is not None else None
        return self.editor_settings.model or chosen or self.workspace(root).model or self._settings.model

    def mode_in(self, root: Path) -> Mode:
        """The mode of new sessions; a workspace can only make it stricter."""
        return self.workspace(root).stricter_mode(self.editor_settings.stricter_mode(self.default_mode))

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
    def roots(self) -> tuple[Path, ...]:
        """The client's workspace folders, and those that a request has named."""
        return tuple(dict.fromkeys((*self._folders.values(), *self._files)))

    def _workspace_problems(self, root: Path) -> tuple[Problem, ...]:
        if self.trusts(root) or not is_there(root):
            return self.workspace(root).problems
        path = root / FOLDER / FILE
        message = f"{path} is not read: the workspace is not trusted."
        return (Problem(severity="info", message=message, uri=path.as_uri()),)

    # --- what the client says -----------------------------------------------------------------------

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
        chosen = self.options.model if self.options is not None else None
        return self.editor_settings.model or chosen or self._settings.model

    @property
    def default_mode(self) -> Mode:
        """The mode of new sessions, as the client or else the configuration wants it."""
        chosen = self.options.mode if self.options is not None else None
        return chosen or self._settings.mode

    def open(self, params: InitializeParams, options: ClientOptions | None) -> None:
        """Take what `initialize` says."""
        self.options = options
        self.client = ClientProfile.of(params.capabilities, params.client_info)
        self.trusted = options.trusted if options is not None else None
        folders = params.workspace_folders
        if folders is None and params.root_uri is not None:
            folders = (WorkspaceFolder(uri=params.root_uri),)
        elif folders is None and params.root_path is not None:
            folders = (
                (WorkspaceFolder(uri=Path(params.root_path).as_uri()),) if params.root_path[:1] == "/" else ()
            )
        self._add(folders or ())

    def change_folders(self, change: FoldersChange) -> Iterator[Path]:
        """Take folders that came and went; give those that went."""
        for folder in change.removed:
            self._unusable.pop(folder.uri, None)
            if (gone := self._folders.pop(folder.uri, None)) is not None:
                yield gone
        self._add(change.added)

    def _add(self, folders: tuple[WorkspaceFolder, ...]) -> None:
        for folder in folders:
            try:
                self._folders[folder.uri] = resolved_folder(folder.uri, "/workspaceFolders")
            except RpcError as error:  # the editor may show folders that agentd cannot work in
                log.warning("%s", error.message)
                self._unusable[folder.uri] = error.message

    @property
    def folders(self) -> tuple[Path, ...]:
        """The client's workspace folders in its order, each once."""
        return tuple(dict.fromkeys(self._folders.values()))

    def root_of(self, path: Path) -> Path | None:
        """The client's innermost workspace folder that holds a file; None where none does."""
        path = Path(os.path.realpath(path))
        holding = [root for root in self._folders.values() if path.is_relative_to(root)]
        return max(holding, key=lambda root: len(root.parts), default=None)

    def root(self, workspace_uri: str | None) -> Path:
        """The workspace folder a request is about. Raises `RpcError` where that is not clear."""
        if workspace_uri is not None:
            return resolved_folder(workspace_uri, "/workspaceUri")
        roots = self.folders
        if len(roots) > 1:
            raise RpcError(
                "invalidParams", "/workspaceUri: is required, as the client has several workspace folders"
            )
        if roots:
            return roots[0]
        if self._unusable:  # never somewhere else: what the user trusts and allows is meant for this folder
            raise RpcError("invalidParams", next(iter(self._unusable.values())))
        return _working_directory()


def _working_directory() -> Path:
    try:
        return Path(os.path.realpath(Path.cwd()))
    except FileNotFoundError:
        where = "/workspaceUri: is required, as the daemon's working directory does not exist any more"
        raise RpcError("invalidParams", where) from None


def resolved_folder(uri: str, where: str) -> Path:
    """The folder of a URI, resolved: every spelling of it is one workspace. Raises `RpcError`."""
    try:
        path = Path(os.path.realpath(path_of(uri)))
    except WorkspaceError as error:
        raise RpcError("invalidParams", f"{where}: {error}") from None
    if not path.is_dir():
        raise RpcError("invalidParams", f'{where}: "{uri}" is no existing folder')
    return path
