"""Section 5 of the protocol over the events of one run: what opens closes, in order, and adds up."""

from collections.abc import Sequence

from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    CompactionEnd,
    CompactionStart,
    DurableEvent,
    LiveEvent,
    MessageEnd,
    MessageReset,
    MessageStart,
    MessageUpdate,
    PermissionRequested,
    PermissionResolved,
    Retry,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from agentd.protocol.messages import AssistantMessage, ToolCall, ToolResultMessage
from agentd.protocol.text import utf16_length

AnyEvent = DurableEvent | LiveEvent


def words(events: Sequence[AnyEvent], *, live: bool = False) -> list[str]:
    """Events as words, in which an order is written down: `start(user)`, `end(assistant)`, `run(c1)` …"""
    return [_word(event) for event in events if live or not isinstance(event, LiveEvent)]


def _word(event: AnyEvent) -> str:  # noqa: PLR0911 - one line per type of event
    match event:
        case MessageStart():
            return f"start({event.message.role})"
        case MessageEnd():
            return f"end({event.message.role})"
        case MessageUpdate():
            return f"update({event.update.delta})"
        case ToolExecutionStart():
            return f"run({event.tool_call_id})"
        case ToolExecutionUpdate():
            return f"output({event.update.delta})"
        case ToolExecutionEnd():
            return f"ran({event.tool_call_id})"
        case AgentEnd():
            return f"agent_end({event.stop_reason})"
        case _:
            return event.type


def assert_whole_run(events: Sequence[AnyEvent]) -> AgentEnd:
    """One run from its start to its end; gives the end."""
    assert isinstance(events[0], AgentStart)
    end = events[-1]
    assert isinstance(end, AgentEnd)
    follower = _Follower()
    for event in events[1:-1]:
        follower.follow(event)
    assert not follower.turn_is_open
    assert follower.message is None
    assert follower.call is None
    assert follower.compaction is None
    assert follower.questions == set()
    assert follower.answer is not None, "the last message of a run is the model's"
    assert end.message_id == follower.answer.message_id == follower.message_ids[-1]
    assert list(end.message_ids) == follower.message_ids
    assert end.turns <= follower.turn
    return end


class _Follower:
    """Knows what is open, and refuses what may not come now."""

    def __init__(self) -> None:
        self.turn = 0
        self.turn_is_open = False
        self.message: MessageStart | None = None
        self.answer: AssistantMessage | None = None
        self.answered = False
        self.call: ToolExecutionStart | None = None
        self.due: ToolResultMessage | None = None  # a result whose message comes next
        self.waiting: list[ToolCall] = []
        self.results: list[str] = []
        self.message_ids: list[str] = []
        self.questions: set[str] = set()
        self.compaction: CompactionStart | None = None
        self.said: dict[int, str] = {}
        self.output: dict[str, int] = {}

    def follow(self, event: AnyEvent) -> None:  # noqa: PLR0912 - one case per type of event
        assert not isinstance(event, AgentStart | AgentEnd)
        if self.due is not None:
            assert isinstance(event, MessageStart | MessageEnd), "a result's message follows at once"
        if self.compaction is not None:
            assert isinstance(event, CompactionEnd | Retry), "nothing else happens meanwhile"
        match event:
            case TurnStart():
                assert not self.turn_is_open
                assert event.turn == self.turn + 1
                self.turn, self.turn_is_open, self.answered, self.results = event.turn, True, False, []
                self.waiting = []
            case TurnEnd():
                self._end_turn(event)
            case MessageStart():
                self._start_message(event)
            case MessageUpdate():
                self._update(event)
            case MessageEnd():
                self._end_message(event)
            case MessageReset():
                assert self.message is not None
                assert event.message_id == self.message.message.message_id
                self.said = {}
            case Retry():
                reset = self.message is None or self.said == {} or self.compaction is not None
                assert reset, "reset first, then retry"
            case ToolExecutionStart():
                assert self.call is None
                assert self.message is None
                assert self.waiting, "only what the open turn's answer calls may run"
                assert self.waiting.pop(0).id == event.tool_call_id
                self.call, self.output = event, {}
            case ToolExecutionUpdate():
                assert self.call is not None
                assert self.call.tool_call_id == event.tool_call_id
                assert event.update.offset >= self.output.get(event.update.channel, 0)
                self.output[event.update.channel] = event.update.offset + utf16_length(event.update.delta)
            case ToolExecutionEnd():
                assert self.call is not None
                assert not self.questions
                assert self.call.tool_call_id == event.tool_call_id == event.result.tool_call_id
                assert event.duration_ms >= 0
                self.call, self.due = None, event.result
            case CompactionStart():
                assert self.call is None
                assert self.turn_is_open
                assert not self.answered
                assert self.compaction is None
                self.compaction = event
            case CompactionEnd():
                assert self.compaction is not None
                assert event.tokens_before == self.compaction.tokens_before
                assert (event.outcome == "failed") == (event.error is not None)
                assert (event.outcome == "compacted") == (event.tokens_after is not None)
                self.compaction = None
            case PermissionRequested():
                assert self.call is not None
                assert self.call.tool_call_id == event.tool_call_id
                self.questions.add(event.request_id)
            case PermissionResolved():
                self.questions.remove(event.request_id)
            case _:
                pass

    def _start_message(self, event: MessageStart) -> None:
        assert self.message is None
        assert self.turn_is_open
        if event.message.role == "tool_result":
            assert self.due is not None
            assert event.message.message_id == self.due.message_id
            assert event.message.tool_call_id == self.due.tool_call_id
        if event.message.role == "assistant":
            assert not self.answered, "one answer per turn"
            assert event.message.model
        self.message, self.said = event, {}

    def _update(self, event: MessageUpdate) -> None:
        assert self.message is not None
        assert self.message.message.message_id == event.message_id
        assert self.message.message.role == "assistant"
        before = self.said.get(event.update.index, "")
        assert event.update.offset == utf16_length(before)
        self.said[event.update.index] = before + event.update.delta

    def _end_message(self, event: MessageEnd) -> None:
        message = event.message
        assert self.message is not None
        assert self.message.message.message_id == message.message_id
        assert self.message.message.role == message.role
        self.message = None
        self.message_ids.append(message.message_id)
        if isinstance(message, AssistantMessage):
            self.answer, self.answered = message, True
            self.waiting = list(message.calls)
        elif isinstance(message, ToolResultMessage):
            assert message == self.due
            self.due = None
            self.results.append(message.message_id)

    def _end_turn(self, event: TurnEnd) -> None:
        assert self.turn_is_open
        assert self.answered
        assert self.answer is not None
        assert self.call is None
        assert event.turn == self.turn
        assert event.message_id == self.answer.message_id
        assert event.stop_reason == self.answer.stop_reason
        assert list(event.tool_result_ids) == self.results
        self.turn_is_open = False
