"""The fake of Anthropic's server refuses what the real one refuses, and plays what its script says."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fakes.anthropic_faults import request_fault, sign
from fakes.anthropic_server import AnthropicServer

HEADERS = {"anthropic-version": "2023-06-01"}
MODEL = "claude-opus-4-8"
MARK = {"cache_control": {"type": "ephemeral"}}
Spoil = Callable[[dict[str, Any]], Any]


def good() -> dict[str, Any]:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": sign(MODEL, "Hm.")}
    return {
        "model": MODEL,
        "max_tokens": 100,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."} | MARK],
        "tools": [{"name": "t", "description": "", "input_schema": {"type": "object"}} | MARK],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"} | MARK]},
            {
                "role": "assistant",
                "content": [
                    thought,
                    {"type": "text", "text": "So: "},
                    {"type": "tool_use", "id": "a", "name": "t", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "t", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "1"}]},
                    {"type": "tool_result", "tool_use_id": "b", "content": []},
                    {"type": "text", "text": "And?"} | MARK,
                ],
            },
        ],
    }


def content(body: dict[str, Any], turn: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body["messages"][turn]["content"]
    return found


SPOILT: dict[str, tuple[Spoil, str]] = {
    "no limit": (lambda body: body.pop("max_tokens"), "max_tokens"),
    "sampling": (lambda body: body.update(temperature=1), "temperature"),
    "no tools in the list": (lambda body: body.update(tools=[]), "tools"),
    "a choice at the top": (lambda body: body["tools"][0]["input_schema"].update(anyOf=[]), "top level"),
    "a schema of no object": (lambda body: body["tools"][0].update(input_schema={}), "input_schema"),
    "a tool's name": (lambda body: body["tools"][0].update(name="a.b"), "name"),
    "two tools of one name": (lambda body: body["tools"].append(body["tools"][0]), "unique"),
    "a fifth marker": (lambda body: content(body, 1)[1].update(MARK), "maximum of 4"),
    "a marked thought": (lambda body: (body.pop("tools"), content(body, 1)[0].update(MARK)), "thinking"),
    "empty text": (lambda body: content(body, 0)[0].update(text=""), "non-empty"),
    "blank text": (lambda body: content(body, 0)[0].update(text=" \n"), "non-whitespace"),
    "a blank system": (lambda body: body["system"][0].update(text=" "), "system"),
    "an empty message": (lambda body: content(body, 0).clear(), "non-empty content"),
    "text as mere text": (lambda body: body["messages"][0].update(content=""), "non-empty content"),
    "two answers in a row": (lambda body: body["messages"].insert(2, body["messages"][1]), "alternate"),
    "the assistant first": (lambda body: body["messages"].pop(0), "first message"),
    "the assistant last": (lambda body: body["messages"].pop(), "prefill"),
    "a missing result": (lambda body: content(body, 2).pop(1), "immediately after: b"),
    "no results": (lambda body: content(body, 2)[0:2] and content(body, 2).__delitem__(slice(2)), "a, b"),
    "swapped results": (lambda body: content(body, 2).insert(0, content(body, 2).pop(1)), "misplaced"),
    "a result twice": (lambda body: content(body, 2).insert(0, content(body, 2)[0]), "repeated"),
    "text before results": (lambda body: content(body, 2).insert(0, content(body, 2).pop()), "come first"),
    "text after a call": (lambda body: content(body, 1).append(content(body, 1).pop(1)), "may follow"),
    "an id twice": (lambda body: content(body, 1)[3].update(id="a"), ""),
    "an odd id": (lambda body: content(body, 1)[2].update(id="a~2"), "pattern"),
    "input as text": (lambda body: content(body, 1)[2].update(input="{}"), "dictionary"),
    "no signature": (lambda body: content(body, 1)[0].update(signature=""), "signature"),
    "an altered thought": (lambda body: content(body, 1)[0].update(thinking="Hm"), "signature"),
    "a budget for a new model": (
        lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000),
        "adaptive",
    ),
    "an odd image": (
        lambda body: content(body, 0).append({"type": "image", "source": {"media_type": "image/bmp"}}),
        "media_type",
    ),
    "an image in a failed result": (
        lambda body: content(body, 2)[0].update(
            is_error=True, content=[{"type": "image", "source": {"media_type": "image/png"}}]
        ),
        "is_error",
    ),
    "a call by the user": (lambda body: content(body, 0).append(content(body, 1)[2]), "unexpected block"),
}


def test_a_good_request_has_no_fault() -> None:
    assert request_fault(HEADERS, good()) is None


@pytest.mark.parametrize("name", SPOILT)
def test_a_request_with_a_fault_is_refused(name: str) -> None:
    spoil, words = SPOILT[name]
    body = json.loads(json.dumps(good()))
    spoil(body)
    fault = request_fault(HEADERS, body)
    assert fault is not None
    assert words in fault


@pytest.mark.parametrize(
    ("model", "fields", "words"),
    [
        ("claude-opus-4-6", {"output_config": {"effort": "xhigh"}}, "xhigh"),
        ("claude-sonnet-4-5", {"thinking": {"type": "adaptive"}}, "adaptive"),
        ("claude-fable-5-1", {"thinking": {"type": "adaptive", "block_binding": {}}}, "Extra inputs"),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1000}}, "1024"),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 4000}}, "max_tokens"),
        (
            "claude-sonnet-4-5",
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            "must start with",
        ),
    ],
)
def test_thinking_must_fit_the_model(model: str, fields: dict[str, Any], words: str) -> None:
    body = good() | {"model": model, "max_tokens": 4000, "thinking": {"type": "adaptive"}} | fields
    content(body, 1).pop(0)
    fault = request_fault(HEADERS, body)
    assert fault is not None
    assert words in fault


def test_a_model_that_is_not_asked_to_think_must_not_see_thinking() -> None:
    body = good() | {"model": "claude-sonnet-4-5"}
    content(body, 1)[0]["signature"] = sign("claude-sonnet-4-5", "Hm.")
    assert "cannot contain" in (request_fault(HEADERS, body) or "")


async def test_the_server_refuses_a_fault_and_keeps_its_script() -> None:
    with AnthropicServer([{"content": [{"type": "text", "text": "Hi"}]}]) as server:
        async with httpx.AsyncClient(base_url=server.base_url) as client:
            unversioned = await client.post("/v1/messages", json=good())
            refused = await client.post("/v1/messages", json={}, headers=HEADERS)
            missing = await client.post("/messages", json=good(), headers=HEADERS)
            answer = await client.post("/v1/messages", json=good(), headers=HEADERS)
        assert [unversioned.status_code, refused.status_code, missing.status_code] == [400, 400, 404]
        assert refused.json()["error"]["type"] == "invalid_request_error"
        assert len(server.faults) == 2
        assert '"text_delta"' in answer.text
        assert "event: message_stop" in answer.text
