"""Events on their way from the reader to whoever listens.

A stream holds what came and was not yet taken. It never refuses an event; when it is full, the reader rests
before it reads on (see `Client`), so that a slow listener slows the daemon down and not the machine.
"""

import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Self

import anyio
from pydantic import ValidationError

from agentd.client.pulse import Pulse
from agentd.protocol.events import EventNotification

_log = logging.getLogger(__name__)

CAPACITY = 512
"""How many events may wait before the reader rests."""


class EventStream:
    """The events of a connection, or of one prompt where `prompt_id` (and perhaps `session_id`) is given.

    Iterating gives `EventNotification`s and skips event types that this version does not know; `raw()` gives
    the params of every `agentd/event` as they came. A stream has one consumer. It ends when it is closed and
    all was taken, with the error it was closed with.
    """

    def __init__(self, pulse: Pulse, *, prompt_id: str | None = None, session_id: str | None = None) -> None:
        self._pulse = pulse
        self._prompt_id = prompt_id
        self._session_id = session_id
        self._waiting: deque[dict[str, Any]] = deque()
        self._arrived = anyio.Event()
        self._closed = False
        self._error: Exception | None = None
        self.last_taken = pulse.count
        """The number of the change at which an event was last taken."""

    @property
    def full(self) -> bool:
        """Whether the reader should rest."""
        return not self._closed and len(self._waiting) >= CAPACITY

    def put(self, params: dict[str, Any]) -> None:
        """Take an event in, if it is one of this stream's."""
        of_prompt = self._prompt_id in (None, params.get("promptId"))
        of_session = self._session_id in (None, params.get("sessionId"))
        if of_prompt and of_session and not self._closed:
            self._waiting.append(params)
            self._arrived.set()

    def close(self, error: Exception | None = None) -> None:
        """No more events will come, for the reason `error` if it is one."""
        if not self._closed:
            self._closed, self._error = True, error
            self._arrived.set()
            self._pulse.beat()

    async def raw(self) -> AsyncIterator[dict[str, Any]]:
        """The params of every event, as they came."""
        while True:
            while not self._waiting:
                if self._closed:
                    if self._error is not None:
                        raise self._error
                    return
                self._arrived = anyio.Event()
                await self._arrived.wait()
            event = self._waiting.popleft()
            self.last_taken = self._pulse.beat()
            yield event

    def __aiter__(self) -> AsyncIterator[EventNotification]:
        return self._typed()

    async def _typed(self) -> AsyncIterator[EventNotification]:
        async for params in self.raw():
            event = _known(params)
            if event is not None:
                yield event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()


def _known(params: dict[str, Any]) -> EventNotification | None:
    """The event, or None for a type or value that only a later protocol knows."""
    try:
        return EventNotification.model_validate(params)
    except ValidationError as error:
        _log.debug("An event that this version does not know is ignored: %s", error)
        return None
