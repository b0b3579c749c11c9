"""Server-sent events, sans I/O: bytes in, events out.

The rules are those of the WHATWG HTML standard, section "Server-sent events" (parsing an event stream), at
any chunking: the same bytes give the same events however the network cuts them. Lines are split as bytes and
decoded whole, so a character cut in two is no matter. Four deliberate departures, each forced by servers
that exist:

* the data at the end of a stream that lacks its closing blank line is still an event;
* the non-standard field `error` (old llama.cpp) is an event named "error" of its own;
* lines that are no field of an event are kept, as Google breaks off a stream with an error in bare JSON;
* a stream that ends inside a character raises `TruncatedEventStream` rather than giving U+FFFD.

`id` and `retry` concern reconnecting, which a model's answer cannot; they are ignored.
"""

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_CR, _LF = 0x0D, 0x0A
_IGNORED = frozenset(("", "id", "retry"))
"""Field names that say nothing here; the empty one is that of a comment."""
_FIELD_NAMES = ("data", "event", "id", "retry")
_MAX_STRAY = 64 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TruncatedEventStream(ValueError):
    """The bytes end inside a character."""


@dataclass(frozen=True)
class ServerSentEvent:
    """One event. `data` holds its data lines joined by line feeds; `event` is "message" unless named."""

    data: str
    event: str = "message"


class Lead:
    """What may come before an answer and is no part of it: blanks, and a byte order mark."""

    def __init__(self) -> None:
        self._held = b""  # no more than a mark

    def without(self, data: bytes) -> bytes:
        """The next bytes from the first that says something; none as long as there may be more of a lead."""
        data = (self._held + data).lstrip()
        answer = data.removeprefix(_BYTE_ORDER_MARK).lstrip()
        if _BYTE_ORDER_MARK.startswith(answer):
            self._held = data[: len(_BYTE_ORDER_MARK)]
            return b""
        return answer


class EventStream:
    """A decoder for one stream. Each byte is looked at a bounded number of times, however it is fed."""

    def __init__(self) -> None:
        self.stray: list[str] = []
        """The lines so far that are no field of an event, 64 KiB of characters at most."""
        self._stray_size = 0
        self._line = bytearray()
        self._after_cr = False
        self._first_line = True
        self._data: list[str] = []
        self._event = ""

    @property
    def has_words(self) -> bool:
        """Whether lines came that are no field of an event, and not the beginning of one that was cut off."""
        return any(not any(name.startswith(line) for name in _FIELD_NAMES) for line in self.stray)

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Take the next bytes; give the events that they complete."""
        if not chunk:
            return []
        events: list[ServerSentEvent] = []
        # A line ends at a lone CR at once; the LF of a pair that was cut in two then ends nothing.
        start = 1 if self._after_cr and chunk[0] == _LF else 0
        self._after_cr = chunk[-1] == _CR
        for end in _LINE_END.finditer(chunk, start):
            line = chunk[start : end.start()]
            start = end.end()
            if self._line:
                line = bytes(self._line) + line
                self._line.clear()
            self._take_line(line.decode(errors="replace"), events)
        self._line += chunk[start:]
        return events

    def close(self) -> list[ServerSentEvent]:
        """No more bytes: give what was left open. Raises `TruncatedEventStream`."""
        events: list[ServerSentEvent] = []
        try:
            rest = self._line.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                raise TruncatedEventStream("the stream ended inside a character") from None
            rest = self._line.decode(errors="replace")
        self._line.clear()
        if rest:
            self._take_line(rest, events)
        self._dispatch(events)
        return events

    def _take_line(self, line: str, events: list[ServerSentEvent]) -> None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix("\ufeff")
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "error":
            self._dispatch(events)
            events.append(ServerSentEvent(value, "error"))
        elif name not in _IGNORED and self._stray_size + len(line) <= _MAX_STRAY:
            self._stray_size += len(line)
            self.stray.append(line)

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        if self._data:
            events.append(ServerSentEvent("\n".join(self._data), self._event or "message"))
        self._data = []
        self._event = ""
