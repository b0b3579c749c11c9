"""What a new session takes over of another one, up to a message."""

from typing import Any

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import AssistantMessage, Message, Session, SessionFork, ToolResultMessage
from agentd.sessions.carried import CarriedStart, records_of
from agentd.sessions.state import SessionState


class Fork:
    """What is taken over of a session in its present state, which may be that of another process."""

    def __init__(self, state: SessionState, message_id: str | None) -> None:
        """Up to and with a message, else up to the last whole turn. Raises `RpcError` invalidParams."""
        whole = state.messages if state.run is None else state.messages[: state.run.whole_turns]
        if message_id is not None:
            whole = whole[: _end(whole, message_id)]
        self.messages: tuple[Message, ...] = tuple(whole)
        count = len(self.messages)
        self._starts = {
            key: CarriedStart(messages=start.messages, todo=start.todo)
            for key, start in state.starts.items()
            if start.messages < count
        }
        later = (start for start in state.starts.values() if start.messages >= count)
        first_left = min(later, key=lambda start: start.messages, default=None)
        self._todo = state.todo if first_left is None else first_left.todo
        self._memories = tuple(state.memories)
        self._parent = state

    def records(self) -> list[dict[str, Any]]:
        """What the new session's journal begins with."""
        return list(records_of(self.messages, self._starts, self._todo, self._memories))

    def info(self, session_id: str, now: str) -> Session:
        """The new session."""
        parent = self._parent.info(alive=False)
        last = self.messages[-1].message_id if self.messages else None
        fork = SessionFork(session_id=parent.session_id, message_id=last) if last is not None else None
        update = {
            "session_id": session_id,
            "state": "idle",
            "locked_by": None,
            "parent": None,
            "forked_from": fork,
            "created_at": now,
            "updated_at": now,
            "message_count": len(self.messages),
            "usage": None,
            "seq": 1,
        }
        return parent.model_copy(update=update)


def _end(messages: list[Message], message_id: str) -> int:
    """Where a fork ends that holds this message: behind the results of its calls, which belong to it."""
    place = next((n for n, each in enumerate(messages) if each.message_id == message_id), None)
    if place is None:
        raise RpcError(
            "invalidParams",
            f'/messageId: there is no message "{message_id}" in the whole turns of this session',
        )
    end = place + 1
    if isinstance(messages[place], AssistantMessage | ToolResultMessage):
        while end < len(messages) and isinstance(messages[end], ToolResultMessage):
            end += 1
    return end
