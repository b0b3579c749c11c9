"""The editor as sessions see it: where events go and questions are asked."""

import logging
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
from pydantic import ValidationError

from agentd.daemon.door import ClientError, Door
from agentd.daemon.outbox import Outbox
from agentd.protocol.events import EventNotification, MessageUpdate
from agentd.protocol.messages import CommandSubject, EditSubject, PermissionRequest, ReadSubject
from agentd.protocol.methods import ClientOptions, PermissionAnswer
from agentd.protocol.text import visible
from agentd.server.event_updates import block_of, publish
from agentd.workspace.paths import WorkspaceError, path_of

log = logging.getLogger(__name__)

COALESCE_SECONDS = 0.1
_METHOD_NOT_FOUND = -32601
_EVENTS_PER_STEP = 64
"""So many events of a run go by before others get the loop, however fast the model speaks."""


class EditorFace:
    """One client. `options` is what it said of itself in an `agentd` object; None without one.

    `has_menu`: its user can answer in a menu of code actions, where it knows no questions.
    """

    def __init__(self, door: Door, outbox: Outbox, start_soon: Callable[..., object]) -> None:
        self.options: ClientOptions | None = None
        self.has_menu = False
        self.listeners: dict[str, Callable[[MessageUpdate], None]] = {}
        """Prompt -> who is told what the model writes in it, whether or not the client wants events."""
        self._door = door
        self._outbox = outbox
        self._start_soon = start_soon
        self._held: dict[
            str, list[EventNotification]
        ] = {}  # session -> updates of one block, held to coalesce
        self._events = 0

    def publish(self, notification: EventNotification) -> None:
        """Send an event to a client that wants events, at the pace it asked for."""
        if isinstance(notification.event, MessageUpdate) and notification.prompt_id in self.listeners:
            self.listeners[notification.prompt_id](notification.event)
        if self.options is None:
            return
        live = block_of(notification) is not None
        if live and self.options.updates == "none":
            return
        if self.options.updates == "coalesced":
            self._coalesce(notification, live)
        else:
            publish(self._outbox, notification)

    def _coalesce(self, notification: EventNotification, live: bool) -> None:
        session_id = notification.session_id
        held = self._held.get(session_id)
        if held is not None and not (live and block_of(held[-1]) == block_of(notification)):
            self.release(session_id)
            held = None
        if not live:
            publish(self._outbox, notification)
        elif held is not None:
            held.append(notification)
        else:
            self._held[session_id] = [notification]
            self._start_soon(self._release_later, session_id, self._held[session_id])

    async def _release_later(self, session_id: str, held: list[EventNotification]) -> None:
        await anyio.sleep(COALESCE_SECONDS)
        if self._held.get(session_id) is held:
            self.release(session_id)

    def release(self, session_id: str) -> None:
        """Send what was held of a session. The outbox makes one of its pieces."""
        for notification in self._held.pop(session_id, ()):
            publish(self._outbox, notification)

    async def room(self) -> None:
        """Wait for a slow client, and give way to others now and then."""
        self._events += 1
        if self._events % _EVENTS_PER_STEP == 0:
            await anyio.lowlevel.checkpoint()
        if not self._outbox.is_open:
            await self._outbox.room()

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Put a question to the user, in the richest way the client knows. None: no answer is to be had."""
        rich = self.options is not None and self.options.permission
        try:
            return await (self._ask_richly(request) if rich else self._ask_plainly(request))
        except ClientError as error:
            log.warning("no answer to a question of permission: %s", error)
        except ValidationError:  # whose text would repeat the answer
            log.warning("an answer to a question of permission that is none")
        return None

    async def _ask_richly(self, request: PermissionRequest) -> PermissionAnswer | None:
        answer = await self._door.ask("agentd/permission/request", request)
        return PermissionAnswer.model_validate(answer) if answer is not None else None

    async def _ask_plainly(self, request: PermissionRequest) -> PermissionAnswer | None:
        """LSP's own question, which every editor has. Its answer is the label of a button."""
        params = {
            "type": 3,  # MessageType.Info
            "message": _question(request),
            "actions": [{"title": option.label} for option in request.options],
        }
        try:
            answer: Any = await self._door.ask("window/showMessageRequest", params)
        except ClientError as error:
            if error.code != _METHOD_NOT_FOUND or not self.has_menu:
                raise
            where = "Allow or reject it in the menu of code actions."
            self._door.notify("window/showMessage", {"type": 3, "message": f"{params['message']}\n\n{where}"})
            await anyio.sleep_forever()  # until it is answered there
        title = answer.get("title") if isinstance(answer, dict) else None
        chosen = next((option for option in request.options if option.label == title), None)
        return PermissionAnswer(option_id=chosen.option_id) if chosen is not None else None


def _question(request: PermissionRequest) -> str:
    """The whole of what would happen: a question that hides the end of a command is no question."""
    subject = request.subject
    if isinstance(subject, CommandSubject):
        said = f"agentd wants to run in {subject.cwd}:\n{subject.command}"
        if subject.reason is not None:
            said += f"\n\nIt would run outside the sandbox. The model gives this reason: {subject.reason}"
    elif isinstance(subject, EditSubject):
        said = f"agentd wants to change {_file(subject.uri)}:\n{subject.patch}"
    elif isinstance(subject, ReadSubject):
        said = f"agentd wants to read {_file(subject.uri)}, which may hold secrets."
    else:
        said = f"agentd asks: {request.title}"
    return visible(said if request.child is None else f"{request.title}\n{said}")


def _file(uri: str) -> str:
    """The file that would be touched, and not the name the model has for it."""
    try:
        return str(path_of(uri))
    except WorkspaceError:
        return uri
