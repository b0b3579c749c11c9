"""Events as the journal keeps them.

A record is `{seq, time, promptId?, event, ...}` with beside the event what is never sent: the provider's own
data of a message, the digest of a prompt, what a compaction came to, the session as it stood at the end of a
run (for listing without reading it all). Each body is stored once: a tool result stands in its
`tool_execution_end`, and the `message_end` that follows holds only its id, which `Reader` fills in again.
"""

import functools
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from agentd.protocol.events import (
    CompactionEnd,
    CompactionKept,
    DurableEvent,
    EventNotification,
    MessageEnd,
    ToolExecutionEnd,
)
from agentd.protocol.messages import AssistantMessage, ToolResultMessage


@functools.cache
def _event_type() -> TypeAdapter[DurableEvent]:
    """Building it takes a good part of what starting takes, and only reading a journal needs it."""
    return TypeAdapter(DurableEvent)


@dataclass(frozen=True)
class Entry:
    """A durable event with its number, and what is journaled beside it under `private`."""

    seq: int
    time: str
    prompt_id: str | None
    event: DurableEvent
    private: dict[str, Any] = field(default_factory=dict)

    def notification(self, session_id: str) -> EventNotification:
        """The event as it is sent."""
        return EventNotification(
            session_id=session_id, prompt_id=self.prompt_id, seq=self.seq, time=self.time, event=self.event
        )

    def record(self) -> dict[str, Any]:
        """The event as it is journaled."""
        record: dict[str, Any] = {"seq": self.seq, "time": self.time, "event": self.event, **self.private}
        if self.prompt_id is not None:
            record["promptId"] = self.prompt_id
        if isinstance(self.event, MessageEnd):
            message = self.event.message
            if isinstance(message, ToolResultMessage):
                record["event"] = {"type": "message_end", "resultId": message.message_id}
            elif isinstance(message, AssistantMessage) and message.provider_data is not None:
                record["providerData"] = message.provider_data
        elif isinstance(self.event, CompactionEnd) and self.event.kept is not None:
            record["kept"] = self.event.kept
        return record


class Reader:
    """Turns a session's records back into entries, in order."""

    def __init__(self) -> None:
        self._results: dict[str, ToolResultMessage] = {}

    def entry(self, record: dict[str, Any]) -> Entry | None:
        """The entry of a record; None for a kind of record that a later version wrote.

        Raises ValueError when the record is none of ours.
        """
        body = record.get("event")
        if not isinstance(body, dict) or type(record.get("seq")) is not int:
            return None
        if "resultId" in body:
            result = self._results.pop(body["resultId"], None)
            if result is None:
                return None  # its body stood in a line that was lost
            event: DurableEvent = MessageEnd(message=result)
        else:
            event = _event_type().validate_python(body)
        if isinstance(event, ToolExecutionEnd):
            self._results[event.result.message_id] = event.result
        elif isinstance(event, MessageEnd) and "providerData" in record:
            message = event.message.model_copy(update={"provider_data": record["providerData"]})
            event = MessageEnd(message=message)
        elif isinstance(event, CompactionEnd) and "kept" in record:
            event = event.model_copy(update={"kept": CompactionKept.model_validate(record["kept"])})
        private: dict[str, Any] = {key: record[key] for key in ("promptDigest", "summary") if key in record}
        return Entry(record["seq"], str(record.get("time", "")), record.get("promptId"), event, private)
