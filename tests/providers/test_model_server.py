"""The fake model server refuses what strict servers refuse, so that other tests may trust it."""

from typing import Any

import httpx
import pytest
from fakes.model_server import ModelServer
from fakes.openai_wire import wire_fault

USER = {"role": "user", "content": "Hi"}


def calls(*ids: str, **function: Any) -> dict[str, Any]:
    named = {"name": "f", "arguments": "{}"} | function
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": named} for id in ids],
    }


def tool(id: str, content: Any = "x") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def fault(*messages: dict[str, Any], **fields: Any) -> str | None:
    return wire_fault({"model": "m", "stream": True, "messages": list(messages)} | fields)


def test_a_valid_history_has_no_fault() -> None:
    system = {"role": "system", "content": "Be brief."}
    assert fault(system, USER, calls("a", "b"), tool("a"), tool("b"), USER) is None


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "no messages"),
        ([calls("a"), tool("a")], "first message"),
        ([USER, {"role": "assistant", "content": "Hi"}], "last message"),
        ([USER, USER], "user follows user"),
        ([USER, calls("a")], "tool call a has no result"),
        ([USER, calls("a"), USER], "tool call a has no result right after it"),
        ([USER, calls("a", "b"), tool("b"), tool("a")], "out of order"),
        ([USER, tool("a")], "without its call"),
        ([USER, calls("a", "a"), tool("a"), tool("a")], "used twice"),
        ([USER, calls("a", arguments={}), tool("a")], "arguments"),
        ([USER, calls("a", arguments=""), tool("a")], "arguments"),
        ([USER, calls("a", name=""), tool("a")], "no name"),
        ([USER, calls(), USER], "tool_calls is empty"),
        ([USER, {"role": "assistant", "content": " "}, USER], "blank"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "blank"),
        ([USER, calls("a"), tool("a", "")], "blank"),
        ([{"role": "user", "content": "\ud800"}], "surrogate"),
    ],
)
def test_a_fault_in_the_history_is_found(messages: list[dict[str, Any]], words: str) -> None:
    found = fault(*messages)
    assert found is not None
    assert words in found


def test_a_field_that_was_not_asked_for_is_a_fault() -> None:
    assert fault(USER, temperature=1) == "unknown field temperature"
    assert fault(USER, tools=[]) == "tools is empty"
    assert fault(USER, stream=False) is not None


def test_a_refused_request_uses_up_no_response(model_server: ModelServer) -> None:
    model_server.push({"content": [{"type": "text", "text": "ok"}]})
    url = f"{model_server.base_url}/chat/completions"
    refused = httpx.post(url, json={"model": "m", "stream": True, "messages": []})
    answered = httpx.post(url, json={"model": "m", "stream": True, "messages": [USER]})
    assert (refused.status_code, answered.status_code) == (400, 200)
    assert answered.text.endswith("data: [DONE]\n\n")
    assert model_server.faults == ["there are no messages"]
    assert model_server.unused == 0
