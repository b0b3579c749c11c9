"""The durable events of a session, read again from its journal for a client that attaches."""

import os
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentd.protocol.capabilities import LIMITS
from agentd.sessions.journal_form import (
    failing_as,
    open_to_read,
    parse,
    places_backwards,
    record_of,
    sound_body,
)
from agentd.sessions.records import REFERRED_TO, Replay, head_of, number_of

MAX_EVENTS = LIMITS["maxReplayEvents"]
MAX_BYTES = 8 * 1024 * 1024
_BLOCK_BYTES = 256 * 1024


class ReplayReader:
    """Reads behind event `after_seq`, as far as the journal goes, again and again until it has caught up.

    It begins where that, or what it refers to, begins: reading costs what is told, and not what is there.
    `seq` is the number of the last event that was read. Nothing is kept of a replay that would be too large
    or has a hole: its client gets a snapshot instead.
    """

    def __init__(self, path: Path, session_id: str, after_seq: int) -> None:
        self.seq = 0
        self._path = path
        self._after = after_seq
        self._replay = Replay(session_id)
        self._offset: int | None = None
        self._bytes = 0
        self._events: list[dict[str, Any]] = []
        self._is_possible = True

    def read_on(self) -> None:
        """Read what was added since. Raises `JournalError`. May run in a thread beside the writer."""
        with failing_as("read"), open_to_read(self._path) as file:
            if self._offset is None:
                self._offset = _beginning(file, self._after)
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


def _beginning(file: BufferedReader, after_seq: int) -> int:
    """The offset from which on a journal tells all events behind `after_seq`.

    Where the lines do not say that by themselves, it is that of the first one.
    """
    needed = _Needed()
    for offset, line in places_backwards(file, _BLOCK_BYTES):
        body = sound_body(line)
        head = head_of(body) if body is not None else None
        if body is None or head is None:
            return 0
        seq, kind = head
        if seq <= after_seq and not needed.any:
            return offset
        try:
            needed.take(kind, body, is_told=seq > after_seq)
        except (ValueError, KeyError, TypeError, AttributeError):
            return 0
    return 0


class _Needed:
    """The bodies that events refer to and that stand in lines further ahead."""

    def __init__(self) -> None:
        self._results: set[str] = set()
        self._prompts: set[str] = set()

    @property
    def any(self) -> bool:
        """Whether there are such."""
        return bool(self._results or self._prompts)

    def take(self, kind: str, body: bytes, *, is_told: bool) -> None:
        """Look at the line before the one taken last. Raises what a bad record does."""
        if kind == "message_end" and is_told and b'"resultId"' in body:
            self._results |= {result for result in [parse(body)["event"].get("resultId")] if result}
        elif kind == "tool_execution_end" and self._results:
            self._results.discard(parse(body)["event"]["result"]["messageId"])
        elif kind == "queue_changed" and (is_told or self._prompts):
            record = parse(body)
            queue = record["event"]["queue"]
            known = {*record.get("prompts", {}), *(each["promptId"] for each in queue if "prompt" in each)}
            # It has the bodies of what waits behind it, or they stand ahead; what waited then is no matter.
            told = {each["promptId"] for each in queue} if is_told else set()
            self._prompts = (self._prompts | told) - known
