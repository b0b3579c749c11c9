"""A session as a list shows it, from the two ends of its journal: the middle is not read."""

import logging
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentd.protocol.messages import Session as SessionInfo
from agentd.sessions.journal import JournalError, holder, read_ends

log = logging.getLogger(__name__)


def summary_of(path: Path) -> SessionInfo | None:
    """A session for the list, from the ends of its journal."""
    try:
        _, records = read_ends(path)
    except (JournalError, OSError) as error:
        log.warning("a session that cannot be listed: %s", error)
        return None
    info, messages = None, 0
    for record in records:
        told = _told(record)
        if told is not None:
            info, messages = told, 0
        elif _type(record) == "message_end":
            messages += 1
    if info is None:
        return None
    last = records[-1]
    update = {
        "state": "idle",
        "seq": last.get("seq", info.seq),
        "updated_at": last.get("time", info.updated_at),
        "message_count": info.message_count + messages,
        "locked_by": holder(path),
    }
    return info.model_copy(update=update)


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
