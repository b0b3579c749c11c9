"""Replaying a recording: its answers come through the very provider and decoder that read them first.

Requests are built, sent to nobody, and not compared with those of the recording: each gets the next answer
that was given in a conversation which began with the same words, as sub-agents talk at the same time; where
there is none, the next of all.
All comes at once: a silence that was too long is told and not waited for.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, get_args

import anyio
import httpx

from agentd.protocol.messages import AssistantMessage, Effort
from agentd.providers.apis import open_provider
from agentd.providers.base import ModelRequest, Provider, ProviderError, StreamEvent
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS
from agentd.providers.recording_form import Exchange, Request
from agentd.providers.script import first_words

_TAIL_SECONDS = 0.1
"""How long the reader waits for more after a server has said why it stopped: nothing more was recorded."""
_NEARLY = 0.9
"""Of a time limit, as its clock starts somewhat earlier than that of the recording."""


@dataclass(frozen=True)
class _Address:
    """A recorded provider's settings, as `open_provider` takes them."""

    name: str
    api: str
    base_url: str
    dialect: Mapping[str, Any]
    timeouts: Mapping[str, float]


class Replay:
    """Plays the exchanges of a recording in their order, and then no more. `name` is what errors call it."""

    def __init__(self, name: str, exchanges: Sequence[Exchange]) -> None:
        self._name = name
        self._left = list(exchanges)
        self._count = len(exchanges)
        self._providers: dict[str, Provider] = {}

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        """See `Provider.stream`."""
        recorded = self._next(first_words(request)).request
        async with self._provider(recorded).stream(_as_recorded(request, recorded)) as events:
            yield events

    async def aclose(self) -> None:
        """Close the providers."""
        for provider in self._providers.values():
            await provider.aclose()

    def _next(self, begin: str) -> Exchange:
        """The next exchange for a conversation that began with these words."""
        if not self._left:
            held = f"{self._count} answer{'' if self._count == 1 else 's'}"
            raise ProviderError("bad_request", f"{self._name}: the recording has no more than {held}.")
        return next((each for each in self._left if _begin(each.request.body) == begin), self._left[0])

    def _provider(self, recorded: Request) -> Provider:
        """The provider that a request went to, over a client that plays this recording."""
        address = _Address(
            recorded.provider,
            recorded.api,
            recorded.base_url,
            {
                name: tuple(flag) if isinstance(flag, list) else flag
                for name, flag in recorded.dialect.items()
            },
            recorded.timeouts | {"tail": _TAIL_SECONDS},
        )
        key = json.dumps([address.name, address.api, address.base_url, recorded.dialect, recorded.timeouts])
        if key not in self._providers:
            try:
                self._providers[key] = open_provider(address, None, open_client=self._client)
            except TypeError as error:  # a flag that there is not
                reason = f"this agentd does not know the settings of provider {address.name} ({error})"
                raise ProviderError("bad_request", f"{self._name}: {reason}.") from None
        return self._providers[key]

    def _client(self, *, headers: Mapping[str, str], **_: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(headers=headers, transport=_Transport(self._answer), trust_env=False)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        """The next recorded answer. Raises what was recorded in its stead."""
        exchange = self._next(_begin(json.loads(request.content)))
        self._left = [each for each in self._left if each is not exchange]
        ending = self._ending(exchange, request)
        if exchange.head is None:
            raise ending or self._cut("no answer had come")
        body = _Body([chunk.data for chunk in exchange.chunks], ending)
        return httpx.Response(exchange.head.status, headers=exchange.head.headers, stream=body)

    def _ending(self, exchange: Exchange, request: httpx.Request) -> Exception | None:
        """What the end of an answer was for its reader, None for one that the server ended."""
        end, received = exchange.end, sum(len(chunk.data) for chunk in exchange.chunks)
        if end is None:
            return self._cut(f"agentd was killed after {received} bytes")
        if end.how == "broken":
            return _exception(end.error)(end.words, request=request)
        refused = exchange.head is not None and not 200 <= exchange.head.status < 300
        if end.how == "whole" or refused:  # of a refusal no more is read than its message needs
            return None
        limits = vars(DEFAULT_TIMEOUTS) | exchange.request.timeouts
        if exchange.silence < _NEARLY * limits["idle" if exchange.chunks else "first_byte"]:
            return self._cut(f"the run was ended after {received} bytes")
        silent = f"{exchange.request.provider}: no data for {exchange.silence:.0f} s after {received} bytes"
        return ProviderError("timeout", f"{silent}, says the recording.", retryable=True)

    def _cut(self, why: str) -> ProviderError:
        return ProviderError(
            "protocol",
            f"{self._name}: answer {self._count - len(self._left)} was not recorded to its end: {why}.",
        )


def _begin(body: Any) -> str:
    """What the user says first in the body of a request, of whichever API."""
    lists = (body.get(key) for key in ("messages", "input", "contents")) if isinstance(body, dict) else ()
    messages = next((each for each in lists if isinstance(each, list)), [])
    first = next((each for each in messages if isinstance(each, dict) and each.get("role") == "user"), {})
    said = first.get("content", first.get("parts", ""))
    blocks = said if isinstance(said, list) else [{"text": said}]
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))


class _Transport(httpx.AsyncBaseTransport):
    """Instead of the network."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = self._answer(request)
        return response


class _Body(httpx.AsyncByteStream):
    """The body of a recorded answer, in the chunks in which it came."""

    def __init__(self, chunks: Sequence[bytes], ending: Exception | None) -> None:
        self._chunks = chunks
        self._ending = ending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if isinstance(self._ending, ProviderError):
            await anyio.sleep(2 * _TAIL_SECONDS)  # a reader that knows all it needs does not wait so long
        if self._ending is not None:
            raise self._ending


def _exception(name: str) -> type[httpx.RequestError]:
    """The exception of httpx that has this name; a read error for any other, such as the system's."""
    found = getattr(httpx, name, None)
    return found if isinstance(found, type) and issubclass(found, httpx.RequestError) else httpx.ReadError


def _as_recorded(request: ModelRequest, recorded: Request) -> ModelRequest:
    """The request as if it went to the recorded model: what that one said before is its own."""
    asked = request.model
    model = replace(
        asked,
        provider=recorded.provider,
        name=recorded.model,
        thinking_tag=recorded.thinking_tag,
        reasoning=True,
        efforts=get_args(Effort),
    )
    own = {"provider": recorded.provider, "model": recorded.model}
    messages = tuple(
        message.model_copy(update=own)
        if isinstance(message, AssistantMessage) and message.provider == asked.provider
        else message
        for message in request.messages
    )
    return replace(request, model=model, messages=messages)
