"""Ids of tool calls as Mistral takes them: nine letters and digits, or code 3280."""

import re
from hashlib import sha256

from agentd.providers.sent_ids import SentIds

_FIT = re.compile(r"[A-Za-z0-9]{9}")


class NineLetterIds(SentIds):
    """The ids of one request. Mistral's own stay as they are.

    Answers need no way back: they name no call of the request.
    """

    def _fits(self, id: str) -> bool:
        return _FIT.fullmatch(id) is not None

    def _other(self, id: str, count: int) -> str:
        return sha256(f"{count}{id}".encode(errors="replace")).hexdigest()[:9]
