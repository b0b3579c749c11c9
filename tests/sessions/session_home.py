"""Sessions with everything real but the model, the user and their tools: real journals in a real folder."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from agent.event_order import AnyEvent, assert_whole_run
from agent.loop_host import FakeTool
from anyio.abc import TaskGroup
from fakes import every_server

from agentd.agent.host import Engine
from agentd.config.checker_settings import Checker
from agentd.config.command_rules import CommandRules
from agentd.config.compaction_settings import CompactionSettings
from agentd.config.sources import Sources
from agentd.config.subagent_settings import SubagentSettings
from agentd.permissions.store import RuleStore
from agentd.protocol.errors import RpcError
from agentd.protocol.events import EventNotification, SessionChanged
from agentd.protocol.messages import CommandSubject, Effort, PermissionRequest
from agentd.protocol.methods import PermissionAnswer, PromptParams, SessionGetResult, SessionNewParams
from agentd.protocol.wire import Encoded
from agentd.providers.base import Model, Provider
from agentd.providers.scripted import Scripted
from agentd.sessions.house import House
from agentd.sessions.journal import read
from agentd.sessions.records import Entry, Reader
from agentd.sessions.session import Session
from agentd.sessions.store import Sessions
from agentd.tools.base import Toolbox
from agentd.workspace.editor import Disk

COMMAND = CommandSubject(command="make", cwd="/w")


def page_of(answer: SessionGetResult | Encoded | None) -> SessionGetResult:
    """What a reading answers, also where it comes as the journal holds it."""
    assert answer is not None
    return SessionGetResult.model_validate_json(answer.body) if isinstance(answer, Encoded) else answer


class FakeFace:
    """A client that notes what it is sent. `answer` is what its user says to questions."""

    def __init__(self) -> None:
        self.sent: list[EventNotification] = []
        self.asked: list[PermissionRequest] = []
        self.withdrawn: list[str] = []
        self.answer: Callable[[PermissionRequest], Awaitable[PermissionAnswer | None]] | None = None
        self._changed = anyio.Event()

    def publish(self, notification: EventNotification) -> None:
        self.sent.append(notification)
        self._changed.set()
        self._changed = anyio.Event()

    async def room(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def ask(self, request: PermissionRequest) -> PermissionAnswer | None:
        self.asked.append(request)
        try:
            if self.answer is None:
                await anyio.sleep_forever()
            return await self.answer(request)
        except anyio.get_cancelled_exc_class():
            self.withdrawn.append(request.request_id)
            raise

    async def until(self, kind: str, count: int = 1) -> EventNotification:
        """The `count`-th event of that type, waited for."""
        with anyio.fail_after(10):
            while len(found := [each for each in self.sent if each.event.type == kind]) < count:
                await self._changed.wait()
        return found[count - 1]

    @property
    def events(self) -> list[AnyEvent]:
        return [each.event for each in self.sent]


class FakeEngines:
    """Every model is played by the provider of tests, or by another one set for its name.

    `window` is the context window of the models that the former plays.
    """

    def __init__(self) -> None:
        self.window: int | None = None
        self.scripted = Scripted()
        self.others: dict[str, Provider] = {}
        self.windows: dict[str, int] = {}

    def engine(self, model: str | None, effort: Effort | None) -> Engine:
        provider, _, name = (model or "").partition("/")
        if provider in self.others:
            return Engine(Model(provider, name), self.others[provider], effort)
        if provider != "scripted":
            raise RpcError("noModel", f'There is no model "{model}".')
        return Engine(Model(provider, name, images=True, context_window=self.window), self.scripted, effort)

    def learn_window(self, model: Model, tokens: int) -> Model:
        self.windows[model.id] = tokens
        return replace(model, context_window=tokens)


class FakeSettings:
    """Settings that a test changes as it likes."""

    def __init__(self) -> None:
        self.trusted = True
        self.allow_full = True
        self.default_model: str | None = "scripted/none"
        self.default_mode: Any = "full"
        self.default_effort: Any = None
        self.max_turns: int | None = None
        self.problems: tuple[Any, ...] = ()
        self.written = CommandRules()
        self.compaction = CompactionSettings()
        self.subagents = SubagentSettings()

    def trusts(self, root: Path) -> bool:
        return self.trusted

    def rules(self, root: Path) -> CommandRules:
        return self.written

    def model_in(self, root: Path) -> str | None:
        return self.default_model

    def mode_in(self, root: Path) -> Any:
        return self.default_mode

    def effort_in(self, root: Path) -> Any:
        return self.default_effort

    def checkers_in(self, root: Path) -> tuple[Checker, ...]:
        return ()

    def max_turns_in(self, root: Path) -> int | None:
        return self.max_turns


class Home:
    """One process's sessions."""

    def __init__(self, folder: Path, tasks: TaskGroup, tools: Sequence[FakeTool]) -> None:
        self.folder = folder
        self.root = folder / "workspace"
        self.root.mkdir(parents=True, exist_ok=True)
        self.face = FakeFace()
        self.engines = FakeEngines()
        self.settings = FakeSettings()
        self.tools = list(tools)
        self.house = House(
            settings=self.settings,
            engines=self.engines,
            toolbox=Toolbox(tuple(tools)),
            face=self.face,
            editor=Disk(),
            environment={},
            sources=Sources(),
            start_soon=tasks.start_soon,
            rules=RuleStore(folder / "data" / "permissions"),
        )
        self.sessions = Sessions(folder / "data" / "sessions", self.house)
        self._scripts = 0

    def script(self, *responses: Any) -> str:
        """The name of a model that gives these responses: a text, or a response of a script."""
        self._scripts += 1
        path = self.folder / f"script{self._scripts}-{id(self)}.json"
        whole = [
            {"content": [{"type": "text", "text": each}]} if isinstance(each, str) else each
            for each in responses
        ]
        path.write_text(json.dumps(whole))
        return f"scripted/{path}"

    async def new(self, *responses: Any, **params: Any) -> Session:
        """A new session whose model gives these responses."""
        wanted = SessionNewParams(model=self.script(*responses), **params)
        made = await self.sessions.create(self.root, wanted)
        made.introduce()
        return made.session

    def journal(self, session_id: str) -> Path:
        (path,) = (self.folder / "data" / "sessions").glob(f"*/{session_id}.jsonl")
        return path

    async def close(self) -> None:
        await self.sessions.close_all("interrupted")


@asynccontextmanager
async def home(folder: Path, *tools: FakeTool, seconds: float = 30) -> AsyncIterator[Home]:
    """A process's sessions below `folder`; two after each other are two lives of one daemon."""
    with anyio.fail_after(seconds):
        async with anyio.create_task_group() as tasks:
            living = Home(folder, tasks, tools or (FakeTool(),))
            try:
                yield living
            finally:
                with anyio.CancelScope(shield=True):
                    await living.close()
                for request in living.engines.scripted.requests:
                    every_server.note(request)
                tasks.cancel_scope.cancel()


def prompt(text: Any = "go", **params: Any) -> PromptParams:
    return PromptParams(prompt=text, **params)


def tool_call(call_id: str = "a", name: str = "echo", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def calling(*calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    """A response of calls, behind a text."""
    said = [{"type": "text", "text": text}] if text else []
    return {"content": [*said, *calls]}


def entries(path: Path) -> list[Entry]:
    """What a journal tells, whole."""
    reader = Reader()
    told = [reader.entry(record) for record in read(path).records]
    return [entry for entry in told if entry is not None]


def assert_whole_journal(path: Path) -> list[Entry]:
    """The numbers have no gap, the session is introduced first, and every run is whole."""
    told = entries(path)
    assert [entry.seq for entry in told] == list(range(1, len(told) + 1))
    assert isinstance(told[0].event, SessionChanged)
    for prompt_id in dict.fromkeys(entry.prompt_id for entry in told if entry.prompt_id is not None):
        assert_whole_run([entry.event for entry in told if entry.prompt_id == prompt_id])
    return told
