"""One request to the model, sent again where it fails in passing, and the message that answers it.

What the model says is taken and told in one step, so that whoever cancels finds both or neither. When an
attempt fails in the middle of a message, the message is taken back (`message_reset`) and goes on from empty.
"""

from collections.abc import Awaitable, Callable

import anyio

from agentd.agent import retry
from agentd.agent.host import Engine, Host
from agentd.agent.response import Response
from agentd.protocol.events import (
    DurableEvent,
    LiveEvent,
    MessageHead,
    MessageReset,
    MessageStart,
    MessageUpdate,
    Retry,
)
from agentd.protocol.messages import AssistantBlock
from agentd.providers.base import ModelRequest, ProviderError, StreamEnd


class Exchange:
    """The assistant message of one turn, from nothing to its last word."""

    def __init__(
        self,
        host: Host,
        room: Callable[[], Awaitable[None]],
        emit: Callable[[DurableEvent | LiveEvent], Awaitable[None]],
    ) -> None:
        """`room` waits for a slow client, `emit` tells an event: both are the run's own."""
        self._host = host
        self._room = room
        self._emit = emit
        self._response: Response | None = None
        self._message_id: str | None = None
        self.attempts = 0
        """How often the request was sent."""

    def said(self) -> tuple[AssistantBlock, ...]:
        """What the model has said so far that counts."""
        return self._response.partial() if self._response is not None else ()

    def finish(self, end: StreamEnd, max_output: int | None) -> tuple[tuple[AssistantBlock, ...], set[str]]:
        """The whole message, and the ids of the calls that the output limit cut off."""
        assert self._response is not None
        return self._response.finish(end, max_output)

    async def begin(self, engine: Engine) -> str:
        """Begin the message, once; give its id."""
        if self._message_id is None:
            await self._room()
            self._message_id = self._host.sources.new_id("m")
            head = MessageHead(role="assistant", message_id=self._message_id, model=engine.model.id)
            await self._emit(MessageStart(message=head))
        return self._message_id

    async def ask(self, engine: Engine, request: ModelRequest) -> StreamEnd:
        """Send the request until it is answered or no attempt is left. Raises the last `ProviderError`."""
        while True:
            self.attempts += 1
            self._response = response = Response(self._host.unique_call_id)
            try:
                return await self._stream(engine, request, response)
            except ProviderError as error:
                decision = retry.after(error, self.attempts, self._host.sources.jitter())
                if isinstance(decision, retry.GiveUp):
                    raise decision.error from error
                await self._before_retry(error, decision.delay_ms)

    async def _stream(self, engine: Engine, request: ModelRequest, response: Response) -> StreamEnd:
        async with engine.provider.stream(request) as events:
            async for event in events:
                if isinstance(event, StreamEnd):
                    return event
                if response.is_news(event):
                    message_id = await self.begin(engine)
                    await self._room()
                    if (delta := response.add(event)) is not None:
                        await self._emit(MessageUpdate(message_id=message_id, update=delta))
        raise ProviderError(
            "protocol", f"{engine.model.provider}: the stream ended without an end", retryable=True
        )

    async def _before_retry(self, error: ProviderError, delay_ms: int) -> None:
        """Take back what was said, say that it is tried again, and wait."""
        await self._room()
        self._response = None
        if self._message_id is not None:
            await self._emit(MessageReset(message_id=self._message_id))
        await self._emit(
            Retry(
                attempt=self.attempts,
                max_attempts=retry.MAX_ATTEMPTS,
                delay_ms=delay_ms,
                reason=error.message,
            )
        )
        await anyio.sleep(delay_ms / 1000)
