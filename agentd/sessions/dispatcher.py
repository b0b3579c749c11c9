"""What becomes of a session's prompts: one runs at a time, others wait, steer, interrupt or are refused.

Taking a prompt is one step, so prompts are taken in the order in which they were read. The end of a run is
another: who waits for it is answered, and only then comes what was read meanwhile, and then the queue.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import anyio
import anyio.lowlevel
from anyio import CancelScope

from agentd.agent.prompt_cut import PromptWatch
from agentd.protocol.errors import RpcError
from agentd.protocol.events import Notice
from agentd.protocol.messages import Mode, QueuedPrompt, RunError
from agentd.protocol.methods import (
    CancelResult,
    PromptAccepted,
    PromptParams,
    PromptResult,
    QueueUpdateParams,
    SessionCompactResult,
    SessionRewindParams,
    SessionRewindResult,
)
from agentd.sessions.cancelling import CANCEL_SECONDS, Cancelling, Stop
from agentd.sessions.checking import check
from agentd.sessions.compacting import Compacting
from agentd.sessions.family import Family
from agentd.sessions.findings import SessionFindings
from agentd.sessions.ground import Ground
from agentd.sessions.house import House
from agentd.sessions.log import SessionLog, refusing
from agentd.sessions.occupancy import Occupancy, refusal
from agentd.sessions.prompts import blocks_of, check_going_on, digest_of
from agentd.sessions.questions import Questions
from agentd.sessions.queue import PromptQueue
from agentd.sessions.rewinding import Rewinding
from agentd.sessions.run import Run
from agentd.sessions.submission import Submission, Submissions
from agentd.sessions.words import Words, look_up
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.shell import Shell

STANDS_STILL = "The session's journal could not be written; the prompt waits in its queue."


class Dispatcher:
    """Takes the prompts of one session."""

    def __init__(
        self,
        root: Path,
        log: SessionLog,
        house: House,
        questions: Questions,
        shell: Shell,
        family: Family | None = None,
    ) -> None:
        self.root = root
        self._log = log
        self._state = log.state
        self._house = house
        self._submissions = Submissions(log.state)
        self._busy = Occupancy()
        self._closed = False
        self._queue = PromptQueue(log, self._submissions.gone, self._said)
        self._cancelling = Cancelling(self._busy, self._queue, self._submissions)
        watch = PromptWatch(log.state.cut_prompts)
        self.checkpoints = Checkpoints.beside(log.path, house.checkpoint_bytes)
        self.findings = SessionFindings(log, house.editor)
        self._ground = Ground(
            root,
            log,
            house,
            questions,
            shell,
            watch,
            self._queue,
            self.checkpoints,
            self.findings,
            family or Family(),
        )
        self._rewinding = anyio.Lock()

    @property
    def run(self) -> Run | None:
        """The run of the prompt that is being worked on."""
        return self._busy.run

    def knows(self, prompt_id: str) -> bool:
        """Whether a prompt of that id was ever taken here."""
        return prompt_id in self._state.prompts or prompt_id in self._submissions

    @property
    def wished_modes(self) -> tuple[Mode | None, ...]:
        """The modes that prompts of the queue want."""
        return tuple(wish.mode for wish in self._state.wishes.values())

    # --- taking -----------------------------------------------------------------------------------

    async def prompt(
        self, params: PromptParams, on_start: Callable[[Submission], None] = lambda submission: None
    ) -> PromptResult | PromptAccepted:
        """Run a prompt, or join or recall the one of the same id, and give its result.

        `on_start` is handed the prompt in the step that takes it, before anything of it happens. Raises
        `RpcError` for a prompt that never began: sessionBusy, queueFull, noModel, unsupported,
        outsideWorkspace, invalidParams, cancelled.
        """
        taken = self._take(params)
        if isinstance(taken, PromptResult):
            return taken
        on_start(taken)
        return await (self._accepted(taken) if params.wait == "accepted" else taken.answer())

    async def _accepted(self, taken: Submission) -> PromptAccepted:
        """The word that a prompt is safe: in its run, or in the queue."""
        await taken.placed.wait()
        if taken.error is not None:
            raise taken.error
        outcome = taken.outcome
        if outcome == "started" and taken.run is not None:
            await taken.run.until_accepted()
        else:
            with refusing():
                await self._log.sync()
        return PromptAccepted(
            session_id=self._state.session_id,
            prompt_id=taken.prompt_id,
            outcome=outcome,
            seq=self._state.seq,
            restored=taken.restored or None,
            problems=taken.problems or None,
        )

    def _take(self, params: PromptParams) -> Submission | PromptResult:
        """Take a prompt up, or find the one of the same id, or its result."""
        blocks = blocks_of(params.prompt)
        digest = digest_of(blocks)
        if self._closed:
            raise _closed()
        if self._busy.now is None:
            self._log.repair()
        prompt_id = params.prompt_id or self._house.sources.new_id("p")
        live, known = self._submissions.get(prompt_id), self._state.prompts.get(prompt_id)
        digests = (known.digests if known is not None else set()) | ({live.digest} if live else set())
        if digests and digest not in digests:
            raise RpcError(
                "invalidParams", f'/promptId: "{prompt_id}" was used for another prompt of this session'
            )
        if live is not None:
            return live
        if known is not None and known.result is not None:
            return known.result
        taken = Submission(
            params.model_copy(update={"prompt_id": prompt_id}), blocks, digest, self._cancelling.withdraw
        )
        if prompt_id in self._state.wishes:
            taken.place("queued")  # of an earlier process: it runs when the user says so
        else:
            self._place(taken)
        self._submissions.add(taken)
        return taken

    def _place(self, taken: Submission) -> None:
        """Start a prompt, or do what it wishes where the session is busy. Raises `RpcError`.

        A compaction counts as a prompt that runs, but says nothing itself: who steers comes next after it.
        """
        busy, when_busy = self._busy.now, taken.params.when_busy
        if busy is None:
            self._start(taken)
        elif busy.settled and (when_busy in ("steer", "interrupt") or self._queue.ready() is None):
            self._busy.next.append(taken)  # only last events and responses are to come, then its turn
        elif when_busy == "queue":
            self._enqueue(taken, "queue")
        elif when_busy == "reject":
            raise refusal(busy)
        elif busy.cancelled:
            self._busy.next.append(taken)  # too late to steer, and nothing is left to interrupt
        elif when_busy == "steer":
            self._enqueue(taken, "steer")
        else:
            self._check(taken)
            if self.run is not None:
                taken.restored = self._queue.give_back(only_steers=True)
            busy.cancel()
            self._busy.next.append(taken)

    def _enqueue(self, taken: Submission, kind: Literal["queue", "steer"]) -> None:
        if kind == "steer" and not taken.blocks:
            raise RpcError("invalidParams", "/prompt: a steer has to say something")
        words = self._check(taken, self.run if kind == "steer" else None)
        queued = QueuedPrompt(
            prompt_id=taken.prompt_id, kind=kind, prompt=taken.blocks, queued_at=self._house.sources.now()
        )
        self._queue.add(queued, taken.params)
        is_said = kind == "steer" and self.run is not None and words.built_in is None
        taken.place("steered" if is_said else "queued")

    def _start(self, taken: Submission) -> None:
        """Begin a run. Nothing is journaled or sent before all that can be wrong has been looked at."""
        words = self._check(taken)
        if not taken.blocks:
            check_going_on(self._state.messages)
        run = Run(self._ground, taken.params, taken.blocks, taken.digest, words)
        taken.problems = self._house.news
        with refusing():
            for problem in taken.problems:
                self._log.record(Notice(severity=problem.severity, message=problem.message))
        self._house.news_is_told()
        self._busy.run = run
        taken.place("started", run)
        self._house.start_soon(self._drive, run)

    def _check(self, taken: Submission, run: Run | None = None) -> Words:
        """What a prompt comes to. Raises `RpcError` for what cannot run: by itself, or said in this run."""
        base, engine = self._state.base, run.present_engine if run is not None else None
        return check(
            taken.params,
            taken.blocks,
            self.root,
            self._house,
            model=base.model,
            effort=base.effort,
            engine=engine,
        )

    async def _drive(self, run: Run) -> None:
        """The task of a run, until all who wait for its end have gone on; then what comes next."""
        try:
            await run.drive()
        finally:
            ended = self._submissions.end_with(run)
            run.done.set()
            with CancelScope(shield=True):
                for each in ended:
                    await each.done.until_heard()
            self._busy.run = None
            if not run.over:
                self._queue.hold()  # it could not be closed in the journal, so the next could not begin
                self._fail_waiting(RpcError("storage", STANDS_STILL, retryable=True))
            self._go_on()

    def _go_on(self) -> None:
        """Nothing runs: take up what was read while the last run ended, then the queue."""
        waiting, self._busy.next = self._busy.next, []
        for taken in waiting:
            try:
                if self._closed:
                    raise _closed()
                taken.restored = self._cancelling.restored(taken.restored)
                self._log.repair()
                self._place(taken)
            except RpcError as error:
                self._submissions.end(taken.prompt_id, error)
        while self.run is None and not self._closed and (queued := self._queue.ready()) is not None:
            self._start_queued(queued)

    def _start_queued(self, queued: QueuedPrompt) -> None:
        """Start a prompt of the queue; one that cannot run leaves it with a word to the user."""
        wishes = self._queue.wishes(queued.prompt_id)
        taken = self._submissions.get(queued.prompt_id)
        if taken is None:
            taken = Submission(wishes, queued.prompt, digest_of(queued.prompt), self._cancelling.withdraw)
            self._submissions.add(taken)
        taken.params, taken.blocks, taken.digest = wishes, queued.prompt, digest_of(queued.prompt)
        try:
            self._log.repair()
            self._start(taken)
            self._queue.start(queued.prompt_id)
        except RpcError as error:
            self._refuse(queued, error)

    def _refuse(self, queued: QueuedPrompt, error: RpcError) -> None:
        told = RunError(kind="bad_request", message=error.message)
        try:
            self._submissions.end(queued.prompt_id, error)
            if error.kind == "storage":
                raise error
            self._queue.remove((queued.prompt_id,), refused=told)
            message = f"A prompt of the queue could not begin: {error.message}"
            with refusing():
                self._log.record(Notice(severity="error", message=message))
        except RpcError as failure:
            self._queue.hold()
            self._fail_waiting(failure)

    def _said(self, prompt_id: str) -> None:
        """The run has said a steer: its answer is the run's."""
        taken = self._submissions.get(prompt_id)
        if taken is not None:
            taken.place("steered", self.run)

    def _fail_waiting(self, error: RpcError) -> None:
        """Answer all who wait for prompts of the queue; the prompts stand in it as before."""
        for queued in self._queue.all:
            self._submissions.end(queued.prompt_id, error)

    # --- compaction -------------------------------------------------------------------------------

    async def compact(self, instructions: str | None) -> SessionCompactResult:
        """Sum up the history for the model. Raises `RpcError` sessionBusy, noModel, storage or another."""
        await self._until_at_rest("its history could be summed up")
        self._busy.compacting = compacting = Compacting(self.root, self._log, self._house)
        try:
            return await compacting.run(instructions)
        finally:
            compacting.done.set()
            self._house.start_soon(self._after_compacting, compacting)

    async def _until_at_rest(self, what: str) -> None:
        """Wait for what is ending; nothing runs or is open then. Raises `RpcError` sessionBusy or storage."""
        while (ending := self._busy.now) is not None and ending.settled:
            await ending.done.wait()  # only the last events and responses are to come: then it is our turn
            await anyio.lowlevel.checkpoint()
        if self._closed:
            raise RpcError("cancelled", f"The session was closed before {what}.")
        if self._busy.now is not None:
            raise refusal(self._busy.now)
        self._log.repair()

    async def rewind(self, params: SessionRewindParams) -> SessionRewindResult:
        """Go back to before a prompt, or undo that. Whoever calls lets no prompt in meanwhile.

        Raises `RpcError` sessionBusy, invalidParams, promptNotFound, outsideWorkspace or storage.
        """
        await self._until_at_rest("it could be rewound")
        async with self._rewinding:
            ground = self._ground
            more = (ground.checkpoints, ground.seen, ground.shell)
            rewinding = Rewinding(self.root, self._log, self._house, *more)
            return await rewinding.run(params)

    async def _after_compacting(self, compacting: Compacting) -> None:
        """Once all who wait for its end have gone on, what was read meanwhile."""
        with CancelScope(shield=True):
            await compacting.done.until_heard()
        self._busy.compacting = None
        self._go_on()

    # --- cancel -----------------------------------------------------------------------------------

    async def cancel(
        self, prompt_id: str | None = None, stop: Stop = "aborted", *, keep_queue: bool = False
    ) -> CancelResult:
        """Cancel the running prompt (if it is that one) and wait until it has closed.

        The queue goes with it unless `keep_queue`, and comes back in the answer. A prompt of the queue that
        is named is taken out, and nothing else. A prompt that waits for the last words of the one before
        counts as running: it was read before. Raises `RpcError` storage.
        """
        return await self._cancelling.cancel(prompt_id, stop, keep_queue=keep_queue)

    # --- the rest ---------------------------------------------------------------------------------

    def update_queue(self, params: QueueUpdateParams) -> tuple[QueuedPrompt, ...]:
        """Edit, remove, move, clear or run what waits, and give what waits then.

        Raises `RpcError` promptNotFound, invalidParams or storage; then nothing has changed.
        """
        match params.op:
            case "edit":
                self._edit(params)
            case "remove":
                self._queue.remove_one(params.prompt_id)
            case "move":
                self._queue.move(params.prompt_id, params.index)
            case "clear":
                self._queue.clear()
            case "run":
                if self._busy.now is None:
                    self._log.repair()
                self._queue.release(params.prompt_id)
                if self._busy.now is None:
                    self._go_on()
        return self._queue.all

    def _edit(self, params: QueueUpdateParams) -> None:
        prompt = PromptParams(prompt=params.prompt) if params.prompt is not None else None
        if prompt is not None:
            look_up(blocks_of(prompt.prompt), self.root, self._house)
        self._queue.edit(params.prompt_id, prompt)

    async def close(self, stop: Stop) -> None:
        """Cancel what runs and wait for it. What waits in the queue stays there; who waits for it is told."""
        self._closed = True
        self._queue.hold()
        self._fail_waiting(RpcError("cancelled", "The session was closed; the prompt waits in its queue."))
        await self._cancelling.end(stop)
        with anyio.move_on_after(CANCEL_SECONDS):
            async with self._rewinding:
                pass


def _closed() -> RpcError:
    return RpcError("cancelled", "The session was closed before the prompt began.")
