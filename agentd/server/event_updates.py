"""`agentd/event` on its way out: how events are written, and which live updates become one."""

from pydantic_core import to_json

from agentd.daemon.outbox import Outbox, Update
from agentd.protocol.events import (
    EventNotification,
    MessageDelta,
    MessageUpdate,
    ToolDelta,
    ToolExecutionUpdate,
)
from agentd.protocol.text import utf16_length

_ENVELOPE_BYTES = 400
"""What a live update has around its text, roughly."""

_EVENT_HEAD = b'{"jsonrpc":"2.0","method":"agentd/event","params":'


def publish(outbox: Outbox, notification: EventNotification) -> None:
    """Queue an event, merging it with its like."""
    block = block_of(notification)
    if block is None:
        outbox.tell(notification.session_id, encoded_event(notification))
    else:
        outbox.tell_live(notification.session_id, EventUpdate(notification, block))


class EventUpdate:
    """Live updates of one block that wait to be sent, as one; `outbox.Update`."""

    def __init__(self, notification: EventNotification, block: tuple[object, ...]) -> None:
        delta = _delta(notification)
        self.block = block
        self._notification = notification
        self._pieces = [delta.delta]
        self._start = delta.offset
        self._end = delta.offset + utf16_length(delta.delta)
        self.size = len(to_json(delta.delta)) + _ENVELOPE_BYTES

    def takes(self, later: Update) -> bool:
        """Add an update where it goes on right at the end of this one; False where it does not."""
        if not isinstance(later, EventUpdate) or later.block != self.block or later._start != self._end:
            return False
        self._pieces += later._pieces
        self._end = later._end
        self.size += later.size - _ENVELOPE_BYTES
        return True

    def body(self) -> bytes:
        """The notification of them all."""
        notification = self._notification
        if len(self._pieces) > 1:
            event = notification.event
            assert isinstance(event, MessageUpdate | ToolExecutionUpdate)
            update = event.update.model_copy(update={"delta": "".join(self._pieces)})
            notification = notification.model_copy(
                update={"event": event.model_copy(update={"update": update})}
            )
        return encoded_event(notification)


def encoded_event(notification: EventNotification) -> bytes:
    """The body of an `agentd/event` notification.

    The envelope is written by hand: as a model, it would have the types of all events built for the first.
    """
    ids = {"sessionId": notification.session_id, "promptId": notification.prompt_id, "seq": notification.seq}
    head = {name: value for name, value in (*ids.items(), ("time", notification.time)) if value is not None}
    return b'%b%b,"event":%b}}' % (_EVENT_HEAD, to_json(head)[:-1], to_json(notification.event))


def block_of(notification: EventNotification) -> tuple[object, ...] | None:
    """Which block a live update belongs to; None for a durable event."""
    event = notification.event
    if isinstance(event, MessageUpdate):
        update = event.update
        return (
            notification.session_id, event.message_id, update.index, update.tool_call_id, update.tool_name
        )  # fmt: skip
    if isinstance(event, ToolExecutionUpdate):
        return (notification.session_id, event.tool_call_id, event.update.channel)
    return None


def _delta(notification: EventNotification) -> MessageDelta | ToolDelta:
    event = notification.event
    assert isinstance(event, MessageUpdate | ToolExecutionUpdate)
    return event.update
