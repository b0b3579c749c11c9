"""What the client of one session has been told, and what each event adds to that."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agentd.acp import updates
from agentd.acp.content import text_block
from agentd.acp.updates import Json
from agentd.protocol.events import (
    AgentEnd,
    CompactionEnd,
    CompactionStart,
    DurableEvent,
    MessageEnd,
    MessageReset,
    MessageUpdate,
    Notice,
    PermissionRequested,
    PermissionResolved,
    Retry,
    SessionChanged,
    TodoChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from agentd.protocol.messages import AssistantMessage, PermissionRequest, Usage
from agentd.protocol.messages import Session as SessionInfo
from agentd.tools.base import Toolbox

Options = Callable[[SessionInfo], list[Json]]
"""The options of a session, as they are now."""


@dataclass
class Told:
    """One session as its client knows it."""

    toolbox: Toolbox
    options: Options
    info: Callable[[], SessionInfo]
    open_calls: set[str] = field(default_factory=set)
    """Calls that the client was told of and that have not ended for it."""
    said: set[str] = field(default_factory=set)
    """Open messages of which text was sent."""
    tries: dict[str, int] = field(default_factory=dict)
    """How often an open message began anew."""
    commands: Json | None = None
    _told: SessionInfo | None = None
    _borrowed: dict[str, str] = field(default_factory=dict)  # questions about a call that only they know
    _last_usage: Usage | None = None

    def knows(self, info: SessionInfo) -> None:
        """The client has been told how the session is set up."""
        self._told = info

    def standing(self) -> Iterator[Json]:
        """What the session is called and has used: a client that opens one hears of it no other way."""
        info = self.info()
        if (used := updates.usage(info.usage, info.usage)) is not None:
            yield used
        yield self._named(info)

    # --- live ---------------------------------------------------------------------------------------

    def begins(self, event: MessageUpdate) -> Json | None:
        """The first word of a call that the model is writing."""
        call_id = event.update.tool_call_id
        if call_id is None or call_id in self.open_calls:
            return None
        self.open_calls.add(call_id)
        name = event.update.tool_name or ""
        tool = self.toolbox.get(name)
        return updates.announced(call_id, name, tool.kind if tool is not None else "other")

    def message_id(self, message_id: str) -> str:
        """The id of a message for the client. One that began anew is another: nothing is taken back."""
        count = self.tries.get(message_id, 0)
        return message_id if not count else f"{message_id}~{count + 1}"

    # --- durable ------------------------------------------------------------------------------------

    def tell(self, event: DurableEvent) -> Iterator[Json]:
        """The updates that an event comes to."""
        match event:
            case MessageEnd():
                yield from self._message(event)
            case MessageReset():
                self.tries[event.message_id] = self.tries.get(event.message_id, 0) + 1
                self.said.discard(event.message_id)
                yield from self._close_calls()
                yield updates.thought("The answer broke off; it begins again.")
            case ToolExecutionStart():
                is_known = event.tool_call_id in self.open_calls
                self.open_calls.add(event.tool_call_id)
                yield updates.started(event, is_known=is_known)
            case ToolExecutionEnd():
                self.open_calls.discard(event.tool_call_id)
                yield updates.ended(event.result)
            case PermissionRequested():
                yield from self.asked(event)
            case PermissionResolved():
                yield from self._resolved(event)
            case TodoChanged():
                yield updates.plan(event.items)
            case TurnEnd() | AgentEnd():
                yield from self._ended(event)
            case SessionChanged():
                yield from self._changed(event.session)
            case _:
                yield from _remarks(event)

    def _message(self, event: MessageEnd) -> Iterator[Json]:
        message = event.message
        if isinstance(message, AssistantMessage):
            shown_as = self.message_id(message.message_id)
            if message.message_id not in self.said and message.text:
                yield updates.chunk("agent_message_chunk", text_block(message.text), shown_as)
            self.said.discard(message.message_id)
            self.tries.pop(message.message_id, None)
        info = self.info()
        if self._told is not None and info.title != self._told.title:
            yield self._named(info)

    def asked(self, question: PermissionRequest) -> Iterator[Json]:
        """A question about a call that the client does not know: a sub-agent's, or a file of the prompt."""
        call_id = self.call_of(question)
        if call_id in self.open_calls:
            return
        self.open_calls.add(call_id)
        self._borrowed[question.request_id] = call_id
        yield {"sessionUpdate": "tool_call", **updates.asked(question, call_id)}

    def call_of(self, question: PermissionRequest) -> str:
        """The call that a question is about, as the client names it."""
        child = question.child
        return question.tool_call_id if child is None else f"{child.session_id}/{child.tool_call_id}"

    def _resolved(self, event: PermissionResolved) -> Iterator[Json]:
        call_id = self._borrowed.pop(event.request_id, None)
        if call_id is not None:
            self.open_calls.discard(call_id)
            yield updates.progressed(call_id, "completed" if event.outcome == "allowed" else "failed")
        elif event.outcome == "allowed" and event.tool_call_id in self.open_calls:
            yield updates.progressed(event.tool_call_id, "in_progress")  # the question had it wait

    def _ended(self, event: TurnEnd | AgentEnd) -> Iterator[Json]:
        yield from self._close_calls()
        self._last_usage = event.usage or self._last_usage
        info = self.info()
        if (used := updates.usage(self._last_usage, info.usage)) is not None:
            yield used
        if isinstance(event, AgentEnd):
            yield self._named(info)

    def _close_calls(self) -> Iterator[Json]:
        """Calls that never began, and never will."""
        for call_id in sorted(self.open_calls):
            yield updates.progressed(call_id, "failed")
        self.open_calls.clear()

    def _changed(self, info: SessionInfo) -> Iterator[Json]:
        told = self._told
        self._told = info
        if told is None:
            return
        if info.mode != told.mode:
            yield updates.mode(info.mode)
        if (info.mode, info.model, info.effort) != (told.mode, told.model, told.effort):
            yield updates.config_options(self.options(info))
        if info.title != told.title:
            yield self._named(info)

    def _named(self, info: SessionInfo) -> Json:
        self._told = info if self._told is None else self._told.model_copy(update={"title": info.title})
        return updates.session_info(info.title, info.updated_at)


def _remarks(event: DurableEvent) -> Iterator[Json]:
    """What the user should know and ACP has no word for."""
    match event:
        case Notice(severity="warning" | "error"):
            yield updates.thought(event.message)
        case Retry():
            wait = f"again in {event.delay_ms / 1000:.3g} s ({event.attempt} of {event.max_attempts})"
            yield updates.thought(f"The model server failed, {wait}: {event.reason}")
        case CompactionStart():
            yield updates.thought("Summing up the conversation.")
        case CompactionEnd(error=error) if error is not None:
            yield updates.thought(f"The conversation could not be summed up: {error.message}")
