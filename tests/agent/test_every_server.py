"""Whatever a loop asks a fake provider is read by a strict server of each API, in the form that it gets."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from agent.histories import answer, call, result, user
from agent.loop_host import FakeTool, MemoryHost, text
from fakes import every_server
from fakes.openai_wire import mistral_fault

from agentd.providers.apis import APIS
from agentd.providers.base import Model, ModelRequest, ToolSpec

SERVERS = set(every_server.SERVERS)
EVERY = {"scripted", *SERVERS}
"""All that have an eye on a request."""
GEMINI = {"gemini", "gemini, old schemas"}
"""The API that may do without ids: calls and results belong together by their names and places."""
RESPONSES = {"openai-responses", "openai-responses, strict"}
MODEL = Model("p", "m", images=True)


def asked(*messages: object, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(MODEL, "system", messages, tools)  # type: ignore[arg-type]


@pytest.fixture
def noted() -> Iterator[list[str]]:
    """What was noted, which is meant to be."""
    yield every_server.noted
    every_server.noted.clear()


@pytest.mark.parametrize(
    ("messages", "refused_by"),
    [
        ((user("go"), result("a", "of no call")), EVERY),
        ((user("go"), answer(call("a")), user("on")), EVERY),
        ((user("go"), answer(call("a"), call("a")), result("a", "x"), result("a", "x")), EVERY - GEMINI),
        ((user("go"), answer("said")), EVERY),
        ((), EVERY),
        ((user(" \n"),), EVERY - GEMINI),
        ((user("half \ud83d"),), EVERY),
        ((user("go"), answer(call("a", n=float("inf"))), result("a", "x")), SERVERS),
        (
            (user("go"), answer(call("a"), call("b")), result("b", "x"), result("a", "x")),
            EVERY - GEMINI - RESPONSES,
        ),
    ],
    ids=["orphan result", "call without result", "id twice", "assistant last", "nothing", "blank",
         "surrogate", "no number", "order"],
)  # fmt: skip
def test_what_a_real_server_refuses_is_refused(messages: tuple[object, ...], refused_by: set[str]) -> None:
    assert set(every_server.refusals(asked(*messages))) == refused_by


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "object", "properties": {"paths": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": ["array", "null"]}, {"type": "array"}]}}},
        {"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object"}]},
        {"type": "object", "properties": {}, "not": {"required": ["a"]}, "enum": [{}]},
        {
            "type": "object",
            "properties": {"m": {"type": "object", "additionalProperties": {"type": "array"}}},
        },
    ],
    ids=["nothing", "list", "lists in a choice", "choice at the top", "not and enum", "map of lists"],
)
def test_a_tool_of_any_schema_is_told_in_one_that_every_server_takes(
    parameters: dict[str, Any],
) -> None:
    tool = ToolSpec("odd", "A tool.", parameters)
    assert every_server.refusals(asked(user("go"), tools=(tool,))) == {}


def test_a_schema_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("openai_chat_request", "openai_responses_request"):
        monkeypatch.setattr(f"agentd.providers.{place}.function_parameters", lambda parameters: parameters)
    odd = ToolSpec("odd", "A tool.", {"type": "array", "items": {"type": "string"}})
    takes = {"anthropic", "gemini, old schemas"}  # whose providers say what is possible of any schema
    assert set(every_server.refusals(asked(user("go"), tools=(odd,)))) == SERVERS - takes


def test_there_is_a_server_of_each_api() -> None:
    assert {server.api for server in every_server.SERVERS.values()} == set(APIS)


def test_mistral_wants_ids_of_its_own_and_no_user_behind_a_result() -> None:
    request = asked(user("go"), answer(call("a-long-id")), result("a-long-id", "x"), user("on"))
    assert every_server.refusals(request) == {}
    sent = json.loads(every_server.sent_to("openai-chat", request).content)
    assert mistral_fault(sent) == "Unexpected role 'user' after role 'tool'"
    assert "length of 9" in (mistral_fault(sent | {"messages": sent["messages"][:-1]}) or "")


async def test_what_a_loop_asks_is_noted(noted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    host = MemoryHost(text("done"), tools=[FakeTool()])
    monkeypatch.setattr("agentd.agent.request.project", lambda *_, **__: (user("go"), result("a", "x")))
    await host.run()
    assert {line.partition(":")[0] for line in noted} == EVERY


async def test_what_is_valid_is_not(noted: list[str]) -> None:
    await MemoryHost(text("done"), tools=[FakeTool()]).run()
    assert noted == []
