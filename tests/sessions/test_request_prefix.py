"""Whatever happens in a session, each request begins with the one before it, to the byte, for every API.

The sessions are real, and so are the servers of all four APIs behind their sockets. Hypothesis says what the
model answers and what the user does meanwhile: calls side by side, to-do lists, thoughts, failures and second
tries, steers, cancels in an answer and in a tool, and restarts. Only a compaction may begin anew, and none is
needed here.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import anyio.to_thread
import pytest
from agent.loop_host import FakeTool
from e2e.every_api import MODELS, SERVERS
from fakes.model_server import ModelServer
from fakes.prefix import assert_each_begins_with_the_one_before
from hypothesis import HealthCheck, Phase, event, example, given, settings
from hypothesis import strategies as st
from sessions.prompting import later
from sessions.session_home import Home, home, prompt
from wire.scripts import reply, tool

from agentd.agent.host import Engine
from agentd.config.settings import ProviderSettings
from agentd.protocol.messages import Effort
from agentd.providers.apis import open_provider
from agentd.providers.base import Model
from agentd.tools.base import ToolResult
from agentd.tools.todo import TodoRead, TodoWrite

PHASES = [phase for phase in Phase if phase is not Phase.explain]  # which takes minutes
THOUGHT = {"type": "thinking", "text": "let me see é😀"}
PLAN = {"items": [{"text": "look", "status": "in_progress"}, {"text": "tell", "status": "pending"}]}
BUSY = {"kind": "overloaded", "message": "busy", "retryAfterMs": 0}

calls = st.sampled_from(
    [
        ("echo", {"value": "x"}),
        ("echo", '{"value": "half \\ud83d, é😀"}'),
        ("echo", '{"value": "bro'),
        ("fail", {}),
        ("missing", {}),
        ("todo_write", PLAN),
        ("todo_write", {"items": []}),
        ("todo_read", {}),
        ("steer", {}),
    ]
)
said = st.lists(st.sampled_from(["so ", "é😀\u2028 ", " \n"]), max_size=1)
thoughts = st.lists(st.just(THOUGHT), max_size=1)
several = st.lists(calls, min_size=1, max_size=3)
turns = st.builds(lambda t, s, c: ("calls", [*t, *s], c), thoughts, said, several)
retries = st.builds(lambda s: ("retry", s, []), said)
ends = st.one_of(
    st.builds(lambda t, s: ("answer", [*t, *s, "done"], []), thoughts, said),
    st.sampled_from(
        [
            ("answer", [THOUGHT], []),
            ("cut", ["a long ans"], []),
            ("refuses", ["I will not"], []),
            ("fails", [], []),
            ("fails", ["half"], []),
            ("hangs", ["so far"], []),
            ("hangs", [], []),
            ("stops", [], []),
        ]
    ),
)
runs = st.tuples(st.lists(st.one_of(turns, turns, retries), max_size=3), ends)
lives = st.lists(st.lists(runs, min_size=1, max_size=2), min_size=1, max_size=2)
"""For each life of a daemon its prompts, each with the turns of the model and how that comes to its end."""


WORK = ("calls", [THOUGHT, "so "], [("echo", {"value": "x"}), ("todo_write", PLAN), ("missing", {})])
STEER = ("calls", [], [("steer", {}), ("fail", {})])
DONE = ("answer", [THOUGHT, "done"], [])
EVERYTHING = [
    [
        ([WORK, ("retry", ["so "], []), STEER], DONE),
        ([WORK], ("cut", ["a long ans"], [])),
        ([], ("hangs", [], [])),
        ([WORK], ("hangs", ["so far"], [])),
        ([WORK], ("stops", [], [])),
    ],
    [([], ("fails", ["half"], [])), ([STEER], ("refuses", ["I will not"], [])), ([WORK], DONE)],
    [([], ("fails", [], [])), ([WORK, STEER], ("answer", [THOUGHT], [])), ([WORK], DONE)],
]
"""Each of it once, in three lives."""


class Stage:
    """A session in one life of a daemon, with a server of one API behind its model."""

    def __init__(self, api: str, server: ModelServer, living: Home) -> None:
        self.api, self.server, self.living = api, server, living
        self.ids = 0
        self.session: Any = None
        where = ProviderSettings("local", api, server.base_url)
        self.provider = open_provider(where, "sk-key")
        living.engines.engine = self.engine  # type: ignore[method-assign]

    def engine(self, model: str | None, effort: Effort | None) -> Engine:
        known = Model("local", MODELS[self.api], 200_000, 4096, images=True, reasoning=True)
        return Engine(known, self.provider, effort)

    def responses(self, kind: str, blocks: list[Any], wanted: Any) -> Iterator[dict[str, Any]]:
        """What the server plays for one turn."""
        made = []
        for name, arguments in wanted:
            self.ids += 1
            form = "rawArguments" if isinstance(arguments, str) else "arguments"
            made.append(tool(name, {}, f"c{self.ids}") | {form: arguments})
        if kind in ("calls", "answer"):
            yield reply(*blocks, *made)
        elif kind == "retry":
            yield reply(*blocks, error=BUSY)
        elif kind == "cut":
            yield reply(*blocks, stopReason="length")
        elif kind == "refuses":
            yield reply(*blocks, stopReason="refusal")
        elif kind == "fails":
            yield reply(*blocks, error={"kind": "auth", "message": "no key"})
        elif kind == "hangs":
            yield reply(*blocks, hang=True)
        else:
            self.ids += 1
            waits = tool("echo", {"value": "y"}, f"e{self.ids}"), tool("stop", {}, f"s{self.ids}")
            yield reply("I wait", *waits)

    async def run(self, number: int, run: Any) -> None:
        """A prompt and its end, with a cancel where the model would come to none."""
        between, end = run
        self.server.push(*(each for turn in (*between, end) for each in self.responses(*turn)))
        running = later(self.living, self.session, f"prompt {number}", prompt_id=f"p{number}")
        if end[0] == "hangs":
            await anyio.to_thread.run_sync(self.server.wait_for_last)
            await self.session.cancel()
        await running.result()
        event(f"ended by {end[0]}")
        assert self.server.unused == 0


def tools(stage: list[Stage]) -> list[Any]:
    async def steer(arguments: Any, context: Any) -> Any:
        await stage[-1].session.prompt(prompt("by the way", when_busy="steer", wait="accepted"))
        return ToolResult.text("steered")

    async def stop(arguments: Any, context: Any) -> Any:
        stage[-1].living.house.start_soon(stage[-1].session.cancel)
        await anyio.sleep_forever()

    async def fail(arguments: Any, context: Any) -> Any:
        raise RuntimeError("broken")

    return [
        FakeTool("echo"),
        FakeTool("fail", run=fail),
        FakeTool("steer", run=steer),
        FakeTool("stop", run=stop),
        TodoWrite(),
        TodoRead(),
    ]


async def live(api: str, server: ModelServer, plan: Any, folder: Path) -> None:
    session_id, number, stage = None, 0, list[Stage]()
    for prompts in plan:
        async with home(folder, *tools(stage)) as living:
            here = Stage(api, server, living)
            stage.append(here)
            here.ids = number * 1000
            if session_id is None:
                here.session = await living.new()
                session_id = here.session.session_id
            else:
                here.session = await living.sessions.open(session_id)
            for run in prompts:
                number += 1
                await here.run(number, run)
            await here.provider.aclose()


@pytest.fixture(scope="module", params=list(SERVERS))
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, ModelServer]]:
    with SERVERS[request.param]() as server:
        yield request.param, server


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
@given(lives)
@example(EVERYTHING)
def test_requests_only_grow(served: tuple[str, ModelServer], plan: Any) -> None:
    api, server = served
    server.start_anew()
    at_once = mock.patch("agentd.agent.retry._FIRST_SECONDS", 0.0)
    with tempfile.TemporaryDirectory() as folder, at_once:
        anyio.run(live, api, server, plan, Path(folder))
    assert server.faults == []
    assert_each_begins_with_the_one_before(api, [request.raw for request in server.requests], merges=True)
