"""The tokens that an OpenAI-compatible server reports, in agentd's terms.

`prompt_tokens` includes what was read from and written to the cache; ours exclude both. `completion_tokens`
includes reasoning, except where the server's own total says otherwise (xAI): then reasoning is added.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from agentd.protocol.messages import Usage


def usage_of_chunk(chunk: Mapping[str, Any], choice: Mapping[str, Any]) -> Usage | None:
    """The usage in a chunk: at the top, under `x_groq` (Groq), or in the choice (Moonshot)."""
    if "usage" not in chunk and "usage" not in choice and "x_groq" not in chunk:
        return None  # nearly every chunk
    for place in (chunk, _object(chunk, "x_groq"), choice):
        usage = read_usage(place.get("usage"))
        if usage is not None:
            return usage
    return None


def read_usage(raw: Any) -> Usage | None:
    """The usage in a `usage` object, or None where it says nothing. Ill-typed and negative counts are 0."""
    if not isinstance(raw, Mapping):
        return None
    if not any(_is_count(raw.get(key)) for key in ("prompt_tokens", "completion_tokens")):
        return None
    prompt = _count(raw, "prompt_tokens")
    output = _count(raw, "completion_tokens")
    reasoning = _count(_object(raw, "completion_tokens_details"), "reasoning_tokens")
    if reasoning and prompt + output + reasoning == _count(raw, "total_tokens"):
        output += reasoning
    cached = _object(raw, "prompt_tokens_details")
    cache_read = (
        _count(cached, "cached_tokens")
        or _count(raw, "prompt_cache_hit_tokens")  # DeepSeek
        or _count(raw, "cached_tokens")  # Moonshot
    )
    cache_write = _count(cached, "cache_write_tokens")
    uncached = max(0, prompt - cache_read - cache_write)
    total = uncached + cache_read + cache_write + output
    return Usage(
        input=uncached,
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=min(reasoning, output),
        total=total,
        context_tokens=total,
    )


def _object(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, Mapping) else {}


def _count(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    return max(0, int(value)) if _is_count(value) else 0


def _is_count(value: Any) -> TypeGuard[int | float]:
    if isinstance(value, float):
        return value.is_integer()  # false for NaN and infinity too
    return isinstance(value, int) and not isinstance(value, bool)
