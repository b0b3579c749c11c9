"""What a model server's answer says, as JSON values, sans I/O.

An answer is a stream of server-sent events with one JSON value each. Some servers do not stream though they
were asked to, and send one JSON value; some send a page of HTML. The first byte tells which it is. Google
breaks off a stream with an error that is no event but bare JSON over many lines: here it is one, "error".
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agentd.providers.json_text import parse_json
from agentd.providers.sse import EventStream, Lead, ServerSentEvent, TruncatedEventStream

_log = logging.getLogger(__name__)

_MAX_TRIES = 64
"""How often lines between the events are read as JSON: real errors have few that could be the last."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One JSON value, and the name of its event, "message" where it has none.

    `whole` says that the answer was this value and no stream. The value of an event named "error" may be its
    bare text.
    """

    value: Any
    event: str = "message"
    whole: bool = False


class AnswerPayloads:
    """The payloads of one answer of a provider. Whatever is no JSON is skipped, and logged once."""

    def __init__(self, provider: str) -> None:
        self.ended = False
        """Whether the stream's own end mark has come, `[DONE]`; what follows it is no part of the answer."""
        self.is_page = False
        """Whether the answer is a page of HTML."""
        self._provider = provider
        self._stream = EventStream()
        self._stray = self._tries = 0
        self._json: bytearray | None = None
        self._began = False
        self._lead = Lead()
        self._logged_noise = False

    @property
    def has_words(self) -> bool:
        """Whether something was said that is no event: by a server that is no model server, mostly."""
        return self._stream.has_words

    def feed(self, data: bytes) -> Iterable[Payload]:
        """Take the next bytes; give what they complete."""
        if not self._began:
            data = self._lead.without(data)
            if not data:
                return ()
            self._begin(data[:1])
        if self._json is not None:
            self._json += data
            return ()
        return chain(self._payloads(self._stream.feed(data)), self._bare())

    def close(self) -> Iterable[Payload]:
        """No more bytes: give what was left open."""
        if self._json is not None:
            value = parse_json(self._json.decode(errors="replace"))
            return () if value is None else (Payload(value, whole=True),)
        try:
            return chain(self._payloads(self._stream.close()), self._bare())
        except TruncatedEventStream as error:
            _log.warning("%s: %s", self._provider, error)
            return ()

    def _begin(self, first: bytes) -> None:
        self._began = True
        self.is_page = first == b"<"
        if first in (b"{", b"["):
            self._json = bytearray()

    def _payloads(self, events: Iterable[ServerSentEvent]) -> Iterator[Payload]:
        for event in events:
            yield from self._read(event.data.strip(), event.event)

    def _bare(self) -> Iterator[Payload]:
        """The error, perhaps in a list, in lines between the events, once its last line has come."""
        lines = self._stream.stray
        if self.ended or self._stray == len(lines):
            return
        self._stray = len(lines)
        if lines[-1].rstrip()[-1:] not in ("}", "]") or self._tries == _MAX_TRIES:
            return
        self._tries += 1
        start = next((number for number, line in enumerate(lines) if line[0] in "{["), len(lines))
        value = parse_json("\n".join(lines[start:]))
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict) and "error" in value:
            yield Payload(value, "error")

    def _read(self, data: str, event: str) -> Iterator[Payload]:
        if self.ended or self.is_page:
            return
        if data == "[DONE]":
            self.ended = True
        elif (value := parse_json(data)) is not None:
            yield Payload(value, event)
        elif event == "error":
            yield Payload(data, event)
        elif "\n" in data:  # events that a server forgot to part by a blank line
            for line in data.split("\n"):
                yield from self._read(line.strip(), event)
        elif data and not self._logged_noise:
            self._logged_noise = True
            _log.warning("%s: skipped data that is no JSON (%d characters)", self._provider, len(data))
