"""What a command prints: a bounded copy for the model, and a bounded stream for the user who watches.

Both work at the source, as bytes come, so that a command that prints for ever costs no memory and never waits
for whoever watches. The model's copy is cleaned before it is cut: no terminal control sequences (ECMA-48),
and of a line that was rewritten in place (a progress bar) its last state only. The live stream is raw.
"""

import codecs
import re
from collections.abc import Awaitable, Callable

import anyio

from agentd.protocol.text import utf16_length

RESULT_BYTES = 50_000
"""The most that a result shows of an output, as UTF-8, cut marker included."""

PRINTED_CHARACTERS = 64 * 1024
"""The most that is kept of an output in colour."""

LIVE_CHARACTERS = 256 * 1024
"""The most live text that waits for whoever watches."""

LiveSink = Callable[[str, int], Awaitable[None]]
"""Takes live text. May wait."""

# A line longer than this many characters goes on its way before it ends.
_LINE_LIMIT = 8192
# A cut is moved to the end of a line that is at most this many bytes away.
_NEAR_BYTES = 2000
_MARKER_BYTES = 200

# What cannot be in a text that is clean already, as UTF-8; \xc2 leads in the controls U+0080 to U+009F.
_SUSPECT_BYTES = bytes([*range(9), *range(13, 32), 0x7F, 0xC2])
_STRING_START = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"  # OSC, DCS, SOS, PM, APC
_STRING_BODY = r"[^\x07\x1b\x9c\n]*"
_SEQUENCE = re.compile(
    rf"{_STRING_START}{_STRING_BODY}(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"
)
# At the end of the text so far, what may be the first part of a sequence.
_UNFINISHED = re.compile(rf"(?:(?P<start>\x1b[\]PX^_]){_STRING_BODY}(?P<end>\x1b?)|\x1b\[?[ -?]*)\Z")
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")  # SGR: colours and weights
_CUT_SEQUENCE = re.compile(r"\A\[?[0-9;:]*m")  # the end of one whose beginning is not there
_TO_LINE_START = re.compile(r"(?:\x1b\[|\x9b)(?:[01]?G|2K)")  # cursor to column 1, erase the line
_OTHER_CONTROL = re.compile(r"[\x01-\x07\x0e-\x1f\x7f-\x84\x86-\x9f]")
_NUMBER = re.compile(r"\d+")


class OutputCapture:
    """The model's copy of an output: cleaned, its head and tail kept, the middle cut when it is too long."""

    def __init__(self, limit: int = RESULT_BYTES) -> None:
        self.total_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._shown = ShownText(limit, with_overflow=True)
        self._printed = _Printed(PRINTED_CHARACTERS)

    @property
    def printed(self) -> str | None:
        """The end of it with its colours; None where it has none, or `text` tells more of it."""
        return self._printed.text(may_be_cut=self.truncated)

    @property
    def truncated(self) -> bool:
        """Whether `text` leaves something out."""
        return self._shown.truncated

    @property
    def text(self) -> str:
        """What was kept, with a marker where text was cut."""
        return self._shown.text

    def feed(self, data: bytes) -> str:
        """Take output as it was read, and give it back as text: bytes that are no UTF-8 become U+FFFD."""
        self.total_bytes += len(data)
        text = self._decoder.decode(data)
        self._shown.feed(text)
        self._printed.feed(text)
        return text

    def finish(self) -> str:
        """The output is over. Gives back what was left of a character that never became whole."""
        text = self._decoder.decode(b"", final=True)
        self._shown.feed(text)
        self._printed.feed(text)
        self._shown.finish()
        return text

    def take_overflow(self) -> bytes:
        """What came since the last time of an output that is too long: the first time, all of it so far."""
        return self._shown.take_overflow()


class ShownText:
    """Text as the model is shown it: cleaned, the middle cut when it is too long, or taken piece by piece.

    `with_overflow`: what is cut waits for `take_overflow`, which has to be called.
    """

    def __init__(self, limit: int = RESULT_BYTES, *, with_overflow: bool = False) -> None:
        self._limit = limit
        self._cleaner = TerminalText()
        self._kept = _HeadAndTail(limit, with_overflow)

    @property
    def truncated(self) -> bool:
        """Whether `text` leaves something out."""
        return self._kept.is_cut

    @property
    def text(self) -> str:
        """What was kept, with a marker where text was cut."""
        return self._kept.text()

    def feed(self, text: str) -> None:
        """Take more text."""
        self._kept.add(self._cleaner.feed(text))

    def finish(self) -> None:
        """Take in the last line, which no line end follows yet."""
        self._kept.add(self._cleaner.finish())

    def take_overflow(self) -> bytes:
        """See `OutputCapture.take_overflow`."""
        return self._kept.take_overflow()

    def take(self) -> tuple[str, bool]:
        """The text since the last time, an unfinished line included, and whether it leaves something out."""
        self.finish()
        text, truncated = self.text, self.truncated
        self._kept = _HeadAndTail(self._limit, with_overflow=False)
        return text, truncated


class TerminalText:
    """Turns what was meant for a terminal into plain text, line by line."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def feed(self, text: str) -> str:
        """Take more text and give back, cleaned, the lines that are now complete."""
        self._pieces.append(text)
        self._length += len(text)
        if "\n" not in text and self._length < _LINE_LIMIT:
            return ""
        lines, newline, rest = "".join(self._pieces).rpartition("\n")
        overlong, rest = _shorten(rest) if len(rest) >= _LINE_LIMIT else ("", rest)
        self._pieces, self._length = [rest], len(rest)
        return clean(lines + newline) + overlong

    def finish(self) -> str:
        """The last line, which no line end follows."""
        rest = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return clean(rest)


def _shorten(line: str) -> tuple[str, str]:
    """Make room in a long unfinished line: what can go, cleaned, and what must stay as it is."""
    unfinished = ""
    escape = max(line.rfind("\x1b", 0, -1), 0)  # an escape at the very end may close the sequence before it
    if match := _UNFINISHED.search(line, escape):
        line = line[: match.start()]
        # The body of a string (a link, an image) is not shown however it ends: only its start need be known.
        unfinished = match["start"] + match["end"] if match["start"] else match[0][:_NEAR_BYTES]
    cleaned = clean(line)
    if "\r" not in line or len(cleaned) >= _LINE_LIMIT // 2:
        return cleaned, unfinished
    return "", cleaned + "\r" * line.endswith("\r") + unfinished


def clean(text: str) -> str:
    """The text as a reader would have seen it on a terminal in the end."""
    data = text.encode()
    if len(data.translate(None, _SUSPECT_BYTES)) == len(data):  # seven times faster than a regular expression
        return text
    text = _SEQUENCE.sub("", _TO_LINE_START.sub("\r", text))
    if "\r" in text or "\b" in text:
        text = "\n".join(map(_last_state, text.split("\n")))
    return _OTHER_CONTROL.sub("", text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _coloured(text: str) -> str:
    """The text with colours and what rewrites a line in place, and nothing else that a terminal obeys."""
    pieces = _COLOUR.split(_TO_LINE_START.sub("\r", text))
    return "".join(piece if at % 2 else _plain(piece) for at, piece in enumerate(pieces))


def _plain(text: str) -> str:
    text = _SEQUENCE.sub("", text).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return _OTHER_CONTROL.sub("", text)


class _Printed:
    """The last characters of an output as it was printed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = ""
        self._is_cut = False

    def feed(self, text: str) -> None:
        self._text += text
        if len(self._text) > 2 * self._limit:
            self._text, self._is_cut = self._text[-self._limit :], True

    def text(self, *, may_be_cut: bool) -> str | None:
        """In colour, from the start of a line; None where it has no colours, or was cut and may not be."""
        is_cut = self._is_cut or len(self._text) > self._limit
        text = self._text[-self._limit :]
        if is_cut:  # without what the cut left of a line, or of a sequence where it is all one line
            text = text[text.find("\n") + 1 :] if "\n" in text else _CUT_SEQUENCE.sub("", text, count=1)
        if not _COLOUR.search(text) or (is_cut and not may_be_cut):
            return None
        return _coloured(text)


def _last_state(line: str) -> str:
    """What a line shows after it was rewritten in place; its last text where it was only wiped."""
    shown = ""
    for state in line.split("\r"):
        if state and not state.isspace():
            shown = _rewrite(shown, _without_backspaces(state))
    return shown if "\r" in line else _without_backspaces(line)


def _rewrite(shown: str, state: str) -> str:
    """The state instead of what was shown; only a counter after a label (`done 1%`, then `2%`) keeps that."""
    label, blank, counter = shown.rpartition(" ")
    if label and " " not in state and _NUMBER.sub("0", counter) == _NUMBER.sub("0", state):
        return label + blank + state
    return state


def _without_backspaces(text: str) -> str:
    if "\b" not in text:
        return text
    shown: list[str] = []
    for character in text:
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


class _HeadAndTail:
    """The first and the last bytes of a text of any length, in bounded memory."""

    def __init__(self, limit: int, with_overflow: bool) -> None:
        self._limit = limit
        self._with_overflow = with_overflow
        self._head_limit = limit * 2 // 5  # errors come last: the tail is worth more
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._overflow = bytearray()

    @property
    def is_cut(self) -> bool:
        return self._total > self._limit

    def add(self, text: str) -> None:
        data = text.encode()
        if self._with_overflow and self._total + len(data) > self._limit:
            # Until it became too long, head and tail were all of it.
            self._overflow += data if self.is_cut else self._head + self._tail + data
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:][-self._tail_limit :]
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def take_overflow(self) -> bytes:
        overflow, self._overflow = bytes(self._overflow), bytearray()
        return overflow

    def text(self) -> str:
        if not self.is_cut:
            return (self._head + self._tail).decode()
        head, tail = bytes(self._head), bytes(self._tail[_MARKER_BYTES - self._tail_limit :])
        if (line_end := head.rfind(b"\n", -_NEAR_BYTES)) >= 0:
            head = head[: line_end + 1]
        tail = tail[tail.find(b"\n", 0, _NEAR_BYTES) + 1 :]
        # A character cut in two by the limits goes as a whole.
        shown_head, shown_tail = head.decode(errors="ignore"), tail.decode(errors="ignore")
        cut = self._total - len(shown_head.encode()) - len(shown_tail.encode())
        line_break = "" if shown_head.endswith("\n") else "\n"
        return shown_head + line_break + _cut_marker(cut) + shown_tail


class LiveFeed:
    """The live stream: never keeps the command waiting; leaves text out for a watcher that is too slow."""

    def __init__(self, limit: int = LIVE_CHARACTERS) -> None:
        self._limit = limit
        self._pending: list[str] = []
        self._length = 0
        self._left_out = 0
        self._closed = False
        self._changed = anyio.Event()

    def feed(self, text: str) -> None:
        """Take more text."""
        if self._left_out or self._length + len(text) > self._limit:
            self._left_out += utf16_length(text)
        else:
            self._pending.append(text)
            self._length += len(text)
        self._changed.set()

    def close(self) -> None:
        """No more text will come: `forward` ends when all is passed on."""
        self._closed = True
        self._changed.set()

    async def forward(self, sink: LiveSink) -> None:
        """Pass the text on until `close`, as fast as the sink takes it."""
        while True:
            text, left_out = self._take()
            if text or left_out:
                await sink(text, left_out)
            elif self._closed:
                return
            else:
                self._changed = anyio.Event()
                await self._changed.wait()

    def _take(self) -> tuple[str, int]:
        text, left_out = "".join(self._pending), self._left_out
        self._pending, self._length, self._left_out = [], 0, 0
        return text, left_out


def _cut_marker(size: int) -> str:
    return f"[... {size} bytes of output are not shown here ...]\n"
