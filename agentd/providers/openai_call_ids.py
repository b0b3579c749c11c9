"""Ids of tool calls as OpenAI's Responses API takes them: at most 64 characters.

A session's ids are unique and often the server's own, but may be longer (another provider's, or numbered
because the server used one twice).
"""

from hashlib import sha256

from agentd.providers.sent_ids import SentIds

MAX_LENGTH = 64
_TAIL = 16  # hexadecimal digits: 64 bits


class CallIds(SentIds):
    """The ids of one request."""

    def _fits(self, id: str) -> bool:
        return len(id) <= MAX_LENGTH

    def _other(self, id: str, count: int) -> str:
        tail = sha256(f"{count}{id}".encode()).hexdigest()[:_TAIL]
        return f"{id[: MAX_LENGTH - _TAIL - 1]}_{tail}"
