"""Ids of tool calls as Mistral takes them: nine letters and digits, or code 3280."""

import re
from hashlib import sha256

_FIT = re.compile(r"[A-Za-z0-9]{9}")


class NineLetterIds:
    """The ids of one request: equal ones stay equal, different ones stay different.

    Mistral's own ids stay as they are. The same ids in the same order always come out the same, so that a
    server's cache knows the history again. Answers need no way back: they name no call of the request.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._taken: set[str] = set()

    def __getitem__(self, id: str) -> str:
        """The id to send for an id of the session."""
        if id not in self._sent:
            sent, count = id, 0
            while not _FIT.fullmatch(sent) or sent in self._taken:
                count += 1
                sent = sha256(f"{count}{id}".encode(errors="replace")).hexdigest()[:9]
            self._sent[id] = sent
            self._taken.add(sent)
        return self._sent[id]
