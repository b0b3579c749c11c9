"""Provider for every server that speaks Anthropic's Messages API: Anthropic itself, Ollama, LiteLLM and more.

The request is built in `anthropic_request`, the answer read in `anthropic_decoder`, what HTTP is about is in
`http_endpoint` and `http_answer`; here they meet.
"""

import httpx

from agentd.providers.anthropic_decoder import MessagesDecoder
from agentd.providers.anthropic_models import Dialect
from agentd.providers.anthropic_request import messages_body
from agentd.providers.base import ModelRequest
from agentd.providers.http_answer import Answer
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, Timeouts
from agentd.providers.http_errors import Peer

__all__ = ["ANTHROPIC", "BASE_URL", "Anthropic", "Dialect", "Timeouts"]

BASE_URL = "https://api.anthropic.com"
ANTHROPIC = Dialect()
"""Anthropic's own dialect."""

_PATH = "/v1/messages"


class Anthropic:
    """A `Provider` over one base URL, for example "https://api.anthropic.com", with or without "/v1".

    `name` is the provider's name in the configuration and in messages. Without `api_key` no key is sent.
    A faulty address or key is told by the first request, before anything is sent.
    """

    def __init__(
        self,
        name: str = "anthropic",
        base_url: str = BASE_URL,
        api_key: str | None = None,
        *,
        dialect: Dialect = ANTHROPIC,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._endpoint = Endpoint(name, base_url, api_key, timeouts)
        self._dialect = dialect

    def stream(self, request: ModelRequest) -> Answer:
        """See `Provider.stream`."""
        return Answer(
            self._endpoint,
            lambda: self._endpoint.peer(request.model.name, _PATH),
            lambda peer: self._send(peer, request),
            MessagesDecoder,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """Send a request; give the answer's head if it is one to read. Raises `ProviderError`."""
        body = messages_body(request, self._dialect)
        response = await self._endpoint.post(peer, _PATH, body, self._headers(peer))
        refusal = await self._endpoint.refusal(peer, response)
        if refusal is not None:
            raise refusal.error
        return response

    def _headers(self, peer: Peer) -> dict[str, str]:
        headers = {"anthropic-version": self._dialect.version}
        if self._dialect.betas:
            headers["anthropic-beta"] = ",".join(self._dialect.betas)
        if peer.secret and self._dialect.auth == "bearer":
            headers["Authorization"] = f"Bearer {peer.secret}"
        elif peer.secret:
            headers["x-api-key"] = peer.secret
        return headers
