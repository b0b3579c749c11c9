"""A session's state: the fold of its durable events, live and after a restart alike.

Nothing else may change it, so a restart cannot differ from what was. What is open in a run (turn, message,
tool calls, questions) is kept too: recovery closes it.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from agentd.agent.memory import current, is_aside
from agentd.agent.usage import add_spent, add_usage, spent
from agentd.protocol.events import (
    AgentEnd,
    AgentStart,
    CompactionEnd,
    CompactionStart,
    Memory,
    MessageEnd,
    MessageStart,
    Notice,
    PermissionRequested,
    PermissionResolved,
    QueueChanged,
    RewindScope,
    SessionChanged,
    SessionRewound,
    TodoChanged,
)
from agentd.protocol.messages import (
    AssistantMessage,
    Message,
    QueuedPrompt,
    RunError,
    Session,
    TodoItem,
    Usage,
    UserMessage,
)
from agentd.protocol.methods import PromptParams, PromptResult
from agentd.sessions.carried import Carried
from agentd.sessions.family import KEPT
from agentd.sessions.open_run import OpenRun, follow, take_delegated
from agentd.sessions.prompts import blocks_of, digest_of, title_of_blocks
from agentd.sessions.records import Entry, Shown

_CALL_ID = re.compile(r"[A-Za-z0-9_.:~-]{1,120}")


@dataclass
class PromptEntry:
    """A prompt that was taken: what it said (as digests: it may be edited in the queue) and how it ended."""

    digests: set[str] = field(default_factory=set)
    result: PromptResult | None = None


class Start(NamedTuple):
    """What the conversation was when a prompt began: how many messages, and the to-do list."""

    messages: int
    todo: tuple[TodoItem, ...]


@dataclass(frozen=True)
class Rewound:
    """The last rewind, or the undoing of one: what it takes to turn it round once more.

    `removed` are the messages that are gone while `is_undone` is false, and `starts` and `todo` what went
    with them.
    """

    rewind_id: str
    prompt_id: str
    scope: RewindScope
    is_undone: bool
    removed: tuple[Message, ...] = ()
    starts: dict[str, Start] = field(default_factory=dict)
    todo: tuple[TodoItem, ...] = ()


class Answer(NamedTuple):
    """A question, the option that was taken, and when."""

    question: PermissionRequested
    option_id: str
    time: str


class SessionState:
    """Everything known of a session."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.seq = 0
        self.updated_at = ""
        self.messages: list[Message] = []
        self.prompts: dict[str, PromptEntry] = {}
        self.answers: list[Answer] = []
        self.queue: tuple[QueuedPrompt, ...] = ()
        self.told_queue: tuple[QueuedPrompt, ...] = ()  # as the last `queue_changed` told it
        self.wishes: dict[str, PromptParams] = {}  # what those in the queue want of their run
        self.damage: set[int] = set()  # lines of the journal that cannot be read, as far as it was told
        self.run: OpenRun | None = None
        self.instructions: tuple[str, ...] | None = None  # the files that the last run told the model
        self.usage: Usage | None = None
        self.todo: tuple[TodoItem, ...] = ()
        self.cut_prompts: set[str] = set()  # the models whose servers were seen to cut prompts
        self.compacting: CompactionStart | None = None
        self.memories: list[Memory] = []
        self.begun: list[str] = []  # the prompts that were said, in order, rewound ones and steers too
        self.starts: dict[str, Start] = {}  # of those whose messages are there
        self.rewinds: dict[str, int] = {}  # the ids of all rewinds, and how many prompts were said by then
        self.rewound: Rewound | None = None  # what an undo would undo
        self._rewound_by: dict[str, str] = {}  # prompts that begin with a rewind, before they have begun
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
            if isinstance(message, UserMessage) and not is_aside(message):
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
        self.seq = max(self.seq, seq)

    def introduce(self, session: Session) -> None:
        """The event that introduced the session was lost; this is what else tells of it."""
        self._changed = session

    # --- the fold ---------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Take the next durable event."""
        self.seq = max(self.seq, entry.seq)
        self.updated_at = entry.time
        event = entry.event
        if "cutsPrompts" in entry.private:
            self.cut_prompts.add(str(entry.private["cutsPrompts"]))
        if isinstance(event, SessionChanged):
            self._changed = event.session
        elif isinstance(event, AgentStart):
            assert entry.prompt_id is not None
            self._start(entry.prompt_id, event, entry.private.get("promptDigest"))
        elif isinstance(event, MessageStart):
            self._begin_steer(entry.private.get("steer"))
        elif isinstance(event, MessageEnd):
            self._add_message(event.message, entry.private.get("steer"))
        elif isinstance(event, QueueChanged):
            self._change_queue(event, entry.private)
        elif isinstance(event, Notice):
            self.damage.update(entry.private.get("damage", ()))
        elif isinstance(event, PermissionResolved):
            self._resolve(event, entry)
        elif isinstance(event, TodoChanged):
            self.todo = event.items
        elif isinstance(event, PermissionRequested):
            self._questions[event.request_id] = event
        elif isinstance(event, CompactionStart | CompactionEnd):
            self._follow_compaction(event)
        elif isinstance(event, SessionRewound):
            self._rewind(event, str(entry.private.get("rewind", "")), entry.private.get("rewoundBy"))
        if self.run is not None:
            follow(self.run, event, len(self.messages))
            take_delegated(self.run, entry.private.get(KEPT))
        if isinstance(event, AgentEnd):
            self._end(event)

    def _start(self, prompt_id: str, event: AgentStart, digest: str | None) -> None:
        """A run begins; a prompt that stood in the queue for it stands there no more."""
        self.run = OpenRun(prompt_id, event.prompt.model, whole_turns=len(self.messages))
        self.begun.append(prompt_id)
        if (own := self._rewound_by.pop(prompt_id, None)) is not None:
            self.rewinds[own] = len(self.begun)  # going back to before the prompt takes it back as well
        self.instructions = event.prompt.instructions
        self.starts[prompt_id] = Start(len(self.messages), self.todo)
        if self.rewound is not None and self.rewound.removed:
            self.rewound = None  # the conversation goes another way now
        entry = self.prompts.setdefault(prompt_id, PromptEntry())
        if digest is not None:
            entry.digests.add(digest)
        if (waiting := self._leave_queue(prompt_id)) is not None:
            self.run.owed = waiting.prompt

    def _begin_steer(self, steer: str | None) -> None:
        """Where a steer is begun to be said it has to be said whole, whatever comes between."""
        waiting = next((each for each in self.queue if each.prompt_id == steer), None)
        if waiting is not None and self.run is not None:
            self.run.steer, self.run.owed = steer, waiting.prompt

    def _add_message(self, message: Message, steer: str | None) -> None:
        if steer is not None and self.run is not None:
            self._leave_queue(steer)
            self.run.steers.append(steer)
            self.begun.append(steer)
            self.starts[steer] = Start(len(self.messages), self.todo)
        self.messages.append(message)
        if isinstance(message, AssistantMessage):
            self._call_ids.update(call.id for call in message.calls)

    def _change_queue(self, event: QueueChanged, private: dict[str, Any]) -> None:
        """The queue is another one. Who is gone and did not run has ended without a word of the model."""
        for prompt_id, params in private.get("prompts", {}).items():
            self.wishes[prompt_id] = params
            self.prompts.setdefault(prompt_id, PromptEntry()).digests.add(digest_of(blocks_of(params.prompt)))
        left = {each.prompt_id for each in event.queue}
        gone = [each.prompt_id for each in self.queue if each.prompt_id not in left]
        self.queue = self.told_queue = event.queue
        refused: dict[str, Any] = private.get("refused", {})
        for prompt_id in gone:
            self.wishes.pop(prompt_id, None)
            error = RunError.model_validate(refused[prompt_id]) if prompt_id in refused else None
            self.prompts.setdefault(prompt_id, PromptEntry()).result = never_ran(self, prompt_id, error)

    def _leave_queue(self, prompt_id: str) -> QueuedPrompt | None:
        """Take a prompt out of the queue because it is said now."""
        found = next((each for each in self.queue if each.prompt_id == prompt_id), None)
        if found is not None:
            self.queue = tuple(each for each in self.queue if each is not found)
            self.wishes.pop(prompt_id, None)
        return found

    def _show(self, shown: Shown) -> None:
        """The user has said whether the model may see what a message refers to."""
        for place, message in enumerate(self.messages):
            if isinstance(message, UserMessage) and message.message_id == shown.message_id:
                self.messages[place] = message.model_copy(update={"shown": shown.content})

    def _resolve(self, event: PermissionResolved, entry: Entry) -> None:
        question = self._questions.pop(event.request_id, None)
        if question is not None and event.option_id is not None:
            self.answers.append(Answer(question, event.option_id, entry.time))
        if "shownNow" in entry.private:
            self._show(entry.private["shownNow"])

    def _follow_compaction(self, event: CompactionStart | CompactionEnd) -> None:
        self.compacting = event if isinstance(event, CompactionStart) else None
        if isinstance(event, CompactionStart):
            return
        if event.kept is not None and event.kept.memory is not None:
            self.memories.append(event.kept.memory)
        if self.run is not None:
            self.run.usage = add_spent(self.run.usage, spent(event))
        else:
            self.usage = self.usage_after(event)

    def since(self, prompt_id: str) -> frozenset[str]:
        """The ids of a prompt that was said, of all prompts behind it, and of all rewinds since."""
        number = self.begun.index(prompt_id)
        rewinds = (key for key, said in self.rewinds.items() if said > number)
        return frozenset((*self.begun[number:], *rewinds))

    def said_in(self, prompt_id: str) -> frozenset[str]:
        """A prompt with those that were said in its run."""
        run = self.run
        steers = run.steers if run is not None and run.prompt_id == prompt_id else ()
        ended = (
            key
            for key, entry in self.prompts.items()
            if entry.result is not None and entry.result.run_prompt_id == prompt_id
        )
        return frozenset((prompt_id, *steers, *ended))

    def removed_by(self, prompt_id: str) -> tuple[Message, ...]:
        """The messages that a rewind to just before a prompt takes away."""
        start = self.starts.get(prompt_id)
        return () if start is None else tuple(self.messages[start.messages :])

    def _rewind(self, event: SessionRewound, rewind_id: str, by: str | None) -> None:
        """Go back, or undo that: the last rewind is turned round. `by`: the prompt that wants it."""
        self.rewinds[rewind_id] = len(self.begun)
        if by is not None:
            self._rewound_by[by] = rewind_id
        last = self.rewound
        if event.undo and last is not None and not last.is_undone:
            self.messages += last.removed
            self.starts |= last.starts
            todo, self.todo = self.todo, last.todo if last.scope != "files" else self.todo
            self.rewound = replace(last, rewind_id=rewind_id, is_undone=True, todo=todo)
            return
        gone = set(event.removed_message_ids)
        removed = tuple(message for message in self.messages if message.message_id in gone)
        self.messages = [message for message in self.messages if message.message_id not in gone]
        starts: dict[str, Start] = {}
        todo = self.todo
        if event.scope != "files":
            begin = self.starts.get(event.prompt_id)
            starts = {
                key: start for key, start in self.starts.items() if start.messages >= len(self.messages)
            }
            self.starts = {key: start for key, start in self.starts.items() if key not in starts}
            self.todo = begin.todo if begin is not None else self.todo
        self.rewound = Rewound(rewind_id, event.prompt_id, event.scope, False, removed, starts, todo)

    def carry(self, record: Any) -> None:
        """Take what the session that this one was forked from had. Raises ValidationError."""
        carried = Carried.model_validate(record)
        self.messages += carried.whole_messages()
        for message in carried.messages:
            if isinstance(message, AssistantMessage):
                self._call_ids.update(call.id for call in message.calls)
        for prompt_id, start in carried.starts.items():
            self.begun.append(prompt_id)
            self.starts[prompt_id] = Start(start.messages, start.todo)
        self.todo = carried.todo or self.todo
        self.memories += carried.memories

    def _end(self, event: AgentEnd) -> None:
        if self.run is None:
            return
        prompt_id = self.run.prompt_id
        last = self.run.last_answer
        self.usage = self.usage_after(event)
        result = PromptResult(
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
        self.prompts.setdefault(prompt_id, PromptEntry()).result = result
        for steer in self.run.steers:
            self.prompts.setdefault(steer, PromptEntry()).result = steered(result, steer)
        self.run = None


def steered(result: PromptResult, prompt_id: str) -> PromptResult:
    """The result of a prompt that was said in the run of another one, which has this result."""
    update = {"prompt_id": prompt_id, "outcome": "steered", "run_prompt_id": result.prompt_id}
    return result.model_copy(update=update)


def never_ran(state: SessionState, prompt_id: str, error: RunError | None = None) -> PromptResult:
    """The result of a prompt that left the queue unsaid: taken out, or refused with `error`."""
    return PromptResult(
        session_id=state.session_id,
        prompt_id=prompt_id,
        stop_reason="aborted" if error is None else "error",
        text="",
        message_id=None,
        turns=0,
        seq=state.seq,
        error=error,
    )
