"""One request to a model server over HTTP and its answer, in whatever wire format a decoder reads.

What every provider's `stream` gives: the context manager sends the request, the iterator reads the answer.
It is an object and no generator, so that no cancel scope is ever left open while the reader of the stream is
busy with an event.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Protocol

import anyio
import httpx

from agentd.providers.base import ProviderError, StreamEnd, StreamEvent
from agentd.providers.http_endpoint import Endpoint, describe
from agentd.providers.http_errors import Peer, request_id_in
from agentd.providers.inline_thinking import InlineThinking
from agentd.providers.tool_names import ToolNames

_DRAIN_SECONDS = 0.05
"""How long the end of a body may take after its last event, for the connection to be used again."""

MOST_MUTE_BYTES = 64 * 1024 * 1024
"""How much may come without a word of an answer: more than any event holds, and not all of the memory."""


class Decoder(Protocol):
    """A wire format, sans I/O: bytes in, events out. Only `end` raises."""

    @property
    def done(self) -> bool:
        """Whether all has been said, so that the connection can be left without waiting for its end."""
        ...

    @property
    def finish_reason(self) -> str | None:
        """The server's own word for why it stopped, when it has said one."""
        ...

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes; give what they say."""
        ...

    def close(self) -> list[StreamEvent]:
        """The connection has ended; give what its last bytes say, and be done."""
        ...

    def end(self, lost: str = "") -> StreamEnd:
        """The end of the answer. Raises `ProviderError`; `lost` says how the connection broke, if it did."""
        ...


class Answer:
    """The context manager and the iterator of `Provider.stream`.

    Entering calls `peer`, which says whom the request goes to, then `send`, which sends it and gives the head
    of an answer that can be read; both raise `ProviderError`. `decoder` makes the reader of that answer. What
    it reads is told with the session's own `names` of tools, and with the `thinking` in its text apart. Of a
    failure of this response before its first word `learn` is asked whether the next request will be another.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        peer: Callable[[], Peer],
        send: Callable[[Peer], Awaitable[httpx.Response]],
        decoder: Callable[[Peer], Decoder],
        *,
        names: ToolNames,
        thinking: InlineThinking | None = None,
        learn: Callable[[Peer, httpx.Response, ProviderError], bool],
    ) -> None:
        self._endpoint = endpoint
        self._whom = peer
        self._send = send
        self._make_decoder = decoder
        self._names = names if names else None
        self._thinking = thinking
        self._learn = learn
        self._spoke = False
        self._ready: deque[StreamEvent] = deque()
        self._lost = ""
        self._mute = 0  # bytes since the last word of the answer
        self._heard = False
        self._ended = False
        self._failure: ProviderError | None = None

    async def __aenter__(self) -> AsyncIterator[StreamEvent]:
        self._first_byte_by = anyio.current_time() + self._endpoint.timeouts.first_byte
        self._peer = self._whom()
        self._response = await self._send(self._peer)
        content_type = self._response.headers.get("content-type", "")
        self._decoder = self._make_decoder(replace(self._peer, content_type=content_type))
        self._bytes = self._response.aiter_bytes()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None and self._ended and not self._lost:
            await self._drain()
        await self._endpoint.close(self._response)

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                raise StopAsyncIteration
            try:
                if self._decoder.done:
                    self._ended = True
                    self._say([self._decoder.end(self._lost)])
                else:
                    await self._read()
            except ProviderError as error:
                self._fail(error)
        return self._ready.popleft()

    def _say(self, events: Iterable[StreamEvent]) -> None:
        """Have events told, as the session knows them."""
        if self._thinking is not None:
            events = [told for event in events for told in self._thinking.feed(event)]
        if self._names is not None:
            events = map(self._names.heard, events)
        self._ready.extend(events)
        self._spoke = self._spoke or bool(self._ready)

    def _fail(self, error: ProviderError) -> None:
        """The answer has failed. What it had said until then is told first."""
        if error.request_id is None:
            error.request_id = request_id_in(self._peer, self._response.headers)
        if not self._spoke and self._learn(self._peer, self._response, error):
            error.retryable = True
        self._failure = error
        if self._thinking is not None:
            self._ready.extend(self._thinking.flush())

    async def _read(self) -> None:
        """Wait for the next bytes, or for the end of the connection, and decode them."""
        chunk = None
        wait = self._patience()
        try:
            with anyio.move_on_after(wait) as patience:
                chunk = await anext(self._bytes, None)
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            self._lost = describe(error)
        if patience.cancelled_caught and self._decoder.finish_reason is None:
            raise self._endpoint.too_slow(self._silence())
        if chunk is None:
            self._say(self._decoder.close())
        else:
            self._heard = True
            events = self._decoder.feed(chunk)
            self._mute = 0 if events else self._mute + len(chunk)
            if self._mute > MOST_MUTE_BYTES:
                size = MOST_MUTE_BYTES // 2**20
                message = f"{self._peer.provider}: {size} MB came without a word of an answer; check base_url"
                raise ProviderError("protocol", message)
            self._say(events)

    def _patience(self) -> float:
        """How long the next bytes may take, in seconds."""
        timeouts = self._endpoint.timeouts
        if self._decoder.finish_reason is not None:
            return min(timeouts.tail, timeouts.idle)
        if self._heard:
            return timeouts.idle
        return max(0.0, self._first_byte_by - anyio.current_time())

    def _silence(self) -> str:
        timeouts = self._endpoint.timeouts
        if self._heard:
            return f"the answer stopped: no data for {timeouts.idle:g} s"
        return f"no answer from {self._peer.url} for {timeouts.first_byte:g} s"

    async def _drain(self) -> None:
        """Read the end of the body, so that the next request finds the connection open."""
        try:
            with anyio.move_on_after(_DRAIN_SECONDS):
                async for _ in self._bytes:
                    pass
        except (httpx.HTTPError, httpx.StreamError, OSError):
            pass  # the answer was whole; what happens to its connection afterwards is no matter
