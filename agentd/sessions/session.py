"""A session: the one owner of a conversation. At most one prompt of it runs at a time.

Everything here happens on the event loop, so that taking a prompt, or telling that it cannot be taken, is one
step in the order in which requests were read.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import anyio
from pydantic_core import to_json

from agentd.agent.request import project
from agentd.protocol.errors import RpcError
from agentd.protocol.events import Notice, SessionChanged
from agentd.protocol.messages import (
    AssistantMessage,
    CommandContent,
    ContentBlock,
    ImageContent,
    PermissionRequest,
    TextContent,
)
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import (
    CancelResult,
    Partial,
    PermissionAnswer,
    PromptAccepted,
    PromptParams,
    PromptResult,
    SessionCompactResult,
    SessionGetResult,
    SessionUpdateParams,
)
from agentd.providers.base import Model
from agentd.sessions.compacting import Compacting
from agentd.sessions.house import House
from agentd.sessions.journal import Journal
from agentd.sessions.log import SessionLog, refusing
from agentd.sessions.questions import Questions
from agentd.sessions.run import Ground, Run
from agentd.sessions.state import SessionState

CANCEL_SECONDS = 4.5
"""A cancel is answered by then, whatever still has not stopped."""

Stop = Literal["aborted", "interrupted"]


@dataclass(eq=False)
class _Waiting:
    """A prompt that was read while the last one still said its last words."""

    prompt_id: str | None
    cancelled: bool = False
    run: Run | None = None
    decided: anyio.Event = field(default_factory=anyio.Event)  # it runs, or will not


class Session:
    """One conversation in one workspace folder."""

    def __init__(self, state: SessionState, journal: Journal, root: Path, house: House) -> None:
        self.root = root
        self._state = state
        self._house = house
        self._log = SessionLog(state, journal, house.face, house.sources)
        self._run: Run | None = None
        self._waiting: list[_Waiting] = []
        self._compacting: Compacting | None = None
        self._closed = False
        self._questions = Questions(house.face, house.sources.new_id)
        self._ground = Ground(root, self._log, house, self._questions)
        for question, option_id in state.answers:
            self._questions.recall(question, option_id)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._state.session_id

    @property
    def info(self) -> SessionInfo:
        """The session as the wire tells it."""
        return self._state.info(alive=self._run is not None)

    def knows_prompt(self, prompt_id: str) -> bool:
        """Whether a prompt of that id was ever taken here."""
        return prompt_id in self._state.prompts or (
            self._run is not None and self._run.prompt_id == prompt_id
        )

    def get(self, before: str | None, limit: int) -> SessionGetResult:
        """The last `limit` messages (before message `before`), and all that is open."""
        partial = self._run.partial if self._run is not None else None
        return reading(self._state, self.info, before, limit, self._questions.pending, partial)

    # --- prompt and cancel ------------------------------------------------------------------------

    async def prompt(
        self, params: PromptParams, on_start: Callable[[Run], None] = lambda run: None
    ) -> PromptResult | PromptAccepted:
        """Run a prompt, or join or recall the one of the same id, and give its result.

        `on_start` is handed the run before anything of it happens. Raises `RpcError`
        for a prompt that never began: sessionBusy, noModel, unsupported, outsideWorkspace, invalidParams.
        """
        run = await self._run_for(params)
        if isinstance(run, PromptResult):
            return run
        on_start(run)
        if params.wait == "accepted":
            await run.accepted.wait()
            if not run.is_safe and run.result is not None and run.result.error is not None:
                error = run.result.error
                kind = "storage" if error.kind == "storage" else "internal"
                raise RpcError(kind, error.message, retryable=error.retryable)
            return PromptAccepted(
                session_id=self.session_id,
                prompt_id=run.prompt_id,
                outcome="started",
                seq=self._state.seq,
                problems=run.problems or None,
            )
        await run.done.wait()
        assert run.result is not None
        return run.result.model_copy(update={"problems": run.problems or None})

    async def _run_for(self, params: PromptParams) -> Run | PromptResult:
        blocks = blocks_of(params.prompt)
        digest = digest_of(blocks)
        waiting = _Waiting(params.prompt_id)
        while True:
            if self._closed:
                waiting.decided.set()
                raise RpcError("cancelled", "The session was closed before the prompt began.")
            if self._run is None and self._compacting is None:
                self._log.repair()
            known = self._recall(params.prompt_id, digest)
            if known is not None:
                return known
            if self._compacting is not None:
                waiting.decided.set()
                raise _busy(params.when_busy)
            if self._run is None:
                run = waiting.run = self._start(params, blocks, digest)
                if waiting.cancelled:
                    run.cancel()
                waiting.decided.set()
                return run
            if not self._run.settled:
                raise _busy(params.when_busy)
            # Its outcome stands: only its last events and response are to come. Then it is our turn.
            self._waiting.append(waiting)
            try:
                await self._run.done.wait()
            finally:
                self._waiting.remove(waiting)
                if self._run is not None:
                    waiting.decided.set()  # somebody else was faster

    def _recall(self, prompt_id: str | None, digest: str) -> Run | PromptResult | None:
        """The running or finished prompt of that id; None when there is none, or none that ever ended."""
        if prompt_id is None:
            return None
        run = self._run if self._run is not None and self._run.prompt_id == prompt_id else None
        known = self._state.prompts.get(prompt_id)
        digests = {entry.digest for entry in (run, known) if entry is not None}
        if digests - {digest}:
            raise RpcError(
                "invalidParams", f'/promptId: "{prompt_id}" was used for another prompt of this session'
            )
        return run or (known.result if known is not None else None)

    def _start(self, params: PromptParams, blocks: tuple[ContentBlock, ...], digest: str) -> Run:
        """Begin a run. Nothing is journaled or sent before all that can be wrong has been looked at."""
        self._check(params, blocks)
        run = Run(self._ground, params, blocks, digest)
        _check_images(blocks, run.engine().model)
        run.problems = self._house.news
        with refusing():
            for problem in run.problems:
                self._log.record(Notice(severity=problem.severity, message=problem.message))
        self._house.news_is_told()
        self._run = run
        self._house.start_soon(self._drive, run)
        return run

    async def _drive(self, run: Run) -> None:
        try:
            await run.drive()
        finally:
            self._run = None

    def _check(self, params: PromptParams, blocks: tuple[ContentBlock, ...]) -> None:
        self._house.check_mode(params.mode)
        if not self.root.is_dir():
            raise RpcError(
                "outsideWorkspace",
                f'The workspace folder "{self.root}" of this session does not exist any more.',
                hint="Put the folder back, or start a new session in its new place.",
            )
        if any(isinstance(block, CommandContent) for block in blocks):
            raise RpcError("unsupported", "Commands in prompts are not supported by this version.")
        if not blocks:
            self._check_going_on()

    def _check_going_on(self) -> None:
        if not project(self._state.messages):
            raise RpcError("invalidParams", "/prompt: there are no messages to go on from")
        answers = [m for m in self._state.messages if isinstance(m, AssistantMessage)]
        if answers and answers[-1].stop_reason == "stop":
            raise RpcError(
                "invalidParams", "/prompt: the last answer is complete: there is nothing to go on from"
            )

    async def compact(self, instructions: str | None) -> SessionCompactResult:
        """Sum up the history for the model. Raises `RpcError` sessionBusy, noModel, storage or another."""
        if self._closed:
            raise RpcError("cancelled", "The session was closed before its history could be summed up.")
        if self._run is not None or self._waiting or self._compacting is not None:
            raise _busy("reject")
        self._log.repair()
        self._compacting = Compacting(self.root, self._log, self._house)
        try:
            return await self._compacting.run(instructions)
        finally:
            self._compacting = None

    async def cancel(self, prompt_id: str | None = None, stop: Stop = "aborted") -> CancelResult:
        """Cancel the running prompt (if it is that one) and wait until it has closed.

        A prompt that waits for the last words of the one before counts as running: it was read before.
        """
        if self._compacting is not None and prompt_id is None:
            return await self._cancel_compacting(self._compacting)
        run = self._run
        if waiting := [each for each in self._waiting if prompt_id in (None, each.prompt_id)]:
            waiting[0].cancelled = True
            await waiting[0].decided.wait()
            run = waiting[0].run
        if run is None or prompt_id not in (None, run.prompt_id):
            return CancelResult(state="notRunning", quiescent=True)
        late = run.settled and not run.cancelled
        run.cancel(stop)
        with anyio.move_on_after(CANCEL_SECONDS):
            await run.done.wait()
        if late:
            return CancelResult(state="notRunning", quiescent=True)
        return CancelResult(state="cancelled", quiescent=run.quiescent, prompt_id=run.prompt_id)

    async def _cancel_compacting(self, compacting: Compacting) -> CancelResult:
        late = compacting.settled
        compacting.cancel()
        with anyio.move_on_after(CANCEL_SECONDS):
            await compacting.done.wait()
        return CancelResult(state="notRunning" if late else "cancelled", quiescent=True)

    # --- changes ----------------------------------------------------------------------------------

    def begin(self, info: SessionInfo) -> Callable[[], None]:
        """Journal a new session's first event; give a function that sends it. Raises `RpcError`."""
        with refusing():
            return self._log.record_held(SessionChanged(session=info))

    def recover(self) -> None:
        """Close a run that a stopped daemon left open. Raises `RpcError` storage."""
        self._log.repair()

    def update(self, params: SessionUpdateParams) -> SessionInfo:
        """Change title, model, mode or effort: a model acts at the next turn, a mode at the next tool call.

        Raises `RpcError` unsupported, noModel or storage; then nothing has changed.
        """
        self._house.check_mode(params.mode)
        if params.model is not None:
            self._house.engines.engine(params.model, params.effort)
        fields = ("title", "model", "mode", "effort")
        changes = {name: getattr(params, name) for name in fields if getattr(params, name) is not None}
        if changes:
            changed = self.info.model_copy(update={**changes, "seq": self._state.seq + 1})
            with refusing():
                self._log.record(SessionChanged(session=changed))
            if self._run is not None:
                self._run.refresh(changes.keys())
            self._questions.judge_again()
        return self.info

    def trust_changed(self) -> None:
        """The user trusts the workspace now, or no longer."""
        self._questions.judge_again()

    def respond(self, request_id: str, answer: PermissionAnswer) -> bool:
        """An answer to an open question; False when it is none of this session's."""
        return self._questions.respond(request_id, answer)

    async def close(self, stop: Stop = "aborted") -> None:
        """Cancel what runs, wait for it, and let go of the journal."""
        self._closed = True
        await self.cancel(stop=stop)
        self._log.close()


def reading(
    state: SessionState,
    info: SessionInfo,
    before: str | None,
    limit: int,
    pending: tuple[PermissionRequest, ...] = (),
    partial: Partial | None = None,
) -> SessionGetResult:
    """What `agentd/session/get` answers. Raises `RpcError` invalidParams for an unknown `before`."""
    messages = state.messages
    if before is not None:
        place = next((i for i, message in enumerate(messages) if message.message_id == before), None)
        if place is None:
            raise RpcError("invalidParams", f'/before: there is no message "{before}" in this session')
        messages = messages[:place]
    return SessionGetResult(
        session=info,
        messages=tuple(messages[-limit:]),
        has_more=len(messages) > limit,
        pending=pending,
        queue=(),
        todo=state.todo,
        partial=partial,
        seq=state.seq,
    )


def _check_images(blocks: tuple[ContentBlock, ...], model: Model) -> None:
    place = next((n for n, block in enumerate(blocks) if isinstance(block, ImageContent)), None)
    if place is not None and not model.images:
        raise RpcError(
            "invalidParams",
            f'/prompt/{place}: model "{model.id}" takes no images',
            hint=f"Choose another model, or set images = true for {model.name} in your configuration.",
        )


def blocks_of(prompt: str | Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """A prompt's content. Raises `RpcError` invalidParams for one that says nothing."""
    if isinstance(prompt, str):
        return (TextContent(text=prompt),)
    if prompt and all(isinstance(block, TextContent) and not block.text.strip() for block in prompt):
        raise RpcError("invalidParams", "/prompt: a prompt must not be blank")
    return tuple(prompt)


def digest_of(blocks: tuple[ContentBlock, ...]) -> str:
    """The identity of a prompt: it tells a repeated prompt from another one under the same id."""
    return hashlib.sha256(to_json(blocks)).hexdigest()


def _busy(when_busy: str) -> RpcError:
    if when_busy != "reject":
        return RpcError("unsupported", f'whenBusy "{when_busy}" is not supported by this version.')
    return RpcError(
        "sessionBusy",
        "Agent is already processing a prompt.",
        retryable=True,
        hint="Wait for its end, cancel it, or use another session.",
    )
