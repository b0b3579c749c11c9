"""Provider for servers that speak OpenAI's Responses API: OpenAI, Azure, xAI, OpenRouter, LM Studio and more.

The request is built in `openai_responses_request`, the answer read in `openai_responses_decoder`, what HTTP
is about is in `http_endpoint` and `http_answer`; here they meet.
"""

import re
from dataclasses import replace

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.http_answer import Answer
from agentd.providers.http_endpoint import DEFAULT_TIMEOUTS, Endpoint, OpenClient, Refusal, Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.openai_responses_decoder import ResponsesDecoder
from agentd.providers.openai_responses_request import OPENAI, ResponsesDialect, responses_body

__all__ = ["OpenAIResponses", "ResponsesDialect", "Timeouts"]

_PATH = "/responses"

_CURES: tuple[tuple[str, bool, str], ...] = (
    (
        "replay_reasoning",
        False,
        r"invalid_encrypted_content|encrypted content.{1,200}could not be"
        r"|without its required following item",
    ),
    ("encrypted_reasoning", False, r"reasoning\.encrypted_content|encrypted content is not supported"),
    ("reasoning_summary", False, r"reasoning\.summary|reasoning summar"),
    ("reasoning", False, r"unsupported parameter: '?reasoning(?:\.effort)?\b(?!\.)"),
    ("prompt_cache_key", False, r"prompt_cache_key"),
    ("output_limit", False, r"max_output_tokens"),
    ("item_ids", True, r"validation error|input should be a valid"),
)
"""What may cure a refusal: a flag of the dialect, its other value, and the words of the refusal."""


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
        open_client: OpenClient = httpx.AsyncClient,
    ) -> None:
        self._endpoint = Endpoint(name, base_url, api_key, timeouts, open_client=open_client)
        self._dialect = dialect
        self._learnt: dict[str, ResponsesDialect] = {}  # by model: what it takes, where we know better

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

        What a model or its server refuses and an answer does not depend on is left out from then on.
        """
        headers = {"Authorization": f"Bearer {peer.secret}"} if peer.secret else {}
        while True:
            dialect = self._learnt.get(peer.model, self._dialect)
            response = await self._endpoint.post(peer, _PATH, responses_body(request, dialect), headers)
            refusal = await self._endpoint.refusal(peer, response)
            if refusal is None:
                return response
            cured = _cured(dialect, refusal)
            if cured is None:
                raise refusal.error
            self._learnt[peer.model] = cured


def _cured(dialect: ResponsesDialect, refusal: Refusal) -> ResponsesDialect | None:
    """The dialect without what was refused; None where something else is the matter."""
    if refusal.error.kind != "bad_request":
        return None
    for flag, value, words in _CURES:
        if getattr(dialect, flag) is not value and re.search(words, refusal.text, re.IGNORECASE):
            return replace(dialect, **{flag: value})
    return None
