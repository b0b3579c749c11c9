"""A prompt that runs: the loop's host, and the promise that the prompt is answered."""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from agentd.agent.host import Engine, NotJournaled, Verdict
from agentd.agent.loop import DEFAULT_MAX_TURNS, Loop
from agentd.permissions.policy import Allow, Decision, Deny, Proposal, decide
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    DurableEvent,
    LiveEvent,
    MessageEnd,
    MessageUpdate,
    PermissionResolved,
    PromptSettings,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from agentd.protocol.messages import ContentBlock, Mode, RunError, ToolCall, UserMessage
from agentd.protocol.methods import Partial, Problem, PromptParams, PromptResult
from agentd.sessions.conversation import SessionConversation
from agentd.sessions.house import House
from agentd.sessions.log import SessionLog
from agentd.sessions.partial import LivePart
from agentd.sessions.questions import Asked, Questions
from agentd.sessions.recovery import changed_files
from agentd.tools.base import Action, LiveOutput, Tool, ToolContext
from agentd.workspace.seen import SeenFiles

log = logging.getLogger(__name__)

_GATES = (ToolExecutionStart, PermissionResolved, AgentEnd)
"""Events whose effect waits until they are safe on disk; what opens a run is another."""


@dataclass(frozen=True)
class Ground:
    """What all runs of a session stand on. `seen` is what the model has seen of files."""

    root: Path
    log: SessionLog
    house: House
    questions: Questions
    seen: SeenFiles = field(default_factory=SeenFiles)


class Run(SessionConversation):
    """One prompt from its acceptance to its result. `agent.host.Host` for its loop."""

    def __init__(
        self, ground: Ground, params: PromptParams, blocks: tuple[ContentBlock, ...], digest: str
    ) -> None:
        """A run of params that were checked. Raises `RpcError` noModel."""
        super().__init__(ground.root, ground.log, ground.house)
        base, house = ground.log.state.base, ground.house
        self.prompt_id = params.prompt_id or house.sources.new_id("p")
        self.digest = digest
        self.accepted = anyio.Event()
        self.done = anyio.Event()
        self.result: PromptResult | None = None
        self.problems: tuple[Problem, ...] = ()  # of the set-up, for whoever reads the answer only
        self._ground = ground
        self._mode = params.mode
        self._engine = house.engines.engine(params.model or base.model, params.effort or base.effort)
        self._live = LivePart()
        self._watchers: list[Callable[[DurableEvent], None]] = []
        self._trusted = house.settings.trusted
        self.is_safe = False  # whether its prompt is safe in the journal
        self._has_user_message = bool(blocks)
        user = None
        if blocks:
            message_id, timestamp = house.sources.new_id("m"), house.sources.now()
            user = UserMessage(message_id=message_id, content=blocks, timestamp=timestamp)
        settings = PromptSettings(
            model=self._engine.model.id, mode=self._current_mode(), effort=self._engine.effort
        )
        self._loop = Loop(self, user, settings, params.max_turns or DEFAULT_MAX_TURNS)

    # --- what the session does with it ------------------------------------------------------------

    async def drive(self) -> None:
        """The task of the run. However it goes, `result` is set in the end and `done` with it."""
        try:
            await self._loop.run()
            self.result = self._log.state.prompts[self.prompt_id].result
        except NotJournaled as error:
            self._fail(error.kind, str(error))
        except Exception:
            log.exception("a run of %s", self._log.state.session_id)
            self._fail("internal", "agentd failed while it ran this prompt. Its log says more.")
        finally:
            if self.result is None:
                self._fail("internal", "The run was torn down before it ended.")
            self.accepted.set()
            self.done.set()

    def _fail(self, kind: Literal["storage", "internal"], message: str) -> None:
        """The result of a run that could not be closed in the journal; the next prompt closes it first."""
        self.result = PromptResult(
            session_id=self._log.state.session_id,
            prompt_id=self.prompt_id,
            stop_reason="error",
            text="",
            message_id=None,
            turns=0,
            seq=self._log.state.seq,
            error=RunError(kind=kind, message=message, retryable=kind == "storage"),
        )

    def cancel(self, stop: Literal["aborted", "interrupted"] = "aborted") -> None:
        """Stop the run as soon as can be; too late once its outcome is fixed."""
        self._loop.cancel(stop)

    @property
    def settled(self) -> bool:
        """Whether the outcome is fixed."""
        return self._loop.settled

    @property
    def cancelled(self) -> bool:
        """Whether the outcome is, or will be, that it was cancelled."""
        return self._loop.cancelled

    @property
    def quiescent(self) -> bool:
        """Whether no tool had to be left behind."""
        return self._loop.quiescent and self.done.is_set()

    @property
    def partial(self) -> Partial | None:
        """What it has said so far."""
        return self._live.read()

    def watch(self, function: Callable[[DurableEvent], None]) -> None:
        """Have each durable event of the run told to this function as well."""
        self._watchers.append(function)

    def refresh(self, changed: Collection[str]) -> None:
        """These fields of the session were changed while this runs: the newer word counts."""
        base = self._log.state.base
        if "mode" in changed:
            self._mode = None
        if "model" in changed or "effort" in changed:
            model = base.model if "model" in changed else self._engine.model.id
            effort = base.effort if "effort" in changed else self._engine.effort
            self._engine = self._house.engines.engine(model, effort)

    # --- what the loop sees (agent.host.Host) -----------------------------------------------------

    def engine(self) -> Engine:
        """The model for the next turn. Trust that the user has given meanwhile counts from here on too."""
        self._trusted = self._house.settings.trusted
        return self._engine

    def unique_call_id(self, wanted: str | None) -> str:
        """An id that no other tool call of the session has."""
        return self._log.state.unique_call_id(wanted, self.sources.new_id("call"))

    def tool_context(self, output: LiveOutput) -> ToolContext:
        """What a tool may use."""
        return ToolContext(
            root=self._ground.root,
            editor=self._house.editor,
            seen=self._ground.seen,
            environment=self._house.environment,
            output=output,
        )

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: object) -> None:
        """Run something that may outlive the run."""
        self._house.start_soon(function, *args)

    async def emit(self, event: DurableEvent | LiveEvent) -> None:
        """Journal and send an event, then wait until what it gates is safe."""
        if isinstance(event, MessageUpdate | ToolExecutionUpdate):
            self._log.send(event, self.prompt_id)
            self._live.follow(event)
            return
        self._record(event)
        self._live.follow(event)
        for watch in self._watchers:
            watch(event)
        opens = _is_from_user(event) if self._has_user_message else isinstance(event, AgentStart)
        if opens or isinstance(event, _GATES):
            await self._log.sync()
        if opens:
            self.is_safe = True
            self.accepted.set()

    def _record(self, event: DurableEvent) -> None:
        run = self._log.state.run
        if isinstance(event, AgentEnd) and run is not None and run.changed:
            self._log.record(changed_files(run), self.prompt_id)
        private = {"promptDigest": self.digest} if isinstance(event, AgentStart) else {}
        self._log.record(event, self.prompt_id, **private)

    async def permit(self, call: ToolCall, tool: Tool, action: Action, title: str) -> Verdict:
        """Judge a prepared call, asking the user where need be."""

        proposal = Proposal(
            call.name, tool.kind, action.subject, action.secret, sandboxable=action.sandboxed is not None
        )

        def judge() -> Decision:
            return decide(
                proposal,
                mode=self._current_mode(),
                trusted=self._trusted and self._house.settings.trusted,  # taken back, it is gone at once
                remembered=self._ground.questions.rules,
            )

        decision = judge()
        if isinstance(decision, Deny):
            return Verdict(False, decision.reason)
        if isinstance(decision, Allow):
            return Verdict(allowed=True, manner=decision.manner)
        if action.subject is None:
            return Verdict(False, f'Tool "{call.name}" needs the user\'s permission and cannot ask for it.')
        return await self._ground.questions.ask(
            Asked(
                self._log.state.session_id,
                self.prompt_id,
                call,
                tool.kind,
                title,
                action.subject,
                self._ground.root,
                judge,
                self.emit,
            )
        )

    def _current_mode(self) -> Mode:
        return self._mode or self._log.state.base.mode


def _is_from_user(event: DurableEvent) -> bool:
    return isinstance(event, MessageEnd) and isinstance(event.message, UserMessage)
