"""What is known of the client and its workspace, from `initialize` on; the settings that sessions look at."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from agentd.config.editor_settings import EditorSettings
from agentd.config.settings import Settings
from agentd.config.trust import Trust
from agentd.daemon.parsing import validate
from agentd.daemon.user_settings import UserSettings
from agentd.permissions.store import RuleStore
from agentd.protocol.capabilities import MAX_PROCESS_ID
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Mode
from agentd.protocol.methods import ClientOptions, Problem
from agentd.protocol.wire import Many, Wire, absent
from agentd.server.client_profile import ClientProfile
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


class Connection(UserSettings):
    """The client's settings and folders, on top of the user's."""

    def __init__(self, settings: Settings, allow_full: bool, trust: Trust, rules: RuleStore) -> None:
        super().__init__(settings, allow_full, trust, rules)
        self.trusted: bool | None = None  # the client's own word on its workspace; None: it has said nothing
        self.options: ClientOptions | None = None
        self.editor_settings = EditorSettings()
        self.client = ClientProfile()
        self._folders: dict[str, Path] = {}
        self._unusable: dict[str, str] = {}  # folders of the client that cannot be worked in, and why

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the user's configuration, and with what the client says."""
        more = [Problem(severity="error", message=message) for message in self._unusable.values()]
        return (*super().problems, *more, *self.editor_settings.problems)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The client's workspace folders, and those that a request has named."""
        return tuple(dict.fromkeys((*self._folders.values(), *self._files)))

    def trusts(self, root: Path) -> bool:
        """Whether the user trusts a workspace folder: by the client's word, else by what agentd was told."""
        return super().trusts(root) if self.trusted is None else self.trusted

    def model_in(self, root: Path) -> str | None:
        """The model of new sessions: the client's, else the workspace's, else the user's.

        Settings of the editor may come from a file of the workspace: they choose only where that is trusted.
        """
        set_there = self.editor_settings.model if self.trusts(root) else None
        chosen = self.options.model if self.options is not None else None
        return set_there or chosen or super().model_in(root)

    def mode_in(self, root: Path) -> Mode:
        """The mode of new sessions; a workspace can only make it stricter."""
        return self.workspace(root).stricter_mode(self.editor_settings.stricter_mode(self.default_mode))

    # --- what the client says -----------------------------------------------------------------------

    @property
    def default_model(self) -> str | None:
        """The model of new sessions."""
        chosen = self.options.model if self.options is not None else None
        return self.editor_settings.model or chosen or super().default_model

    @property
    def default_mode(self) -> Mode:
        """The mode of new sessions, as the client or else the configuration wants it."""
        chosen = self.options.mode if self.options is not None else None
        return chosen or super().default_mode

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
