"""Making a history shorter for the model when it outgrows the context window. The history itself stays whole.

Two stages. The cheaper one leaves out the output of tools in old turns; where that does not free enough, the
model is asked for a summary of the old turns, which stands in their place from then on. Recent turns are kept
whole, and a call is never parted from its result. What came of it is a `Memory`, journaled with the closing
event: until then nothing has changed, whatever fails or is cancelled.

It happens by itself when the history reaches the threshold of `tokens.py`, and when a server says that the
request is too long; and when the user asks for it. What failed by itself is not tried again in the same run.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from anyio import CancelScope, get_cancelled_exc_class

from agentd.agent import tokens
from agentd.agent.history import History
from agentd.agent.host import Conversation, Engine, NotJournaled
from agentd.agent.retry import persist
from agentd.agent.summary import hand_over, summary_request
from agentd.agent.usage import measured
from agentd.protocol.events import CompactionEnd, CompactionKept, CompactionStart, DurableEvent, Memory, Retry
from agentd.protocol.messages import RunError, Usage
from agentd.providers.base import ModelRequest, ProviderError, StreamEnd, TextDelta

log = logging.getLogger(__name__)

Reason = Literal["threshold", "overflow", "request"]

ENOUGH = 0.6
"""Leaving out tool output is enough where no more of the threshold is left; else a summary is due soon."""

_LEAST_ROOM = 8000  # tokens: into less hardly more than the system prompt and the tools would fit
_OFF = "Ask for a summary with agentd/session/compact: [compaction] auto = false, so none is made unasked."
_NOTHING_LEFT = "There is nothing left in the conversation that could be made shorter."


class Compactor:
    """Makes the history of a conversation shorter: one for a run, or for a request of the user."""

    def __init__(
        self,
        conversation: Conversation,
        room: Callable[[], Awaitable[None]],
        emit: Callable[[DurableEvent], Awaitable[None]],
    ) -> None:
        """`room` waits for a slow client, `emit` tells an event: both are the run's own."""
        self._conversation = conversation
        self._room = room
        self._emit = emit
        self._has_failed = False  # by itself: not again

    async def before_request(self, engine: Engine) -> None:
        """Make the history shorter if it has reached the threshold of this model."""
        settings = self._conversation.compaction
        limit = tokens.threshold(engine.model, settings.at)
        if limit is None or not settings.auto or self._has_failed:
            return
        history = History(self._conversation, engine)
        if history.is_due(limit):
            await self._compact("threshold", history, limit)

    async def after_overflow(self, engine: Engine, error: ProviderError) -> None:
        """Make the history shorter after a server has called a request too long.

        Raises that error, with the reason, where it could not be done.
        """
        if not self._conversation.compaction.auto:
            raise _because(error, _OFF)
        if self._has_failed:
            raise error
        limit = tokens.threshold(engine.model, self._conversation.compaction.at)
        end = await self._compact("overflow", History(self._conversation, engine), limit)
        if end is None:
            raise _because(error, _NOTHING_LEFT)
        if end.error is not None:
            raise _because(error, f"Making the conversation shorter failed: {end.error.message}")

    async def on_request(self, engine: Engine, instructions: str | None) -> None:
        """Sum the history up because the user wants that, and tell how it went."""
        limit = tokens.threshold(engine.model, self._conversation.compaction.at)
        history = History(self._conversation, engine)
        if await self._compact("request", history, limit, instructions) is None:
            with CancelScope(shield=True):
                before = history.tokens
                await self._emit(CompactionStart(reason="request", tokens_before=before))
                await self._emit(CompactionEnd(outcome="nothingToDo", tokens_before=before))

    async def _compact(
        self, reason: Reason, history: History, limit: int | None, instructions: str | None = None
    ) -> CompactionEnd | None:
        """Do it, and tell of it; None where there is nothing to do.

        Raises only `NotJournaled`, and cancellation, with all closed.
        """
        place = history.cut()
        if place is None:
            return None
        before = history.tokens
        await self._room()
        with CancelScope(shield=True):
            await self._emit(CompactionStart(reason=reason, tokens_before=before))
        try:
            end = await self._outcome(_Task(reason, history, place, limit, instructions))
        except get_cancelled_exc_class():
            with CancelScope(shield=True):
                await self._emit(CompactionEnd(outcome="aborted", tokens_before=before))
            raise
        self._has_failed = end.outcome != "compacted"
        await self._emit(end)
        return end

    async def _outcome(self, task: "_Task") -> CompactionEnd:
        """How it ends. Nothing has changed yet. Raises only `NotJournaled` and cancellation."""
        history, usage = task.history, None
        try:
            memory = task.enough_cleared()
            if memory is None:
                memory, usage = await self._summed_up(task)
        except NotJournaled:
            raise
        except ProviderError as error:
            if error.context_limit is not None:  # the next attempt asks for less
                self._conversation.learn_window(history.engine.model, error.context_limit)
            return task.failed(error.to_run_error(), measured(error.usage, history.engine.model))
        except Exception as error:
            log.exception("compaction")
            message = f"agentd failed: {type(error).__name__}. Its log says more."
            return task.failed(RunError(kind="internal", message=message), usage)
        return CompactionEnd(
            outcome="compacted",
            tokens_before=history.tokens,
            tokens_after=history.size_with(memory),
            kept=CompactionKept(memory=memory, usage=usage),
        )

    async def _summed_up(self, task: "_Task") -> tuple[Memory, Usage | None]:
        """The memory with a summary of what is old, and what that took. Raises `ProviderError`."""
        history, place = task.history, task.place
        request = summary_request(history.engine, history.shown_before(place), task.room, task.instructions)
        text, end = await self._ask(history.engine, request, task.longest)
        if end.stop == "refusal" or not text.strip():
            kind: Literal["refusal", "protocol"] = "refusal" if end.stop == "refusal" else "protocol"
            raise ProviderError(kind, f"{history.engine.model.id} gave no summary.", usage=end.usage)
        prompt = history.cut_prompt(place)
        said = hand_over(
            text,
            history.transcript[:place],
            self._conversation.todo,
            self._conversation.place_of,
            is_whole=end.stop != "length",
            repeats_prompt=prompt is not None,
        )
        return history.remembered(place, said, prompt), measured(end.usage, history.engine.model)

    async def _ask(self, engine: Engine, request: ModelRequest, longest: int) -> tuple[str, StreamEnd]:
        """The text that answers a request, sent again where it fails in passing.

        Raises `ProviderError`, also where there is no end to it: above `longest` bytes.
        """

        async def attempt() -> tuple[str, StreamEnd]:
            pieces: list[str] = []
            size = 0
            async with engine.provider.stream(request) as events:
                async for event in events:
                    if isinstance(event, StreamEnd):
                        return "".join(pieces), event
                    if isinstance(event, TextDelta):
                        pieces.append(event.text)
                        size += len(event.text.encode("utf-8", "replace"))
                        if size > longest:
                            message = f"{engine.model.id} gave a summary that is too long to be of use."
                            raise ProviderError("protocol", message)
            raise ProviderError(
                "protocol", f"{engine.model.provider}: the stream ended without an end", retryable=True
            )

        async def tell(retry: Retry) -> None:
            await self._room()
            await self._emit(retry)

        return await persist(attempt, tell, self._conversation.sources.jitter)


@dataclass(frozen=True)
class _Task:
    """A history to make shorter: all before `place` is old. `limit` is the threshold, where it is known."""

    reason: Reason
    history: History
    place: int
    limit: int | None
    instructions: str | None

    @property
    def room(self) -> int | None:
        """How many tokens the request for a summary may fill; None: as many as it takes.

        After an overflow half of what was too long, as then the window is smaller than was known.
        """
        if self.reason != "overflow":
            return self.limit
        half = max(self.history.tokens, self.history.estimate) // 2
        room = max(half, _LEAST_ROOM)
        return room if self.limit is None else min(room, self.limit)

    @property
    def longest(self) -> int:
        """How many bytes a summary may have: one that fills the window anew makes nothing shorter."""
        room = max(self.limit or self.history.tokens, _LEAST_ROOM)
        return int(room * ENOUGH) * tokens.BYTES_PER_TOKEN

    def enough_cleared(self) -> Memory | None:
        """The memory without the output of old tools, where that is enough. Who asks wants a summary."""
        if self.limit is None or self.reason == "request":
            return None
        memory = self.history.cleared(self.place)
        most = min(self.limit, self.history.tokens) * ENOUGH
        return memory if memory is not None and self.history.size_with(memory) <= most else None

    def failed(self, error: RunError, usage: Usage | None) -> CompactionEnd:
        """The end of one that came to nothing; what it took was taken all the same."""
        kept = CompactionKept(usage=usage)
        return CompactionEnd(outcome="failed", tokens_before=self.history.tokens, error=error, kept=kept)


def _because(error: ProviderError, why: str) -> ProviderError:
    """The same error, with a reason behind it."""
    return ProviderError(
        error.kind,
        f"{error.message.rstrip('.')}. {why}",
        retryable=error.retryable,
        status=error.status,
        code=error.code,
        request_id=error.request_id,
        retry_after_ms=error.retry_after_ms,
        context_limit=error.context_limit,
        usage=error.usage,
    )
