"""Provider `scripted`: plays a script instead of asking a model. No network, no key, no chance.

The model's name is the script: `scripted/demo`, or `scripted/<path>` of a JSON file (see `script.py`). Each
request gets the next response. Requests are checked as a strict real server would (see `request_faults.py`).

The file may also be a recording (see `recording_form.py`): then the answers of real servers are played,
through the decoders that read them, and requests are not checked: those servers did.
"""

import json
import os
import shlex
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from agentd.providers.base import (
    ModelRequest,
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from agentd.providers.http_errors import RETRYABLE
from agentd.providers.recording_form import is_recording, parse_recording
from agentd.providers.request_faults import fault_of
from agentd.providers.script import (
    CallBlock,
    ScriptedError,
    ScriptedResponse,
    TextBlock,
    first_words,
    parse_script,
    read_named,
)

if TYPE_CHECKING:  # importing it takes a while
    from agentd.providers.replay import Replay

REQUESTS_LOG = "AGENTD_SCRIPT_REQUESTS"
"""The environment variable that names the file to which the requests are appended."""


class Play:
    """A script, as far as it was not yet played."""

    def __init__(self, responses: Sequence[ScriptedResponse]) -> None:
        self._left = list(responses)
        self._parts = {response.when for response in responses if response.when is not None}

    def next(self, request: ModelRequest) -> ScriptedResponse | None:
        """The response to this request; None where there is none left for it."""
        begin = first_words(request)
        mine = {part for part in self._parts if part in begin}
        for number, response in enumerate(self._left):
            if response.when in mine if mine else response.when is None:
                return self._left.pop(number)
        return None


class Scripted:
    """A `Provider` that plays scripts, each from its beginning to its end and then no more.

    `variables` replace `${NAME}` in the arguments of calls; PYTHON is this interpreter unless they say
    otherwise. `requests` holds every request in the order of arrival, also the refused ones; with
    `requests_log`, or the variable `AGENTD_SCRIPT_REQUESTS`, each is appended to that file as a JSON line
    `{model, system, tools: [name], effort, messages}` with the messages as on the wire.
    """

    def __init__(
        self, *, variables: Mapping[str, str] | None = None, requests_log: Path | None = None
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._variables = {"PYTHON": shlex.quote(sys.executable)} | dict(variables or {})
        log = os.environ.get(REQUESTS_LOG)
        self._log = requests_log or (Path(log) if log else None)
        self._plays: dict[str, Play | Replay] = {}

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """See `Provider.stream`. A request with a fault uses up no response."""
        self._record(request)
        play = self._play_of(request.model.name)
        if not isinstance(play, Play):
            async with play.stream(request) as replayed:
                yield replayed
            return
        if (fault := fault_of(request)) is not None:
            raise ProviderError("bad_request", f"scripted: invalid request: {fault}.", status=400)
        response = play.next(request)
        if response is None:
            raise ProviderError("bad_request", f"{request.model.id}: the script has no more responses.")
        async with aclosing(self._play(response)) as events:
            yield events

    async def aclose(self) -> None:
        """Close what recordings are replayed with."""
        for play in self._plays.values():
            if not isinstance(play, Play):
                await play.aclose()

    def _record(self, request: ModelRequest) -> None:
        self.requests.append(request)
        if self._log is None:
            return
        record = {
            "model": request.model.id,
            "system": request.system,
            "tools": [tool.name for tool in request.tools],
            "effort": request.effort,
            "messages": [message.model_dump() for message in request.messages],
        }
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def _play_of(self, name: str) -> "Play | Replay":
        """The script or recording of that name, as far as it was not yet played."""
        if name not in self._plays:
            text, file = read_named(name)
            if is_recording(text):
                from agentd.providers.replay import Replay

                self._plays[name] = Replay(f"scripted/{name}", parse_recording(text, file))
            else:
                self._plays[name] = Play(parse_script(text, file))
        return self._plays[name]

    async def _play(self, response: ScriptedResponse) -> AsyncGenerator[StreamEvent, None]:
        for index, block in enumerate(response.content):
            for event in self._events(index, block, response.chunk_size):
                await anyio.sleep(response.delay_ms / 1000)
                yield event
        if response.error is not None:
            raise _failure(response.error)
        if response.hang:
            await anyio.sleep_forever()
        yield StreamEnd(response.stop, response.usage, response.stop_reason)

    def _events(self, index: int, block: TextBlock | CallBlock, size: int) -> Iterator[StreamEvent]:
        if isinstance(block, CallBlock):
            first, *rest = _pieces(block.argument_text(self._variables), size) or [""]
            yield ToolCallDelta(index, first, block.id, block.name)
            for piece in rest:
                yield ToolCallDelta(index, piece)
            return
        delta = TextDelta if block.type == "text" else ThinkingDelta
        for piece in _pieces(block.text, size):
            yield delta(index, piece)


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _failure(error: ScriptedError) -> ProviderError:
    retryable = error.kind in RETRYABLE if error.retryable is None else error.retryable
    return ProviderError(
        error.kind,
        error.message,
        retryable=retryable,
        status=error.status,
        retry_after_ms=error.retry_after_ms,
    )
