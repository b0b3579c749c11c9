"""Events as the journal keeps them.

A record is `{seq, time, promptId?, event, ...}` with beside the event what is never sent: the provider's own
data of a message, what the model is shown of the user's words, the digest of a prompt, the model that a
notice is about, what a compaction or a call's children came to, the session as it stood behind a run or a
compaction (for listing without reading it all). Each body is stored once: a tool result stands in its
`tool_execution_end`, and the `message_end` that follows holds only its id, which `Reader` fills in again.
"""

import functools
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from agentd.protocol.events import (
    AgentStart,
    CompactionEnd,
    CompactionKept,
    DurableEvent,
    EventNotification,
    MessageEnd,
    QueueChanged,
)
from agentd.protocol.messages import AssistantMessage, ResultBlock, ToolResultMessage, UserMessage
from agentd.protocol.methods import PromptParams
from agentd.protocol.wire import Id, Many, Wire
from agentd.sessions.family import KEPT, Delegated


class Shown(Wire):
    """What the model is shown of a message of the user, where that was found out after it was said."""

    message_id: Id
    content: Many[ResultBlock]


@functools.cache
def _event_type() -> TypeAdapter[DurableEvent]:
    """Building it takes a good part of what starting takes, and only reading a journal needs it."""
    return TypeAdapter(Annotated[DurableEvent, Field(discriminator="type")])


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

    def record(self, queued: Collection[str] = ()) -> dict[str, Any]:
        """The event as it is journaled. `queued`: prompts of the queue whose bodies are journaled already."""
        record: dict[str, Any] = {"seq": self.seq, "time": self.time, "event": self.event, **self.private}
        if self.prompt_id is not None:
            record["promptId"] = self.prompt_id
        if isinstance(self.event, MessageEnd):
            message = self.event.message
            if isinstance(message, ToolResultMessage):
                record["event"] = {"type": "message_end", "resultId": message.message_id}
            elif isinstance(message, AssistantMessage) and message.provider_data is not None:
                record["providerData"] = message.provider_data
            elif isinstance(message, UserMessage) and message.shown is not None:
                record["shown"] = message.shown
        elif isinstance(self.event, QueueChanged):
            known = {*queued, *self.private.get("prompts", ())}
            queue = [
                each.model_dump(exclude={"prompt"}) if each.prompt_id in known else each
                for each in self.event.queue
            ]
            record["event"] = {"type": "queue_changed", "queue": queue}
        elif isinstance(self.event, CompactionEnd) and self.event.kept is not None:
            record["kept"] = self.event.kept
        return record


_HEAD = re.compile(rb'\{"seq":(\d{1,18}),"time":"[^"\\]*","event":\{"type":"(\w+)"')


def head_of(body: bytes) -> tuple[int, str] | None:
    """Number and type of an event's raw record, by its first bytes: most are passed over without parsing.

    None for a record that begins otherwise, which makes it no bad one.
    """
    head = _HEAD.match(body)
    return (int(head[1]), head[2].decode()) if head is not None else None


_MOST = 2**53
"""A number above it, which JavaScript cannot count on from, is none that was given."""


def number_of(record: dict[str, Any]) -> int | None:
    """The number of an event's record; None where it has none of ours."""
    seq = record.get("seq")
    return seq if type(seq) is int and 0 < seq < _MOST else None


class _Private(Wire):
    """What is journaled beside an event and has a form of its own."""

    prompt_digest: str | None = None
    steer: str | None = None
    cuts_prompts: str | None = None
    damage: Many[int] = ()
    rewind: str | None = None
    rewound_by: str | None = None
    refused: dict[str, dict[str, Any]] = Field(default_factory=dict)
    prompts: dict[str, dict[str, Any]] = Field(default_factory=dict)


_PRIVATE = ("promptDigest", "cutsPrompts", "summary", "steer", "refused", "damage", "rewind", "rewoundBy")


REFERRED_TO = {"tool_execution_end", "queue_changed"}
"""Events whose bodies later records leave out."""


class _Queue:
    """The bodies of the prompts that stand in the queue."""

    def __init__(self) -> None:
        self._bodies: dict[str, Any] = {}

    def fill(self, record: dict[str, Any]) -> dict[str, Any]:
        """The whole event of a `queue_changed`. A prompt whose body was in a lost line is left out."""
        queue: list[dict[str, Any]] = record["event"]["queue"]
        self._bodies |= {each["promptId"]: each["prompt"] for each in queue if "prompt" in each}
        self._bodies |= {key: said["prompt"] for key, said in record.get("prompts", {}).items()}
        told = [each for each in queue if each["promptId"] in self._bodies]
        self._bodies = {each["promptId"]: self._bodies[each["promptId"]] for each in told}
        whole = [{**each, "prompt": _blocks(self._bodies[each["promptId"]])} for each in told]
        return {"type": "queue_changed", "queue": whole}


def _blocks(prompt: Any) -> Any:
    return [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt


class Reader:
    """Turns a session's records back into entries, in order."""

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}
        self._queue = _Queue()

    def pass_over(self, record: dict[str, Any]) -> None:
        """Take from a record what later ones refer to, and leave the rest of it."""
        body = record["event"]
        if body.get("type") == "tool_execution_end":
            self._results[body["result"]["messageId"]] = body["result"]

    def entry(self, record: dict[str, Any]) -> Entry | None:
        """The entry of a record; None for a kind of record that a later version wrote.

        Raises ValueError, KeyError, TypeError or AttributeError when the record is none of ours.
        """
        body = record.get("event")
        if not isinstance(body, dict) or number_of(record) is None:
            return None
        if "resultId" in body:
            result = self._results.pop(body["resultId"], None)
            if result is None:
                return None  # its body stood in a line that was lost
            event = _event_type().validate_python({"type": "message_end", "message": result})
        elif body.get("type") == "queue_changed":
            event = _event_type().validate_python(self._queue.fill(record))
        else:
            event = _event_type().validate_python(body)
        self.pass_over(record)
        if isinstance(event, MessageEnd) and "providerData" in record:
            message = event.message.model_copy(update={"provider_data": record["providerData"]})
            event = MessageEnd(message=message)
        elif isinstance(event, MessageEnd) and "shown" in record:
            told = {"message_id": event.message.message_id, "content": record["shown"]}
            shown = Shown.model_validate(told).content
            event = MessageEnd(message=event.message.model_copy(update={"shown": shown}))
        elif isinstance(event, CompactionEnd) and "kept" in record:
            event = event.model_copy(update={"kept": CompactionKept.model_validate(record["kept"])})
        prompt_id = record.get("promptId")
        if not isinstance(prompt_id, str) and (prompt_id is not None or isinstance(event, AgentStart)):
            raise ValueError("a run without the id of its prompt")
        private: dict[str, Any] = {key: record[key] for key in _PRIVATE if key in record}
        if KEPT in record:
            private[KEPT] = Delegated.model_validate(record[KEPT])
        if private or "prompts" in record:
            _Private.model_validate(record)
        if "prompts" in record:
            prompts: dict[str, Any] = record["prompts"]
            private["prompts"] = {key: PromptParams.model_validate(said) for key, said in prompts.items()}
        if "shownNow" in record:
            private["shownNow"] = Shown.model_validate(record["shownNow"])
        return Entry(record["seq"], str(record.get("time", "")), prompt_id, event, private)


class Replay:
    """Turns a session's records into events as they were sent, without looking into them: it costs little."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._results: dict[str, Any] = {}
        self._queue = _Queue()

    def notification(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """The params of `agentd/event` of a record; None where its body stood in a line that was lost.

        Raises KeyError, TypeError or AttributeError when the record is none of ours.
        """
        body = record.get("event")
        if not isinstance(body, dict) or number_of(record) is None:
            return None
        kind = body.get("type")
        if "resultId" in body:
            result = self._results.pop(body["resultId"], None)
            if result is None:
                return None
            body = {"type": kind, "message": result}
        elif kind == "tool_execution_end":
            self._results[body["result"]["messageId"]] = body["result"]
        elif kind == "queue_changed":
            body = self._queue.fill(record)
        told = {"sessionId": self._session_id, "seq": record["seq"], "time": record["time"], "event": body}
        if "promptId" in record:
            told["promptId"] = record["promptId"]
        return told
