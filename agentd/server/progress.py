"""Work-done progress of a prompt whose client asked for it with a token: what is done, step by step."""

from collections.abc import Callable
from typing import Any

from agentd.protocol.events import CompactionStart, DurableEvent, ToolExecutionStart
from agentd.server.door import Door

Token = str | int


class Progress:
    """The progress of one prompt, from its start, or from when its client joined it, to its end."""

    def __init__(self, door: Door, token: Token) -> None:
        self._door = door
        self._token = token
        self._begun = False

    def begin(self) -> None:
        """The prompt runs."""
        if not self._begun:
            self._begun = True
            self._send({"kind": "begin", "title": "agentd", "message": "Thinking", "cancellable": True})

    def follow(self, event: DurableEvent) -> None:
        """Tell of an event of the prompt's run, if it is a step."""
        self.begin()
        if isinstance(event, ToolExecutionStart):
            self._send({"kind": "report", "message": event.title})
        elif isinstance(event, CompactionStart):
            self._send({"kind": "report", "message": "Summing up the conversation"})

    def end(self) -> None:
        """The prompt has ended, or never began."""
        if self._begun:
            self._send({"kind": "end"})

    def _send(self, value: dict[str, Any]) -> None:
        self._door.notify("$/progress", {"token": self._token, "value": value})


class ProgressTokens:
    """The prompts that can be cancelled by `window/workDoneProgress/cancel`."""

    def __init__(self) -> None:
        self._cancels: dict[Token, Callable[[], None]] = {}

    def add(self, token: Token, cancel: Callable[[], None]) -> None:
        """A prompt began under this token."""
        self._cancels[token] = cancel

    def remove(self, token: Token, cancel: Callable[[], None]) -> None:
        """This prompt of the token has ended; a later one may have taken the token over."""
        if self._cancels.get(token) == cancel:
            del self._cancels[token]

    def cancel(self, token: Token) -> None:
        """Cancel the prompt of this token, if it still runs."""
        if token in self._cancels:
            self._cancels[token]()
