"""Requests for sessions: to make, read, change and close them."""

from collections.abc import Mapping
from dataclasses import dataclass

from agentd.daemon.door import Method, Request
from agentd.protocol import methods as wire
from agentd.protocol.wire import Encoded
from agentd.server.connection import Connection
from agentd.server.face import EditorFace
from agentd.sessions.house import House
from agentd.sessions.store import Sessions


@dataclass(frozen=True)
class SessionRequests:
    """What clients ask of sessions."""

    connection: Connection
    house: House
    sessions: Sessions
    face: EditorFace

    def requests(self) -> Mapping[str, Method]:
        """The requests that are served here."""
        return {
            "agentd/session/new": Method(wire.SessionNewParams, self.new),
            "agentd/session/list": Method(wire.SessionListParams, self.list),
            "agentd/session/get": Method(wire.SessionGetParams, self.get),
            "agentd/session/update": Method(wire.SessionUpdateParams, self.update),
            "agentd/session/attach": Method(wire.SessionAttachParams, self.attach),
            "agentd/session/export": Method(wire.SessionParams, self.export),
            "agentd/session/compact": Method(wire.SessionCompactParams, self.compact),
            "agentd/session/fork": Method(wire.SessionForkParams, self.fork),
            "agentd/session/rewind": Method(wire.SessionRewindParams, self.rewind),
            "agentd/session/diff": Method(wire.SessionDiffParams, self.diff),
            "agentd/session/original": Method(wire.SessionOriginalParams, self.original),
            "agentd/session/close": Method(wire.SessionParams, self.close),
            "agentd/session/delete": Method(wire.SessionParams, self.delete),
        }

    async def new(self, params: wire.SessionNewParams, request: Request) -> wire.SessionResult:
        """A new session; its first event follows the response."""
        await self.house.find_out(params.mode)
        new = await self.sessions.create(self.connection.root(params.workspace_uri), params)
        request.after(new.introduce)
        return wire.SessionResult(session=new.session.info)

    async def list(self, params: wire.SessionListParams, request: Request) -> wire.SessionListResult:
        """Sessions, newest first."""
        root = self.connection.root(params.workspace_uri) if params.workspace_uri is not None else None
        return await self.sessions.listing(params, root)

    async def get(self, params: wire.SessionGetParams, request: Request) -> wire.SessionGetResult | Encoded:
        """A session and its messages."""
        result = await self.sessions.get(params)
        self.face.release(params.session_id)  # what it tells must not come again behind it
        return result

    async def attach(self, params: wire.SessionAttachParams, request: Request) -> wire.AttachResult:
        """Open a session, tell what happened in it, and from then on all that happens."""
        result = await self.sessions.attach(params)
        self.face.release(params.session_id)  # as in a reading
        return result

    async def export(self, params: wire.SessionParams, request: Request) -> wire.SessionExportResult:
        """A session as Markdown."""
        return await self.sessions.export(params.session_id)

    async def delete(self, params: wire.SessionParams, request: Request) -> wire.Empty:
        """Cancel what runs in a session and remove it for good."""
        await self.sessions.delete(params.session_id)
        return wire.Empty()

    async def fork(self, params: wire.SessionForkParams, request: Request) -> wire.SessionResult:
        """A new session that goes on from a message of another one; its first event follows the response."""
        new = await self.sessions.fork(params)
        request.after(new.introduce)
        return wire.SessionResult(session=new.session.info)

    async def rewind(self, params: wire.SessionRewindParams, request: Request) -> wire.SessionRewindResult:
        """Bring files, messages or both back to just before a prompt, or undo that."""
        return await self.sessions.rewind(params)

    async def diff(self, params: wire.SessionDiffParams, request: Request) -> wire.SessionDiffResult:
        """What a prompt, or all of a session, did to files."""
        return await self.sessions.diff(params)

    async def original(
        self, params: wire.SessionOriginalParams, request: Request
    ) -> wire.SessionOriginalResult:
        """What a file was before a prompt."""
        return await self.sessions.original(params)

    async def update(self, params: wire.SessionUpdateParams, request: Request) -> wire.SessionResult:
        """Change a session's title, model, mode or effort."""
        await self.house.find_out(params.mode)
        session = await self.sessions.open(params.session_id)
        return wire.SessionResult(session=session.update(params))

    async def compact(self, params: wire.SessionCompactParams, request: Request) -> wire.SessionCompactResult:
        """Have the model sum up a session's history, which is what it sees of it from then on."""
        session = await self.sessions.open(params.session_id)
        return await session.compact(params.instructions)

    async def close(self, params: wire.SessionParams, request: Request) -> wire.Empty:
        """Cancel what runs in a session and let go of it."""
        await self.sessions.close(params.session_id)
        return wire.Empty()
