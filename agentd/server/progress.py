"""Work-done progress of a prompt: under a token of the client's, or under one that we ask it to take."""

from collections.abc import Callable
from typing import Any, Literal

import anyio

from agentd.daemon.door import ClientError, Door
from agentd.protocol.events import (
    CompactionStart,
    DurableEvent,
    MessageReset,
    MessageStart,
    MessageUpdate,
    TodoChanged,
    ToolExecutionStart,
)
from agentd.protocol.messages import TodoItem
from agentd.protocol.text import one_line

Token = str | int

THINKING = "Thinking"

LINE_SECONDS = 0.5
"""What the model writes is told no more often."""
_LINE = 80
"""Characters of it that a status line has room for."""


class Progress:
    """The progress of one prompt, from its start, or from when its client joined it, to its end."""

    def __init__(
        self, door: Door, token: Token, todo: tuple[TodoItem, ...] = (), title: str = "agentd"
    ) -> None:
        """`todo` is the to-do list as it is: where there is one, its share of done items is told."""
        self.token = token
        self._door = door
        self._title = title
        self._percentage = _percentage(todo)
        self._message = THINKING
        self._state: Literal["new", "held", "begun", "ended"] = "new"
        self._line = ""
        self._next_line = 0.0

    async def create(self) -> None:
        """Ask the client to take a token of ours. Nothing is told before it has, or where it does not."""
        self._state = "held"
        try:
            await self._door.ask("window/workDoneProgress/create", {"token": self.token})
        except ClientError:
            return
        if self._state == "held":
            self._state = "new"
            self.begin(self._message)
            self._tell_line()  # what was written while the client took its time

    def begin(self, message: str = THINKING) -> None:
        """The prompt runs, or waits its turn."""
        self._message = message
        if self._state == "new":
            self._state = "begun"
            self._send(
                {"kind": "begin", "title": self._title, "message": one_line(message), "cancellable": True}
            )

    def follow(self, event: DurableEvent) -> None:
        """Tell of an event of the prompt's run, if it is a step."""
        if isinstance(event, MessageStart | MessageReset):
            self._line, self._next_line = "", 0.0
        if isinstance(event, ToolExecutionStart):
            self._step(event.title)
        elif isinstance(event, CompactionStart):
            self._step("Summing up the conversation")
        elif isinstance(event, TodoChanged):
            self._percentage = _percentage(event.items)
            current = next((item.text for item in event.items if item.status == "in_progress"), None)
            self._step(current or self._message)
        else:
            self.begin(self._message)

    def hear(self, event: MessageUpdate) -> None:
        """The model writes: show the line that it is at, as it grows."""
        if event.update.kind != "text":
            return
        lines = (self._line + event.update.delta).rsplit("\n", 2)
        self._line = (lines[-1] if lines[-1].strip() else "\n".join(lines[-2:]))[-4 * _LINE :]
        self._tell_line()

    def _tell_line(self) -> None:
        now = anyio.current_time()
        said = one_line(self._line)
        if said and now >= self._next_line and self._state == "begun":
            self._next_line = now + LINE_SECONDS
            shown = said if len(said) <= _LINE else f"…{said[1 - _LINE :]}"
            self._send({"kind": "report", "message": shown})

    def _step(self, message: str) -> None:
        self.begin(self._message)
        self._message = message
        if self._state == "begun":
            self._send({"kind": "report", "message": one_line(message)})

    def end(self, message: str | None = None) -> None:
        """The prompt has ended, or never began."""
        begun, self._state = self._state == "begun", "ended"
        if begun:
            self._send({"kind": "end"} if message is None else {"kind": "end", "message": message})

    def _send(self, value: dict[str, Any]) -> None:
        if self._percentage is not None and value["kind"] != "end":
            value = {**value, "percentage": self._percentage}
        self._door.notify("$/progress", {"token": self.token, "value": value})


def _percentage(todo: tuple[TodoItem, ...]) -> int | None:
    """The share of a to-do list that is done, in percent; None without a list."""
    return 100 * sum(item.status == "completed" for item in todo) // len(todo) if todo else None


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
