"""The tokens that a server of the Messages API reports, in agentd's terms.

`input_tokens` excludes what was read from and written to the cache, as ours does; `output_tokens` includes
thinking. The counts of `message_start` are a beginning; those of `message_delta` are cumulative and replace
them, field by field.
"""

from collections.abc import Mapping
from typing import Any

from agentd.protocol.messages import Usage

_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class UsageSoFar:
    """The usage of one response."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, raw: Any) -> None:
        """Take a `usage` object. What is ill-typed, null or negative in it says nothing."""
        if not isinstance(raw, Mapping):
            return
        details = raw.get("output_tokens_details")
        thinking = details.get("thinking_tokens") if isinstance(details, Mapping) else None
        for name, value in (*((name, raw.get(name)) for name in _COUNTS), ("thinking", thinking)):
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                self._counts[name] = value

    def read(self) -> Usage | None:
        """The sum of what was said, or None where nothing was."""
        if not self._counts:
            return None
        fresh, output, cache_read, cache_write = (self._counts.get(name, 0) for name in _COUNTS)
        total = fresh + output + cache_read + cache_write
        return Usage(
            input=fresh,
            output=output,
            cache_read=cache_read,
            cache_write=cache_write,
            reasoning=min(self._counts.get("thinking", 0), output),
            total=total,
            context_tokens=total,
        )
