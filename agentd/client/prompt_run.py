"""One prompt, watched while it runs."""

from collections.abc import AsyncIterator
from typing import Any

from agentd.client.connection import Call, Connection
from agentd.client.event_stream import EventStream
from agentd.protocol.events import EventNotification
from agentd.protocol.methods import PromptResult

SETTLE_SECONDS = 7.0
"""How long a cancelled prompt may take to answer: 5 s for the daemon (protocol, section 4) and some."""


class PromptRun:
    """A prompt that was sent: iterate over it for its events, then read `result`.

    Iterating ends when the prompt is answered. It raises `RpcError` where the prompt never began and
    `ConnectionLost` where the daemon is gone.
    """

    def __init__(self, connection: Connection, events: EventStream, call: Call, prompt_id: str) -> None:
        self.prompt_id = prompt_id
        self._connection = connection
        self._events = events
        self._call = call

    async def __aiter__(self) -> AsyncIterator[EventNotification]:
        async for event in self._events:
            yield event
        self._call.result()

    async def raw(self) -> AsyncIterator[dict[str, Any]]:
        """The params of each `agentd/event` as they came, also of types that this version does not know."""
        async for event in self._events.raw():
            yield event
        self._call.result()

    def cancel(self) -> None:
        """Ask for the end of this prompt, and of no other. Its events and its result still come."""
        if not self._call.done.is_set():
            self._connection.notify("$/cancelRequest", {"id": self._call.request_id})

    async def wait(self) -> PromptResult:
        """Wait for the end without looking at events."""
        self._events.close()
        await self._call.done.wait()
        return self.result

    @property
    def result(self) -> PromptResult:
        """How the prompt ended. Raises what iterating raises; `RuntimeError` while it still runs."""
        if not self._call.done.is_set():
            raise RuntimeError("The prompt still runs: its result is there when iterating has ended.")
        return PromptResult.model_validate(self._call.result())
