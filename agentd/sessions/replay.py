"""The durable events of a session, read again from its journal for a client that attaches."""

import os
from pathlib import Path
from typing import Any

from agentd.protocol.capabilities import LIMITS
from agentd.sessions.journal_form import failing_as, open_to_read, record_of, sound_body
from agentd.sessions.records import REFERRED_TO, Replay, head_of, number_of

MAX_EVENTS = LIMITS["maxReplayEvents"]
MAX_BYTES = 8 * 1024 * 1024


class ReplayReader:
    """Reads behind event `after_seq`, as far as the journal goes, again and again until it has caught up.

    `seq` is the number of the last event that was read. Nothing is kept of a replay that would be too large
    or has a hole: its client gets a snapshot instead.
    """

    def __init__(self, path: Path, session_id: str, after_seq: int) -> None:
        self.seq = 0
        self._path = path
        self._after = after_seq
        self._replay = Replay(session_id)
        self._offset = 0
        self._bytes = 0
        self._events: list[dict[str, Any]] = []
        self._is_possible = True

    def read_on(self) -> None:
        """Read what was added since. Raises `JournalError`. May run in a thread beside the writer."""
        with failing_as("read"), open_to_read(self._path) as file:
            file.seek(self._offset, os.SEEK_SET)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # in the making
                self._offset += len(line)
                if self._is_behind(line):
                    continue
                record = record_of(line)
                if record is not None and number_of(record) is not None:
                    self._take(record, len(line))

    def _is_behind(self, line: bytes) -> bool:
        """Whether its client has this event and no later one refers to it: the rest of it is not read."""
        body = sound_body(line[:-1])
        head = head_of(body) if body is not None else None
        if head is None or head[0] > self._after or head[1] in REFERRED_TO:
            return False
        self.seq = max(self.seq, head[0])
        return True

    def _take(self, record: dict[str, Any], size: int) -> None:
        try:
            told = self._replay.notification(record)
        except (KeyError, TypeError, AttributeError):
            told = None  # none of ours: a hole
        self.seq = max(self.seq, record["seq"])
        if record["seq"] <= self._after or not self._is_possible:
            return
        expected = self._after + len(self._events) + 1
        self._bytes += size
        if (
            told is None
            or record["seq"] != expected
            or self._bytes > MAX_BYTES
            or len(self._events) == MAX_EVENTS
        ):
            self._is_possible = False
            self._events = []
        else:
            self._events.append(told)

    @property
    def events(self) -> list[dict[str, Any]] | None:
        """The params of `agentd/event` of all behind `after_seq`; None where they cannot be had."""
        return self._events if self._is_possible and self.seq >= self._after else None
