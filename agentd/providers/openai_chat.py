"""Provider for every server that speaks OpenAI's chat completions: OpenAI, llama.cpp, Ollama, vLLM and more.

The request is built in `openai_chat_request`, the answer read in `openai_chat_decoder`, what HTTP is about is
in `http_endpoint` and `http_answer`; here they meet.
"""

from http import HTTPStatus

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.http_endpoint import Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.http_provider import HttpProvider, key_header
from agentd.providers.openai_chat_decoder import ChatDecoder
from agentd.providers.openai_chat_dialect import PLAIN, ChatDialect
from agentd.providers.openai_chat_request import chat_body

__all__ = ["ChatDialect", "OpenAIChat", "Timeouts"]

_PATH = "/chat/completions"


class OpenAIChat(HttpProvider[ChatDialect]):
    """A `Provider` over one base URL, for example "http://127.0.0.1:11434/v1"."""

    _asks_usage = True

    def _plain(self) -> ChatDialect:
        return PLAIN

    def _path(self, model: str) -> str:
        return _PATH

    def _decoder(self, peer: Peer) -> ChatDecoder:
        return ChatDecoder(peer)

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """See `HttpProvider`.

        Some servers refuse `stream_options`, without which others report no usage: it is left out once a
        server has said so.
        """
        headers = key_header(peer.secret, self._dialect.auth)
        while True:
            asks_usage = self._asks_usage
            body = chat_body(request, self._dialect, include_usage=asks_usage)
            response = await self._endpoint.post(peer, _PATH, body, headers)
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            bad = refusal.error.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
            if not (asks_usage and bad and "stream_options" in refusal.text):
                raise refusal.error
            self._asks_usage = False
