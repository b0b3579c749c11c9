"""Why an OpenAI-compatible server stopped, in agentd's terms."""

from typing import Literal

from agentd.protocol.messages import ErrorKind, Usage
from agentd.providers.base import ProviderError
from agentd.providers.http_errors import RETRYABLE, Peer

_TOOLS = {"tool_calls", "tool_call", "tool_use", "function_call", "tool"}
_LENGTH = {"length", "model_length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
_FILTERED = {"content_filter", "sensitive", "safety", "prohibited_content", "recitation"}
_FAILED: dict[str, ErrorKind] = {
    "error": "server",
    "abort": "server",
    "insufficient_system_resource": "overloaded",  # DeepSeek
}


def stop_of(
    peer: Peer, raw: str | None, *, calls: bool, refused: bool, usage: Usage | None
) -> Literal["stop", "length", "tool_use", "refusal"]:
    """The stop that a `finish_reason` means; None is a whole answer without one.

    A finish that only says "done", known or not, means tool use when there are calls. Raises `ProviderError`,
    with the usage, where the answer was filtered or the server failed.
    """
    word = (raw or "stop").lower()
    if word in _FILTERED:
        raise ProviderError(
            "refusal", f"{peer.provider}: the answer was stopped by the server's filter ({raw}).", usage=usage
        )
    if word in _FAILED or "malformed_function_call" in word:
        kind = _FAILED.get(word, "server")
        raise ProviderError(
            kind,
            f"{peer.provider}: the server gave up on the answer (finish_reason {peer.excerpt(word)}).",
            retryable=kind in RETRYABLE,
            usage=usage,
        )
    if refused:
        return "refusal"
    if word in _LENGTH:
        return "length"
    return "tool_use" if calls or word in _TOOLS else "stop"
