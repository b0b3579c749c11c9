"""What a run has begun and not ended yet: part of a session's state, and what recovery closes."""

from dataclasses import dataclass, field

from agentd.agent.usage import add_spent, add_usage
from agentd.protocol.events import (
    DurableEvent,
    FilesChanged,
    MessageEnd,
    MessageHead,
    MessageStart,
    PermissionRequested,
    PermissionResolved,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
    TurnStart,
)
from agentd.protocol.messages import (
    AssistantMessage,
    ContentBlock,
    EditDetails,
    FileAction,
    Message,
    ToolResultMessage,
    Usage,
)
from agentd.sessions.family import Delegated, together


@dataclass
class OpenRun:
    """What a run has begun and not ended yet."""

    prompt_id: str
    model: str | None
    whole_turns: int = 0  # how many messages of the session stand before the open turn
    turn: int = 0
    asked: int = 0  # the last turn in which the model began to answer
    turn_open: bool = False
    answer: AssistantMessage | None = None  # the open turn's, once whole
    last_answer: AssistantMessage | None = None  # the run's
    message: MessageHead | None = None
    calls: dict[str, ToolExecutionStart] = field(default_factory=dict)
    unsaid: dict[str, ToolResultMessage] = field(default_factory=dict)  # results without their message yet
    result_ids: list[str] = field(default_factory=list)
    message_ids: list[str] = field(default_factory=list)
    questions: dict[str, PermissionRequested] = field(default_factory=dict)
    usage: Usage | None = None
    changed: dict[str, FileAction] = field(default_factory=dict)
    steers: list[str] = field(default_factory=list)  # the prompts that it took while it ran
    owed: tuple[ContentBlock, ...] = ()  # what a queued prompt or a steer says, until its message is whole
    steer: str | None = None  # the prompt that the open message of the user says, where it is a steer


def follow(run: OpenRun, event: DurableEvent, messages: int) -> None:
    """Keep account of what a run has open; `messages` is how many the session has."""
    match event:
        case TurnStart():
            run.turn, run.turn_open, run.answer, run.result_ids = event.turn, True, None, []
            run.whole_turns = messages
        case TurnEnd():
            run.turn_open = False
        case MessageStart():
            run.message = event.message
            if event.message.role == "assistant":
                run.asked = run.turn
        case MessageEnd():
            run.message = None
            if event.message.role == "user":
                run.owed, run.steer = (), None
            run.message_ids.append(event.message.message_id)
            _follow_message(run, event.message)
        case ToolExecutionStart():
            run.calls[event.tool_call_id] = event
        case ToolExecutionEnd():
            run.calls.pop(event.tool_call_id, None)
            run.unsaid[event.result.message_id] = event.result
            if isinstance(event.result.details, EditDetails):
                for change in event.result.details.files:
                    run.changed[change.uri] = together(run.changed.get(change.uri), change.action)
        case FilesChanged():
            run.changed = {}
        case PermissionRequested():
            run.questions[event.request_id] = event
        case PermissionResolved():
            run.questions.pop(event.request_id, None)


def take_delegated(run: OpenRun, kept: Delegated | None) -> None:
    """What the children of a tool call used and changed counts as the run's own."""
    if kept is None:
        return
    run.usage = add_spent(run.usage, kept.usage)
    for uri, action in kept.changed.items():
        run.changed[uri] = together(run.changed.get(uri), action)


def _follow_message(run: OpenRun, message: Message) -> None:
    if isinstance(message, AssistantMessage):
        run.answer = run.last_answer = message
        run.usage = add_usage(run.usage, message.usage)
    elif isinstance(message, ToolResultMessage):
        run.unsaid.pop(message.message_id, None)
        run.result_ids.append(message.message_id)
