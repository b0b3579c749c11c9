"""All sessions: those open in this process, and those that lie in the data folder.

One file per session, `sessions/<workspace>/<sessionId>.jsonl`, where `<workspace>` is a digest of the
folder's path. A session is opened by taking its journal over; while another process holds it, it can be read
only.
"""

import hashlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import ValidationError

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import (
    CancelResult,
    SessionGetParams,
    SessionGetResult,
    SessionListParams,
    SessionListResult,
    SessionNewParams,
)
from agentd.sessions.face import Silence
from agentd.sessions.house import House
from agentd.sessions.journal import (
    Contents,
    Journal,
    JournalError,
    JournalLocked,
    JournalTooNew,
    read,
)
from agentd.sessions.records import Reader
from agentd.sessions.session import Session, Stop, reading
from agentd.sessions.state import SessionState
from agentd.sessions.summary import cursor_of, summary_of
from agentd.workspace.paths import path_of, uri_of

log = logging.getLogger(__name__)


@dataclass
class _Gate:
    """Orders the requests for one session: first come, first served."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    waiting: int = 0


class Sessions:
    """Opens, makes, lists and closes sessions below `folder`."""

    def __init__(self, folder: Path, house: House) -> None:
        self._folder = folder
        self._house = house
        self._open: dict[str, Session] = {}
        self._latest: dict[Path, str] = {}  # workspace root -> the session last used here
        self._gates: dict[str, _Gate] = {}
        self._ending = False

    @property
    def opened(self) -> tuple[Session, ...]:
        """The sessions that are open in this process."""
        return tuple(self._open.values())

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
            title=params.title or title,
            model=params.model or house.settings.model_in(root),
            mode=params.mode or await house.default_mode(root),
            effort=params.effort or house.settings.effort_in(root),
            state="idle",
            created_at=now,
            updated_at=now,
            message_count=0,
            seq=1,
        )
        path = self._path(root, session_id)
        header = {"sessionId": session_id, "workspaceUri": info.workspace_uri, "createdAt": now}
        try:
            journal = await anyio.to_thread.run_sync(Journal.create, path, header)
        except JournalError as error:
            raise RpcError("storage", str(error), retryable=True) from error
        session = Session(SessionState(session_id), journal, root, house)
        try:
            introduce = session.begin(info)
        except RpcError:
            journal.close()
            await anyio.to_thread.run_sync(path.unlink)
            raise
        self._open[session_id] = session
        self._latest[root] = session_id
        return NewSession(session, introduce)

    async def open(self, session_id: str) -> Session:
        """The session of that id, opened where it was not.

        Requests for one session pass in the order they came, also while it is being read; where it is open
        and nobody waits there is no wait at all, so that what a request does next is in that order too.
        Raises `RpcError` sessionNotFound, sessionLocked, storage or unsupported.
        """
        session = self._open.get(session_id)
        if session is not None and session_id not in self._gates:
            return session
        async with self._gate(session_id):
            self._check_open()
            session = self._open.get(session_id)
            if session is None:
                session = await self._load(session_id, self._house)
                self._open[session_id] = session
            return session

    async def cancel(self, session_id: str, prompt_id: str | None) -> CancelResult:
        """Cancel the running prompt of a session. In one that is not open here, nothing runs."""
        if session_id not in self._gates:
            session = self._open.get(session_id)
        else:
            async with self._gate(session_id):
                session = self._open.get(session_id)
        if session is None:
            await anyio.to_thread.run_sync(self._find, session_id)
            return CancelResult(state="notRunning", quiescent=True)
        return await session.cancel(prompt_id)

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
        async with self._gate(name):
            yield

    @asynccontextmanager
    async def _gate(self, name: str) -> AsyncIterator[None]:
        gate = self._gates.setdefault(name, _Gate())
        gate.waiting += 1
        try:
            async with gate.lock:
                yield
        finally:
            gate.waiting -= 1
            if not gate.waiting:
                self._gates.pop(name, None)

    async def _load(self, session_id: str, house: House) -> Session:
        path = await anyio.to_thread.run_sync(self._find, session_id)
        try:
            with anyio.CancelScope(shield=True):  # an abandoned thread would keep the journal's lock
                journal, state = await anyio.to_thread.run_sync(_take_over, path, session_id)
        except JournalLocked as error:
            raise RpcError("sessionLocked", str(error), retryable=True, pid=error.pid) from error
        except JournalTooNew as error:
            raise RpcError("unsupported", str(error)) from error
        except JournalError as error:
            raise RpcError("storage", str(error)) from error
        if not state.is_introduced:
            journal.close()
            raise _not_found(session_id)
        session = Session(state, journal, path_of(state.base.workspace_uri), house)
        try:
            session.recover()
        except RpcError:
            journal.close()
            raise
        return session

    def latest(self, root: Path, prompt_id: str | None) -> str | None:
        """The session for a prompt that names none: one that knows `prompt_id`, else the one last used."""
        if prompt_id is not None:
            for session in self._open.values():
                if session.root == root and session.knows_prompt(prompt_id):
                    return session.session_id
        return self._latest.get(root)

    # --- reading ----------------------------------------------------------------------------------

    async def get(self, params: SessionGetParams) -> SessionGetResult:
        """A session's messages. A session that is not open here is looked at and let go again."""
        async with self._gate(params.session_id):
            session = self._open.get(params.session_id)
            if session is not None:
                return session.get(params.before, params.limit)
            return await self._look_at(params)

    async def _look_at(self, params: SessionGetParams) -> SessionGetResult:
        """Read a session, closing first, in silence, what a stopped daemon left open in it.

        Where it cannot be taken over (another process holds it, a newer agentd wrote it, the disk is full) it
        is read as it is.
        """
        try:
            session = await self._load(params.session_id, replace(self._house, face=Silence()))
        except RpcError as error:
            if error.kind not in ("sessionLocked", "unsupported", "storage"):
                raise
            path = await anyio.to_thread.run_sync(self._find, params.session_id)
            state = await anyio.to_thread.run_sync(_read_state, path, params.session_id)
            info = state.info(alive=error.kind == "sessionLocked")
            info = info.model_copy(update={"locked_by": error.details.get("pid")})
            return reading(state, info, params.before, params.limit)
        try:
            return session.get(params.before, params.limit)
        finally:
            await session.close()

    async def listing(self, params: SessionListParams, root: Path | None) -> SessionListResult:
        """Sessions, newest first, of one workspace folder or of all; the cursor is a place in that order."""
        stored = await anyio.to_thread.run_sync(self._stored, root)
        infos = {info.session_id: info for info in stored}
        infos |= {s.session_id: s.info for s in self._open.values() if root is None or s.root == root}
        ordered = sorted(infos.values(), key=cursor_of, reverse=True)
        if params.cursor is not None:
            ordered = [info for info in ordered if cursor_of(info) < params.cursor]
        page = ordered[: params.limit]
        more = len(ordered) > params.limit
        return SessionListResult(sessions=tuple(page), next_cursor=cursor_of(page[-1]) if more else None)

    def _stored(self, root: Path | None) -> list[SessionInfo]:
        folders = [self._path(root, "x").parent] if root is not None else self._folders()
        infos = []
        for folder in folders:
            for path in sorted(folder.glob("*.jsonl")):
                if path.stem not in self._open and (info := summary_of(path)) is not None:
                    infos.append(info)
        return infos

    def _folders(self) -> list[Path]:
        return sorted(self._folder.iterdir()) if self._folder.is_dir() else []

    def _path(self, root: Path, session_id: str) -> Path:
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        return self._folder / digest / f"{session_id}.jsonl"

    def _find(self, session_id: str) -> Path:
        """The journal of a session in whichever workspace. The id is an `Id`: it cannot leave the folder."""
        for folder in self._folders():
            path = folder / f"{session_id}.jsonl"
            if path.is_file():
                return path
        raise _not_found(session_id)

    # --- closing ----------------------------------------------------------------------------------

    async def close(self, session_id: str) -> None:
        """Cancel what runs in it and let go of it. A session that is not open is closed already."""
        async with self._gate(session_id):
            session = self._open.get(session_id)
            if session is None:
                await anyio.to_thread.run_sync(self._find, session_id)
                return
            await session.close()
            self._forget(session)

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


def _take_over(path: Path, session_id: str) -> tuple[Journal, SessionState]:
    journal, contents = Journal.open(path)
    try:
        return journal, _fold(contents, session_id)
    except BaseException:
        journal.close()
        raise


def _read_state(path: Path, session_id: str) -> SessionState:
    try:
        state = _fold(read(path), session_id)
    except JournalError as error:
        raise RpcError("storage", str(error)) from error
    if not state.is_introduced:
        raise _not_found(session_id)
    return state


def _fold(contents: Contents, session_id: str) -> SessionState:
    """The state that the records tell. What cannot be read costs that record only, and is logged."""
    state, reader = SessionState(session_id), Reader()
    for damage in contents.damage:
        if damage.reason == "torn":
            continue  # what a killed writer had not finished was never acknowledged
        log.warning("session %s: line %d is damaged and left out: %s", session_id, damage.line, damage.reason)
    for record in contents.records:
        try:
            entry = reader.entry(record)
        except ValidationError as error:
            log.warning("session %s: record %s is left out: %s", session_id, record.get("seq"), error.title)
            entry = None
        if entry is not None:
            state.apply(entry)
        elif type(record.get("seq")) is int:
            state.pass_over(record["seq"])
    return state


def _not_found(session_id: str) -> RpcError:
    return RpcError(
        "sessionNotFound",
        f'There is no session "{session_id}".',
        hint="agentd/session/list tells which there are.",
    )
