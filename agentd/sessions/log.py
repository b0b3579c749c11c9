"""Journal, state and client in step: an event is journaled, folded into the state and sent, without a wait.

So the three cannot drift apart, whatever is cancelled or fails around them.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agentd.agent.host import NotJournaled
from agentd.config.sources import Sources
from agentd.protocol.errors import RpcError
from agentd.protocol.events import AgentEnd, CompactionEnd, DurableEvent, EventNotification, LiveEvent
from agentd.sessions.face import Face
from agentd.sessions.journal import Journal, JournalError
from agentd.sessions.records import Entry
from agentd.sessions.recovery import aborted, closing_events
from agentd.sessions.state import SessionState

log = logging.getLogger(__name__)


@contextmanager
def refusing() -> Iterator[None]:
    """Outside a run, a journal that cannot be written is the answer to a request: `RpcError` storage."""
    try:
        yield
    except NotJournaled as error:
        raise RpcError(error.kind, str(error), retryable=error.kind == "storage") from error


class SessionLog:
    """The one way in which anything of a session changes."""

    def __init__(self, state: SessionState, journal: Journal, face: Face, sources: Sources) -> None:
        self.state = state
        self._journal = journal
        self._face = face
        self._sources = sources

    def record(self, event: DurableEvent, prompt_id: str | None = None, **private: Any) -> None:
        """Journal a durable event, fold it, send it. `private` is journaled beside it and never sent.

        Raises `NotJournaled`; then nothing has happened.
        """
        self.record_held(event, prompt_id, **private)()

    def record_held(
        self, event: DurableEvent, prompt_id: str | None = None, **private: Any
    ) -> Callable[[], None]:
        """The same, with sending left to the function that is given back."""
        entry = Entry(self.state.seq + 1, self._sources.now(), prompt_id, event, private)
        record = entry.record()
        if isinstance(event, AgentEnd) or (isinstance(event, CompactionEnd) and self.state.run is None):
            # The session as it stands behind this, so that a list need not read the rest.
            usage = self.state.usage_after(event)
            update = {"updated_at": entry.time, "seq": entry.seq, "usage": usage}
            record["summary"] = self.state.info(alive=False).model_copy(update=update)
        try:
            self._journal.append(record)
        except JournalError as error:
            raise NotJournaled(str(error)) from error
        except ValueError as error:
            log.exception("an event that is no JSON: %s", event.type)
            raise NotJournaled("agentd failed to journal an event. Its log says more.", "internal") from error
        self.state.apply(entry)
        notification = entry.notification(self.state.session_id)
        return lambda: self._face.publish(notification)

    def send(self, event: LiveEvent, prompt_id: str) -> None:
        """Send a live event, which is not journaled."""
        self._face.publish(
            EventNotification(
                session_id=self.state.session_id,
                prompt_id=prompt_id,
                time=self._sources.now(),
                event=event,
            )
        )

    async def room(self) -> None:
        """Wait for a slow client."""
        await self._face.room()

    async def sync(self) -> None:
        """Return when all that was recorded is safe on disk. Raises `NotJournaled`."""
        try:
            await self._journal.sync()
        except JournalError as error:
            raise NotJournaled(str(error)) from error

    def repair(self) -> None:
        """Close what a stopped daemon or a full disk left open. Raises `RpcError` storage."""
        run = self.state.run
        if self.state.compacting is not None:
            with refusing():
                self.record(aborted(self.state.compacting), run.prompt_id if run is not None else None)
        if run is None:
            return
        with refusing():
            for event in closing_events(run, self._sources):
                self.record(event, run.prompt_id)

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
