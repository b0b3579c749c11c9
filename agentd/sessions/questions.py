"""Questions of permission: judged by mode and rules, put to the user, answered once.

The first answer wins: the client's to our request, `agentd/permission/respond` from another view, or a new
mode that makes the question idle. Anything but a well-formed allow is no permission.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import anyio
import anyio.to_thread
from anyio import CancelScope, get_cancelled_exc_class

from agentd.agent.host import Verdict
from agentd.config.sources import Sources
from agentd.config.state_file import StateError
from agentd.permissions.policy import Allow, Decision, Deny, Manner
from agentd.permissions.rules import Rules
from agentd.protocol.errors import RpcError
from agentd.protocol.events import DurableEvent, Notice, PermissionRequested, PermissionResolved
from agentd.protocol.messages import (
    ChildCall,
    PermissionOption,
    PermissionRequest,
    PermissionSubject,
    ToolCall,
    ToolKind,
)
from agentd.protocol.methods import PermissionAnswer
from agentd.sessions.face import Face

log = logging.getLogger(__name__)

Emit = Callable[[DurableEvent], Awaitable[None]]
"""Tells an event of the run that asks."""

REJECTED = "The user rejected this tool call."


@dataclass(frozen=True)
class Asked:
    """What a question is about, and how to judge it anew."""

    session_id: str
    prompt_id: str
    call: ToolCall
    kind: ToolKind
    title: str
    subject: PermissionSubject
    options: tuple[PermissionOption, ...]
    judge: Callable[[], Decision]
    emit: Emit
    child: ChildCall | None = None


@dataclass
class _Open:
    request: PermissionRequest
    judge: Callable[[], Decision]
    closed: anyio.Event = field(default_factory=anyio.Event)
    resolution: "_Resolution | None" = None
    is_told: bool = False  # whether clients have been told how it was resolved

    def resolve(self, resolution: "_Resolution") -> bool:
        """Close the question; False when it was closed before."""
        if self.resolution is not None:
            return False
        self.resolution = resolution
        self.closed.set()
        return True


@dataclass(frozen=True)
class _Resolution:
    outcome: Literal["allowed", "rejected", "cancelled"]
    by: Literal["client", "rule", "cancel"]
    option: PermissionOption | None = None
    reason: str = REJECTED
    manner: Manner = "plain"


class Questions:
    """The questions of one session: those that stand open, and the answers given for good."""

    def __init__(self, face: Face, sources: Sources, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self._face = face
        self._sources = sources
        self._open: dict[str, _Open] = {}

    @property
    def pending(self) -> tuple[PermissionRequest, ...]:
        """The questions that stand open, as clients have been told."""
        return tuple(question.request for question in self._open.values() if not question.is_told)

    def recall(self, question: PermissionRequest, option_id: str, time: str) -> None:
        """An answer given before a restart: what was allowed for the session still is."""
        for option in question.options:
            if option.option_id == option_id:
                self.rules.recall(question.request_id, question.tool_name, question.subject, option, time)

    async def ask(self, asked: Asked) -> Verdict:
        """Put a question and wait for its answer, for as long as it takes; cancelling withdraws it."""
        question = _Open(self._request(asked), asked.judge)
        request = question.request
        self._open[request.request_id] = question
        try:
            await asked.emit(PermissionRequested(**dict(request)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._ask_client, question)
                await question.closed.wait()
                tasks.cancel_scope.cancel()
            await self._close(question, asked.emit)
        except get_cancelled_exc_class():
            question.resolve(_Resolution("cancelled", "cancel"))
            if not question.is_told:
                with CancelScope(shield=True):
                    await self._close(question, asked.emit)
            raise
        finally:
            self._open.pop(request.request_id, None)
        assert question.resolution is not None
        resolution = question.resolution
        return Verdict(resolution.outcome == "allowed", resolution.reason, resolution.manner)

    def _request(self, asked: Asked) -> PermissionRequest:
        return PermissionRequest(
            session_id=asked.session_id,
            prompt_id=asked.prompt_id,
            request_id=self._sources.new_id("q"),
            tool_call_id=asked.call.id,
            tool_name=asked.call.name,
            title=asked.title,
            kind=asked.kind,
            subject=asked.subject,
            options=asked.options,
            child=asked.child,
        )

    async def _ask_client(self, question: _Open) -> None:
        try:
            answer = await self._face.ask(question.request)
        except Exception:  # whatever is wrong with a client, it has not said yes
            log.exception("a question to the client")
            answer = None
        question.resolve(_resolution(question.request, answer))

    async def _close(self, question: _Open, emit: Emit) -> None:
        request, resolution = question.request, question.resolution
        assert resolution is not None
        question.is_told = True
        option = resolution.option
        await emit(
            PermissionResolved(
                request_id=request.request_id,
                tool_call_id=request.tool_call_id,
                outcome=resolution.outcome,
                option_id=option.option_id if option is not None else None,
                by=resolution.by,
            )
        )
        if option is not None and option.kind == "allow_always":
            await self._remember(request, option, emit)

    async def _remember(
        self,
        request: PermissionRequest,
        option: PermissionOption,
        emit: Emit,
    ) -> None:
        """Keep an answer for good. Where it cannot be kept for longer, it holds for the session."""
        remember = self.rules.remember
        rule = (request.request_id, request.tool_name, request.subject, option, self._sources.now())
        try:
            await anyio.to_thread.run_sync(remember, *rule)
        except StateError as error:
            message = f"The answer is remembered for this session only. {error}"
            await emit(Notice(severity="warning", message=message))

    def respond(self, request_id: str, answer: PermissionAnswer) -> bool:
        """An answer by `agentd/permission/respond`; False when no such question stands open here.

        Raises `RpcError` invalidParams for an option that the question does not have.
        """
        question = self._open.get(request_id)
        if question is None:
            return False
        if answer.option_id not in {option.option_id for option in question.request.options}:
            known = ", ".join(option.option_id for option in question.request.options)
            raise RpcError("invalidParams", f"/optionId: unknown option; the options are {known}")
        return question.resolve(_resolution(question.request, answer))

    def judge_again(self) -> None:
        """Mode or trust has changed: close the questions that need no answer any more."""
        for question in self._open.values():
            decision = question.judge()
            if isinstance(decision, Allow):
                question.resolve(_Resolution("allowed", "rule", manner=decision.manner))
            elif isinstance(decision, Deny):
                question.resolve(_Resolution("rejected", "rule", reason=decision.reason))


def _resolution(request: PermissionRequest, answer: PermissionAnswer | None) -> _Resolution:
    """What an answer means. No answer, a cancelled one or an unknown option is no permission."""
    option = None
    if answer is not None and not answer.cancelled:
        option = next((o for o in request.options if o.option_id == answer.option_id), None)
    if option is not None and option.kind.startswith("allow"):
        return _Resolution("allowed", "client", option)
    feedback = answer.feedback.strip() if answer is not None and answer.feedback else ""
    reason = f"{REJECTED} They said: {feedback}" if feedback else REJECTED
    return _Resolution("rejected", "client", option, reason)
