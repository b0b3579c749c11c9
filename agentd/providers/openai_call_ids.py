"""Ids of tool calls as OpenAI's Responses API takes them: at most 64 characters.

A session's ids are unique and often the server's own, but may be longer (another provider's, or numbered
because the server used one twice).
"""

from hashlib import sha256

MAX_LENGTH = 64
_TAIL = 16  # hexadecimal digits: 64 bits


class CallIds:
    """The ids of one request: equal ones stay equal, different ones stay different.

    The same ids in the same order always come out the same, so that a server's cache knows the history again.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def __getitem__(self, id: str) -> str:
        """The id to send for an id of the session."""
        if id not in self._sent:
            sent, count = id, 0
            while len(sent) > MAX_LENGTH or sent in self._taken:
                count += 1
                tail = sha256(f"{count}{id}".encode()).hexdigest()[:_TAIL]
                sent = f"{id[: MAX_LENGTH - _TAIL - 1]}_{tail}"
            self._sent[id] = sent
            self._taken.add(sent)
        return self._sent[id]
