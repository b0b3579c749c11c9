"""The prompts of a session that wait: for their own run, or to be said in the one that runs.

The queue is part of the session's state, a fold of `queue_changed`, `agent_start` and the messages of steers.
This is the one place that changes it. Everything here happens in one step, without a wait.

A prompt of an earlier process is *held*: it stands in the queue and runs when the user says so. One that a
cancel gives back is *leaving*: it goes in the step that ends the cancelled run.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from agentd.protocol.capabilities import LIMITS
from agentd.protocol.errors import RpcError
from agentd.protocol.events import QueueChanged
from agentd.protocol.messages import QueuedPrompt, RunError
from agentd.protocol.methods import PromptParams
from agentd.sessions.log import SessionLog, refusing
from agentd.sessions.prompts import blocks_of, built_in

MAX_QUEUE = LIMITS["maxQueue"]


class PromptQueue:
    """`on_gone(prompt_id)` is called for each prompt that left the queue unsaid, once that is journaled.

    `on_said(prompt_id)`: the same for a steer that was said in the run.
    """

    def __init__(
        self, log: SessionLog, on_gone: Callable[[str], None], on_said: Callable[[str], None]
    ) -> None:
        self._log = log
        self._on_said = on_said
        self._on_gone = on_gone
        self._held = {each.prompt_id for each in log.state.queue}
        self._leaving: set[str] = set()
        self._claimed: str | None = None  # the steer that a run goes on for
        self._starting: str | None = None  # the prompt whose own run is about to begin

    # --- reading ----------------------------------------------------------------------------------

    @property
    def all(self) -> tuple[QueuedPrompt, ...]:
        """What waits, in order."""
        return tuple(each for each in self._log.state.queue if each.prompt_id != self._starting)

    def __contains__(self, prompt_id: object) -> bool:
        """Whether this prompt waits and can still be taken back."""
        return any(
            each.prompt_id == prompt_id and each.prompt_id not in self._leaving | {self._claimed}
            for each in self.all
        )

    def wishes(self, prompt_id: str) -> PromptParams:
        """What a queued prompt wants of its run."""
        return self._log.state.wishes[prompt_id].model_copy(update={"prompt_id": prompt_id})

    def ready(self) -> QueuedPrompt | None:
        """The next to run: steers that no run took first, then in order."""
        free = self._free()
        steers = [each for each in free if each.kind == "steer"]
        return next(iter(steers or free), None)

    def _free(self) -> list[QueuedPrompt]:
        return [each for each in self.all if each.prompt_id not in self._held | self._leaving]

    def _place(self, prompt_id: str | None) -> int:
        """Where a prompt stands. Raises `RpcError` promptNotFound for one that cannot be changed any more."""
        if prompt_id is None:
            raise RpcError("invalidParams", "/promptId: is required for this op")
        if prompt_id not in self:
            raise RpcError("promptNotFound", f'There is no prompt "{prompt_id}" in the queue (any more).')
        return [each.prompt_id for each in self.all].index(prompt_id)

    # --- changes ----------------------------------------------------------------------------------

    def add(self, queued: QueuedPrompt, params: PromptParams) -> None:
        """A prompt more. Raises `RpcError` queueFull, or storage; then nothing has happened."""
        if len(self.all) >= MAX_QUEUE:
            raise RpcError(
                "queueFull",
                f"{MAX_QUEUE} prompts wait already, which is the most.",
                retryable=True,
                hint="Wait for one of them to run, or take some out with agentd/queue/update.",
            )
        self._record((*self.all, queued), prompts={queued.prompt_id: _wishes(params)})

    def edit(self, prompt_id: str | None, params: PromptParams | None) -> None:
        """Another text for a prompt that waits. Raises `RpcError`, also for a prompt that says nothing."""
        place = self._place(prompt_id)
        if params is None:
            raise RpcError("invalidParams", "/prompt: is required for this op")
        old, blocks = self.all[place], blocks_of(params.prompt)
        if old.kind == "steer" and not blocks:
            raise RpcError("invalidParams", "/prompt: a steer has to say something")
        wishes = self.wishes(old.prompt_id).model_copy(update={"prompt": params.prompt})
        new = old.model_copy(update={"prompt": blocks})
        queue = (*self.all[:place], new, *self.all[place + 1 :])
        self._record(queue, prompts={old.prompt_id: _wishes(wishes)})

    def move(self, prompt_id: str | None, index: int | None) -> None:
        """Have a prompt stand at this place, counted from 0; the last one where there are fewer."""
        place = self._place(prompt_id)
        if index is None:
            raise RpcError("invalidParams", "/index: is required for this op")
        rest = [*self.all[:place], *self.all[place + 1 :]]
        rest.insert(min(index, len(rest)), self.all[place])
        if tuple(rest) != self.all:
            self._record(tuple(rest))

    def remove(
        self, prompt_ids: Collection[str], *, run: str | None = None, refused: RunError | None = None
    ) -> tuple[QueuedPrompt, ...]:
        """Take prompts out, unsaid, and give them. `refused`: why they could not run.

        `run` is the prompt whose run this closes. Raises `RpcError`, or `NotJournaled` in a run.
        """
        gone = tuple(each for each in self.all if each.prompt_id in prompt_ids)
        if not gone:
            return ()
        left = tuple(each for each in self.all if each.prompt_id not in prompt_ids)
        why = {} if refused is None else {each.prompt_id: refused for each in gone}
        private = {"refused": why} if why else {}
        if run is None:
            self._record(left, **private)
        else:
            self._log.record(QueueChanged(queue=self._with_starting(left)), run, **private)
        for each in gone:
            self._held.discard(each.prompt_id)
            self._on_gone(each.prompt_id)
        return gone

    def remove_one(self, prompt_id: str | None) -> tuple[QueuedPrompt, ...]:
        """Take out a prompt that the user names. Raises `RpcError`."""
        return self.remove((self.all[self._place(prompt_id)].prompt_id,))

    def clear(self) -> None:
        """Take out all that can still be taken back. Raises `RpcError` storage."""
        self.remove([each.prompt_id for each in self.all if each.prompt_id in self])

    def release(self, prompt_id: str | None) -> None:
        """Let what is held run: one prompt, and that one next, or all."""
        if prompt_id is None:
            self._held.clear()
            return
        self.move(prompt_id, 0)
        self._held.discard(prompt_id)

    def hold(self) -> None:
        """Nothing here runs until the user says so: the journal cannot be written, or the session closes."""
        self._leaving, self._claimed, self._starting = set(), None, None
        self._held |= {each.prompt_id for each in self.all}

    def _record(self, queue: Iterable[QueuedPrompt], **private: Any) -> None:
        with refusing():
            self._log.record(QueueChanged(queue=self._with_starting(queue)), **private)

    def _with_starting(self, queue: Iterable[QueuedPrompt]) -> tuple[QueuedPrompt, ...]:
        """This queue, with the prompt in front that is about to leave it by its `agent_start`."""
        starting = [each for each in self._log.state.queue if each.prompt_id == self._starting]
        return (*starting, *queue)

    # --- beside a run -----------------------------------------------------------------------------

    def give_back(self, *, only_steers: bool) -> tuple[QueuedPrompt, ...]:
        """What a cancel gives back, each prompt to one cancel only. It goes with `settle`."""
        steers = {each.prompt_id for each in self._free() if each.kind == "steer"}
        given = tuple(
            each
            for each in self.all
            if each.prompt_id not in self._leaving and (not only_steers or each.prompt_id in steers)
        )
        self._leaving |= {each.prompt_id for each in given}
        return given

    def settle(self, run: str | None = None) -> None:
        """Let go of what a cancel gives back: in the end of `run`, or now. Raises like `remove`."""
        leaving, self._leaving, self._claimed = self._leaving, set(), None
        self.remove(leaving, run=run)

    def claim_steer(self) -> bool:
        """Whether a steer waits for the run; from now on it cannot be taken back but with the run itself."""
        steer = self._next_steer()
        self._claimed = steer.prompt_id if steer is not None else None
        return steer is not None

    def waiting_steer(self) -> QueuedPrompt | None:
        """The steer that `take_steer` would give now."""
        return self._next_steer()

    def take_steer(self) -> QueuedPrompt | None:
        """The next steer to be said in the run. It leaves the queue when its message is journaled."""
        self._claimed = None
        return self._next_steer()

    def _next_steer(self) -> QueuedPrompt | None:
        """A built-in command is said to no model: it has a run of its own, as a steer that came too late."""
        steers = (each for each in self._free() if each.kind == "steer")
        return next((each for each in steers if built_in(each.prompt) is None), None)

    def start(self, prompt_id: str) -> None:
        """The run of a prompt is about to begin: it waits no more."""
        self._starting = prompt_id

    def took(self, run: str, steer: str | None) -> None:
        """The run may have taken a prompt out, this steer or its own: tell clients. Raises `NotJournaled`."""
        state = self._log.state
        if steer is not None:
            self._on_said(steer)
        if state.queue != state.told_queue:
            self._log.record(QueueChanged(queue=state.queue), run)


def _wishes(params: PromptParams) -> PromptParams:
    """What of a prompt's params counts when it runs."""
    return PromptParams(
        prompt=params.prompt,
        model=params.model,
        mode=params.mode,
        effort=params.effort,
        max_turns=params.max_turns,
    )
