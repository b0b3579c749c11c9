"""From a session's journal to its state."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Session
from agentd.sessions.carried import KEY
from agentd.sessions.journal import Contents, Journal, JournalError, read
from agentd.sessions.records import Reader, number_of
from agentd.sessions.state import SessionState

log = logging.getLogger(__name__)


def take_over(path: Path, session_id: str) -> tuple[Journal, SessionState, tuple[int, ...]]:
    """Become the writer of a journal; give it, the state that it tells, and the lines that were lost.

    Raises what `Journal.open` raises.
    """
    journal, contents = Journal.open(path)
    try:
        return journal, _fold(contents, session_id), _lost(contents)
    except BaseException:
        journal.close()
        raise


def make(
    path: Path, header: Mapping[str, Any], carried: Sequence[Mapping[str, Any]]
) -> tuple[Journal, SessionState]:
    """Begin the journal of a new session with what it takes over of another one. Raises `JournalError`."""
    journal = Journal.create(path, header)
    state = SessionState(header["sessionId"])
    try:
        for record in carried:
            journal.append(record)
            state.carry(record[KEY])
    except BaseException:
        journal.close()
        path.unlink()
        raise
    return journal, state


def read_state(path: Path, session_id: str) -> tuple[SessionState, tuple[int, ...]]:
    """The state that a journal tells, and the lines that were lost. Raises `RpcError`."""
    try:
        contents = read(path)
    except JournalError as error:
        raise RpcError("storage", str(error)) from error
    state = _fold(contents, session_id)
    if not state.is_introduced:
        raise not_found(session_id)
    return state, _lost(contents)


def _lost(contents: Contents) -> tuple[int, ...]:
    """The lines whose records are gone. What a killed writer had not finished was never acknowledged."""
    numbers = [seq for record in contents.records if (seq := number_of(record)) is not None]
    has_all = numbers == list(range(1, len(numbers) + 1))
    damage = [d for d in contents.damage if d.reason != "torn" and not (has_all and d.reason == "nul")]
    for each in damage:
        log.warning("a session's journal: line %d cannot be read (%s)", each.line, each.reason)
    return tuple(d.line for d in damage if d.line > 1 or contents.header or not has_all)


_STEPS = {
    "turn_start",
    "turn_end",
    "message_start",
    "message_reset",
    "retry",
    "tool_execution_start",
    "tool_execution_end",
    "files_changed",
}
"""Events that say how a run goes. Once it has ended they are no part of the state."""


def _fold(contents: Contents, session_id: str) -> SessionState:
    """The state that the records tell. What cannot be read costs that record only.

    Of runs that have ended, only what stays of them is looked at: that is most of what reading takes.
    """
    state, reader = SessionState(session_id), Reader()
    last_end = _last_end(contents.records)
    seen: set[int | None] = set()
    for number, record in enumerate(contents.records):
        try:
            if KEY in record:
                state.carry(record[KEY])
                entry = None
            elif number < last_end and _type_of(record) in _STEPS:
                reader.pass_over(record)
                entry = None
            else:
                entry = reader.entry(record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = error.title if isinstance(error, ValidationError) else repr(error)
            log.warning("session %s: record %s is left out: %s", session_id, record.get("seq"), why)
            entry = None
        seq = number_of(record)
        if seq is not None and seq in seen:
            log.warning("session %s: record %s is there twice", session_id, seq)
        elif entry is not None:
            state.apply(entry)
        elif seq is not None:
            state.pass_over(seq)
        seen.add(seq)
    if not state.is_introduced and state.seq and (info := _introduction(contents, session_id)) is not None:
        state.introduce(info)
    return state


def _introduction(contents: Contents, session_id: str) -> Session | None:
    """The session as other records tell it, where the one that introduced it was lost; None if none does."""
    told = [record["summary"] for record in contents.records if "summary" in record]
    starts = [
        record["event"].get("prompt") for record in contents.records if _type_of(record) == "agent_start"
    ]
    settings = next((each for each in starts if isinstance(each, dict)), {})
    created = contents.header.get("createdAt")
    plain = {
        "sessionId": session_id,
        "workspaceUri": contents.header.get("workspaceUri"),
        "title": "",
        "model": settings.get("model"),
        "mode": "plan" if settings.get("mode") == "plan" else "ask",  # what one run was allowed is its own
        "state": "idle",
        "createdAt": created,
        "updatedAt": created,
        "messageCount": 0,
        "seq": 1,
    }
    for each in (*reversed(told), plain):
        try:
            return Session.model_validate(each)
        except ValidationError:
            continue
    return None


def _last_end(records: list[dict[str, Any]]) -> int:
    """The place of the last `agent_end`, 0 where there is none."""
    places = range(len(records) - 1, 0, -1)
    return next((place for place in places if _type_of(records[place]) == "agent_end"), 0)


def _type_of(record: dict[str, Any]) -> Any:
    event = record.get("event")
    return event.get("type") if isinstance(event, dict) else None


def not_found(session_id: str) -> RpcError:
    """The error that names a session which there is not."""
    return RpcError(
        "sessionNotFound",
        f'There is no session "{session_id}".',
        hint="agentd/session/list tells which there are.",
    )
