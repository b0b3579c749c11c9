"""Provider for every server that speaks OpenAI's chat completions: OpenAI, llama.cpp, Ollama, vLLM and more.

The request is built in `openai_chat_request`, the answer read in `openai_chat_decoder`, what HTTP is about is
in `http_endpoint` and `http_answer`; here they meet.
"""

from http import HTTPStatus

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.http_answer import Answer
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, OpenClient, Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.openai_chat_decoder import ChatDecoder
from agentd.providers.openai_chat_dialect import PLAIN, ChatDialect
from agentd.providers.openai_chat_request import chat_body

__all__ = ["ChatDialect", "OpenAIChat", "Timeouts"]

_PATH = "/chat/completions"


class OpenAIChat:
    """A `Provider` over one base URL, for example "http://127.0.0.1:11434/v1".

    `name` is the provider's name in the configuration and in messages. Without `api_key` no Authorization
    header is sent. A faulty address or key is told by the first request, before anything is sent.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None,
        *,
        dialect: ChatDialect = PLAIN,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        open_client: OpenClient = httpx.AsyncClient,
    ) -> None:
        self._endpoint = Endpoint(name, base_url, api_key, timeouts, open_client=open_client)
        self._dialect = dialect
        self._asks_usage = True

    def stream(self, request: ModelRequest) -> Answer:
        """See `Provider.stream`."""
        return Answer(
            self._endpoint,
            lambda: self._endpoint.peer(request.model.name, _PATH),
            lambda peer: self._send(peer, request),
            ChatDecoder,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """Send a request; give the answer's head if it is one to read. Raises `ProviderError`.

        Some servers refuse `stream_options`, without which others report no usage: it is left out once a
        server has said so.
        """
        while True:
            asks_usage = self._asks_usage
            body = chat_body(request, self._dialect, include_usage=asks_usage)
            response = await self._endpoint.post(peer, _PATH, body, self._headers(peer))
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            bad = refusal.error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
            if not (asks_usage and bad and "stream_options" in refusal.text):
                raise refusal.error
            self._asks_usage = False

    def _headers(self, peer: Peer) -> dict[str, str]:
        if not peer.secret:
            return {}
        if self._dialect.auth == "api-key":
            return {"api-key": peer.secret}
        return {"Authorization": f"Bearer {peer.secret}"}
