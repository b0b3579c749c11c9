"""A reading of a closed session from the end of its journal, which costs what is read and not what is there.

It is had where the journal's end says by itself how the session stands: its last run has ended, nothing
waits, and no line is missing. Everything else is for `loading.py`, which reads it all.

Lines are taken from the last one on, each once. Most are passed over with a look at their first bytes, and
the messages go to the client as they were journaled: their check value says that they are what was written.
"""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.messages import TodoItem
from agentd.protocol.methods import SessionGetParams, SessionGetResult
from agentd.protocol.wire import Encoded
from agentd.sessions.journal_form import (
    failing_as,
    is_header,
    lines_backwards,
    open_to_read,
    parse,
    sound_body,
)
from agentd.sessions.records import head_of
from agentd.sessions.summary import BESIDE_RUNS, summary_of

_BLOCK_BYTES = 256 * 1024

_BLOCKS = {
    "user": {"text", "image", "resource", "command"},
    "assistant": {"text", "thinking", "tool_call"},
    "tool_result": {"text", "image"},
}
"""What messages of this version hold, by their role."""


class _NotTold(Exception):
    """The end of the journal is not enough to know."""


def read_page(path: Path, params: SessionGetParams) -> Encoded | None:
    """What `agentd/session/get` answers; None where the end of the journal is not enough to know.

    Raises `JournalError` or `OSError`.
    """
    info = summary_of(path)
    if info is None:
        return None
    page = _Page(info, params)
    try:
        with failing_as("read"), open_to_read(path) as file:
            for line in lines_backwards(file, _BLOCK_BYTES):
                page.take(line)
                if page.is_whole:
                    return page.answer()
    except (_NotTold, ValueError, KeyError, TypeError):
        pass  # what is wrong with a record is told by who reads it all
    return None


class _Page:
    """Takes the lines of a journal, the last one first, until it has what was asked for."""

    def __init__(self, info: SessionInfo, params: SessionGetParams) -> None:
        self._info = info
        self._before = params.before
        self._limit = params.limit
        self._seq = info.seq + 1  # of the record behind
        self._end: dict[str, Any] | None = None  # of the last run
        self._in_compaction = False
        self._behind = 0  # how many messages stand behind the page
        self._messages: list[bytes] = []  # as JSON, the last one first
        self._awaited: dict[str, int] = {}  # results whose bodies stand further ahead, and their places
        self._is_at_start = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing more is to be read."""
        found = self._end is not None and self._before is None
        return found and not self._awaited and (self._is_at_start or len(self._messages) == self._limit)

    def take(self, line: bytes) -> None:
        """Look at the line before the one taken last. Raises `_NotTold`, or what a bad record does."""
        body = sound_body(line)
        head = head_of(body) if body is not None else None
        if body is None or head is None:
            self._take_header(body)
            return
        self._seq -= 1
        seq, kind = head
        if seq != self._seq or kind == "session_rewound":
            raise _NotTold  # a line is missing; or what a rewind took away, or brought back, may lie anywhere
        if self._end is None:
            self._take_last(kind, body)
        elif kind == "message_end":
            self._take_message(body)
        elif kind == "tool_execution_end" and self._awaited:
            result = parse(body)["event"]["result"]
            if (place := self._awaited.pop(result["messageId"], None)) is not None:
                self._messages[place] = _encoded(result)

    def _take_header(self, body: bytes | None) -> None:
        if body is None or self._seq != 1 or not is_header(parse(body)):
            raise _NotTold
        self._is_at_start = True

    def _take_last(self, kind: str, body: bytes) -> None:
        """One of the records behind the end of the last run: there must be no other run, and no queue."""
        record = parse(body)
        if kind == "agent_end" and record.get("waiting") == 0:
            self._end = record
            return
        is_open = kind == "compaction_start" and not self._in_compaction
        if kind not in BESIDE_RUNS or record["event"].get("queue") or is_open:
            raise _NotTold
        if kind in ("compaction_start", "compaction_end"):
            self._in_compaction = kind == "compaction_end"

    def _take_message(self, body: bytes) -> None:
        if self._before is not None:
            self._behind += 1
            if self._before.encode() in body and _id_of(parse(body)["event"]) == self._before:
                self._before = None
        elif len(self._messages) < self._limit:
            event = parse(body)["event"]
            if "resultId" in event:
                self._awaited[event["resultId"]] = len(self._messages)
            self._messages.append(b"" if "resultId" in event else _encoded(event["message"]))

    def answer(self) -> Encoded:
        """What was asked for. Raises `_NotTold` or KeyError where the end of the last run tells less."""
        assert self._end is not None
        try:
            todo = TypeAdapter(tuple[TodoItem, ...]).validate_python(tuple(self._end["todo"]))
        except ValidationError as error:
            raise _NotTold from error
        frame = SessionGetResult(
            session=self._info,
            messages=(),
            has_more=self._info.message_count > self._behind + len(self._messages),
            pending=(),
            queue=(),
            todo=todo,
            seq=self._info.seq,
        )
        messages = b",".join(reversed(self._messages))
        return Encoded(b'{"messages":[%b],%b' % (messages, to_json(frame, exclude={"messages"})[1:]))


def _id_of(event: dict[str, Any]) -> Any:
    return event["resultId"] if "resultId" in event else event["message"]["messageId"]


def _encoded(message: dict[str, Any]) -> bytes:
    """A message as it is sent. Raises `_NotTold` for one of a later version."""
    known = _BLOCKS.get(message["role"])
    if known is None or not all(block["type"] in known for block in message["content"]):
        raise _NotTold
    return to_json(message, inf_nan_mode="null")
