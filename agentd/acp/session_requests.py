"""Requests for the connection and its sessions: to begin, to make, list, open and close them."""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentd.acp import params as acp
from agentd.acp.abilities import Abilities
from agentd.acp.diffs import path_in
from agentd.acp.editor import ClientFiles
from agentd.acp.face import AcpFace
from agentd.acp.greeting import initialize_result
from agentd.acp.options import SessionOptions, mode_named
from agentd.acp.replaying import Replay, left_waiting
from agentd.acp.telling import Told
from agentd.daemon.core import Core
from agentd.daemon.door import Method, Request
from agentd.daemon.user_settings import UserSettings
from agentd.protocol.errors import RpcError
from agentd.protocol.methods import SessionListParams, SessionNewParams, SessionUpdateParams
from agentd.sessions.conversation import LOOK_SECONDS
from agentd.sessions.gates import Gates
from agentd.sessions.session import Session
from agentd.sessions.words import commands_in

log = logging.getLogger(__name__)

_AT_ONCE = 50
"""Messages of a replay that are told before the client has to have read them."""
_NO_MCP = "The MCP servers that the editor offers are not used: agentd has no MCP yet."


@dataclass(frozen=True)
class SessionRequests:
    """What clients ask of the connection and of sessions."""

    core: Core
    face: AcpFace
    files: ClientFiles
    choices: SessionOptions
    settings: UserSettings
    _loading: Gates = field(default_factory=Gates, init=False)
    """Sessions that are told from their beginning: what else concerns them comes behind that."""

    def requests(self) -> Mapping[str, Method]:
        """The requests that are served here."""
        return {
            "initialize": Method(acp.InitializeParams, self.initialize),
            "authenticate": Method(acp.AuthenticateParams, self.authenticate),
            "session/new": Method(acp.FolderParams, self.new),
            "session/load": Method(acp.OpenParams, self.load),
            "session/resume": Method(acp.OpenParams, self.resume),
            "session/list": Method(acp.ListParams, self.list),
            "session/close": Method(acp.SessionParams, self.close),
            "session/delete": Method(acp.SessionParams, self.delete),
            "session/set_mode": Method(acp.ModeParams, self.set_mode),
            "session/set_config_option": Method(acp.OptionParams, self.set_config_option),
        }

    # --- the connection ---------------------------------------------------------------------------

    async def initialize(self, params: acp.InitializeParams, request: Request) -> object:
        """Take what the client can do; the answer may have gone out before (`boot.py`)."""
        self.files.abilities = Abilities.of(params.client_capabilities)
        self.background(self.core.engines.warm_up, self.settings.default_model)
        return initialize_result()

    async def authenticate(self, params: acp.AuthenticateParams, request: Request) -> object:
        """There is nothing to authenticate with."""
        hint = "Keys of model providers come from the environment that agentd is started in."
        what = f'/methodId: there is no way to authenticate named "{params.method_id[:100]}"'
        raise RpcError("invalidParams", what, hint=hint)

    # --- sessions ---------------------------------------------------------------------------------

    async def new(self, params: acp.FolderParams, request: Request) -> object:
        """A new session; its commands follow the response."""
        root = folder(params.cwd)
        await self.core.house.find_out("auto")
        new = await self.core.sessions.create(root, SessionNewParams())
        new.introduce()
        self._opened(new.session, params)
        request.after(lambda: self.background(self.tell_commands, new.session))
        return {"sessionId": new.session.session_id, **self.choices.set_up(new.session.info)}

    async def load(self, params: acp.OpenParams, request: Request) -> object:
        """Open a session and tell all that was said in it, before the response."""
        async with self._loading.passing(params.session_id):
            session = await self._open(params)
            await self._tell_all(session)
            return self._set_up(session, params, request)

    async def _tell_all(self, session: Session) -> None:
        told = self._acquainted(session)
        replay = Replay(session, told)
        self.face.catch_up(session.session_id)
        try:
            while not replay.is_at_end:
                self.face.send(session.session_id, replay.messages(_AT_ONCE))
                await self.face.room()
            self.face.send(session.session_id, replay.rest())
        finally:  # also where the client wants no more of it: what goes on there concerns it still
            self.face.show(session, told)

    async def resume(self, params: acp.OpenParams, request: Request) -> object:
        """Open a session and go on."""
        await self._loaded(params.session_id)
        session = await self._open(params)
        self._note_waiting(session)
        return self._set_up(session, params, request)

    async def _open(self, params: acp.OpenParams) -> Session:
        """The session of this id, which has to belong to that folder. Raises `RpcError`."""
        root = _resolved(params.cwd)
        await self.core.house.find_out("auto")
        session = await self.core.sessions.open(params.session_id, tell=False)
        if session.root != root:
            place = f'session "{session.session_id}" belongs to another folder: {session.root}'
            raise RpcError("invalidParams", f"/cwd: {place}")
        return session

    def _set_up(self, session: Session, params: acp.OpenParams, request: Request) -> object:
        self._opened(session, params)
        self.face.tell_standing(session.session_id)
        request.after(lambda: self.background(self.tell_commands, session))
        return self.choices.set_up(session.info)

    def _opened(self, session: Session, params: acp.FolderParams) -> None:
        if not self.face.knows(session.session_id):
            self.face.show(session, self._acquainted(session))
        if params.mcp_servers:
            self.face.note(session.session_id, _NO_MCP)

    def _acquainted(self, session: Session) -> Told:
        """What the client is told of a session, from the beginning."""
        return Told(self.core.house.toolbox, self.choices.of, lambda: session.info)

    async def session(self, session_id: str) -> Session:
        """The session that a request names, opened where it was not. Raises `RpcError`."""
        await self._loaded(session_id)
        session = await self.core.sessions.open(session_id, tell=False)
        if not self.face.knows(session_id):
            self._note_waiting(session)
            self.face.show(session, self._acquainted(session))
        return session

    async def _loaded(self, session_id: str) -> None:
        """Wait until nothing is told of a session but what happens there."""
        if session_id in self._loading:
            async with self._loading.passing(session_id):
                pass

    def _note_waiting(self, session: Session) -> None:
        """Tell of prompts that wait since an earlier process: whoever sent them has no answer to come."""
        if (said := left_waiting(session)) is not None:
            self.face.note(session.session_id, said)

    async def list(self, params: acp.ListParams, request: Request) -> object:
        """Sessions, newest first."""
        root = _resolved(params.cwd) if params.cwd is not None else None
        found = await self.core.sessions.listing(SessionListParams(cursor=params.cursor), root)
        sessions = [
            {
                "sessionId": info.session_id,
                "cwd": path_in(info.workspace_uri),
                "title": info.title or None,
                "updatedAt": info.updated_at,
            }
            for info in found.sessions
        ]
        return {"sessions": sessions, "nextCursor": found.next_cursor}

    async def close(self, params: acp.SessionParams, request: Request) -> object:
        """Cancel what runs in a session and let go of it."""
        await self._loaded(params.session_id)
        await self.core.sessions.close(params.session_id)
        self.face.forget(params.session_id)
        return {}

    async def delete(self, params: acp.SessionParams, request: Request) -> object:
        """Cancel what runs in a session and remove it for good."""
        await self._loaded(params.session_id)
        await self.core.sessions.delete(params.session_id)
        self.face.forget(params.session_id)
        return {}

    async def set_mode(self, params: acp.ModeParams, request: Request) -> object:
        """Change the mode: it counts from the next tool call on."""
        mode = mode_named(params.mode_id, "/modeId")
        await self.core.house.find_out(mode)
        session = await self.session(params.session_id)
        session.update(SessionUpdateParams(session_id=params.session_id, mode=mode))
        return {}

    async def set_config_option(self, params: acp.OptionParams, request: Request) -> object:
        """Change mode, model or effort; a model counts from the next turn on."""
        await self.core.house.find_out("auto")
        session = await self.session(params.session_id)
        self.choices.change(session, params.config_id, params.value)
        return {"configOptions": self.choices.of(session.info)}

    # --- beside -----------------------------------------------------------------------------------

    async def tell_commands(self, session: Session) -> None:
        """Tell the commands that there are in a session."""
        with anyio.move_on_after(LOOK_SECONDS):
            commands = commands_in(session.root, self.core.house)
            found = await anyio.to_thread.run_sync(commands.catalogue, abandon_on_cancel=True)
            self.face.tell_commands(session.session_id, found.infos())

    def background(self, function: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Do something that nobody waits for; when it fails, the log says so and the daemon goes on."""

        async def contained() -> None:
            try:
                await function(*args)
            except Exception:
                log.exception("in the background: %s", getattr(function, "__name__", "a task"))

        self.core.house.start_soon(contained)


def folder(cwd: str) -> Path:
    """The folder to work in, resolved. Raises `RpcError` invalidParams."""
    path = _resolved(cwd)
    if not path.is_dir():
        raise RpcError("invalidParams", f'/cwd: "{cwd}" is no existing folder')
    return path


def _resolved(cwd: str) -> Path:
    if not os.path.isabs(cwd) or "\0" in cwd:
        raise RpcError("invalidParams", f'/cwd: "{cwd}" is no absolute path')
    return Path(os.path.realpath(cwd))
