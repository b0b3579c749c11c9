"""Provider for every server that speaks OpenAI's chat completions: OpenAI, llama.cpp, Ollama, vLLM and more.

The request is built in `openai_chat_request`, the answer read in `openai_chat_decoder`, what HTTP is about is
in `http_endpoint` and `http_answer`; here they meet.
"""

import httpx

from agentd.providers.base import ModelRequest
from agentd.providers.cures import Cure, not_taken
from agentd.providers.gemini_request import BAD_SIGNATURE, NO_SIGNATURE
from agentd.providers.http_endpoint import Timeouts
from agentd.providers.http_errors import Peer
from agentd.providers.http_provider import HttpProvider, key_header
from agentd.providers.openai_chat_decoder import ChatDecoder
from agentd.providers.openai_chat_dialect import PLAIN, ChatDialect
from agentd.providers.openai_chat_request import chat_body

__all__ = ["ChatDialect", "OpenAIChat", "Timeouts"]

_PATH = "/chat/completions"

_REASONING_SAID = (
    r"reasoning_content|reasoning_details|extra_content|tool_calls\W{1,5}\d+\W{1,5}\w+"
    r"|messages?\W{1,4}\d+\W{1,4}(?:\w+\W{1,5}){0,2}reasoning"
)
"""The names of what only its server can have put into a history, reasoning above all; "reasoning" alone may
be what a request asks for."""

_WORTHLESS = rf"invalid \W?signature\W? in \W?thinking|{BAD_SIGNATURE}|invalid_encrypted_content"

_CURES_OF_HISTORY = (
    Cure(
        "empty_content",
        "text",
        r"\bcontent\b[\s\S]{0,100}?(?:(?:must|should) be (?:an? )?(?:valid )?string|expected a string|<nil>)",
    ),
    # A gateway may have another server behind it than the one that thought: a stricter one, or one with
    # another key for what was signed or encrypted.
    Cure("reasoning_replay", "never", f"{not_taken(_REASONING_SAID)}|{_WORTHLESS}"),
    Cure("sign_calls", True, NO_SIGNATURE),
    Cure(
        "reasoning_replay",
        "required",
        r"reasoning_content\b[\s\S]{0,80}?(?:missing|required|must be passed)"
        r"|missing\W{1,3}reasoning_content",
    ),
    Cure("call_ids", "40", r"tool_call[\s\S]{0,40}?too long[\s\S]{0,60}?maximum length 40\b"),
    Cure("call_ids", "64", r"tool_call[\s\S]{0,40}?too long[\s\S]{0,60}?maximum length 64\b"),
    # Mistral's rules hold wherever its models run: vLLM has them in code, llama.cpp in a template (HTTP 500).
    Cure("call_ids", "nine", r"tool call id was[\s\S]{0,200}?length of 9\b"),
    Cure("user_after_tool", False, r"unexpected role '?user'? after role '?tool|roles must alternate"),
)
"""A session whose history is refused could not go on: its form is changed, and nothing of what was said."""

_CURES = (
    *_CURES_OF_HISTORY,
    Cure("stream_options", False, r"stream_options"),
    Cure(
        "stream",
        False,
        not_taken("stream(?:ing)?") + r"|\bstream\b\W{1,6}(?:(?:must|has to) be |set to |only )?\W?false\b",
    ),
    # OpenAI's models that reason want the second name, older servers know the first alone.
    Cure(
        "max_tokens_field", "max_completion_tokens", r"\bmax_tokens\b[\s\S]{0,200}\bmax_completion_tokens\b"
    ),
    Cure("max_tokens_field", "max_tokens", not_taken("max_completion_tokens")),
    Cure("prompt_cache_key", False, not_taken("prompt_cache_key")),
    Cure("cache_markers", False, not_taken("cache_control")),
    Cure("parallel_tool_calls", None, not_taken("parallel_tool_calls")),
    Cure("strict_tools", False, not_taken("strict")),
    Cure("system_role", "system", not_taken("developer")),
    Cure(
        "effort_form",
        "none",
        not_taken("reasoning_effort|reasoning|thinking|enable_thinking|chat_template_kwargs"),
    ),
)


class OpenAIChat(HttpProvider[ChatDialect]):
    """A `Provider` over one base URL, for example "http://127.0.0.1:11434/v1"."""

    _cures = _CURES

    def _plain(self) -> ChatDialect:
        return PLAIN

    def _path(self, model: str) -> str:
        return _PATH

    def _decoder(self, peer: Peer) -> ChatDecoder:
        return ChatDecoder(peer)

    async def _send(self, peer: Peer, request: ModelRequest) -> httpx.Response:
        """See `HttpProvider`."""
        headers = key_header(peer.secret, self._dialect.auth)
        return await self._ask(peer, _PATH, lambda dialect: chat_body(request, dialect), headers)
