"""How prompts are taken back: the one that runs, all that wait with it, or one of the queue."""

from typing import Literal

import anyio
import anyio.lowlevel

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import QueuedPrompt
from agentd.protocol.methods import CancelResult
from agentd.sessions.compacting import Compacting
from agentd.sessions.occupancy import Occupancy
from agentd.sessions.queue import PromptQueue
from agentd.sessions.submission import Submission, Submissions

CANCEL_SECONDS = 4.5
"""A cancel is answered by then, whatever still has not stopped."""

Stop = Literal["aborted", "interrupted"]


class Cancelling:
    """Takes prompts of one session back."""

    def __init__(self, busy: Occupancy, queue: PromptQueue, submissions: Submissions) -> None:
        self._busy = busy
        self._queue = queue
        self._submissions = submissions

    async def cancel(self, prompt_id: str | None, stop: Stop, *, keep_queue: bool) -> CancelResult:
        """See `Dispatcher.cancel`."""
        if prompt_id is not None and prompt_id in self._queue:
            return await self._cancel_queued(prompt_id)
        victim = self._victim(prompt_id)
        compacting = self._busy.compacting if prompt_id is None else None
        if victim is None and prompt_id is not None:
            return CancelResult(state="notRunning", quiescent=True)
        given = self._queue.give_back(only_steers=keep_queue)
        meant = compacting if victim is None else victim.run
        late = meant is not None and meant.settled and not meant.cancelled
        self._stop(victim, stop, everything=prompt_id is None)
        if self._busy.run is None or self._busy.run.over:
            self._queue.settle()
        await _ends(compacting, victim)
        restored = self.restored(given)
        run = victim.run if victim is not None else None
        if late or (run is None and compacting is None):
            return CancelResult(state="notRunning", quiescent=True, restored=restored)
        return CancelResult(
            state="cancelled",
            quiescent=run is None or run.quiescent,
            prompt_id=run.prompt_id if run is not None else None,
            restored=restored,
        )

    async def _cancel_queued(self, prompt_id: str) -> CancelResult:
        taken = self._submissions.get(prompt_id)
        given = self._queue.remove_one(prompt_id)
        while taken is not None and taken.listeners:
            await anyio.lowlevel.checkpoint()  # its own answer goes first
        return CancelResult(state="cancelled", quiescent=True, prompt_id=prompt_id, restored=given)

    async def end(self, stop: Stop) -> None:
        """Cancel all that runs or is about to, and wait for it."""
        victim, compacting = self._victim(None), self._busy.compacting
        self._stop(victim, stop, everything=True)
        await _ends(compacting, victim)

    def _victim(self, prompt_id: str | None) -> Submission | None:
        """The prompt that a cancel means: the one that waits for its turn to run, or runs."""
        run = self._busy.run
        running = self._submissions.get(run.prompt_id) if run is not None else None
        if prompt_id is None:
            return self._busy.next[0] if self._busy.next else running
        named = self._submissions.get(prompt_id)
        return running if named is not None and named not in self._busy.next else named

    def _stop(self, victim: Submission | None, stop: Stop, *, everything: bool) -> None:
        busy = self._busy
        if everything and busy.compacting is not None:
            busy.compacting.cancel()
        if victim is None:
            return
        for each in busy.next if everything else [victim]:
            each.cancelled = True
        if busy.run is not None and (everything or victim.run is busy.run):
            busy.run.cancel(stop)

    def restored(self, given: tuple[QueuedPrompt, ...]) -> tuple[QueuedPrompt, ...]:
        """What of it did leave the queue: all, unless the journal could not be written."""
        standing = {each.prompt_id for each in self._queue.all}
        return tuple(each for each in given if each.prompt_id not in standing)

    def withdraw(self, taken: Submission) -> None:
        """A request for this prompt was taken back: so is the prompt, and no other."""
        if taken.run is not None:
            taken.run.cancel()
        elif taken in self._busy.next:
            taken.cancelled = True
        elif taken.prompt_id in self._queue:
            try:
                self._queue.remove((taken.prompt_id,))
            except RpcError as error:
                self._submissions.end(taken.prompt_id, error)
        elif self._busy.run is not None and not taken.done.is_set():
            self._busy.run.cancel()  # which is about to say it


async def _ends(*all_of: Compacting | Submission | None) -> None:
    """Wait for these to end, but not for ever."""
    with anyio.move_on_after(CANCEL_SECONDS):
        for each in all_of:
            if each is not None:
                await each.wait()
