"""A session as a list shows it, from the two ends of its journal: the middle is not read."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from agentd.protocol.messages import Session as SessionInfo
from agentd.sessions.journal import holder, read_ends
from agentd.sessions.records import number_of

State = Literal["idle", "running", "waiting"]

_TAILS = ((4 * 1024, 0), (32 * 1024, 0), (256 * 1024, 16 * 1024))
"""How much of a journal's end and beginning is read, in bytes, until that is enough. The first mostly is."""

BESIDE_RUNS = {
    "session_changed", "queue_changed", "notice", "compaction_start", "compaction_end", "retry",
}  # fmt: skip
"""Events that come also outside of runs: a client asks for a compaction, which may ask the model again."""

_OF_REWINDS = {"session_rewound", "todo_changed"}


def summary_of(path: Path) -> SessionInfo | None:
    """A session for the list, from the ends of its journal; None where they hold none, or end with a rewind.

    Most journals end with the end of a run, which tells the session as it stood then. Where the last run is
    long and has no end, `message_count` counts what was read of it. Raises `JournalError` or `OSError`.
    """
    pid = holder(path)
    state: State | None = None
    for tail_bytes, head_bytes in _TAILS:
        _, found = read_ends(path, tail_bytes, head_bytes)
        records = [record for record in found if number_of(record) is not None]
        place = next((n for n in range(len(records) - 1, -1, -1) if _told(records[n]) is not None), None)
        is_whole = (  # nothing is missing between the two
            place is not None and _seq(records[-1]) - _seq(records[place]) == len(records) - 1 - place
        )
        state = "idle" if pid is None else _state_of(_unbroken(records))
        if is_whole and state is not None:
            break
    info = _told(records[place]) if place is not None else None
    if place is None or info is None:
        return None
    if any(_type(record) == "session_rewound" for record in records[place + 1 :]):
        return None  # how many messages there are now is known to who reads it all
    messages = sum(_type(record) == "message_end" for record in records[place + 1 :])
    last = records[-1]
    update = {
        "state": state or "idle",
        "seq": last.get("seq", info.seq),
        "updated_at": last["time"] if isinstance(last.get("time"), str) else info.updated_at,
        "message_count": info.message_count + messages,
        "locked_by": pid,
    }
    return info.model_copy(update=update)


def _unbroken(records: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The last of these records, the newest first, as far as none is missing between them."""
    later: int | None = None
    for record in reversed(records):
        number = _seq(record)
        if later is not None and number != later - 1:
            return
        yield record
        later = number


def _state_of(last_first: Iterable[dict[str, Any]]) -> State | None:
    """Where the process that holds a session stands with it; None where these records do not tell."""
    is_running, first = False, 0
    resolved = set()
    for record in last_first:
        kind, event, first = _type(record), record.get("event") or {}, _seq(record)
        if kind == "agent_end":
            return "idle"
        if kind == "agent_start":
            return "running"
        if kind == "permission_resolved":
            resolved.add(event.get("requestId"))
        elif kind == "permission_requested" and event.get("requestId") not in resolved:
            return "waiting"
        is_running = is_running or (kind is not None and kind not in {*BESIDE_RUNS, *_OF_REWINDS})
    if is_running:
        return "running"
    return "idle" if first == 1 else None


def _seq(record: dict[str, Any]) -> int:
    return number_of(record) or 0


def _told(record: dict[str, Any]) -> SessionInfo | None:
    body = record.get("summary")
    if body is None and _type(record) == "session_changed":
        body = record["event"].get("session")
    try:
        return SessionInfo.model_validate(body) if body is not None else None
    except ValidationError:
        return None


def _type(record: dict[str, Any]) -> str | None:
    event = record.get("event")
    return event.get("type") if isinstance(event, dict) else None


def cursor_of(info: SessionInfo) -> str:
    """The place of a session in a list: newer ones have a greater one."""
    return f"{info.updated_at}~{info.session_id}"
