"""Provider for servers that speak OpenAI's Responses API: OpenAI, Azure, xAI, OpenRouter, LM Studio and more.

The request is built in `openai_responses_request`, the answer read in `openai_responses_decoder`, what HTTP
is about is in `http_endpoint` and `http_answer`; here they meet.
"""

import re
from dataclasses import replace
from functools import cached_property

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.http_endpoint import Refusal, Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.http_provider import HttpProvider, key_header
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


class OpenAIResponses(HttpProvider[ResponsesDialect]):
    """A `Provider` over one base URL, for example "https://api.openai.com/v1"."""

    @cached_property
    def _learnt(self) -> dict[str, ResponsesDialect]:
        """By model: what it takes, where we know better."""
        return {}

    def _plain(self) -> ResponsesDialect:
        return OPENAI

    def _path(self, model: str) -> str:
        return _PATH

    def _decoder(self, peer: Peer) -> ResponsesDecoder:
        return ResponsesDecoder(peer)

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """See `HttpProvider`.

        What a model or its server refuses and an answer does not depend on is left out from then on.
        """
        headers = key_header(peer.secret, "bearer")
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
