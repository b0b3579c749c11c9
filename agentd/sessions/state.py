"""A session's state: the fold of its durable events, live and after a restart alike.

Nothing else may change it, so a restart cannot differ from what was. What is open in a run (turn, message,
tool calls, questions) is kept too: recovery closes it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentd.agent.memory import current
from agentd.agent.usage import add_spent, add_usage, spent
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    CompactionEnd,
    CompactionStart,
    DurableEvent,
    FilesChanged,
    Memory,
    MessageEnd,
    MessageHead,
    MessageStart,
    PermissionRequested,
    PermissionResolved,
    SessionChanged,
    TodoChanged,
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
    Session,
    TextContent,
    TodoItem,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from agentd.protocol.methods import PromptResult
from agentd.sessions.records import Entry

_TITLE_LENGTH = 72
_CALL_ID = re.compile(r"[A-Za-z0-9_.:~-]{1,120}")


@dataclass
class PromptEntry:
    """A prompt that was taken: what it said (as a digest) and, once it has ended, how."""

    digest: str
    result: PromptResult | None = None


@dataclass
class OpenRun:
    """What a run has begun and not ended yet."""

    prompt_id: str
    model: str | None
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


class SessionState:
    """Everything known of a session."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.seq = 0
        self.updated_at = ""
        self.messages: list[Message] = []
        self.prompts: dict[str, PromptEntry] = {}
        self.answers: list[tuple[PermissionRequested, str]] = []  # questions with the option that was taken
        self.run: OpenRun | None = None
        self.usage: Usage | None = None
        self.todo: tuple[TodoItem, ...] = ()
        self.compacting: CompactionStart | None = None
        self.memories: list[Memory] = []
        self._changed: Session | None = None
        self._call_ids: set[str] = set()
        self._questions: dict[str, PermissionRequested] = {}

    # --- reading ----------------------------------------------------------------------------------

    @property
    def base(self) -> Session:
        """The session as its last `session_changed` told it."""
        assert self._changed is not None, "a session begins with session_changed"
        return self._changed

    @property
    def is_introduced(self) -> bool:
        """Whether the session has its first event."""
        return self._changed is not None

    @property
    def memory(self) -> Memory | None:
        """What requests show of a history that was made shorter, as far as it is still the history."""
        return current(self.memories, self.messages)

    def usage_after(self, event: AgentEnd | CompactionEnd) -> Usage | None:
        """What the session has used once this run, or a compaction outside of one, has ended."""
        if isinstance(event, AgentEnd):
            return add_usage(self.usage, event.usage)
        return add_spent(self.usage, spent(event))

    def info(self, *, alive: bool) -> Session:
        """The session as it is now. `alive`: what the journal says is running does run here."""
        state: Literal["idle", "running", "waiting"] = "idle"
        if alive and self.run is not None:
            state = "waiting" if self.run.questions else "running"
        return self.base.model_copy(
            update={
                "title": self.base.title or self._title_from_messages(),
                "state": state,
                "updated_at": self.updated_at,
                "message_count": len(self.messages),
                "usage": self.usage,
                "seq": self.seq,
            }
        )

    def _title_from_messages(self) -> str:
        for message in self.messages:
            if isinstance(message, UserMessage):
                return title_of_blocks(message.content)
        return ""

    def unique_call_id(self, wanted: str | None, new_id: str) -> str:
        """`wanted` where no other call has it, else `wanted~2` and so on; `new_id` where it is no id."""
        base = wanted if wanted is not None and _CALL_ID.fullmatch(wanted) else new_id
        unique, count = base, 1
        while unique in self._call_ids:
            count += 1
            unique = f"{base}~{count}"
        self._call_ids.add(unique)
        return unique

    def pass_over(self, seq: int) -> None:
        """An event that this version does not know has this number."""
        self.seq = seq

    # --- the fold ---------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Take the next durable event."""
        self.seq = entry.seq
        self.updated_at = entry.time
        event = entry.event
        if isinstance(event, SessionChanged):
            self._changed = event.session
        elif isinstance(event, AgentStart):
            assert entry.prompt_id is not None
            self.run = OpenRun(entry.prompt_id, event.prompt.model)
            self.prompts[entry.prompt_id] = PromptEntry(entry.private.get("promptDigest", ""))
        elif isinstance(event, MessageEnd):
            self._add_message(event.message)
        elif isinstance(event, PermissionResolved):
            self._resolve(event)
        elif isinstance(event, PermissionRequested):
            self._questions[event.request_id] = event
        elif isinstance(event, TodoChanged):
            self.todo = event.items
        elif isinstance(event, CompactionStart):
            self.compacting = event
        elif isinstance(event, CompactionEnd):
            self._end_compaction(event)
        if self.run is not None:
            _follow(self.run, event)
        if isinstance(event, AgentEnd):
            self._end(event)

    def _add_message(self, message: Message) -> None:
        self.messages.append(message)
        if isinstance(message, AssistantMessage):
            self._call_ids.update(call.id for call in message.calls)

    def _resolve(self, event: PermissionResolved) -> None:
        question = self._questions.pop(event.request_id, None)
        if question is not None and event.option_id is not None:
            self.answers.append((question, event.option_id))

    def _end_compaction(self, event: CompactionEnd) -> None:
        self.compacting = None
        if event.kept is not None and event.kept.memory is not None:
            self.memories.append(event.kept.memory)
        if self.run is not None:
            self.run.usage = add_spent(self.run.usage, spent(event))
        else:
            self.usage = self.usage_after(event)

    def _end(self, event: AgentEnd) -> None:
        if self.run is None:
            return
        prompt_id = self.run.prompt_id
        last = self.run.last_answer
        self.usage = self.usage_after(event)
        self.prompts.setdefault(prompt_id, PromptEntry("")).result = PromptResult(
            session_id=self.session_id,
            prompt_id=prompt_id,
            stop_reason=event.stop_reason,
            text=last.text if last is not None else "",
            message_id=event.message_id,
            usage=event.usage,
            turns=event.turns,
            seq=self.seq,
            error=event.error,
        )
        self.run = None


def title_of_blocks(blocks: Sequence[ContentBlock]) -> str:
    """A title from the first line of a prompt."""
    for block in blocks:
        if isinstance(block, TextContent) and block.text.strip():
            line = " ".join(block.text.strip().splitlines()[0].split())
            return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"
    return ""


def _follow(run: OpenRun, event: DurableEvent) -> None:
    """Keep account of what a run has open."""
    match event:
        case TurnStart():
            run.turn, run.turn_open, run.answer, run.result_ids = event.turn, True, None, []
        case TurnEnd():
            run.turn_open = False
        case MessageStart():
            run.message = event.message
            if event.message.role == "assistant":
                run.asked = run.turn
        case MessageEnd():
            run.message = None
            run.message_ids.append(event.message.message_id)
            _follow_message(run, event.message)
        case ToolExecutionStart():
            run.calls[event.tool_call_id] = event
        case ToolExecutionEnd():
            run.calls.pop(event.tool_call_id, None)
            run.unsaid[event.result.message_id] = event.result
            if isinstance(event.result.details, EditDetails):
                run.changed |= {change.uri: change.action for change in event.result.details.files}
        case FilesChanged():
            run.changed = {}
        case PermissionRequested():
            run.questions[event.request_id] = event
        case PermissionResolved():
            run.questions.pop(event.request_id, None)


def _follow_message(run: OpenRun, message: Message) -> None:
    if isinstance(message, AssistantMessage):
        run.answer = run.last_answer = message
        run.usage = add_usage(run.usage, message.usage)
    elif isinstance(message, ToolResultMessage):
        run.unsaid.pop(message.message_id, None)
        run.result_ids.append(message.message_id)
