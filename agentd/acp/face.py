"""The client as sessions see it: where events go and questions are asked, in ACP's words."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import anyio
import anyio.lowlevel

from agentd.acp import updates
from agentd.acp.live import Output, Piece, encoded
from agentd.acp.telling import Told
from agentd.acp.updates import Json
from agentd.daemon.door import ClientError, Door
from agentd.daemon.outbox import Outbox
from agentd.protocol.events import (
    AgentStart,
    EventNotification,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionUpdate,
)
from agentd.protocol.messages import PermissionRequest
from agentd.protocol.methods import CommandInfo, PermissionAnswer
from agentd.sessions.session import Session

log = logging.getLogger(__name__)

OUTPUT_SECONDS = 0.1
"""How often the output of one running call is told."""
_MOST_OUTPUT = 8 * 1024
"""Characters of a running call's output that are told, its last ones: each telling says it all again."""
_EVENTS_PER_STEP = 64
"""So many events of a run go by before others get the loop, however fast the model speaks."""


class AcpFace:
    """One client. It hears of the sessions that it has opened, and of no other."""

    def __init__(self, door: Door, outbox: Outbox, start_soon: Callable[..., object]) -> None:
        self._door = door
        self._outbox = outbox
        self._start_soon = start_soon
        self._told: dict[str, Told] = {}
        self._behind: dict[str, anyio.Event] = {}  # sessions that are told from their beginning just now
        self._notes: dict[str, list[str]] = {}
        self._output: dict[tuple[str, str], str] = {}  # of running calls, as far as it will be told
        self._due: set[tuple[str, str]] = set()  # those that are about to be told
        self._events = 0

    # --- which sessions ---------------------------------------------------------------------------

    def knows(self, session_id: str) -> bool:
        """Whether the client hears of a session."""
        return session_id in self._told

    def show(self, session: Session, told: Told) -> None:
        """The client hears of this session from now on."""
        told.knows(session.info)
        self._told[session.session_id] = told
        self._has_caught_up(session.session_id)

    def catch_up(self, session_id: str) -> None:
        """The client hears nothing of what happens in a session until that is shown; questions wait."""
        self._told.pop(session_id, None)
        self._behind.setdefault(session_id, anyio.Event())

    def _has_caught_up(self, session_id: str) -> None:
        if (behind := self._behind.pop(session_id, None)) is not None:
            behind.set()

    def forget(self, session_id: str) -> None:
        """The client hears of it no more."""
        self._told.pop(session_id, None)
        self._notes.pop(session_id, None)
        self._has_caught_up(session_id)

    def note(self, session_id: str, text: str) -> None:
        """Have the user told something with the session's next prompt: outside of one, nobody looks."""
        notes = self._notes.setdefault(session_id, [])
        if text not in notes:
            notes.append(text)

    def send(self, session_id: str, sent: Iterable[Json]) -> None:
        """Tell the client something of a session."""
        for update in sent:
            self._outbox.tell(session_id, encoded(session_id, update))

    def tell_commands(self, session_id: str, infos: Sequence[CommandInfo]) -> None:
        """Tell the commands that there are, where that is news."""
        update = updates.commands(infos)
        told = self._told.get(session_id)
        if told is not None and told.commands != update:
            told.commands = update
            self.send(session_id, [update])

    def tell_standing(self, session_id: str) -> None:
        """Tell what a session is called and has used, which no event tells a client that opens it."""
        if (told := self._told.get(session_id)) is not None:
            self.send(session_id, told.standing())

    # --- events -----------------------------------------------------------------------------------

    def publish(self, notification: EventNotification) -> None:
        """Tell the client of an event, where it knows the session."""
        session_id, event = notification.session_id, notification.event
        told = self._told.get(session_id)
        if told is None:
            return
        if isinstance(event, MessageUpdate):
            self._publish_delta(session_id, event, told)
        elif isinstance(event, ToolExecutionUpdate):
            self._publish_output(session_id, event)
        else:
            if isinstance(event, ToolExecutionEnd):
                self._output.pop((session_id, event.tool_call_id), None)
            self.send(session_id, told.tell(event))
            if isinstance(event, AgentStart):
                self.send(session_id, map(updates.thought, self._notes.pop(session_id, ())))

    def _publish_delta(self, session_id: str, event: MessageUpdate, told: Told) -> None:
        delta = event.update
        if delta.kind == "tool_call":
            if (update := told.begins(event)) is not None:
                self.send(session_id, [update])
            return
        if not delta.delta:
            return
        if delta.kind == "text":
            told.said.add(event.message_id)
        kind: updates.Chunk = "agent_message_chunk" if delta.kind == "text" else "agent_thought_chunk"
        message_id = told.message_id(event.message_id)
        self._outbox.tell_live(session_id, Piece(session_id, kind, message_id, delta.delta))

    def _publish_output(self, session_id: str, event: ToolExecutionUpdate) -> None:
        key = (session_id, event.tool_call_id)
        self._output[key] = (self._output.get(key, "") + event.update.delta)[-_MOST_OUTPUT:]
        if key not in self._due:
            self._due.add(key)
            self._start_soon(self._tell_output, key)

    async def _tell_output(self, key: tuple[str, str]) -> None:
        await anyio.sleep(OUTPUT_SECONDS)
        self._due.discard(key)
        output = self._output.get(key)  # a call that has ended has told all
        if output is not None and key[0] in self._told:
            self._outbox.tell_live(key[0], Output(*key, output))

    async def room(self) -> None:
        """Wait for a slow client, and give way to others now and then."""
        self._events += 1
        if self._events % _EVENTS_PER_STEP == 0:
            await anyio.lowlevel.checkpoint()
        if not self._outbox.is_open:
            await self._outbox.room()

    # --- questions --------------------------------------------------------------------------------

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Put a question to the user. None: no answer is to be had."""
        while (behind := self._behind.get(request.session_id)) is not None:
            await behind.wait()
        told = self._told.get(request.session_id)
        if told is None:
            return None
        params = {
            "sessionId": request.session_id,
            "toolCall": updates.asked(request, told.call_of(request)),
            "options": updates.options(request),
        }
        try:
            return _answer(await self._door.ask("session/request_permission", params))
        except ClientError as error:
            log.warning("no answer to a question of permission: %s", error)
            return None


def _answer(answer: Any) -> PermissionAnswer | None:
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    if not isinstance(outcome, dict):
        log.warning("an answer to a question of permission that is none")
        return None
    if outcome.get("outcome") == "cancelled":
        return PermissionAnswer(cancelled=True)
    option_id = outcome.get("optionId")
    if outcome.get("outcome") != "selected" or not isinstance(option_id, str):
        log.warning("an answer to a question of permission that is none")
        return None
    return PermissionAnswer.model_construct(option_id=option_id)  # one that there is not is no permission
