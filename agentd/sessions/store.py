"""All sessions: those open in this process, and by way of `closed.py` those that lie in the data folder.

A session is opened by taking its journal over; while another process holds it, it can be read only.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import (
    AttachResult,
    CancelParams,
    CancelResult,
    Problem,
    SessionAttachParams,
    SessionDiffParams,
    SessionDiffResult,
    SessionExportResult,
    SessionForkParams,
    SessionGetParams,
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionNewParams,
    SessionOriginalParams,
    SessionOriginalResult,
    SessionRewindParams,
    SessionRewindResult,
)
from agentd.protocol.wire import Encoded
from agentd.sessions.cancelling import Stop
from agentd.sessions.children import ChildRuns, children_of
from agentd.sessions.closed import ClosedSessions, journal_errors
from agentd.sessions.export import markdown
from agentd.sessions.family import Family
from agentd.sessions.file_changes import diff, original
from agentd.sessions.forking import Fork
from agentd.sessions.gates import Gates
from agentd.sessions.house import House
from agentd.sessions.journal import JournalError
from agentd.sessions.loading import make
from agentd.sessions.prompts import title_of_text
from agentd.sessions.replay import ReplayReader
from agentd.sessions.session import Session, refuse_child
from agentd.sessions.shelf import Shelf
from agentd.sessions.state import SessionState
from agentd.sessions.summary import cursor_of
from agentd.workspace.checkpoints import Checkpoints, with_open_rewind
from agentd.workspace.paths import path_of, uri_of

_P = TypeVar("_P")
_R = TypeVar("_R")

log = logging.getLogger(__name__)

_READINGS = 3
"""How often an attach reads on in a thread, until it reads the rest where nothing else can happen."""


class Sessions:
    """Opens, makes, lists and closes sessions below `folder`."""

    def __init__(self, folder: Path, house: House) -> None:
        self._shelf = Shelf(folder)
        self._house = house
        self._open: dict[str, Session] = {}
        self._latest: dict[Path, str] = {}  # workspace root -> the session last used here
        self._gates = Gates()
        self._closed = ClosedSessions(self._shelf, house, self._parent)
        self._ending = False

    @property
    def opened(self) -> tuple[Session, ...]:
        """The sessions that are open in this process."""
        return tuple(self._open.values())

    def opened_one(self, session_id: str) -> Session | None:
        """The session of that id where it is open in this process."""
        return self._open.get(session_id)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with journals that were looked at."""
        return self._closed.problems

    # --- opening ----------------------------------------------------------------------------------

    async def create(self, root: Path, params: SessionNewParams, title: str = "") -> "NewSession":
        """A new session in a workspace folder. Raises `RpcError` unsupported, noModel or storage."""
        self._check_open()
        house = self._house
        house.check_mode(params.mode)
        if params.model is not None:
            house.engines.engine(params.model, params.effort)
        session_id, now = house.sources.new_id("s"), house.sources.now()
        info = SessionInfo(
            session_id=session_id,
            workspace_uri=uri_of(root),
            title=title_of_text(params.title or title),
            model=params.model or house.settings.model_in(root),
            mode=params.mode or await house.default_mode(root),
            effort=params.effort or house.settings.effort_in(root),
            state="idle",
            created_at=now,
            updated_at=now,
            message_count=0,
            seq=1,
        )
        return await self._begin(root, info)

    async def _begin(
        self,
        root: Path,
        info: SessionInfo,
        carried: Sequence[Mapping[str, Any]] = (),
        *,
        house: House | None = None,
        family: Family | None = None,
    ) -> "NewSession":
        """Make the session that `info` tells, with what it takes over of another one."""
        path = self._shelf.path(root, info.session_id)
        header = {
            "sessionId": info.session_id, "workspaceUri": info.workspace_uri, "createdAt": info.created_at
        }  # fmt: skip
        try:
            with anyio.CancelScope(shield=True):
                journal, state = await anyio.to_thread.run_sync(make, path, header, carried)
        except JournalError as error:
            raise RpcError("storage", str(error), retryable=True) from error
        session = Session(state, journal, root, house or self._house, family or self._parent(root))
        try:
            introduce = session.begin(info)
        except RpcError:
            journal.close()
            await anyio.to_thread.run_sync(path.unlink)
            raise
        self._open[info.session_id] = session
        if info.parent is None:
            self._latest[root] = info.session_id
        return NewSession(session, introduce)

    def _parent(self, root: Path) -> Family:
        """What a session has that may have children."""
        return Family(children=lambda run: ChildRuns(run, root, self._house, self))

    async def begin_child(self, root: Path, info: SessionInfo, house: House, family: Family) -> Session:
        """See `children.Nursery`."""
        self._check_open()
        new = await self._begin(root, info, house=house, family=family)
        new.introduce()
        return new.session

    async def end_child(self, session: Session) -> None:
        """See `children.Nursery`. One that a client has closed or deleted is ended already."""
        async with self._gates.passing(session.session_id):
            if self._open.get(session.session_id) is session:
                await session.close()
                self._forget(session)

    async def fork(self, params: SessionForkParams) -> "NewSession":
        """A new session that goes on from a message of another one, which nothing happens to.

        Works beside a process that writes the other one. Raises `RpcError` sessionNotFound, invalidParams or
        storage.
        """
        async with self._gates.passing(params.session_id):
            self._check_open()
            state, _ = await self._as_it_is(params.session_id)
            fork = Fork(state, params.message_id)
            house = self._house
            info = fork.info(house.sources.new_id("s"), house.sources.now())
            records = await anyio.to_thread.run_sync(fork.records)
            return await self._begin(path_of(info.workspace_uri), info, records)

    async def _as_it_is(self, session_id: str) -> tuple[SessionState, Path]:
        """The state of a session, open or not, and its journal; it is left as it is."""
        session = self._open.get(session_id)
        if session is not None:
            return session.state, session.journal
        return await self._closed.state(session_id)

    async def open(self, session_id: str, *, tell: bool = True) -> Session:
        """The session of that id, opened where it was not. `tell`: whether clients are sent what closes it.

        Requests for one session pass in the order they came, also while it is being read; where it is open
        and nobody waits there is no wait at all, so that what a request does next is in that order too.
        Raises `RpcError` sessionNotFound, sessionLocked, storage or unsupported.
        """
        session = self._open.get(session_id)
        if session is not None and session_id not in self._gates:
            return session
        async with self._gates.passing(session_id):
            self._check_open()
            session = self._open.get(session_id)
            if session is None:
                session = await self._closed.load(session_id, tell=tell)
                self._open[session_id] = session
            return session

    async def cancel(self, params: CancelParams) -> CancelResult:
        """Cancel the running prompt of a session. In one that is not open nothing runs, but prompts may wait.

        Raises `RpcError` sessionNotFound or sessionLocked, and what `open` raises where prompts wait.
        """
        session_id = params.session_id
        if session_id not in self._gates:
            session = self._open.get(session_id)
        else:
            async with self._gates.passing(session_id):
                session = self._open.get(session_id)
        if session is None:
            await self._closed.held_by_nobody(session_id)
            state, _ = await self._closed.state(session_id)
            if not state.queue or (params.keep_queue and params.prompt_id is None):
                return CancelResult(state="notRunning", quiescent=True)
            session = await self.open(session_id)
        return await session.cancel(params.prompt_id, keep_queue=params.keep_queue)

    async def attach(self, params: SessionAttachParams) -> AttachResult:
        """Open a session and tell what happened behind an event; live events follow. Raises like `open`."""
        session = await self.open(params.session_id, tell=False)
        if (result := session.present(params.after_seq)) is not None:
            return result
        replay = ReplayReader(session.journal, params.session_id, params.after_seq)
        with journal_errors():
            for _ in range(_READINGS):
                await anyio.to_thread.run_sync(replay.read_on)
                if (result := session.catch_up(replay, at_last=False)) is not None:
                    return result
            replay.read_on()  # the little that a quick run has added since
        result = session.catch_up(replay, at_last=True)
        assert result is not None
        return result

    def _check_open(self) -> None:
        if self._ending:
            raise RpcError("cancelled", "The daemon is ending.")

    def used(self, session: Session) -> None:
        """A prompt came to this session: the next one that names none comes here too."""
        self._latest[session.root] = session.session_id

    @asynccontextmanager
    async def choosing(self, root: Path) -> AsyncIterator[None]:
        """Prompts that name no session choose theirs one after the other: two at once make one session.

        Where there is one to choose and nobody waits, there is no wait.
        """
        name = f"/{root}"  # no session id begins with a slash
        if name not in self._gates and root in self._latest:
            yield
            return
        async with self._gates.passing(name):
            yield

    def latest(self, root: Path, prompt_id: str | None) -> str | None:
        """The session for a prompt that names none: one that knows `prompt_id`, else the one last used."""
        if prompt_id is not None:
            for session in self._open.values():
                if session.root == root and session.knows_prompt(prompt_id):
                    return session.session_id
        return self._latest.get(root)

    async def go_on(self, root: Path) -> Session | None:
        """Where no session was used here yet: have prompts that name none go to the one that a killed
        daemon left open, and give that, to one caller only. One that cannot be opened stays as it is.
        """
        async with self.choosing(root):
            if root in self._latest:
                return None
            left = await anyio.to_thread.run_sync(self._shelf.left, root)
            if left is None:
                return None
            try:
                session = await self.open(left)
            except RpcError as error:
                log.warning("session %s was left open, and cannot be opened: %s", left, error.message)
                return None
            if root in self._latest:  # the user has said meanwhile with which one to go on
                return None
            self._latest[root] = left
            return session

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, params: SessionGetParams) -> SessionGetResult | Encoded:
        """A session's messages. A session that is not open here is looked at and let go again."""
        async with self._gates.passing(params.session_id):
            session = self._open.get(params.session_id)
            if session is not None:
                return session.get(params.before, params.limit)
            return await self._closed.page(params)

    async def export(self, session_id: str) -> SessionExportResult:
        """A session as Markdown, whether it is open, closed or held by another process."""
        async with self._gates.passing(session_id):
            session = self._open.get(session_id)
            if session is not None:
                return SessionExportResult(text=markdown(session.info, session.messages))
            state, _ = await self._closed.state(session_id)
            return SessionExportResult(text=markdown(state.info(alive=False), state.messages))

    # --- files ------------------------------------------------------------------------------------

    async def rewind(self, params: SessionRewindParams) -> SessionRewindResult:
        """Bring a session back to before a prompt; requests for it that come meanwhile wait.

        Raises `RpcError` as `open` and `Dispatcher.rewind` do.
        """
        await self.open(params.session_id)
        async with self._gates.passing(params.session_id):
            self._check_open()
            session = self._open.get(params.session_id)
            if session is None:  # closed while this waited
                raise RpcError("cancelled", "The session was closed before it could be rewound.")
            return await session.rewind(params)

    async def diff(self, params: SessionDiffParams) -> SessionDiffResult:
        """What a prompt, or all of a session, did to files. Raises `RpcError`."""
        return await self._of_files(params.session_id, diff, params.prompt_id)

    async def original(self, params: SessionOriginalParams) -> SessionOriginalResult:
        """What a file was before a prompt. Raises `RpcError`."""
        return await self._of_files(params.session_id, original, params)

    async def _of_files(
        self, session_id: str, look: Callable[[SessionState, Checkpoints, Path, _P], _R], what: _P
    ) -> _R:
        async with self._gates.passing(session_id):
            session = self._open.get(session_id)
            state, path = await self._as_it_is(session_id)
            refuse_child(state.base, "has no changes of files of its own")
            kept = session.prompts.checkpoints if session is not None else Checkpoints.beside(path)
            root = path_of(state.base.workspace_uri)
            return await anyio.to_thread.run_sync(look, state, kept, root, what)

    async def settle_rewinds(self) -> None:
        """Take back what rewinds have done in whose midst a daemon died. Raises OSError."""
        for path in await anyio.to_thread.run_sync(with_open_rewind, self._shelf.folder):
            async with self._gates.passing(path.stem):
                if path.stem in self._open or self._ending:
                    continue
                try:
                    session = await self._closed.load(path.stem, tell=False)
                except RpcError as error:
                    log.warning("a rewind that was cut short: %s", error)
                else:
                    await session.close()

    async def listing(self, params: SessionListParams, root: Path | None) -> SessionListResult:
        """Sessions, newest first, of one workspace folder or of all; the cursor is a place in that order."""
        shelved = await self._closed.infos(root, tuple(self._open))
        infos = {info.session_id: info for info in shelved}
        infos |= {s.session_id: s.info for s in self._open.values() if root is None or s.root == root}
        shown = [info for info in infos.values() if params.children or info.parent is None]
        ordered = sorted(shown, key=cursor_of, reverse=True)
        if params.cursor is not None:
            ordered = [info for info in ordered if cursor_of(info) < params.cursor]
        page = ordered[: params.limit]
        more = len(ordered) > params.limit
        return SessionListResult(sessions=tuple(page), next_cursor=cursor_of(page[-1]) if more else None)

    # --- closing ----------------------------------------------------------------------------------

    async def close(self, session_id: str) -> None:
        """Cancel what runs in it and let go of it. A session that is not open is closed already.

        Raises `RpcError` sessionNotFound, or sessionLocked where another process has it open.
        """
        async with self._gates.passing(session_id):
            session = self._open.get(session_id)
            if session is None:
                await self._closed.held_by_nobody(session_id)
                return
            await session.close()
            self._forget(session)

    async def delete(self, session_id: str) -> None:
        """Cancel what runs in a session and remove it for good, and its children before it.

        Raises `RpcError` sessionNotFound, sessionLocked where another process holds it, or storage.
        """
        async with self._gates.passing(session_id):
            self._check_open()
            session = self._open.get(session_id)
            if session is not None:
                await session.close()
                self._forget(session)
            path = await self._closed.find(session_id)
            for child in await anyio.to_thread.run_sync(children_of, path):
                await self.delete(child)
            await self._closed.remove(path)

    async def close_all(self, stop: Stop) -> None:
        """The daemon ends: close every session, all at the same time, and open none any more."""
        self._ending = True
        async with anyio.create_task_group() as tasks:
            for session in self.opened:
                tasks.start_soon(session.close, stop)

    async def close_in(self, root: Path) -> None:
        """A workspace folder was closed: close the sessions in it."""
        for session in self.opened:
            if session.root == root or root in session.root.parents:
                await self.close(session.session_id)

    def _forget(self, session: Session) -> None:
        del self._open[session.session_id]
        if self._latest.get(session.root) == session.session_id:
            del self._latest[session.root]


class NewSession:
    """A session that clients have not been told of yet."""

    def __init__(self, session: Session, introduce: Callable[[], None]) -> None:
        self.session = session
        self.introduce = introduce
