"""One request to the model, sent again where it fails in passing, and the message that answers it.

What the model says is taken and told in one step, so that whoever cancels finds both or neither. When an
attempt fails in the middle of a message, the message is taken back (`message_reset`) and goes on from empty.
"""

from collections.abc import Awaitable, Callable

from agentd.agent.host import Engine, Host
from agentd.agent.response import Response
from agentd.agent.retry import persist
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

MOST_SAID = 16 * 1024 * 1024
"""The longest answer, in UTF-16 code units: ten times what any model may write, so that a server which never
ends costs no memory without end."""


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

        async def attempt() -> StreamEnd:
            self.attempts += 1
            self._response = Response(self._host.unique_call_id)
            return await self._stream(engine, request, self._response)

        async def tell(again: Retry) -> None:
            await self.take_back()
            await self._emit(again)

        return await persist(attempt, tell, self._host.sources.jitter)

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
                    if response.size > MOST_SAID:
                        said = f"the answer is longer than {MOST_SAID // 2**20} MB, so it was not read on"
                        raise ProviderError("protocol", f"{engine.model.provider}: {said}")
        raise ProviderError(
            "protocol", f"{engine.model.provider}: the stream ended without an end", retryable=True
        )

    async def take_back(self) -> None:
        """Take back what was said: the message, where it has begun, goes on from empty."""
        await self._room()
        self._response = None
        if self._message_id is not None:
            await self._emit(MessageReset(message_id=self._message_id))
