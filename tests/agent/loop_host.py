"""A host in memory for the loop, with a model that plays responses and tools that do as they are told.

Every wait of a run passes through `Host.wait`, which counts. So a test can act at the n-th wait, for every n,
and always at the same place.
"""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from agent.event_order import AnyEvent, assert_whole_run
from fakes import every_server

from agentd.agent.host import Engine, Verdict
from agentd.agent.images import SessionImages
from agentd.agent.loop import Loop
from agentd.agent.memory import current
from agentd.agent.prompt_cut import PromptWatch
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.sources import Sources
from agentd.protocol.events import AgentEnd, CompactionEnd, Memory, MessageEnd, PromptSettings
from agentd.protocol.messages import Message, TextContent, TodoItem, ToolCall, ToolResultMessage, UserMessage
from agentd.providers.base import (
    Model,
    ModelRequest,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from agentd.tools.base import Action, Description, Tool, Toolbox, ToolContext, ToolResult
from agentd.workspace.editor import Disk
from agentd.workspace.seen import SeenFiles

TIME = "2026-01-01T00:00:00.000Z"
Play = StreamEvent | BaseException | Callable[[], Awaitable[object]]
"""A step of a response: an event, an error to raise, or something to wait for."""


def text(said: str, size: int = 2) -> list[Play]:
    """A response that says this, in pieces."""
    return [*(TextDelta(0, said[i : i + size]) for i in range(0, len(said), size)), StreamEnd("stop")]


def calls(*wanted: tuple[str | None, str, str], stop: Any = "tool_use") -> list[Play]:
    """A response of tool calls: id, name, argument text."""
    return [
        *(ToolCallDelta(i, a, call_id, name) for i, (call_id, name, a) in enumerate(wanted)),
        StreamEnd(stop),
    ]


def thought(said: str) -> list[Play]:
    """A response of mere thinking."""
    return [ThinkingDelta(0, said), StreamEnd("stop")]


@dataclass
class FakeTool:
    """A tool that does what `run` does; `ran` counts how often."""

    name: str = "echo"
    run: Callable[[dict[str, Any], ToolContext], Awaitable[Any]] | None = None
    before: Callable[[dict[str, Any]], Awaitable[None]] | None = None
    parameters: dict[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {"value": {"type": "string"}}}
    )
    description: str = "A tool."
    kind: Any = "execute"
    subject: Any = None
    sandboxed: Any = None
    ran: list[dict[str, Any]] = field(default_factory=list)

    def describe(self, arguments: Mapping[str, Any], context: ToolContext) -> Description:
        return Description(title=f"{self.name} {arguments.get('value', '')}")

    async def prepare(self, arguments: dict[str, Any], context: ToolContext) -> Action:
        if self.before is not None:
            await self.before(arguments)

        async def run() -> ToolResult:
            self.ran.append(arguments)
            if self.run is None:
                return ToolResult.text(f"echo {arguments.get('value', '')}")
            made: ToolResult = await self.run(arguments, context)
            return made

        return Action(run, self.subject, sandboxed=self.sandboxed)


class FakeProvider:
    """Plays one response after another. `left` are those nobody asked for.

    No strict server of any API may refuse a request that it is asked.
    """

    def __init__(self, host: "MemoryHost", responses: Sequence[Sequence[Play]]) -> None:
        self._host = host
        self.left = [list(response) for response in responses]
        self.requests: list[ModelRequest] = []
        self.closed = 0

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[StreamEvent]]:
        self.requests.append(request)
        every_server.note(request)
        steps = self.left.pop(0)
        try:
            await self._host.wait()
            yield self._play(steps)
        finally:
            self.closed += 1

    async def _play(self, steps: Sequence[Play]) -> AsyncIterator[StreamEvent]:
        for step in steps:
            if isinstance(step, BaseException):
                raise step
            await self._host.wait()
            if callable(step):
                await step()
            else:
                yield step

    async def aclose(self) -> None:
        """Nothing is held."""


class MemoryHost:
    """`agent.host.Host` without a journal or a client."""

    def __init__(self, *responses: Sequence[Play], tools: Sequence[Tool] = ()) -> None:
        self.events: list[AnyEvent] = []
        self.messages: list[Message] = []
        self.memories: list[Memory] = []
        self.compaction = CompactionSettings()
        self.provider = FakeProvider(self, responses)
        self.model = Model("fake", "one")
        self.toolbox = Toolbox(tuple(tools))
        self.waits = 0
        self.at_wait: Callable[[int], None] = lambda number: None
        self.at_event: Callable[[AnyEvent], None] = lambda event: None
        self.verdict: Callable[[ToolCall], Awaitable[Verdict]] | None = None
        self.rooms = 0
        self.prompt_watch = PromptWatch()
        self.images = SessionImages()
        self.steers: list[str] = []
        self.clock = itertools.count()
        self._ids = itertools.count(1)
        self._call_ids: set[str] = set()
        self._tasks: anyio.abc.TaskGroup | None = None
        self.sources = Sources(
            now=lambda: TIME,
            monotonic=lambda: float(next(self.clock)),
            new_id=lambda prefix: f"{prefix}{next(self._ids)}",
        )

    async def wait(self) -> None:
        """A wait of the run, where a test may step in and a cancel may come."""
        self.waits += 1
        self.at_wait(self.waits)
        await anyio.lowlevel.checkpoint()

    @property
    def transcript(self) -> Sequence[Message]:
        return self.messages

    @property
    def memory(self) -> Memory | None:
        return current(self.memories, self.messages)

    @property
    def todo(self) -> Sequence[TodoItem]:
        return ()

    def place_of(self, uri: str) -> str:
        return uri

    def engine(self) -> Engine:
        return Engine(self.model, self.provider)

    def system_prompt(self) -> str:
        return "system"

    def unique_call_id(self, wanted: str | None) -> str:
        base = wanted or self.sources.new_id("call")
        unique, count = base, 1
        while unique in self._call_ids:
            count += 1
            unique = f"{base}~{count}"
        self._call_ids.add(unique)
        return unique

    def claim_steer(self) -> bool:
        return bool(self.steers)

    async def before_request(self) -> None:
        """Nobody has anything to say."""

    async def next_steer(self) -> UserMessage | None:
        if not self.steers:
            return None
        said = TextContent(text=self.steers.pop(0))
        return UserMessage(message_id=self.sources.new_id("u"), content=(said,), timestamp=TIME)

    def tool_context(self, output: Any) -> ToolContext:
        return ToolContext(Path("/"), Disk(), SeenFiles(), {}, output)

    async def room(self) -> None:
        self.rooms += 1
        await self.wait()

    def learn_window(self, model: Model, tokens: int) -> Model:
        self.model = replace(self.model, context_window=tokens)
        return replace(model, context_window=tokens)

    async def emit(self, event: AnyEvent, **_: Any) -> None:
        self.events.append(event)
        if isinstance(event, MessageEnd):
            self.messages.append(event.message)
        elif isinstance(event, CompactionEnd) and event.kept is not None and event.kept.memory is not None:
            self.memories.append(event.kept.memory)
        self.at_event(event)
        await self.wait()

    async def permit(self, call: ToolCall, tool: Tool, action: Action, title: str) -> Verdict:
        await self.wait()
        return await self.verdict(call) if self.verdict is not None else Verdict(allowed=True)

    def start_soon(self, function: Callable[..., Awaitable[Any]], *args: object) -> None:
        assert self._tasks is not None
        self._tasks.start_soon(function, *args)

    # --- for tests --------------------------------------------------------------------------------

    def loop(self, prompt: str | None = "go", max_turns: int = 100) -> Loop:
        """A run of this prompt."""
        user = None
        if prompt is not None:
            message_id = self.sources.new_id("u")
            user = UserMessage(message_id=message_id, content=(TextContent(text=prompt),), timestamp=TIME)
        return Loop(self, user, PromptSettings(model="fake/one", mode="ask"), max_turns)

    async def play(self, loop: Loop, *, after: Callable[[], None] = lambda: None) -> AgentEnd:
        """Run it to its end. `after` is called then; what outlives the run is waited for after that."""
        outcome: list[AgentEnd | Exception] = []
        with anyio.fail_after(20):
            async with anyio.create_task_group() as self._tasks:
                try:
                    outcome.append(await loop.run())
                except Exception as error:  # raised outside the group, which would wrap it
                    outcome.append(error)
                after()
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    async def run(self, prompt: str | None = "go", **options: Any) -> AgentEnd:
        """Run a prompt to its end, and look whether its events are in order."""
        start = len(self.events)
        end = await self.play(self.loop(prompt, **options))
        assert_whole_run(self.events[start:])
        return end

    @property
    def results(self) -> list[tuple[str, str, bool]]:
        """Each tool result of the transcript: its call, its text, whether it is an error."""
        return [
            (m.tool_call_id, "".join(getattr(b, "text", "<image>") for b in m.content), m.is_error)
            for m in self.messages
            if isinstance(m, ToolResultMessage)
        ]
