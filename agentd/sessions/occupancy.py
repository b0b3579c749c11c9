"""What a session is busy with, one run or one compaction, and whose turn it is as soon as that has ended."""

from dataclasses import dataclass, field

from agentd.protocol.errors import RpcError
from agentd.sessions.compacting import Compacting
from agentd.sessions.run import Run
from agentd.sessions.submission import Submission


@dataclass
class Occupancy:
    """`next` are the prompts that were read while the last run ended: they come before the queue."""

    run: Run | None = None
    compacting: Compacting | None = None
    next: list[Submission] = field(default_factory=list)

    @property
    def now(self) -> Run | Compacting | None:
        """What keeps the next prompt from starting."""
        return self.run or self.compacting


def refusal(busy: Run | Compacting) -> RpcError:
    """The answer to what cannot be done while the session is busy with that."""
    return RpcError(
        "sessionBusy",
        "Agent is already processing a prompt."
        if isinstance(busy, Run)
        else "The session is being summed up for the model.",
        retryable=True,
        hint="Wait for its end, cancel it, or use another session.",
    )
