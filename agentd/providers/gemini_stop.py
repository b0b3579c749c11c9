"""Why Gemini stopped, in agentd's terms. https://ai.google.dev/api/generate-content#FinishReason"""

from typing import Any, Literal

from agentd.protocol.messages import Usage
from agentd.providers.base import ProviderError
from agentd.providers.http_errors import Peer

UNSPECIFIED = ("FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED")
"""Values that say nothing: the zero of the enum, which some servers write out."""

_FILTERED = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "MODEL_ARMOR", "NO_IMAGE")
)


def stop_of(
    peer: Peer, reason: str, *, calls: bool, usage: Usage | None, said: str = ""
) -> Literal["stop", "length", "tool_use"]:
    """The stop that a `finishReason` means. `said` is the server's `finishMessage`.

    STOP is the word for calls too. Raises `ProviderError`, with the usage, where the answer was filtered, and
    for every other word: the model wrote a call that does not parse, or the server gave up; it may be
    otherwise on a second try, also where the word is new.
    """
    if reason == "STOP":
        return "tool_use" if calls else "stop"
    if reason == "MAX_TOKENS":
        return "length"
    words = f"finishReason {peer.excerpt(reason)}" + (f": {peer.excerpt(said)}" if said else "")
    if reason in _FILTERED or reason.startswith("IMAGE_"):
        raise ProviderError(
            "refusal",
            f"{peer.provider}: the answer was stopped by the server's filter ({words}).",
            usage=usage,
        )
    raise ProviderError(
        "server",
        f"{peer.provider}: the model's answer came to no proper end ({words}).",
        retryable=True,
        usage=usage,
    )


def blocked_error(peer: Peer, reason: str, said: str, usage: Usage | None) -> ProviderError:
    """The error for a prompt that was not answered, by the `blockReason` of its `promptFeedback`."""
    words = f"blockReason {peer.excerpt(reason)}" + (f": {peer.excerpt(said)}" if said else "")
    return ProviderError(
        "refusal", f"{peer.provider}: the prompt was blocked by the server's filter ({words}).", usage=usage
    )


def empty_error(peer: Peer, usage: Usage | None) -> ProviderError:
    """The error for an answer that ended well and said nothing, which a second try mostly cures."""
    return ProviderError(
        "server",
        f"{peer.provider}: the answer was empty: the model stopped (finishReason STOP) without any content.",
        retryable=True,
        usage=usage,
    )


def word(value: Any) -> str | None:
    """A reason as a stream gives it, or None where it gives none."""
    return value if isinstance(value, str) and value and value not in UNSPECIFIED else None
