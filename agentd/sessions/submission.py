"""A prompt that was read and whose answer is owed: it runs, waits its turn, or steers another one's run."""

from collections.abc import Callable
from typing import Literal

import anyio

from agentd.protocol.errors import RpcError
from agentd.protocol.events import DurableEvent
from agentd.protocol.messages import ContentBlock, QueuedPrompt
from agentd.protocol.methods import Problem, PromptParams, PromptResult
from agentd.sessions.end import End
from agentd.sessions.run import Run
from agentd.sessions.state import SessionState, steered

Outcome = Literal["started", "queued", "steered"]


class Submission:
    """One prompt, for all requests that ask for it. `Session` decides what becomes of it."""

    def __init__(
        self,
        params: PromptParams,
        blocks: tuple[ContentBlock, ...],
        digest: str,
        withdraw: Callable[["Submission"], None],
    ) -> None:
        """`params` name the prompt. `withdraw` is how the session takes it back."""
        assert params.prompt_id is not None
        self.prompt_id = params.prompt_id
        self.params = params
        self.blocks = blocks
        self.digest = digest
        self.outcome: Outcome = "started"
        self.run: Run | None = None
        self.cancelled = False  # before it began: it begins and is cancelled at once
        self.restored: tuple[QueuedPrompt, ...] = ()  # steers that its interruption gives back
        self.problems: tuple[Problem, ...] = ()  # of the set-up, for whoever reads the answer only
        self.error: RpcError | None = None
        self.placed = anyio.Event()  # it runs, stands in the queue, or is refused
        self.done = End()
        self._result: PromptResult | None = None
        self._watchers: list[Callable[[DurableEvent], None]] = []
        self._withdraw = withdraw

    def cancel(self) -> None:
        """Take the prompt back: out of the queue, or by cancelling the run that says it."""
        self._withdraw(self)

    def watch(self, function: Callable[[DurableEvent], None]) -> None:
        """Have each durable event of the run that says this prompt told to this function as well."""
        self._watchers.append(function)
        if self.run is not None:
            self.run.watch(function)

    def place(self, outcome: Outcome, run: Run | None = None) -> None:
        """It runs in `run`, or waits in the queue."""
        self.run = run
        if not self.placed.is_set():
            self.outcome = outcome
        if run is not None:
            for function in self._watchers:
                run.watch(function)
            if self.cancelled:
                run.cancel()
        self.placed.set()

    def finish(self, result: PromptResult) -> None:
        """It has ended."""
        added = {"restored": self.restored, "problems": self.problems}
        self._result = result.model_copy(update={name: told for name, told in added.items() if told})
        self.placed.set()
        self.done.set()

    def fail(self, error: RpcError) -> None:
        """It never began, or not in this process."""
        self.error = error
        self.placed.set()
        self.done.set()

    async def answer(self) -> PromptResult:
        """The result, waited for. Raises `RpcError` where the prompt never began."""
        await self.done.hear()
        if self.error is not None:
            raise self.error
        assert self._result is not None
        return self._result


class Submissions:
    """The prompts of a session that are not answered yet, by their ids."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._open: dict[str, Submission] = {}

    def __contains__(self, prompt_id: object) -> bool:
        return prompt_id in self._open

    def get(self, prompt_id: str) -> Submission | None:
        """The prompt of this id, where it is not answered yet."""
        return self._open.get(prompt_id)

    def add(self, taken: Submission) -> None:
        """A prompt that was taken up."""
        self._open[taken.prompt_id] = taken

    def end(self, prompt_id: str, end: PromptResult | RpcError) -> None:
        """Answer all who wait for a prompt: it has ended, or will not begin here."""
        taken = self._open.pop(prompt_id, None)
        if taken is None:
            return
        if isinstance(end, RpcError):
            taken.fail(end)
        else:
            taken.finish(end)

    def gone(self, prompt_id: str) -> None:
        """A prompt has left the queue unsaid."""
        result = self._state.prompts[prompt_id].result
        assert result is not None
        self.end(prompt_id, result)

    def end_with(self, run: Run) -> list[Submission]:
        """Answer all whose prompt was said in this run, which has ended, and give them."""
        ended = [each for each in self._open.values() if each.run is run]
        for each in ended:
            self.end(each.prompt_id, self._result_of(each, run))
        return ended

    def _result_of(self, taken: Submission, run: Run) -> PromptResult:
        assert run.result is not None
        entry = self._state.prompts.get(taken.prompt_id)
        if entry is not None and entry.result is not None:
            if run.over and run.result.error is not None and run.result.error.kind == "storage":
                unsafe = {"stop_reason": "error", "error": run.result.error}  # its end is not on the disk
                return entry.result.model_copy(update=unsafe)
            return entry.result
        return run.result if taken.prompt_id == run.prompt_id else steered(run.result, taken.prompt_id)
