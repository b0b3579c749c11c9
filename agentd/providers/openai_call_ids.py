"""Ids of tool calls as OpenAI takes them: at most 64 characters, in places still 40.

A session's ids are unique and often the server's own, but may be longer (another provider's, or numbered
because the server used one twice).
"""

from hashlib import sha256

from agentd.providers.sent_ids import SentIds

MAX_LENGTH = 64
OLD_MAX_LENGTH = 40
"""What chat completions took once, and gateways still do."""
_TAIL = 16  # hexadecimal digits: 64 bits


class CallIds(SentIds):
    """The ids of one request."""

    def __init__(self, max_length: int = MAX_LENGTH) -> None:
        super().__init__()
        self._max_length = max_length

    def _fits(self, id: str) -> bool:
        return len(id) <= self._max_length

    def _other(self, id: str, count: int) -> str:
        tail = sha256(f"{count}{id}".encode()).hexdigest()[:_TAIL]
        return f"{id[: self._max_length - _TAIL - 1]}_{tail}"
