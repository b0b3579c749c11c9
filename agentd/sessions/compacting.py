"""A session's history made shorter because the user asks for it, outside of a run."""

from pathlib import Path

import anyio
import anyio.lowlevel

from agentd.agent.compaction import Compactor
from agentd.agent.history import History
from agentd.protocol.errors import RpcError
from agentd.protocol.events import CompactionEnd, DurableEvent
from agentd.protocol.messages import RunError
from agentd.protocol.methods import SessionCompactResult
from agentd.sessions.conversation import SessionConversation
from agentd.sessions.end import End
from agentd.sessions.house import House
from agentd.sessions.log import SessionLog, refusing

_PASSING = ("rate_limit", "overloaded", "network", "timeout", "server")


class Compacting(SessionConversation):
    """One such request. It happens in the task that calls `run`, and ends with it or by `cancel`."""

    def __init__(self, root: Path, log: SessionLog, house: House) -> None:
        """Raises `RpcError` noModel."""
        super().__init__(root, log, house)
        self._engine = house.engines.engine(log.state.base.model, log.state.base.effort)
        self._scope = anyio.CancelScope()
        self._end: CompactionEnd | None = None
        self.done = End()

    async def run(self, instructions: str | None) -> SessionCompactResult:
        """Do it. Raises `RpcError` storage, or as the model server failed; then nothing has changed."""
        before = History(self, self._engine).tokens
        try:
            with refusing(), self._scope:
                await Compactor(self, self.room, self._emit).on_request(self._engine, instructions)
        finally:
            self.done.set()
        if self._end is not None and self._end.error is not None:
            raise _refusal(self._end.error)
        outcome = self._end.outcome if self._end is not None else "aborted"
        assert outcome != "failed", "what failed says why"
        after = self._end.tokens_after if self._end is not None else None
        return SessionCompactResult(
            outcome=outcome, tokens_before=before, tokens_after=before if after is None else after
        )

    @property
    def settled(self) -> bool:
        """Whether the outcome is fixed: a cancel that comes now is too late."""
        return self._end is not None or self.done.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether a cancel came in time."""
        return self._scope.cancel_called

    def cancel(self) -> None:
        """Stop as soon as can be; too late once it has ended."""
        if not self.settled:
            self._scope.cancel()

    async def _emit(self, event: DurableEvent) -> None:
        self._log.record(event)
        if isinstance(event, CompactionEnd):
            self._end = event
        await anyio.lowlevel.checkpoint()


def _refusal(error: RunError) -> RpcError:
    """The answer to a request for a summary that the model server did not give."""
    kind = "unsupported"
    if error.kind in ("auth", "storage", "internal"):
        kind = "authRequired" if error.kind == "auth" else error.kind
    elif error.retryable or error.kind in _PASSING:
        kind = "overloaded"
    return RpcError(
        kind,
        f"The session could not be summed up, and is as it was: {error.message}",
        retryable=error.retryable,
        error=error.model_dump(mode="json"),
    )
