"""All that a client can send, and the life of the server: one short function each.

What concerns prompts, sessions, permissions and what there is lies in the `*_requests.py` beside this.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from agentd.config.secrets import Secrets
from agentd.daemon.door import Door, Method, Notice, Request
from agentd.daemon.lifetime import Lifetime
from agentd.protocol import methods as wire
from agentd.protocol.capabilities import initialize_result
from agentd.protocol.documents import DocumentDiagnostics, FocusParams, UnsavedParams
from agentd.server.configuration import ConfigurationParams, EditorConfiguration
from agentd.server.connection import (
    Connection,
    FoldersParams,
    InitializeParams,
    ProgressCancelParams,
    TraceParams,
    client_options,
)
from agentd.server.editor import ClientEditor
from agentd.server.face import EditorFace
from agentd.server.overview_requests import OverviewRequests
from agentd.server.permission_requests import PermissionRequests
from agentd.server.progress import ProgressTokens
from agentd.server.prompt_requests import PromptRequests
from agentd.server.session_requests import SessionRequests
from agentd.server.trace import Trace, trace_level
from agentd.sessions.engines import ConfiguredEngines
from agentd.sessions.house import House
from agentd.sessions.store import Sessions

log = logging.getLogger(__name__)


@dataclass
class Methods:
    """What the methods work on."""

    connection: Connection
    face: EditorFace
    house: House
    engines: ConfiguredEngines
    sessions: Sessions
    lifetime: Lifetime
    door: Door
    secrets: Secrets
    editor: ClientEditor
    configuration: EditorConfiguration
    trace: Trace
    tokens: ProgressTokens = field(default_factory=ProgressTokens)

    def __post_init__(self) -> None:
        connection, house, sessions = self.connection, self.house, self.sessions
        self.prompts = PromptRequests(connection, house, sessions, self.door, self.tokens)
        self._session_requests = SessionRequests(connection, house, sessions, self.face)
        self._permission_requests = PermissionRequests(connection, house, sessions)
        self._overview = OverviewRequests(connection, house, self.engines, sessions, self.lifetime)

    def requests(self) -> Mapping[str, Method]:
        """Every request that is served."""
        return {
            **self.prompts.requests(),
            **self._session_requests.requests(),
            **self._permission_requests.requests(),
            **self._overview.requests(),
            "initialize": Method(InitializeParams, self.initialize),
            "shutdown": Method(wire.Empty, self.shutdown),
            "agentd/schema": Method(wire.Empty, self.schema),
            "agentd/credentials/set": Method(wire.CredentialsParams, self.credentials_set),
        }

    def notices(self) -> Mapping[str, Notice]:
        """Every notification that is acted on, but those of documents."""
        return {
            "agentd/trust/didChange": Notice(wire.TrustParams, self.trust_changed),
            "agentd/diagnostics/publish": Notice(DocumentDiagnostics, self.editor.told.publish),
            "agentd/document/unsaved": Notice(UnsavedParams, self.editor.note_unsaved),
            "agentd/focus": Notice(FocusParams, self.editor.look),
            "initialized": Notice(wire.Empty, self.initialized),
            "workspace/didChangeConfiguration": Notice(ConfigurationParams, self.configuration_changed),
            "$/setTrace": Notice(TraceParams, self.trace_set),
            "window/workDoneProgress/cancel": Notice(ProgressCancelParams, self.progress_cancelled),
            "workspace/didChangeWorkspaceFolders": Notice(FoldersParams, self.folders_changed),
        }

    # --- the life of the server -------------------------------------------------------------------

    async def initialize(self, params: InitializeParams, request: Request) -> object:
        """Take the client's description of itself; the answer may have gone out before (`boot.py`)."""
        options = client_options(params)
        if options is not None:
            if options.mode != "auto":  # a default only: it is judged when a session begins
                self.house.check_mode(options.mode)
            for provider, secret in options.credentials.items():
                self.set_credential(provider, secret)
        self.connection.open(params, options)
        self.configuration.capabilities = params.capabilities
        self.face.options = options
        self.face.has_menu = self.connection.client.has_menu
        self.trace.level = trace_level(params.trace)
        self.editor.open(params.capabilities, options, self.connection.client.quirks)
        if params.process_id is not None:
            self.lifetime.follow_parent(params.process_id)
        self.background(self.engines.warm_up, self.connection.default_model)
        self.background(self.house.find_out, self.connection.default_mode)
        quirks = self.connection.client.quirks
        return initialize_result(
            params.capabilities, whole_documents=quirks.counts_characters, at_once=quirks.tells_twice
        )

    async def shutdown(self, params: wire.Empty, request: Request) -> None:
        """Stop all runs and answer their prompts; after this, only `exit` is left."""
        await self.sessions.close_all("interrupted")

    # --- the rest ---------------------------------------------------------------------------------

    async def schema(self, params: wire.Empty, request: Request) -> object:
        """JSON Schema of everything on the wire."""
        from agentd.protocol.schema import json_schema

        return json_schema()

    async def credentials_set(self, params: wire.CredentialsParams, request: Request) -> wire.Empty:
        """Keep a key in memory, or forget it."""
        self.set_credential(params.provider, params.secret)
        return wire.Empty()

    def set_credential(self, provider: str, secret: str | None) -> None:
        """Keep a key for a provider, and out of the log."""
        if secret is not None:
            self.secrets.learn(secret)
        self.engines.set_credential(provider, secret)

    def background(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Do something that nobody waits for; when it fails, the log says so and the daemon goes on."""

        async def contained() -> None:
            try:
                await function(*args)
            except Exception:
                log.exception("in the background: %s", getattr(function, "__name__", "a task"))

        self.house.start_soon(contained)

    # --- notifications ----------------------------------------------------------------------------

    def trust_changed(self, params: wire.TrustParams) -> None:
        """The user trusts the workspace now, or no longer: open questions are judged anew."""
        self.connection.trusted = params.trusted
        for session in self.sessions.opened:
            session.trust_changed()

    def initialized(self, params: wire.Empty) -> None:
        """The client takes requests now: ask it for its settings, and to tell when they change."""
        self.background(self.configuration.begin)

    def configuration_changed(self, params: ConfigurationParams) -> None:
        """The settings of the editor have changed."""
        self.background(self.configuration.take, params.settings)

    def folders_changed(self, params: FoldersParams) -> None:
        """The sessions of folders that went are closed."""
        for gone in self.connection.change_folders(params.event):
            self.background(self.sessions.close_in, gone)

    def progress_cancelled(self, params: ProgressCancelParams) -> None:
        """The user stopped a prompt from its progress bar."""
        self.tokens.cancel(params.token)

    def trace_set(self, params: TraceParams) -> None:
        """The client wants to hear more of what goes on here, or less."""
        self.trace.level = trace_level(params.value)
