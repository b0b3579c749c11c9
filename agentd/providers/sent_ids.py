"""Ids of tool calls as a server takes them, where it does not take all that a session may have."""

from abc import ABC, abstractmethod


class SentIds(ABC):
    """The ids of one request: equal ones stay equal, different ones stay different, and those that fit stay.

    The same ids in the same order always come out the same, so that a server's cache knows the history again.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def __getitem__(self, id: str) -> str:
        """The id to send for an id of the session."""
        if id not in self._sent:
            sent, count = id, 0
            while not self._fits(sent) or sent in self._taken:
                count += 1
                sent = self._other(id, count)
            self._sent[id] = sent
            self._taken.add(sent)
        return self._sent[id]

    @abstractmethod
    def _fits(self, id: str) -> bool:
        """Whether the server takes an id as it is."""

    @abstractmethod
    def _other(self, id: str, count: int) -> str:
        """The id to try next in place of this one, `count` from 1 on."""
