"""What the providers of all wire APIs have in common: an endpoint, a dialect, and how an answer is read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import httpx

from agentd.providers.base import NO_HEADERS, Headers, ModelRequest, ProviderError
from agentd.providers.cures import Cure, cured
from agentd.providers.http_answer import Answer, Decoder
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, OpenClient, Refusal, Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.inline_thinking import InlineThinking
from agentd.providers.tool_names import ToolNames

D = TypeVar("D")

_DIALECT = "agentd.dialect"
"""Where a response says in which dialect it was asked for: another request may have learnt since."""


class HttpProvider(ABC, Generic[D]):
    """A `Provider` over one base URL, for example "http://127.0.0.1:11434/v1".

    A faulty address, key or header is told by the first request, before anything is sent.
    """

    _cures: ClassVar[Iterable[Cure]] = ()
    """What may be done about a refusal."""

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None = None,
        *,
        dialect: D | None = None,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        headers: Headers = NO_HEADERS,
        open_client: OpenClient = httpx.AsyncClient,
    ) -> None:
        """`name` is the provider's name in the configuration and in messages. Without `api_key` none is sent.

        `headers` go with every request beside the API's own. `open_client` makes the HTTP client.
        """
        self._dialect = dialect if dialect is not None else self._plain()
        self._learnt: dict[str, D] = {}  # by model: what it takes, where we know better
        self._base_url = base_url
        self._endpoint = Endpoint(
            name,
            base_url,
            api_key,
            self._timeouts(timeouts),
            usual_end=self._usual_end(),
            headers=headers,
            open_client=open_client,
        )

    def stream(self, request: ModelRequest) -> Answer:
        """See `Provider.stream`."""
        names = ToolNames.of(request)
        told = names.told(request)
        model, tag = request.model.name, request.model.thinking_tag
        return Answer(
            self._endpoint,
            lambda: replace(self._endpoint.peer(model, self._path(model)), thinking_tag=tag),
            lambda peer: self._send(peer, told),
            self._decoder,
            thinking=InlineThinking(tag) if tag else None,
            names=names,
            learn=self._learn,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    async def _ask(
        self,
        peer: Peer,
        path: str,
        body: Callable[[D], Mapping[str, Any]],
        headers: Mapping[str, str],
    ) -> httpx.Response:
        """Send the request in the dialect that is known of the model; give the answer's head.

        What the server refuses and an answer does not depend on is left out from then on, for this model.
        Raises `ProviderError`.
        """
        tried: set[str] = set()
        while True:
            dialect = self._learnt.get(peer.model, self._dialect)
            response = await self._endpoint.post(peer, path, body(dialect), headers)
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                response.extensions[_DIALECT] = dialect
                return response
            better = cured(dialect, refusal, self._cures, tried)
            if better is None:
                raise refusal.error
            self._learnt[peer.model] = better

    def _learn(self, peer: Peer, response: httpx.Response, error: ProviderError) -> bool:
        """The same for a refusal inside an answer, which servers give that have promised one too early."""
        dialect = response.extensions.get(_DIALECT, self._dialect)
        better = cured(dialect, Refusal(error, error.words), self._cures, set())
        if better is not None:
            self._learnt[peer.model] = better
        return better is not None

    # --- what an API has of its own ---------------------------------------------------------------

    @abstractmethod
    def _plain(self) -> D:
        """The dialect where none is said."""

    @abstractmethod
    def _path(self, model: str) -> str:
        """The path of a request to a model, below the base URL."""

    @abstractmethod
    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """Send a request; give the answer's head if it is one to read. Raises `ProviderError`."""

    @abstractmethod
    def _decoder(self, peer: Peer) -> Decoder:
        """The reader of an answer."""

    def _timeouts(self, timeouts: Timeouts) -> Timeouts:
        return timeouts

    def _usual_end(self) -> str:
        """How a base URL of this API mostly ends, for the advice in error messages."""
        return "/v1"


def key_header(secret: str | None, form: str) -> Mapping[str, str]:
    """The header that carries a key: `Authorization` for the form "bearer", else the one of that name."""
    if not secret:
        return {}
    return {"Authorization": f"Bearer {secret}"} if form == "bearer" else {form: secret}
