"""Sessions that are not open in this process: taken over, read as they are, or removed."""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import Problem, SessionGetParams, SessionGetResult
from agentd.protocol.wire import Encoded
from agentd.sessions.children import delegated_by
from agentd.sessions.family import Family
from agentd.sessions.house import House
from agentd.sessions.journal import JournalError, JournalLocked, JournalTooNew, holder, remove
from agentd.sessions.loading import not_found, read_state, take_over
from agentd.sessions.log import damage_told
from agentd.sessions.page import read_page
from agentd.sessions.session import Session, reading
from agentd.sessions.shelf import Shelf
from agentd.sessions.state import SessionState
from agentd.workspace import restoring
from agentd.workspace.checkpoints import Checkpoints, remove_beside
from agentd.workspace.paths import WorkspaceError, path_of

log = logging.getLogger(__name__)


class ClosedSessions:
    """The sessions on the shelf. Whoever asks for one lets nobody else open it meanwhile."""

    def __init__(self, shelf: Shelf, house: House, family: Callable[[Path], Family]) -> None:
        """`family` gives what a session of this workspace folder has that may have children."""
        self._shelf = shelf
        self._house = house
        self._family = family
        self._problems: dict[str, Problem] = {}  # session -> what is wrong with its journal

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with journals that were looked at."""
        return tuple(self._problems.values())

    async def load(self, session_id: str, *, tell: bool) -> Session:
        """Open a session by taking its journal over. `tell`: whether clients are sent what closes it.

        Raises `RpcError` sessionNotFound, sessionLocked, storage or unsupported.
        """
        path = await self.find(session_id)
        with journal_errors(), anyio.CancelScope(shield=True):  # an abandoned thread would keep the lock
            journal, state, damage = await anyio.to_thread.run_sync(take_over, path, session_id)
        if not state.is_introduced:
            journal.close()
            raise not_found(session_id)
        self._note(session_id, damage)
        root = path_of(state.base.workspace_uri)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_settle, path, root, state, self._house)
        session = Session(state, journal, root, self._house, self._family(root))
        try:
            calls = state.run.calls if state.run is not None else ()
            delegated = await anyio.to_thread.run_sync(delegated_by, path) if calls else {}
            session.recover(damage, delegated, tell=tell)
        except BaseException:
            journal.close()
            raise
        return session

    async def find(self, session_id: str) -> Path:
        """The journal of a session. Raises `RpcError` sessionNotFound or storage."""
        return await anyio.to_thread.run_sync(self._shelf.find, session_id)

    async def state(self, session_id: str) -> tuple[SessionState, Path]:
        """The state of a session and its journal; it is left as it is. Raises `RpcError`."""
        path = await self.find(session_id)
        state, _ = await anyio.to_thread.run_sync(read_state, path, session_id)
        return state, path

    async def page(self, params: SessionGetParams) -> SessionGetResult | Encoded:
        """Read a session, closing first what a stopped daemon left open in it.

        Nobody is sent these events: a reading opens no session, and what it tells goes up to them. Where
        the session cannot be taken over (another process holds it, a newer agentd wrote it, the disk is full)
        it is read as it is.
        """
        path = await self.find(params.session_id)
        try:
            page = await anyio.to_thread.run_sync(read_page, path, params)
        except (JournalError, OSError):
            page = None  # what is wrong is told by who reads it all
        if page is not None:
            return page
        try:
            session = await self.load(params.session_id, tell=False)
        except RpcError as error:
            if error.kind not in ("sessionLocked", "unsupported", "storage"):
                raise
            state, info = await self._read(params.session_id, error)
            return reading(state, info, params.before, params.limit)
        try:
            return session.get(params.before, params.limit)
        finally:
            await session.close()

    async def _read(self, session_id: str, why: RpcError) -> tuple[SessionState, SessionInfo]:
        """A session that cannot be taken over, for this reason, as it is."""
        path = await self.find(session_id)
        state, damage = await anyio.to_thread.run_sync(read_state, path, session_id)
        self._note(session_id, damage)
        info = state.info(alive=why.kind == "sessionLocked")
        return state, info.model_copy(update={"locked_by": why.details.get("pid")})

    def _note(self, session_id: str, damage: tuple[int, ...]) -> None:
        """Keep in mind, for `agentd/status`, what of a journal cannot be read."""
        self._problems.pop(session_id, None)
        if damage:
            message = f"Session {session_id}: {damage_told(damage)}"
            self._problems[session_id] = Problem(severity="warning", message=message)

    async def infos(self, root: Path | None, but: Collection[str]) -> list[SessionInfo]:
        """The sessions of one workspace folder, or of all, but for these. Raises `RpcError` storage."""
        shelved = await anyio.to_thread.run_sync(self._shelf.infos, root, but)
        self._problems |= shelved.problems
        return shelved.infos

    async def held_by_nobody(self, session_id: str) -> Path:
        """The journal of a session. Raises `RpcError`, sessionLocked where it is open elsewhere."""
        return await anyio.to_thread.run_sync(self._held_by_nobody, session_id)

    def _held_by_nobody(self, session_id: str) -> Path:
        path = self._shelf.find(session_id)
        if (pid := holder(path)) is not None:
            with journal_errors():
                raise JournalLocked(pid)
        return path

    async def remove(self, path: Path) -> None:
        """Remove a session for good. Raises `RpcError` sessionLocked or storage."""
        with journal_errors(), anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_remove, path)
        self._problems.pop(path.stem, None)


@contextmanager
def journal_errors() -> Iterator[None]:
    """What goes wrong with a journal, as the answer to a request: sessionLocked, unsupported or storage."""
    try:
        yield
    except JournalLocked as error:
        raise RpcError("sessionLocked", str(error), retryable=True, pid=error.pid) from error
    except JournalTooNew as error:
        raise RpcError("unsupported", str(error)) from error
    except JournalError as error:
        raise RpcError("storage", str(error)) from error


def _remove(path: Path) -> None:
    """Remove a session and what was kept for it; of the latter, what a kill leaves is swept later."""
    remove(path)
    remove_beside(path)


def _settle(path: Path, root: Path, state: SessionState, house: House) -> None:
    """Take back a rewind in whose midst a daemon died; where that fails, the next rewind tries again."""
    try:
        restoring.settle(Checkpoints.beside(path), root, state.rewinds, house.write_notes)
    except (WorkspaceError, OSError) as error:
        log.warning("a rewind that was cut short could not be taken back: %s", error)
