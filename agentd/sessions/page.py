"""A reading of a closed session from the end of its journal, which costs what is read and not what is there.

It is had where the journal's end says by itself how the session stands: its last run has ended, nothing
waits, and no line is missing. Everything else is for `loading.py`, which reads it all.
"""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentd.protocol.messages import Message, TodoItem
from agentd.protocol.methods import SessionGetParams, SessionGetResult
from agentd.sessions.journal import read_ends
from agentd.sessions.records import Replay
from agentd.sessions.summary import summary_of

_FIRST_TAIL = 128 * 1024
_MAX_TAIL = 16 * 1024 * 1024
_BESIDE_RUNS = {
    "session_changed", "queue_changed", "notice", "compaction_start", "compaction_end", "retry",
}  # fmt: skip
"""Events that come outside of runs: a client asks for a compaction, which may ask the model again."""


def read_page(path: Path, params: SessionGetParams) -> SessionGetResult | None:
    """What `agentd/session/get` answers; None where the end of the journal is not enough to know.

    Raises `JournalError` or `OSError`.
    """
    info, size, tail = summary_of(path), path.stat().st_size, _FIRST_TAIL
    while info is not None:
        records = read_ends(path, tail, 0)[1]
        if not _is_at_rest(records) or records[-1]["seq"] != info.seq:
            return None
        messages = _messages(records, params.session_id)
        end = _end_of_page(messages, params.before)
        start = None if end is None else end - params.limit
        if end is not None and start is not None and (start >= 0 or tail >= size):
            page, todo = _validated(messages[max(0, start) : end]), _todo(records)
            if page is None or todo is None:
                return None
            behind = len(messages) - end
            more = info.message_count > behind + len(page)
            return SessionGetResult(
                session=info, messages=page, has_more=more, pending=(), queue=(), todo=todo, seq=info.seq
            )
        if tail >= min(size, _MAX_TAIL):
            return None
        tail *= 4
    return None


def _is_at_rest(records: list[dict[str, Any]]) -> bool:
    """Whether these last records are whole and tell of no rewind, and behind the end of a run there is no
    other, and no queue."""
    numbers = [record.get("seq") for record in records]
    if (
        not numbers
        or type(numbers[0]) is not int
        or numbers != list(range(numbers[0], numbers[0] + len(numbers)))
    ):
        return False
    if any((record.get("event") or {}).get("type") == "session_rewound" for record in records):
        return False  # what it took away, or brought back, may lie anywhere
    is_compacted = False  # whether the compaction that is being looked at has its end
    for record in reversed(records):
        event = record.get("event") or {}
        kind = event.get("type")
        if kind == "agent_end":
            return bool(record.get("waiting") == 0)
        is_open = kind == "compaction_start" and not is_compacted
        if kind not in _BESIDE_RUNS or event.get("queue") or is_open:
            return False
        if kind in ("compaction_start", "compaction_end"):
            is_compacted = kind == "compaction_end"
    return False


def _messages(records: list[dict[str, Any]], session_id: str) -> list[dict[str, Any]]:
    """The messages that these records tell, oldest first."""
    replay = Replay(session_id)
    told = [replay.notification(record) for record in records]
    return [each["event"]["message"] for each in told if each and each["event"]["type"] == "message_end"]


def _todo(records: list[dict[str, Any]]) -> tuple[TodoItem, ...] | None:
    """The to-do list, as the end of the last run told it; None where it did not, or not as we know it."""
    ends = [record for record in records if record["event"].get("type") == "agent_end"]
    try:
        return TypeAdapter(tuple[TodoItem, ...]).validate_python(tuple(ends[-1]["todo"]))
    except (KeyError, TypeError, ValidationError):
        return None


def _end_of_page(messages: list[dict[str, Any]], before: str | None) -> int | None:
    """Where a page ends that goes up to message `before`; None where that is not among them."""
    if before is None:
        return len(messages)
    return next((n for n, message in enumerate(messages) if message["messageId"] == before), None)


def _validated(messages: list[dict[str, Any]]) -> tuple[Message, ...] | None:
    """The messages as such; None where one of them is of a later version."""
    types: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])
    try:
        return types.validate_python(tuple(messages))
    except ValidationError:
        return None
