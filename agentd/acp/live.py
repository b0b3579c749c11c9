"""Live updates on their way out; `daemon.outbox.Update`."""

from typing import Any

from pydantic_core import to_json

from agentd.acp import updates
from agentd.acp.content import text_block
from agentd.acp.updates import Chunk
from agentd.daemon.outbox import Update

_ENVELOPE_BYTES = 250
"""What an update has around its text, roughly."""


def encoded(session_id: str, update: dict[str, Any]) -> bytes:
    """The body of a `session/update`."""
    params = {"sessionId": session_id, "update": update}
    return to_json({"jsonrpc": "2.0", "method": "session/update", "params": params})


class Piece:
    """Text of one message, which more of it joins."""

    def __init__(self, session_id: str, kind: Chunk, message_id: str, text: str) -> None:
        self._whose = (session_id, kind, message_id)
        self._texts = [text]
        self.size = _ENVELOPE_BYTES + len(text.encode(errors="replace"))

    def takes(self, later: Update) -> bool:
        """Go on with the same message."""
        if not isinstance(later, Piece) or later._whose != self._whose:
            return False
        self._texts += later._texts
        self.size += later.size - _ENVELOPE_BYTES
        return True

    def body(self) -> bytes:
        """The update."""
        session_id, kind, message_id = self._whose
        return encoded(session_id, updates.chunk(kind, text_block("".join(self._texts)), message_id))


class Output:
    """What a running call has said. An update replaces the one before, so a later one stands for both."""

    def __init__(self, session_id: str, call_id: str, text: str) -> None:
        self._whose = (session_id, call_id)
        self._text = text
        self.size = _ENVELOPE_BYTES + len(text.encode(errors="replace"))

    def takes(self, later: Update) -> bool:
        """Be the later one."""
        if not isinstance(later, Output) or later._whose != self._whose:
            return False
        self._text, self.size = later._text, later.size
        return True

    def body(self) -> bytes:
        """The update."""
        session_id, call_id = self._whose
        return encoded(session_id, updates.said(call_id, self._text))
