"""Provider for every server that speaks OpenAI's chat completions: OpenAI, llama.cpp, Ollama, vLLM and more.

The request is built in `openai_chat_request`, the answer read in `openai_chat_decoder`, what HTTP is about is
in `http_endpoint`; here they meet. The iterator is an object and no generator, so that no cancel scope is
ever left open while the reader of the stream is busy with an event.
"""

from collections import deque
from collections.abc import AsyncIterator
from http import HTTPStatus
from types import TracebackType

import anyio
import httpx

from agentd.providers.base import ModelRequest, StreamEvent
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, Timeouts, describe
from agentd.providers.http_errors import Peer
from agentd.providers.openai_chat_decoder import ChatDecoder
from agentd.providers.openai_chat_request import chat_body

__all__ = ["OpenAIChat", "Timeouts"]

_PATH = "/chat/completions"
_DRAIN_SECONDS = 0.05
"""How long the end of a body may take after its last event, for the connection to be used again."""


class OpenAIChat:
    """A `Provider` over one base URL, for example "http://127.0.0.1:11434/v1".

    `name` is the provider's name in the configuration and in messages. Without `api_key` no Authorization
    header is sent. A faulty address or key is told by the first request, before anything is sent.
    """

    def __init__(
        self, name: str, base_url: str, api_key: str | None, *, timeouts: Timeouts = DEFAULT_TIMEOUTS
    ) -> None:
        self._endpoint = Endpoint(name, base_url, api_key, timeouts)
        self._asks_usage = True

    def stream(self, request: ModelRequest) -> "_Answer":
        """See `Provider.stream`."""
        return _Answer(self, self._endpoint, request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    async def send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """Send a request; give the answer's head if it is one to read. Raises `ProviderError`.

        Some servers refuse `stream_options`, without which others report no usage: it is left out once a
        server has said so.
        """
        while True:
            asks_usage = self._asks_usage
            body = chat_body(request, include_usage=asks_usage)
            headers = {"Authorization": f"Bearer {peer.secret}"} if peer.secret else {}
            response = await self._endpoint.post(peer, _PATH, body, headers)
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            bad = refusal.error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
            if not (asks_usage and bad and "stream_options" in refusal.text):
                raise refusal.error
            self._asks_usage = False

    def peer(self, request: ModelRequest) -> Peer:
        """Whom the request goes to. Raises `ProviderError`."""
        return self._endpoint.peer(request.model.name, _PATH)


class _Answer:
    """One request and its answer: the context manager and the iterator of `OpenAIChat.stream`."""

    def __init__(self, provider: OpenAIChat, endpoint: Endpoint, request: ModelRequest) -> None:
        self._provider = provider
        self._endpoint = endpoint
        self._request = request
        self._ready: deque[StreamEvent] = deque()
        self._lost = ""
        self._heard = False
        self._ended = False

    async def __aenter__(self) -> AsyncIterator[StreamEvent]:
        self._first_byte_by = anyio.current_time() + self._endpoint.timeouts.first_byte
        self._peer = self._provider.peer(self._request)
        self._decoder = ChatDecoder(self._peer)
        self._response = await self._provider.send(self._peer, self._request)
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
            if self._ended:
                raise StopAsyncIteration
            if self._decoder.done:
                self._ended = True
                return self._decoder.end(self._lost)
            await self._read()
        return self._ready.popleft()

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
            self._ready.extend(self._decoder.close())
        else:
            self._heard = True
            self._ready.extend(self._decoder.feed(chunk))

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
