"""A server that refuses a field which an answer does not need is asked again without it, at once."""

from collections.abc import Iterator
from typing import Any

import pytest
from conversation import HELLO, READ, fail, read, request
from fakes.model_server import ModelServer, json_answer

from agentd.providers.base import Model
from agentd.providers.openai_chat import ChatDialect, OpenAIChat

LIMITED = Model("local", "m", max_output=100)
THINKS = Model("local", "m", reasoning=True, efforts=("high",))
CLAUDE = Model("local", "claude-x")
USE_THE_OTHER = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead."
)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server that takes every field but those that a test has it refuse."""
    with ModelServer(strict=False) as lenient:
        yield lenient


def said(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


def extra(field: str) -> dict[str, Any]:
    return {
        "detail": [
            {"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}
        ]
    }


@pytest.mark.parametrize(
    ("model", "flags", "status", "refusal", "refused", "instead"),
    [
        (LIMITED, {}, 400, said("Unknown field: stream_options"), "stream_options", None),
        (LIMITED, {}, 422, extra("stream_options"), "stream_options", None),
        (LIMITED, {}, 400, said(USE_THE_OTHER), "max_tokens", "max_completion_tokens"),
        (
            LIMITED,
            {"max_tokens_field": "max_completion_tokens"},
            422,
            extra("max_completion_tokens"),
            "max_completion_tokens",
            "max_tokens",
        ),
        (
            LIMITED,
            {"prompt_cache_key": True},
            400,
            said("property 'prompt_cache_key' is unsupported"),
            "prompt_cache_key",
            None,
        ),
        (CLAUDE, {"cache_markers": True}, 422, extra("cache_control"), "cache_control", None),
        (
            LIMITED,
            {"parallel_tool_calls": False},
            400,
            said("Unrecognized request argument supplied: parallel_tool_calls"),
            "parallel_tool_calls",
            None,
        ),
        (
            THINKS,
            {},
            400,
            said("`reasoning_effort` is not supported with this model"),
            "reasoning_effort",
            None,
        ),
        (THINKS, {"effort_form": "thinking"}, 400, said('"m" does not support thinking'), "thinking", None),
    ],
)
async def test_what_is_refused_is_left_out_from_then_on(
    server: ModelServer,
    model: Model,
    flags: dict[str, Any],
    status: int,
    refusal: dict[str, Any],
    refused: str,
    instead: str | None,
) -> None:
    server.push(json_answer(refusal, status), HELLO, HELLO)
    provider = OpenAIChat("local", server.base_url, None, dialect=ChatDialect(**flags))
    for _ in range(2):
        asked = request(model=model, effort="high" if model.efforts else None)
        assert (await read(provider, asked)).text == "Hello, world"
    await provider.aclose()
    bodies = [sent.body for sent in server.requests]
    assert [refused in body for body in bodies] == [True, False, False]
    if instead is not None:
        assert [body.get(instead) for body in bodies] == [None, 100, 100]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported value: 'stream' does not support true with this model.",
        "Streaming is not supported with tools",
        "This model doesn't support streaming.",
        "tools are only allowed with stream: false",
        "stream must be false when tools are given",
    ],
)
async def test_a_server_that_does_not_stream_is_asked_for_all_at_once_from_then_on(
    server: ModelServer, message: str
) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}]
    whole = {
        "message": {"role": "assistant", "content": "Hm", "tool_calls": calls},
        "finish_reason": "tool_calls",
    }
    answer = json_answer({"choices": [whole], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}, 200)
    server.push(json_answer(said(message), 400), answer, answer)
    provider = OpenAIChat("local", server.base_url, None)
    for _ in range(2):
        reading = await read(provider)
        assert (reading.text, len(reading.calls), reading.end.stop) == ("Hm", 1, "tool_use")
        assert reading.end.usage is not None
    await provider.aclose()
    assert [sent.body["stream"] for sent in server.requests] == [True, False, False]
    assert "stream_options" not in server.requests[-1].body


async def test_a_role_that_is_refused_is_the_ordinary_one_from_then_on(server: ModelServer) -> None:
    refusal = said("Unsupported value: 'messages[0].role' does not support 'developer' with this model.")
    server.push(json_answer(refusal, 400), HELLO)
    provider = OpenAIChat("local", server.base_url, None, dialect=ChatDialect(system_role="developer"))
    assert (await read(provider, request(model=THINKS))).text == "Hello, world"
    await provider.aclose()
    assert [sent.body["messages"][0]["role"] for sent in server.requests] == ["developer", "system"]


@pytest.mark.parametrize(
    ("messages", "requests"),
    [
        ([USE_THE_OTHER, "Unknown field: max_completion_tokens; it is max_tokens here"], 2),
        (["max_tokens is too large: 100. This model supports at most 10 completion tokens."], 1),
        (["messages[1].content: not supported"], 1),
        (["the upstream connection was refused: not supported"], 1),
    ],
)
async def test_a_server_that_wants_it_neither_way_is_an_error_and_not_asked_for_ever(
    server: ModelServer, messages: list[str], requests: int
) -> None:
    server.push(*(json_answer(said(message), 400) for message in messages))
    _, error = await fail(OpenAIChat("local", server.base_url, None), request(model=LIMITED, tools=(READ,)))
    assert (error.kind, error.status) == ("bad_request", 400)
    assert len(server.requests) == requests


async def test_what_one_model_refuses_another_is_still_sent(server: ModelServer) -> None:
    server.push(json_answer(said(USE_THE_OTHER), 400), HELLO, HELLO)
    provider = OpenAIChat("local", server.base_url, None)
    for name in ("m", "n"):
        await read(provider, request(model=Model("local", name, max_output=100)))
    await provider.aclose()
    assert ["max_tokens" in sent.body for sent in server.requests] == [True, False, True]
