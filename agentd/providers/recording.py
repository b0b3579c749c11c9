"""Writing a recording: what goes to model servers and what comes back, in the form of `recording_form.py`."""

import json
import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agentd.config.secrets import Secrets
from agentd.protocol.wire import Wire
from agentd.providers.base import ProviderError
from agentd.providers.recording_form import Chunk, End, Head, Mark, Request

_KEPT_HEADERS = re.compile(
    r"accept|user-agent|content-type|location|anthropic-(?:version|beta)"
    r"|retry-after(?:-ms)?|x-should-retry|(?:x-)?request-id|(?:x|anthropic)-ratelimit-[a-z-]+"
)
"""What a request or an answer is read by. No other header is written: servers invent new ones for keys."""

_log = logging.getLogger(__name__)


class Recording:
    """A recording as it is written, to the empty file of descriptor `fd`.

    What cannot be written fails the exchange with a `ProviderError` of kind `storage`, and every later one:
    a recording with a hole would be replayed as something that never happened.
    """

    def __init__(self, fd: int, secrets: Secrets) -> None:
        self._fd = fd
        self._secrets = secrets
        self._exchanges = 0
        self._fault: ProviderError | None = None
        self.append(Mark())

    def begin(self, request: Mapping[str, Any], body: bytes) -> "Witness":
        """Write a request, given as the other fields of `Request`; gives what writes its answer."""
        self._exchanges += 1
        written = {**request, "exchange": self._exchanges, "headers": self.kept(request["headers"])}
        written |= {name: self.masked(request[name]) for name in ("base_url", "url")}
        written["body"] = _json_or_text(self.masked(body.decode(errors="replace")))
        self.append(Request(**written))
        return Witness(self, self._exchanges)

    def append(self, line: Wire) -> None:
        """Write a line. Raises `ProviderError`."""
        if self._fault is not None:
            raise self._fault
        rest = line.model_dump_json().encode() + b"\n"
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self._fault = ProviderError(
                "storage", f"The recording cannot be written: {reason}. Make room, or run without --record."
            )
            _log.error("%s", self._fault.message)
            raise self._fault from error

    @property
    def secrets(self) -> list[bytes]:
        """What must not be in the recording, the longest first."""
        return [secret.encode(errors="replace") for secret in self._secrets.texts]

    def masked(self, text: str) -> str:
        """The text without secrets, and without what UTF-8 cannot say."""
        return _masked(text.encode(errors="replace"), self.secrets).decode()

    def kept(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers that are written, with names in lower case."""
        known = ((name.lower(), value) for name, value in headers.items())
        return {name: self.masked(value) for name, value in known if _KEPT_HEADERS.fullmatch(name)}


class Witness:
    """Writes the answer to one request.

    Of `whole`, `broken` and `left` the first that is called counts. They do not raise: each may be called
    while something else fails.
    """

    def __init__(self, recording: Recording, exchange: int) -> None:
        self._recording = recording
        self._exchange = exchange
        self._sent = time.monotonic()
        self._held: list[tuple[float, bytes]] = []
        self._ended = False

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """The answer begins. Raises `ProviderError`."""
        kept = self._recording.kept(headers)
        self._recording.append(Head(exchange=self._exchange, at=self._at(), status=status, headers=kept))

    def chunk(self, data: bytes) -> None:
        """The next bytes; what may begin a secret waits until it is clear. Raises `ProviderError`."""
        self._held.append((self._at(), data))
        secrets = self._recording.secrets
        if not _may_go_on(b"".join(data for _, data in self._held), secrets):
            self._write_held(secrets)

    def whole(self) -> None:
        """The server has ended the answer."""
        self._end("whole")

    def broken(self, error: Exception) -> None:
        """The connection has failed, or there was none."""
        self._end("broken", error=type(error).__name__, words=self._recording.masked(str(error)))

    def left(self) -> None:
        """We do not wait for more."""
        self._end("left")

    def _end(self, how: str, **why: str) -> None:
        if self._ended:
            return
        self._ended = True
        with suppress(ProviderError):  # it is logged, and the next request fails with it
            self._write_held(self._recording.secrets)
            end = {"exchange": self._exchange, "at": self._at(), "how": how, **why}
            self._recording.append(End.model_validate(end))

    def _write_held(self, secrets: Sequence[bytes]) -> None:
        held, self._held = self._held, []
        rest = _masked(b"".join(data for _, data in held), secrets)
        for at, data in held:
            self._recording.append(Chunk.of(self._exchange, at, rest[: len(data)]))
            rest = rest[len(data) :]

    def _at(self) -> float:
        return round(time.monotonic() - self._sent, 6)


def _masked(data: bytes, secrets: Sequence[bytes]) -> bytes:
    """As many bytes, with no secret among them."""
    for secret in secrets:
        data = data.replace(secret, b"*" * len(secret))
    return data


def _may_go_on(data: bytes, secrets: Sequence[bytes]) -> bool:
    """Whether a secret may have begun at the end of these bytes."""
    return any(data.endswith(secret[:length]) for secret in secrets for length in range(1, len(secret)))


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
