"""Provider for every server that speaks Anthropic's Messages API: Anthropic itself, Ollama, LiteLLM and more.

The request is built in `anthropic_request`, the answer read in `anthropic_decoder`, what HTTP is about is in
`http_endpoint` and `http_answer`; here they meet.
"""

import logging
import re
from http import HTTPStatus

import httpx

from agentd.providers.anthropic_decoder import MessagesDecoder
from agentd.providers.anthropic_models import Dialect
from agentd.providers.anthropic_request import Body, betas_of, messages_body, shows_thoughts
from agentd.providers.base import ModelRequest
from agentd.providers.http_endpoint import Refusal, Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.http_provider import HttpProvider, key_header

__all__ = ["ANTHROPIC", "Anthropic", "Dialect", "Timeouts"]

ANTHROPIC = Dialect()
"""Anthropic's own dialect."""

_log = logging.getLogger(__name__)

_PATH = "/v1/messages"
_BAD_THOUGHTS = re.compile(
    r"invalid `?signature`? in `?thinking|`?thinking`? .{0,80}(?:cannot be modified|must match the param)",
    re.IGNORECASE,
)


class Anthropic(HttpProvider[Dialect]):
    """A `Provider` over one base URL, for example "https://api.anthropic.com", with or without "/v1"."""

    def _plain(self) -> Dialect:
        return ANTHROPIC

    def _path(self, model: str) -> str:
        return _PATH

    def _decoder(self, peer: Peer) -> MessagesDecoder:
        return MessagesDecoder(peer)

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """See `HttpProvider`.

        Thinking of earlier turns can become worthless: its signature has another key, or the prompt before it
        has changed. A request that is refused for that is sent again without it, which is always valid; or
        the session could not go on.
        """
        thoughts = True
        while True:
            body = messages_body(request, self._dialect, thoughts=thoughts)
            response = await self._endpoint.post(peer, _PATH, body, self._headers(peer, body))
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            if not (_refuses_thoughts(refusal) and shows_thoughts(body)):
                raise refusal.error
            _log.warning("%s: left out the thinking of earlier turns, which was refused", peer.provider)
            thoughts = False

    def _headers(self, peer: Peer, body: Body) -> dict[str, str]:
        headers = {"anthropic-version": self._dialect.version, **key_header(peer.secret, self._dialect.auth)}
        if betas := betas_of(body, self._dialect):
            headers["anthropic-beta"] = ",".join(betas)
        return headers


def _refuses_thoughts(refusal: Refusal) -> bool:
    return refusal.error.status == HTTPStatus.BAD_REQUEST and _BAD_THOUGHTS.search(refusal.text) is not None
