"""Tools whose names no server takes, with the loop on one side and each API's strict server on the other."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from agent.loop_host import FakeTool, MemoryHost
from e2e.every_api import MODELS, SERVERS
from fakes.model_server import ModelServer
from wire.scripts import reply, tool

from agentd.config.settings import ProviderSettings
from agentd.protocol.events import MessageUpdate, ToolExecutionStart
from agentd.providers.apis import open_provider
from agentd.providers.base import Model
from agentd.providers.tool_names import ToolNames

NAMES = (
    "mcp__server.with.dots__tool/with/slash and more than ninety characters, so that no server takes it all",
    "3d",
    "поиск",
    "echo",
)


class Stage:
    """A loop's host and the server that its model is at."""

    def __init__(self, api: str, server: ModelServer) -> None:
        self.server = server
        self.host = MemoryHost(tools=[FakeTool(name) for name in NAMES])
        self.host.model = Model("local", MODELS[api], max_output=4096)
        where = ProviderSettings("local", api, server.base_url)
        self.host.provider = open_provider(where, "sk-key")  # type: ignore[assignment]

    def said(self, number: int) -> str:
        """A request as it was sent."""
        return json.dumps(self.server.requests[number].body, ensure_ascii=False)


@pytest.fixture(params=list(SERVERS))
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with SERVERS[request.param]() as server:
        yield Stage(request.param, server)
        assert server.faults == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_tool_of_any_name_is_called_by_it(stage: Stage, name: str) -> None:
    sent = ToolNames(NAMES).sent(name)
    stage.server.push(reply(tool(sent, {"value": "x"}, "c1")), reply("done"))
    end = await stage.host.run()
    assert (end.stop_reason, end.turns) == ("stop", 2)
    assert stage.host.results == [("c1", "echo x", False)]
    started = [event for event in stage.host.events if isinstance(event, ToolExecutionStart)]
    assert [event.tool_name for event in started] == [name]
    told = {event.update.tool_name for event in stage.host.events if isinstance(event, MessageUpdate)}
    assert sent == name or sent not in told, "a client sees the tool's own name only"
    first = stage.said(0)
    assert all(f'"{ToolNames(NAMES).sent(each)}"' in first for each in NAMES)
    assert f'"{sent}"' in stage.said(1).replace("\\", "")
    await stage.host.provider.aclose()


async def test_a_history_of_tools_that_are_gone_is_still_a_valid_request(stage: Stage) -> None:
    names = ToolNames(NAMES)
    stage.server.push(
        reply(*(tool(names.sent(name), {"value": "x"}, f"c{n}") for n, name in enumerate(NAMES)))
    )
    stage.server.push(reply("done"), reply("gone"))
    assert (await stage.host.run()).stop_reason == "stop"
    stage.host.toolbox = type(stage.host.toolbox)(())
    assert (await stage.host.run("and now?")).stop_reason == "stop"
    assert all(names.sent(name) in stage.said(2) for name in NAMES)
    await stage.host.provider.aclose()


async def test_a_name_that_the_model_made_up_is_told_and_sent_back_as_one_that_servers_take(
    stage: Stage,
) -> None:
    made_up: Any = tool("no such.tool!", {}, "c1")
    stage.server.push(reply(made_up), reply("done"))
    assert (await stage.host.run()).stop_reason == "stop"
    ((_, text, is_error),) = stage.host.results
    assert is_error
    assert "no such.tool!" in text
    assert ToolNames(["no such.tool!"]).sent("no such.tool!") in stage.said(1)
    await stage.host.provider.aclose()
