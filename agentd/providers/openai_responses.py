"""Provider for servers that speak OpenAI's Responses API: OpenAI, Azure, xAI, OpenRouter, LM Studio and more.

The request is built in `openai_responses_request`, the answer read in `openai_responses_decoder`, what HTTP
is about is in `http_endpoint` and `http_answer`; here they meet.
"""

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.cures import Cure
from agentd.providers.http_endpoint import Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.http_provider import HttpProvider, key_header
from agentd.providers.openai_responses_decoder import ResponsesDecoder
from agentd.providers.openai_responses_request import OPENAI, ResponsesDialect, responses_body

__all__ = ["OpenAIResponses", "ResponsesDialect", "Timeouts"]

_PATH = "/responses"

_CURES = (
    Cure(
        "replay_reasoning",
        False,
        r"invalid_encrypted_content|encrypted content.{1,200}could not be|could not decrypt"
        r"|encrypted_content\W{1,3}was not issued"
        r"|without its required following item",
    ),
    Cure("encrypted_reasoning", False, r"reasoning\.encrypted_content|encrypted content is not supported"),
    Cure("reasoning_summary", False, r"reasoning\.summary|reasoning summar"),
    Cure("reasoning", False, r"unsupported parameter: '?reasoning(?:\.effort)?\b(?!\.)"),
    Cure("prompt_cache_key", False, r"prompt_cache_key"),
    Cure("output_limit", False, r"max_output_tokens"),
    # What one server of a gateway adds to its items, the next may not know.
    Cure("bare_items", True, r"\b(?:unknown|unsupported|unrecognized) (?:parameter|field):? \W?input\W\d+\W"),
    # Each call has its output: one that is not found is not where it is looked for (DeepSeek).
    Cure("adjacent_calls", True, r"no tool output found for (?:tool|function) call"),
    Cure("item_ids", True, r"validation error|input should be a valid"),
)


class OpenAIResponses(HttpProvider[ResponsesDialect]):
    """A `Provider` over one base URL, for example "https://api.openai.com/v1"."""

    _cures = _CURES

    def _plain(self) -> ResponsesDialect:
        return OPENAI

    def _path(self, model: str) -> str:
        return _PATH

    def _decoder(self, peer: Peer) -> ResponsesDecoder:
        return ResponsesDecoder(peer)

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """See `HttpProvider`."""
        headers = key_header(peer.secret, "bearer")
        return await self._ask(peer, _PATH, lambda dialect: responses_body(request, dialect), headers)
