"""The form of a recording: what was said between agentd and model servers, to be replayed by `scripted`.

A file of JSON lines. The first is the mark by which a recording is known; each exchange with a server then
has a `request`, a `head` once the answer begins, `chunk`s as its bytes come, and an `end`:

```json
{"type": "recording", "version": 1, "agentd": "0.1.0"}
{"type": "request", "exchange": 1, "provider": "local", "api": "openai-chat", "model": "m", "body": {…}, …}
{"type": "head", "exchange": 1, "at": 0.21, "status": 200, "headers": {"content-type": "text/event-stream"}}
{"type": "chunk", "exchange": 1, "at": 0.22, "text": "data: {…}\n\n"}
{"type": "end", "exchange": 1, "at": 0.61, "how": "whole"}
```

A line is written as soon as what it tells has happened, so a recording is good up to the moment at which its
daemon was killed. `at` is in seconds since the request was sent.

Secrets are not in it: of the headers only those that tell of the format are kept, and wherever a known secret
stands its characters are replaced by as many `*`, so that every chunk keeps its length.
"""

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from agentd import __version__
from agentd.protocol.wire import Wire, absent
from agentd.providers.base import ProviderError

VERSION = 1
"""Of the form; a reader refuses one that it does not know."""

_MARK = re.compile(rb'\s*\{\s*"type"\s*:\s*"recording"')
_Base64 = Annotated[
    str, StringConstraints(pattern=r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
]


# --- lines ----------------------------------------------------------------------------------------


class Mark(Wire):
    """The first line. `agentd` is the version of the program that wrote the file."""

    type: Literal["recording"] = "recording"
    version: int = VERSION
    agentd: str = __version__


class Request(Wire):
    """A request as it was sent, and what is needed to read its answer: the provider's settings."""

    type: Literal["request"] = "request"
    exchange: int
    provider: str
    api: str
    base_url: str
    dialect: dict[str, Any]
    timeouts: dict[str, float]
    model: str
    thinking_tag: str | None = absent()
    url: str
    headers: dict[str, str]
    body: Any


class Head(Wire):
    """The answer begins."""

    type: Literal["head"] = "head"
    exchange: int
    at: float
    status: Annotated[int, Field(ge=100, le=599)]
    headers: dict[str, str]


class Chunk(Wire):
    """The next bytes of the answer: as `text` where they are UTF-8, else in `base64`."""

    type: Literal["chunk"] = "chunk"
    exchange: int
    at: float
    text: str | None = absent()
    base64: _Base64 | None = absent()

    @classmethod
    def of(cls, exchange: int, at: float, data: bytes) -> "Chunk":
        """The line for some bytes."""
        try:
            return cls(exchange=exchange, at=at, text=data.decode())
        except UnicodeDecodeError:
            return cls(exchange=exchange, at=at, base64=b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes."""
        return b64decode(self.base64) if self.base64 is not None else (self.text or "").encode()


class End(Wire):
    """The exchange is over.

    `whole`: the server ended the answer; `broken`: the connection failed with the exception named `error`,
    in its own `words`; `left`: agentd went away first, after the last event, a wait too long, or a cancel.
    """

    type: Literal["end"] = "end"
    exchange: int
    at: float
    how: Literal["whole", "broken", "left"]
    error: str = ""
    words: str = ""


_Line = Mark | Request | Head | Chunk | End


# --- reading --------------------------------------------------------------------------------------


@dataclass
class Exchange:
    """A request and as much of its answer as was recorded."""

    request: Request
    head: Head | None = None
    chunks: list[Chunk] = field(default_factory=list)
    end: End | None = None

    @property
    def silence(self) -> float:
        """How long nothing had come when the exchange ended, in seconds."""
        if self.end is None:
            return 0.0
        return self.end.at - (self.chunks[-1].at if self.chunks else 0.0)


def is_recording(text: bytes) -> bool:
    """Whether a file is meant to be a recording, be it faulty."""
    return _MARK.match(text) is not None


def parse_recording(text: bytes, name: str) -> tuple[Exchange, ...]:
    """The exchanges of a recording, in the order of their requests; `name` is what errors call it.

    A last line without its line end is left out: its writer was killed. Raises `ProviderError` for any other
    fault, saying in which line.
    """
    exchanges: dict[int, Exchange] = {}
    for number, line in enumerate(text.split(b"\n")[:-1], 1):
        try:
            _take(_adapter().validate_json(line), exchanges)
        except ValidationError as error:  # which is a ValueError too
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"][1:]))
            raise _invalid(name, number, f"{first['msg']} at {place}" if place else first["msg"]) from None
        except ValueError as error:
            raise _invalid(name, number, str(error)) from None
    return tuple(exchanges.values())


def _take(line: _Line, exchanges: dict[int, Exchange]) -> None:
    """Put a line where it belongs. Raises `ValueError` where it belongs nowhere."""
    if isinstance(line, Mark):
        if line.version != VERSION:
            raise ValueError(f"its form has version {line.version}, and this agentd reads {VERSION}, as said")
        return
    if isinstance(line, Request):
        exchanges[line.exchange] = Exchange(line)
        return
    exchange = exchanges.get(line.exchange)
    if exchange is None:
        raise ValueError(f"there is no request {line.exchange} before what stands")
    if isinstance(line, Head):
        exchange.head = line
    elif isinstance(line, End):
        exchange.end = line
    elif exchange.head is None:
        raise ValueError(f"there is no head of answer {line.exchange} before what stands")
    else:
        exchange.chunks.append(line)


def _invalid(name: str, line: int, reason: str) -> ProviderError:
    return ProviderError("bad_request", f"The recording {name} is not valid: {reason} in line {line}.")


@cache
def _adapter() -> TypeAdapter[_Line]:
    return TypeAdapter(Annotated[_Line, Field(discriminator="type")])
