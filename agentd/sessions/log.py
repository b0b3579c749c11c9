"""Journal, state and client in step: an event is journaled, folded into the state and sent, without a wait.

So the three cannot drift apart, whatever is cancelled or fails around them.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentd.agent.host import NotJournaled
from agentd.config.sources import Sources
from agentd.protocol.errors import RpcError
from agentd.protocol.events import (
    AgentEnd,
    CompactionEnd,
    DurableEvent,
    EventNotification,
    LiveEvent,
    MessageEnd,
    Notice,
    QueueChanged,
    ToolExecutionEnd,
)
from agentd.sessions.face import Face
from agentd.sessions.family import KEPT, Delegated
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


def damage_told(lines: Sequence[int]) -> str:
    """What the user is told of lines of a journal that cannot be read."""
    shown = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
    what = f"line {shown} of this session's journal" if len(lines) == 1 else f"lines {shown} of its journal"
    return (
        f"Part of this session was lost: {what} cannot be read. Everything else is there; the disk that "
        "holds agentd's data folder may have a fault."
    )


class SessionLog:
    """The one way in which anything of a session changes."""

    def __init__(self, state: SessionState, journal: Journal, face: Face, sources: Sources) -> None:
        self.state = state
        self._journal = journal
        self._face = face
        self._sources = sources
        self._watchers: list[Callable[[DurableEvent], None]] = []

    @property
    def path(self) -> Path:
        """The file of the journal."""
        return self._journal.path

    def watch(self, watcher: Callable[[DurableEvent], None]) -> None:
        """Call a function after each event from now on, once the state has followed it."""
        self._watchers.append(watcher)

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
        record = entry.record(queued=self.state.wishes)
        if isinstance(event, AgentEnd) or (isinstance(event, CompactionEnd) and self.state.run is None):
            # How the session stands behind this, so that a list or a page need not read the rest.
            usage = self.state.usage_after(event)
            update = {"updated_at": entry.time, "seq": entry.seq, "usage": usage}
            record["summary"] = self.state.info(alive=False).model_copy(update=update)
            record["waiting"] = len(self.state.queue)
            record["todo"] = self.state.todo
        try:
            self._journal.append(record)
        except JournalError as error:
            raise NotJournaled(str(error)) from error
        except ValueError as error:
            log.exception("an event that is no JSON: %s", event.type)
            raise NotJournaled("agentd failed to journal an event. Its log says more.", "internal") from error
        self.state.apply(entry)
        for watcher in self._watchers:
            watcher(event)
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

    async def flush(self) -> None:
        """Bring what was recorded to the disk, where nobody waits for it.

        A failure is the next `sync`'s to tell, which writes the same bytes again.
        """
        try:
            await self._journal.sync()
        except JournalError as error:
            log.info("a flush that nothing waited for: %s", error)

    def repair(self, delegated: Mapping[str, Delegated] | None = None, *, tell: bool = True) -> None:
        """Close what a stopped daemon or a full disk left open. Raises `RpcError` storage.

        `delegated` is what the children of open tool calls came to. With `tell` false clients are not sent
        the events: they are about to read them.
        """
        run = self.state.run
        if self.state.compacting is not None:
            with refusing():
                prompt_id = run.prompt_id if run is not None else None
                self._record(aborted(self.state.compacting), prompt_id, tell)
        if run is None:
            return
        with refusing():
            for event in closing_events(run, self._sources):
                is_steer = run.steer is not None and isinstance(event, MessageEnd)
                private: dict[str, Any] = {"steer": run.steer} if is_steer else {}
                if isinstance(event, ToolExecutionEnd) and delegated and event.tool_call_id in delegated:
                    private[KEPT] = delegated[event.tool_call_id]
                self._record(event, run.prompt_id, tell, **private)
            if self.state.queue != self.state.told_queue:
                self._record(QueueChanged(queue=self.state.queue), None, tell)

    def warn_of_damage(self, lines: Collection[int], *, tell: bool = True) -> None:
        """Tell the user, once for each line, what of the journal was lost. Raises `RpcError` storage."""
        new = sorted(set(lines) - self.state.damage)
        if new:
            notice = Notice(severity="warning", message=damage_told(new))
            with refusing():
                self._record(notice, None, tell, damage=new)

    def _record(self, event: DurableEvent, prompt_id: str | None, tell: bool, **private: Any) -> None:
        send = self.record_held(event, prompt_id, **private)
        if tell:
            send()

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()
