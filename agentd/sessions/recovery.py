"""Closing a run that a stopped daemon left open, in the order a cancelled run closes.

A tool call that had begun may have had its effect: it is answered as unknown and never run again.
"""

from collections.abc import Iterator

from agentd.agent.loop import LIMIT_REACHED, LOOP_ABORTED
from agentd.config.sources import Sources
from agentd.protocol.events import (
    AgentEnd,
    ChangedFile,
    CompactionEnd,
    CompactionStart,
    DurableEvent,
    FilesChanged,
    MessageEnd,
    MessageHead,
    MessageStart,
    PermissionResolved,
    ToolExecutionEnd,
    TurnEnd,
    TurnStart,
)
from agentd.protocol.messages import (
    AssistantMessage,
    MessageStop,
    RunError,
    RunStop,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from agentd.sessions.open_run import OpenRun
from agentd.sessions.prompts import built_in

OUTCOME_UNKNOWN = "Outcome unknown: the daemon stopped while this ran."

_FINAL: dict[MessageStop, RunStop] = {
    "stop": "stop",
    "length": "length",
    "refusal": "refusal",
    "error": "error",
    "aborted": "aborted",
}


def closing_events(run: OpenRun, sources: Sources) -> Iterator[DurableEvent]:
    """The events that close `run`. Each is to be applied before the next is taken: they follow the state."""
    for question in tuple(run.questions.values()):
        yield PermissionResolved(
            request_id=question.request_id,
            tool_call_id=question.tool_call_id,
            outcome="cancelled",
            by="cancel",
        )
    yield from _close_calls(run, sources)
    yield from _say_prompt(run, sources)
    final = run.answer is not None and not run.answer.calls
    turns = run.asked
    if not final:
        yield from _close_turns(run, sources)
    if run.turn_open:
        yield _turn_end(run)
    if run.changed:
        yield changed_files(run)
    yield _agent_end(run, turns, final=final)


def _say_prompt(run: OpenRun, sources: Sources) -> Iterator[DurableEvent]:
    """End the user's message where it was open; one of the queue was acknowledged, so it is said whole."""
    if run.owed and not run.turn:
        yield TurnStart(turn=1)
    if run.owed and run.message is None:
        yield MessageStart(message=MessageHead(role="user", message_id=sources.new_id("m")))
    if run.message is not None and run.message.role == "user":
        yield MessageEnd(
            message=UserMessage(
                message_id=run.message.message_id,
                content=run.owed,
                timestamp=sources.now(),
                shown=() if built_in(run.owed) is not None else None,
            )
        )


def aborted(start: CompactionStart) -> CompactionEnd:
    """The end of a compaction that was cut short: it has changed nothing."""
    return CompactionEnd(outcome="aborted", tokens_before=start.tokens_before)


def changed_files(run: OpenRun) -> FilesChanged:
    """The files that a run has changed so far, as its edits told it.

    The disk is not asked: after a restart it may say what others have done since.
    """
    return FilesChanged(
        files=tuple(ChangedFile(uri=uri, action=action) for uri, action in run.changed.items())
    )


def _close_calls(run: OpenRun, sources: Sources) -> Iterator[DurableEvent]:
    for start in tuple(run.calls.values()):
        yield ToolExecutionEnd(
            tool_call_id=start.tool_call_id,
            tool_name=start.tool_name,
            result=ToolResultMessage(
                message_id=sources.new_id("m"),
                tool_call_id=start.tool_call_id,
                tool_name=start.tool_name,
                content=(TextContent(text=OUTCOME_UNKNOWN),),
                is_error=True,
                timestamp=sources.now(),
            ),
            duration_ms=0,
        )
    for result in tuple(run.unsaid.values()):
        if run.message is None or run.message.message_id != result.message_id:
            head = MessageHead(
                role="tool_result",
                message_id=result.message_id,
                tool_call_id=result.tool_call_id,
                tool_name=result.tool_name,
            )
            yield MessageStart(message=head)
        yield MessageEnd(message=result)


def _close_turns(run: OpenRun, sources: Sources) -> Iterator[DurableEvent]:
    """End the run with an assistant message: the open one, or an empty one in a turn of its own."""
    text = None
    if run.turn_open and run.answer is not None:
        yield _turn_end(run)
    if not run.turn_open:
        text = LOOP_ABORTED if run.turn else None
        yield TurnStart(turn=run.turn + 1)
    provider, _, name = (run.model or "").partition("/")
    if run.message is None:
        head = MessageHead(role="assistant", message_id=sources.new_id("m"), model=run.model)
        yield MessageStart(message=head)
    assert run.message is not None
    yield MessageEnd(
        message=AssistantMessage(
            message_id=run.message.message_id,
            content=(),
            provider=provider,
            model=name,
            stop_reason="aborted",
            error_message=text,
            timestamp=sources.now(),
        )
    )


def _turn_end(run: OpenRun) -> TurnEnd:
    assert run.answer is not None
    return TurnEnd(
        turn=run.turn,
        message_id=run.answer.message_id,
        stop_reason=run.answer.stop_reason,
        tool_result_ids=tuple(run.result_ids),
        usage=run.answer.usage,
    )


def _agent_end(run: OpenRun, turns: int, *, final: bool) -> AgentEnd:
    """How the run ended: as its last message said where it had said it, else interrupted.

    `turns` are those in which the model was asked; the one that exists for a closing message is none of them.
    """
    answer = run.last_answer
    stop: RunStop = "interrupted"
    error = None
    if final and answer is not None:
        stop = _FINAL.get(answer.stop_reason, "interrupted")
        if answer.error_message in (LIMIT_REACHED, LOOP_ABORTED):
            turns -= 1
        if answer.error_message == LIMIT_REACHED:
            stop = "max_turns"
        elif stop == "error":
            error = RunError(kind="internal", message=answer.error_message or "The run failed.")
    return AgentEnd(
        stop_reason=stop,
        message_id=answer.message_id if answer else None,
        message_ids=tuple(run.message_ids),
        turns=turns,
        usage=run.usage,
        error=error,
    )
