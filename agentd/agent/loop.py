"""The tool-call loop: ask the model, run the tools it calls, ask again, until it answers.

One `Loop` is one run. It reads like the order table of the protocol: `_turns` is a run that goes well,
`_close` is how every run ends, whatever happened. Cancellation may come at any wait of `_turns`; what was
open then is on record here (`_owed`, `_exchange`, `_call`, `_turn_open`); `_close` closes it, shielded, so
that every start has its end and the last message is the model's.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import anyio
from anyio import CancelScope

from agentd.agent.asking import Asking
from agentd.agent.compaction import Compactor
from agentd.agent.exchange import Exchange
from agentd.agent.host import Engine, Host, NotJournaled
from agentd.agent.tool_calls import (
    ENDING_SECONDS,
    OUTPUT_LIMIT,
    LiveUpdates,
    RunningCall,
    describe,
    execute,
    normalise,
)
from agentd.agent.usage import add_spent, add_usage, measured, spent
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    CompactionEnd,
    DurableEvent,
    LiveEvent,
    MessageEnd,
    MessageHead,
    MessageStart,
    PromptSettings,
    ToolExecutionEnd,
    TurnEnd,
    TurnStart,
)
from agentd.protocol.messages import (
    AssistantBlock,
    AssistantMessage,
    MessageStop,
    RunError,
    RunStop,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agentd.providers.base import ProviderError
from agentd.tools.base import ToolResult

log = logging.getLogger(__name__)

DEFAULT_MAX_TURNS = 100
MAX_CUT_RESPONSES = 2
"""How often in a row the model is told that the output limit cut its call, before the run ends instead."""

LOOP_ABORTED = "Tool loop aborted"
LIMIT_REACHED = "Maximum iteration limit reached."


@dataclass(frozen=True)
class _Outcome:
    """How the run ends; fixed in the same step in which its last message is journaled."""

    stop: RunStop
    error: RunError | None = None


class Loop:
    """One run of the loop over a session's transcript."""

    def __init__(
        self,
        host: Host,
        user: UserMessage | None,
        settings: PromptSettings,
        max_turns: int = DEFAULT_MAX_TURNS,
    ) -> None:
        self._host = host
        self._max_turns = max_turns
        self._scope = CancelScope()
        self._cancelled_as: Literal["aborted", "interrupted"] | None = None
        self._fault: RunError | None = None
        self._closing = False
        self._outcome: _Outcome | None = None
        self._owed: deque[DurableEvent] = deque(_opening(user, settings))
        self._turn = 1
        self._turn_open = False
        self._answered = False  # whether the open turn has its whole assistant message
        self._requests = 0
        self._exchange = self._new_exchange()  # of the open turn
        self._compactor = Compactor(host, self._room, self._emit_now)
        self._asking = Asking(host, self._room, self._compactor)
        self._answer: AssistantMessage | None = None  # the last whole assistant message
        self._results: list[str] = []  # ids of the open turn's tool results
        self._call: RunningCall | None = None
        self._added: list[str] = []
        self._usage: Usage | None = None
        self.quiescent = True

    @property
    def settled(self) -> bool:
        """Whether the outcome is fixed: a cancel that comes now is too late."""
        return self._outcome is not None

    @property
    def cancelled(self) -> bool:
        """Whether a cancel came in time."""
        return self._cancelled_as is not None

    def cancel(self, stop: Literal["aborted", "interrupted"] = "aborted") -> None:
        """Stop the run as soon as can be; it still closes all that is open. Once settled, nothing happens."""
        if self._cancelled_as is None and not self.settled:
            self._cancelled_as = stop
            if self._call is not None and stop == "interrupted":
                self._call.patience = ENDING_SECONDS
            self._scope.cancel()

    async def compact(self, engine: Engine, instructions: str | None) -> None:
        """Sum the history up in the open turn, because the user wants that."""
        await self._compactor.on_request(engine, instructions)

    async def run(self) -> AgentEnd:
        """Run to the end and give the run's last event, which has been emitted.

        Raises `NotJournaled` when the run could not be closed; any other failure is told in its last message.
        """
        try:
            with self._scope:
                await self._turns()
        except NotJournaled:
            raise
        except Exception as error:
            log.exception("the run failed")
            message = f"agentd failed: {type(error).__name__}. Its log says more."
            self._fault = RunError(kind="internal", message=message)
        with CancelScope(shield=True):
            end = await self._close()
        return end

    # --- a run that goes well ---------------------------------------------------------------------

    async def _turns(self) -> None:
        await anyio.lowlevel.checkpoint()  # cancelled before it began: nothing of it may start
        while self._owed:
            await self._emit_owed()
        cut_responses = 0
        while True:
            await self._host.before_request()
            message, cut = await self._respond()
            if self.settled:
                return
            cut_responses = cut_responses + 1 if cut else 0
            if cut_responses > MAX_CUT_RESPONSES:
                self._outcome = _Outcome("length")
                return
            for call in message.calls:
                await self._execute(call, cut=call.id in cut)
            await self._end_turn()
            await self._start_turn()
            if self._turn > self._max_turns:
                await self._message_end(
                    (), "error", _Outcome("max_turns"), _Ending(error_message=LIMIT_REACHED)
                )
                return
            await self._say_steer()

    async def _emit_owed(self) -> None:
        await self._room()
        event = self._owed.popleft()
        self._turn_open = self._turn_open or isinstance(event, TurnStart)
        await self._emit_now(event)

    def _new_exchange(self) -> Exchange:
        return Exchange(self._host, self._room, self._emit_now)

    async def _start_turn(self) -> None:
        await self._room()
        self._turn += 1
        self._turn_open, self._answered = True, False
        self._exchange = self._new_exchange()
        await self._emit_now(TurnStart(turn=self._turn))

    async def _say_steer(self) -> None:
        """Say what the user wants said meanwhile: whole or, where a cancel comes first, not at all.

        Each turn takes one, so that each gets an answer; the next waits for the next turn.
        """
        if not self._host.claim_steer():
            return
        await self._room()
        await anyio.lowlevel.checkpoint_if_cancelled()
        message = await self._host.next_steer()
        if message is not None:
            with CancelScope(shield=True):
                for event in _whole(message):
                    await self._emit_now(event)

    async def _end_turn(self) -> None:
        assert self._answer is not None
        await self._room()
        event = TurnEnd(
            turn=self._turn,
            message_id=self._answer.message_id,
            stop_reason=self._answer.stop_reason,
            tool_result_ids=tuple(self._results),
            usage=self._answer.usage,
        )
        self._turn_open, self._results = False, []
        await self._emit_now(event)

    # --- one response -----------------------------------------------------------------------------

    async def _respond(self) -> tuple[AssistantMessage, set[str]]:
        """Ask the model; give its whole message and the ids of calls that the output limit cut."""
        exchange = self._exchange
        self._requests += 1
        try:
            request, end = await self._asking.ask(self._host.engine(), exchange)
        except ProviderError as error:
            outcome = _Outcome("error", error.to_run_error())
            ending = _Ending(error.usage, error_message=error.message)
            return await self._message_end(exchange.said(), "error", outcome, ending), set()
        content, cut = exchange.finish(end, request.model.max_output)
        ending = _Ending(end.usage, provider_data=end.provider_data)
        if any(isinstance(block, ToolCall) for block in content):
            return await self._message_end(content, "length" if cut else "tool_use", None, ending), cut
        await self._asking.tell_of_unread_call(content)
        stop = "stop" if end.stop == "tool_use" else end.stop  # a promise of calls without any is an answer
        refused = None
        if end.reason is not None:
            refused = RunError(kind="refusal", message=end.reason, retryable=False)
            ending = replace(ending, error_message=end.reason)
        return await self._message_end(content, stop, _Outcome(stop, refused), ending), cut

    async def _message_end(
        self,
        content: tuple[AssistantBlock, ...],
        stop: MessageStop,
        outcome: _Outcome | None,
        ending: "_Ending",
    ) -> AssistantMessage:
        """Complete the open turn's assistant message, beginning it first where it has not begun.

        The last message of a run fixes the outcome in the same step: no wait lies between. An answer after
        which the user wants something said is not the last one.
        """
        engine = self._asking.engine or self._host.engine()
        message_id = await self._exchange.begin(engine)
        await self._room()
        if not self._closing:
            await anyio.lowlevel.checkpoint_if_cancelled()  # a cancel that came in time must still count
        message = AssistantMessage(
            message_id=message_id,
            content=content,
            provider=engine.model.provider,
            model=engine.model.name,
            usage=measured(ending.usage, engine.model),
            stop_reason=stop,
            error_message=ending.error_message,
            timestamp=self._host.sources.now(),
            provider_data=ending.provider_data,
        )
        self._outcome = None if outcome is not None and self._goes_on(outcome) else outcome
        self._answer, self._answered = message, True
        self._usage = add_usage(self._usage, message.usage)
        await self._emit_now(MessageEnd(message=message))
        return message

    def _goes_on(self, outcome: _Outcome) -> bool:
        """Whether the run takes another turn, though the model has come to an end, for what the user says."""
        may = outcome.stop in ("stop", "length", "refusal") and not self._closing
        return may and self._turn < self._max_turns and self._host.claim_steer()

    # --- one tool call ----------------------------------------------------------------------------

    async def _execute(self, call: ToolCall, *, cut: bool) -> None:
        host = self._host
        tool = host.toolbox.get(call.name)
        output = LiveUpdates(host, call.id)
        context = host.tool_context(output)
        start = describe(call, tool, context)
        await self._room()
        self._call = running = RunningCall(call, host.sources.monotonic(), output)
        context = replace(context, made=running.take_made)
        await self._emit_now(start)
        await anyio.lowlevel.checkpoint()
        if cut:
            result = ToolResult.error(OUTPUT_LIMIT.format(name=call.name))
        else:
            result = running.with_made(await execute(running, tool, context, start.title, host))
        await anyio.lowlevel.checkpoint_if_cancelled()
        running.result = result  # from here on it is what happened, even if a cancel comes first
        await self._room()
        await self._tool_end(running, result)

    async def _tool_end(self, running: RunningCall, result: ToolResult) -> None:
        """Close a call with its result: events in one go, so that a cancel finds all of them or none."""
        call, running.output.closed = running.call, True
        sources = self._host.sources
        message = normalise(result, call, sources.new_id("m"), sources.now())
        ended = ToolExecutionEnd(
            tool_call_id=call.id,
            tool_name=call.name,
            result=message,
            duration_ms=round((sources.monotonic() - running.started) * 1000),
        )
        self._call = None
        self._results.append(message.message_id)
        with CancelScope(shield=True):
            for event in (ended, *_whole(message)):
                await self._emit_now(event)

    # --- how every run ends -----------------------------------------------------------------------

    async def _close(self) -> AgentEnd:
        """Close what is open, innermost first, and end the run. Nothing here waits for a slow client."""
        self._closing = True
        while self._owed:
            await self._emit_owed()
        if self._call is not None:
            self.quiescent = self._call.quiescent
            await self._tool_end(self._call, self._call.cut())
        if not self.settled:
            await self._close_unanswered()
        if self._turn_open:
            await self._end_turn()
        assert self._answer is not None
        assert self._outcome is not None
        end = AgentEnd(
            stop_reason=self._outcome.stop,
            message_id=self._answer.message_id,
            message_ids=tuple(self._added),
            turns=self._requests,
            usage=self._usage,
            error=self._outcome.error,
        )
        await self._emit_now(end)
        return end

    async def _close_unanswered(self) -> None:
        """A run that was cancelled or failed: the open message ends as it is, or a last one says why."""
        text = self._fault.message if self._fault is not None else None
        if self._turn_open and self._answered:
            await self._end_turn()
        if not self._turn_open:
            await self._start_turn()
            text = text or LOOP_ABORTED
        said = self._exchange.said()
        if self._fault is not None:
            await self._message_end(
                said, "error", _Outcome("error", self._fault), _Ending(error_message=text)
            )
        else:
            outcome = _Outcome(self._cancelled_as or "interrupted")
            await self._message_end(said, "aborted", outcome, _Ending(error_message=text))

    # --- events -----------------------------------------------------------------------------------

    async def _room(self) -> None:
        """This is where a run waits for a slow client: before each event, until it is closing."""
        if not self._closing:
            await self._host.room()

    async def _emit_now(self, event: DurableEvent | LiveEvent) -> None:
        if isinstance(event, MessageEnd):
            self._added.append(event.message.message_id)
        elif isinstance(event, CompactionEnd):
            self._usage = add_spent(self._usage, spent(event))
        await self._host.emit(event)


@dataclass(frozen=True)
class _Ending:
    """What else is known when an assistant message ends."""

    usage: Usage | None = None
    error_message: str | None = None
    provider_data: dict[str, Any] | None = None


def _opening(user: UserMessage | None, settings: PromptSettings) -> Sequence[DurableEvent]:
    """What every run begins with, whether or not it is cancelled before it could."""
    events: list[DurableEvent] = [AgentStart(prompt=settings), TurnStart(turn=1)]
    if user is not None:
        events += _whole(user)
    return events


def _whole(message: UserMessage | ToolResultMessage) -> tuple[MessageStart, MessageEnd]:
    """The two events of a message that is whole from the start."""
    call = message if isinstance(message, ToolResultMessage) else None
    head = MessageHead(
        role=message.role,
        message_id=message.message_id,
        tool_call_id=call.tool_call_id if call else None,
        tool_name=call.tool_name if call else None,
    )
    return MessageStart(message=head), MessageEnd(message=message)
