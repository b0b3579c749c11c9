"""The client of a session, whichever face it wears: a language server's editor, a script, a terminal."""

from typing import Protocol

from agentd.protocol.events import EventNotification
from agentd.protocol.messages import PermissionRequest
from agentd.protocol.methods import PermissionAnswer


class Face(Protocol):
    """Where events go and questions are asked."""

    def publish(self, notification: EventNotification) -> None:
        """Send an event. Never waits: order is the order of the calls."""
        ...

    async def room(self) -> None:
        """Wait until the client has read enough of what was sent."""
        ...

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        """Put a question to the user; None when no answer is to be had. Cancelling withdraws the question."""
        ...
