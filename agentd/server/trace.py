"""What the client asked to hear of the server's work: `$/setTrace` and `$/logTrace` of LSP 3.17.

Each message that comes in and each answer is one line. It is a help for people who look for a fault, so it is
the first thing to be left out when the client does not keep up.
"""

import json
from collections.abc import Callable
from typing import Any, Literal

from pydantic_core import to_json

from agentd.daemon.outbox import Outbox
from agentd.daemon.parsing import Call
from agentd.protocol.text import clean_text

TraceLevel = Literal["off", "messages", "verbose"]

_MAX_PARAMS = 1000
"""Characters of a message's params that are shown."""

_KEPT_QUIET = frozenset({"initialize", "agentd/credentials/set"})
"""Methods whose params hold secrets that nobody has learnt of yet, so that they could not be masked."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Trace:
    """The trace of one connection. `redact` masks the secrets in a text."""

    def __init__(self, outbox: Outbox, redact: Callable[[str], str]) -> None:
        self.level: TraceLevel = "off"
        self._outbox = outbox
        self._redact = redact

    def received(self, call: Call) -> None:
        """A request or notification has come in."""
        if self.level != "off":
            self._say(f"received {_named(call.method, call.id)}", call)

    def answered(self, method: str | None, message_id: Any, error: str | None) -> None:
        """A request has its answer; `method` is None where what came in was no request."""
        if self.level != "off":
            name = _named(method or "a message", message_id)
            self._say(f"answered {name}" if error is None else f"refused {name}: {error}")

    def _say(self, message: str, call: Call | None = None) -> None:
        if not self._outbox.is_open:
            return
        params: dict[str, Any] = {"message": self._shown(message)}
        if self.level == "verbose" and call is not None and call.method not in _KEPT_QUIET:
            params["verbose"] = self._shown(_beginning(call.params, 4 * _MAX_PARAMS))
        self._outbox.send(to_json({"jsonrpc": "2.0", "method": "$/logTrace", "params": params}))

    def _shown(self, text: str) -> str:
        # Cut before, so that a long message costs little, and after, so that no half of a secret is left.
        return clean_text(self._redact(text[: 4 * _MAX_PARAMS]))[:_MAX_PARAMS]


def trace_level(value: Any) -> TraceLevel:
    """The level that a client names. VS Code's library also knows `compact`: the same with fewer lines of its
    own. Anything else is off.
    """
    if value == "compact":
        return "messages"
    return value if value in ("messages", "verbose") else "off"


def _beginning(value: Any, size: int) -> str:
    """The JSON of a value, until there are `size` characters of it: as deep as a message may be nested."""
    pieces: list[str] = []
    for piece in _ENCODER.iterencode(value):
        pieces.append(piece[:size])
        size -= len(piece)
        if size <= 0:
            break
    return "".join(pieces)


def _named(method: str, message_id: Any) -> str:
    return method if message_id is None else f"{method} ({message_id!r})"
