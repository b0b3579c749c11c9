"""Provider for servers that speak OpenAI's Responses API: OpenAI, Azure, xAI, OpenRouter, LM Studio and more.

The request is built in `openai_responses_request`, the answer read in `openai_responses_decoder`, what HTTP
is about is in `http_endpoint` and `http_answer`; here they meet.
"""

import re
from dataclasses import replace

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.http_answer import Answer
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, Refusal, Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.openai_responses_decoder import ResponsesDecoder
from agentd.providers.openai_responses_request import OPENAI, ResponsesDialect, responses_body

__all__ = ["OpenAIResponses", "ResponsesDialect", "Timeouts"]

_PATH = "/responses"

_REFUSED = (
    (
        "replay_reasoning",
        r"invalid_encrypted_content|encrypted content.{1,200}could not be"
        r"|without its required following item",
    ),
    ("encrypted_reasoning", r"reasoning\.encrypted_content|encrypted content is not supported"),
    ("reasoning_summary", r"reasoning\.summary|reasoning summar"),
    ("prompt_cache_key", r"prompt_cache_key"),
    ("output_limit", r"max_output_tokens"),
)
"""What servers refuse though an answer does not depend on it, and the words by which they say so."""


class OpenAIResponses:
    """A `Provider` over one base URL, for example "https://api.openai.com/v1".

    `name` is the provider's name in the configuration and in messages. Without `api_key` no Authorization
    header is sent. A faulty address or key is told by the first request, before anything is sent.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None,
        *,
        dialect: ResponsesDialect = OPENAI,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._endpoint = Endpoint(name, base_url, api_key, timeouts)
        self._dialect = dialect
        self._learnt: dict[str, ResponsesDialect] = {}  # by model: what it takes, where that is less

    def stream(self, request: ModelRequest) -> Answer:
        """See `Provider.stream`."""
        return Answer(
            self._endpoint,
            lambda: self._endpoint.peer(request.model.name, _PATH),
            lambda peer: self._send(peer, request),
            ResponsesDecoder,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._endpoint.aclose()

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """Send a request; give the answer's head if it is one to read. Raises `ProviderError`.

        A field that a model or its server refuses and that can be done without is left out from then on.
        """
        headers = {"Authorization": f"Bearer {peer.secret}"} if peer.secret else {}
        while True:
            dialect = self._learnt.get(peer.model, self._dialect)
            response = await self._endpoint.post(peer, _PATH, responses_body(request, dialect), headers)
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            less = _without_refused(dialect, refusal)
            if less is None:
                raise refusal.error
            self._learnt[peer.model] = less


def _without_refused(dialect: ResponsesDialect, refusal: Refusal) -> ResponsesDialect | None:
    """The dialect without what was refused; None where something else is the matter."""
    if refusal.error.kind != "bad_request":
        return None
    for flag, words in _REFUSED:
        if getattr(dialect, flag) and re.search(words, refusal.text, re.IGNORECASE):
            return replace(dialect, **{flag: False})
    return None
