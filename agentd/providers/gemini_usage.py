"""The tokens that Gemini reports, in agentd's terms.

`promptTokenCount` includes what was read from the cache and leaves out what Google's own tools put into the
prompt; `candidatesTokenCount` leaves out thoughts. Each chunk may report, cumulatively, and a later one may
leave out what an earlier one said: so each count stands until a later chunk says another.
https://ai.google.dev/api/generate-content#UsageMetadata
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

from agentd.protocol.messages import Usage

_PROMPT, _TOOLS, _CACHED = "promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount"
_ANSWER, _THOUGHTS = "candidatesTokenCount", "thoughtsTokenCount"
_SUMMANDS = (_PROMPT, _TOOLS, _ANSWER, _THOUGHTS)
_TOTAL = "totalTokenCount"


class UsageCounts:
    """The counts of one response so far."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, metadata: Any) -> bool:
        """Take a chunk's `usageMetadata`; give whether it held any count. The ill-typed is passed over."""
        if not isinstance(metadata, Mapping):
            return False
        names = (*_SUMMANDS, _CACHED, _TOTAL)
        told = {name: max(0, metadata[name]) for name in names if _is_count(metadata.get(name))}
        total, so_far = told.get(_TOTAL), self._counts.get(_TOTAL, 0)
        if total is not None and total >= so_far and total == sum(told.get(name, 0) for name in _SUMMANDS):
            # The chunk accounts for all tokens by itself: what it leaves out is 0, not as it was.
            told = dict.fromkeys(_SUMMANDS, 0) | told
        self._counts |= told
        return bool(told)

    @property
    def usage(self) -> Usage | None:
        """The usage so far, or None where nothing was reported."""
        if not self._counts:
            return None
        count = self._counts.get
        prompt = count(_PROMPT, 0) + count(_TOOLS, 0)
        cache_read = min(count(_CACHED, 0), prompt)
        thoughts = count(_THOUGHTS, 0)
        output = count(_ANSWER, 0) + thoughts
        return Usage(
            input=prompt - cache_read,
            output=output,
            cache_read=cache_read,
            reasoning=thoughts,
            total=prompt + output,
            context_tokens=prompt + output,
        )


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
