"""Runs the child sessions of a tool call: `tools.base.RunChild`.

A child is open for as long as its one prompt runs. How ever the call ends, the child's run is closed and what
it left in the background is stopped before the call comes back; only the daemon's death is quicker, and then
the child is closed like any session that a stopped daemon left open.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import anyio
from anyio import BrokenResourceError, ClosedResourceError, WouldBlock
from anyio.abc import ObjectReceiveStream

from agentd.agent.usage import add_spent, add_usage, spent
from agentd.protocol.errors import RpcError
from agentd.protocol.events import (
    CompactionEnd,
    DurableEvent,
    MessageEnd,
    Retry,
    SessionChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from agentd.protocol.messages import AssistantMessage, EditDetails, FileAction, Usage
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import PromptParams, PromptResult
from agentd.sessions.family import Delegated, Family, Parentage, together
from agentd.sessions.house import House
from agentd.sessions.journal import JournalError, read
from agentd.sessions.records import Reader
from agentd.sessions.run import Run
from agentd.sessions.session import Session
from agentd.sessions.submission import Submission
from agentd.tools.base import ChildAnswer, ChildTask, Toolbox
from agentd.tools.skill import SkillTool
from agentd.tools.task import Task, turns_told

log = logging.getLogger(__name__)

_MOST_STEPS = 64
"""Steps that wait to be told; where a client does not keep up, the others are not told."""

_SEPARATOR = "."
"""Between the id of a parent and what tells its child from others: no other session's id holds one."""
_END_SECONDS = 6.0
"""For the end of a child, whose cancel takes 4.5 at most; what hangs then is closed with the daemon."""

Tell = Callable[[str], Awaitable[None]]


class Nursery(Protocol):
    """Where child sessions begin and end."""

    async def begin_child(self, root: Path, info: SessionInfo, house: House, family: Family) -> Session:
        """A new session that clients have been told of. Raises `RpcError`."""
        ...

    async def end_child(self, session: Session) -> None:
        """Cancel what runs in it, stop what runs in its background, and let go of it."""
        ...


@dataclass
class _Watch:
    """What a child does, as its parent has to know of it; `over` is set once its tokens are used up."""

    max_tokens: int
    steps: Callable[[str], None]
    stop: Callable[[], None] = lambda: None
    tokens: int = 0
    changed: dict[str, FileAction] = field(default_factory=dict)
    over: bool = False

    def follow(self, event: DurableEvent) -> None:
        """Take the next event of the child's run."""
        if isinstance(event, ToolExecutionStart):
            self.steps(event.title)
        elif isinstance(event, Retry):
            self.steps(f"the model server failed, trying again: {event.reason}")
        elif isinstance(event, ToolExecutionEnd):
            _note_changes(self.changed, event)
        elif isinstance(event, TurnEnd):
            self._count(event.usage)
        elif isinstance(event, CompactionEnd):
            self._count(spent(event))

    def _count(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self.tokens += usage.total - usage.cache_read
        if self.tokens >= self.max_tokens:
            self.over = True
            self.stop()  # too late where this turn was the last


class ChildRuns:
    """`tools.base.RunChild` for the tool calls of one run."""

    def __init__(self, run: Run, root: Path, house: House, nursery: Nursery) -> None:
        self._run = run
        self._root = root
        self._house = house
        self._nursery = nursery

    @property
    def tools(self) -> tuple[str, ...]:
        """All tools of the parent but the one that makes children."""
        return tuple(tool.name for tool in self._run.toolbox.tools if tool.name != Task.name)

    async def __call__(self, task: ChildTask, tell: Tell) -> ChildAnswer:
        """See `RunChild`."""
        call_id = self._run.open_call
        parentage = self._run.parentage(call_id, task.description)
        try:
            session = await self._begin(task, parentage)
        except RpcError as error:
            return ChildAnswer("", problem=f"it could not begin: {error.message}")
        settings = self._house.settings.subagents
        async with _telling(tell) as steps:
            watch = _Watch(settings.max_tokens, steps)
            try:
                result = await self._prompt(session, task, watch)
            except RpcError as error:
                return ChildAnswer("", problem=f"it could not begin: {error.message}")
            finally:
                with anyio.move_on_after(_END_SECONDS, shield=True):
                    await self._nursery.end_child(session)
                self._run.delegations.add(call_id, session.state.usage, watch.changed)
            problem = _problem(result, watch)
            steps(f"done ({turns_told(result.turns)})" if problem is None else f"not done: {problem}")
        text = result.text if problem is None else _last_words(session)
        return ChildAnswer(text, result.turns, problem)

    async def _begin(self, task: ChildTask, parentage: Parentage) -> Session:
        house, engine, now = self._house, self._run.present_engine, self._house.sources.now()
        info = SessionInfo(
            session_id=f"{parentage.session_id}{_SEPARATOR}{house.sources.new_id('t')}",
            workspace_uri=self._run.workspace_uri,
            title=task.description,
            model=house.settings.subagents.model or engine.model.id,
            mode=parentage.mode(),
            effort=engine.effort,
            state="idle",
            parent=parentage.reference,
            created_at=now,
            updated_at=now,
            message_count=0,
            seq=1,
        )
        names = self.tools if task.tools is None else task.tools
        own = replace(house, toolbox=_narrowed(house.toolbox, names), gives_skills=SkillTool.name in names)
        return await self._nursery.begin_child(self._root, info, own, Family(parent=parentage))

    async def _prompt(self, session: Session, task: ChildTask, watch: _Watch) -> PromptResult:
        """Run the child's one prompt. Raises `RpcError` where it cannot begin."""

        def started(taken: Submission) -> None:
            watch.stop = taken.cancel
            taken.watch(watch.follow)

        settings = self._house.settings
        limits = [settings.subagents.max_turns, settings.max_turns_in(self._root)]
        params = PromptParams(prompt=task.prompt, max_turns=min(limit for limit in limits if limit))
        result = await session.prompts.prompt(params, started)
        assert isinstance(result, PromptResult)
        return result


def _problem(result: PromptResult, watch: _Watch) -> str | None:
    """Why a child is not done; None where it is."""
    if result.stop_reason == "stop":
        return None
    reason = result.error.message if result.error is not None else "it gave no reason."
    stopped = (
        f"it used up the {watch.max_tokens:,} tokens it may use." if watch.over else "the user stopped it."
    )
    return {
        "length": "its answer was cut by the model's output limit.",
        "refusal": f"the model refused: {reason}",
        "max_turns": f"it took all of the {result.turns} turns that it may take.",
        "error": f"it failed: {reason}",
        "aborted": stopped,
        "interrupted": "the daemon is ending.",
    }[result.stop_reason]


def _last_words(session: Session) -> str:
    """The last text that the model said, in whichever turn."""
    said = (each.text for each in reversed(session.messages) if isinstance(each, AssistantMessage))
    return next((text for text in said if text.strip()), "")


def children_of(journal: Path) -> list[str]:
    """The ids of the children of the session that has this journal, found without reading any. Blocks."""
    return sorted(path.stem for path in journal.parent.glob(f"{journal.stem}{_SEPARATOR}*{journal.suffix}"))


def delegated_by(journal: Path) -> dict[str, Delegated]:
    """What the children of each tool call of this session came to, as their own journals tell it. Blocks.

    For calls that a stopped daemon left open. A child whose journal cannot be read counts for nothing.
    """
    found: dict[str, Delegated] = {}
    for child in children_of(journal):
        call_id, usage, changed = None, None, dict[str, FileAction]()
        for event in _told_by(journal.with_stem(child)):
            if isinstance(event, SessionChanged) and event.session.parent is not None:
                call_id = event.session.parent.tool_call_id
            elif isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
                usage = add_usage(usage, event.message.usage)
            elif isinstance(event, CompactionEnd):
                usage = add_spent(usage, spent(event))
            elif isinstance(event, ToolExecutionEnd):
                _note_changes(changed, event)
        if call_id is not None:
            found[call_id] = found.get(call_id, Delegated()).with_child(usage, changed)
    return found


def _told_by(journal: Path) -> Iterator[DurableEvent]:
    """The events of a journal that can be read."""
    reader = Reader()
    try:
        records = read(journal).records
    except (JournalError, OSError) as error:
        log.warning("what a sub-agent did is not known: %s", error)
        return
    for record in records:
        with suppress(ValueError, KeyError, TypeError):
            if (entry := reader.entry(record)) is not None:
                yield entry.event


def _note_changes(changed: dict[str, FileAction], event: ToolExecutionEnd) -> None:
    """Add the files that a tool call changed."""
    if isinstance(event.result.details, EditDetails):
        for file in event.result.details.files:
            changed[file.uri] = together(changed.get(file.uri), file.action)


def _narrowed(toolbox: Toolbox, names: Collection[str]) -> Toolbox:
    """These tools of the toolbox, in its order."""
    return Toolbox(tuple(tool for tool in toolbox.tools if tool.name in names))


@asynccontextmanager
async def _telling(tell: Tell) -> AsyncIterator[Callable[[str], None]]:
    """A function that has steps told in their order and never waits. Leaving the block tells the rest."""
    send, receive = anyio.create_memory_object_stream[str](_MOST_STEPS)

    def step(text: str) -> None:
        try:
            send.send_nowait(text)
        except (WouldBlock, BrokenResourceError, ClosedResourceError):
            return  # told to nobody any more, or not now

    with receive:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_tell_all, receive, tell)
            with send:
                yield step


async def _tell_all(receive: ObjectReceiveStream[str], tell: Tell) -> None:
    async for text in receive:
        await tell(text)
