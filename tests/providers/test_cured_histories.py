"""A server that refuses the form of what was said before is asked again in one that it takes.

Such a refusal ends a session for good, as every later request holds the same history. The words are those of
real servers.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from conversation import HELLO, assistant, call, fail, read, request, result, thinking, user
from fakes.model_server import ModelServer, Raw, Recorded, json_answer, sse

from agentd.providers.base import Model, ModelRequest, ProviderError
from agentd.providers.openai_chat import ChatDialect, OpenAIChat

Refuses = Callable[[list[dict[str, Any]]], bool]
Words = dict[str, Any]

THINKS = Model("local", "m", reasoning=True, efforts=("high",))
LONG = "c" * 50
BETWEEN = "After the optional system message, conversation roles must alternate user and assistant roles"


def said(message: str, **fields: Any) -> Words:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


def picky(refuses: Refuses, words: Words, status: int = 400) -> Callable[[Recorded], Any]:
    """A server's answer to each request: these words for a history that it does not take."""

    def answer(asked: Recorded) -> dict[str, Any] | Raw:
        return json_answer(words, status) if refuses(asked.body["messages"]) else HELLO

    return answer


def talked(field: str = "reasoning_content", call_id: str = "c1", extras: Any = ()) -> ModelRequest:
    """A request behind a call without a word, its result, and what the user said then."""
    kept = {"reasoningField": field, "callExtras": extras}
    thought = assistant(thinking("hm"), call(call_id), provider_data=kept)
    foreign = assistant(thinking("hm"), call("c2"), model="another")
    history = (user("Hi"), thought, result(call_id, "x"), foreign, result("c2", "y"), user("And?"))
    return request(*history, model=THINKS, effort="high")


def holds(name: str) -> Refuses:
    return lambda messages: any(name in message for message in messages)


def has_null(messages: list[dict[str, Any]]) -> bool:
    return any(message["content"] is None for message in messages)


def lacks_reasoning(messages: list[dict[str, Any]]) -> bool:
    return any("tool_calls" in message and not message.get("reasoning_content") for message in messages)


def lacks_signature(messages: list[dict[str, Any]]) -> bool:
    first = (message["tool_calls"][0] for message in messages if "tool_calls" in message)
    return any("extra_content" not in call for call in first)


def has_ids_over(limit: int) -> Refuses:
    return lambda messages: any(len(message.get("tool_call_id", "")) > limit for message in messages)


def has_other_ids(messages: list[dict[str, Any]]) -> bool:
    return any(len(message.get("tool_call_id", "123456789")) != 9 for message in messages)


def has_user_after_tool(messages: list[dict[str, Any]]) -> bool:
    roles = [message["role"] for message in messages]
    return ("tool", "user") in pairwise(roles)


EXTRA = "Extra inputs are not permitted"
HISTORIES: dict[str, tuple[ModelRequest, Refuses, Words, int]] = {
    "LM Studio": (
        talked(),
        has_null,
        {"error": "Invalid 'content': 'content' field must be a string or an array of objects."},
        400,
    ),
    "null, Ollama": (talked(), has_null, said("invalid message content type: <nil>"), 400),
    "null, typed": (
        talked(),
        has_null,
        {"detail": [{"loc": ["body", "messages", 2, "content"], "msg": "Input should be a valid string"}]},
        422,
    ),
    "Groq": (
        talked(),
        holds("reasoning_content"),
        said(
            "'messages.2' : for 'role:assistant' the following must be satisfied"
            "[('messages.2' : property 'reasoning_content' is unsupported)]"
        ),
        400,
    ),
    "Cerebras": (
        talked(),
        holds("reasoning_content"),
        {
            "message": "messages.2.assistant.reasoning_content: property "
            "'messages.2.assistant.reasoning_content' is unsupported",
            "type": "invalid_request_error",
            "param": "validation_error",
            "code": "wrong_api_format",
        },
        400,
    ),
    "Fireworks": (
        talked("reasoning"),
        holds("reasoning"),
        said(f"{EXTRA}, field: 'messages[2].reasoning', value: 'hm'"),
        400,
    ),
    "Mistral": (
        talked("reasoning"),
        holds("reasoning"),
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 2, "assistant", "reasoning"],
                     "msg": EXTRA}]},
        422,
    ),
    "Moonshot": (
        talked(),
        lacks_reasoning,
        said("thinking is enabled but reasoning_content is missing in assistant tool call message"),
        400,
    ),
    "DeepSeek": (
        talked("reasoning"),
        lacks_reasoning,
        said("The `reasoning_content` in the thinking mode must be passed back to the API."),
        400,
    ),
    "OpenRouter, another key": (
        talked("reasoning"),
        holds("reasoning"),
        said("Provider returned error", code=400, metadata={
            "raw": '{"message":"messages.1.content.0: Invalid `signature` in `thinking` block"}'}),
        400,
    ),
    "OpenRouter, Gemini": (
        talked("reasoning"),
        holds("reasoning"),
        said("Provider returned error", code=400, metadata={"raw": "Corrupted thought signature."}),
        400,
    ),
    "Gemini, calls of another model": (
        talked(),
        lacks_signature,
        said("Function call is missing a thought_signature in functionCall parts."),
        400,
    ),
    "Gemini, signed with another key": (
        talked(extras=[{"extra_content": {"google": {"thought_signature": "c3RhbGU="}}}]),
        lambda messages: "c3RhbGU=" in json.dumps(messages),
        said("Corrupted thought signature."),
        400,
    ),
    "ids of 40": (
        talked(call_id=LONG),
        has_ids_over(40),
        said("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum "
             "length 40, but got a string with length 50 instead.", code="string_above_max_length"),
        400,
    ),
    "ids of 64": (
        talked(call_id=LONG * 2),
        has_ids_over(64),
        said("Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum "
             "length 64, but got a string with length 100 instead.", code="string_above_max_length"),
        400,
    ),
    "vLLM with Mistral's rules": (
        talked(),
        has_other_ids,
        said("Tool call id was c1 but must be a-z, A-Z, 0-9, with a length of 9."),
        400,
    ),
    "a user behind a result": (
        talked(),
        has_user_after_tool,
        said("Unexpected role 'user' after role 'tool'"),
        400,
    ),
    "llama.cpp with Devstral": (
        talked(),
        has_user_after_tool,
        {"error": {"code": 500, "message": f"Jinja Exception: {BETWEEN}", "type": "server_error"}},
        500,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
async def test_a_history_that_is_refused_for_its_form_goes_out_in_another(name: str) -> None:
    asked, refuses, words, status = HISTORIES[name]
    with ModelServer([picky(refuses, words, status)], strict=False, repeat=True) as server:
        provider = OpenAIChat("local", server.base_url, None)
        for _ in range(2):
            assert (await read(provider, asked)).text == "Hello, world"
        await provider.aclose()
    sent = [request.body for request in server.requests]
    assert [refuses(body["messages"]) for body in sent] == [True, False, False]
    assert all(body["reasoning_effort"] == "high" for body in sent), "nothing else was given up"
    assert [message["role"] for message in sent[-1]["messages"] if message["role"] == "tool"] == ["tool"] * 2


async def test_each_part_of_a_history_may_be_refused_in_turn() -> None:
    whole = talked(call_id=LONG)
    answers = [
        picky(refuses, words, status)
        for _, refuses, words, status in (HISTORIES[name] for name in ("LM Studio", "Groq", "ids of 40"))
    ]

    def strictest(asked: Recorded) -> Any:
        return next((raw for raw in (answer(asked) for answer in answers) if isinstance(raw, Raw)), HELLO)

    with ModelServer([strictest], strict=False, repeat=True) as server:
        provider = OpenAIChat("local", server.base_url, None)
        assert (await read(provider, whole)).text == "Hello, world"
        await provider.aclose()
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("messages[2]: content is too long: at most 1000 characters", 400),
        ("the reasoning of this model is unsupported at the moment", 500),
        ("Jinja Exception: only user and assistant roles are supported", 500),
    ],
)
async def test_what_is_wrong_otherwise_is_an_error(message: str, status: int) -> None:
    with ModelServer([json_answer(said(message), status)], strict=False, repeat=True) as server:
        provider = OpenAIChat("local", server.base_url, None, dialect=ChatDialect(effort_form="none"))
        _, error = await fail(provider, talked())
    assert error.status == status
    assert len(server.requests) == 1


async def test_what_was_thought_goes_back_under_the_one_name_that_is_demanded() -> None:
    asked, refuses, words, status = HISTORIES["DeepSeek"]
    with ModelServer([picky(refuses, words, status)], strict=False, repeat=True) as server:
        provider = OpenAIChat("local", server.base_url, None)
        await read(provider, asked)
        await provider.aclose()
    own, foreign = (m for m in server.requests[-1].body["messages"] if m["role"] == "assistant")
    assert (own["reasoning_content"], "reasoning" in own) == ("hm", False)
    assert foreign["reasoning_content"] == " "
    assert "hm" not in json.dumps(foreign)


# --- a refusal inside an answer -------------------------------------------------------------------

JINJA = {"error": {"code": "server_error", "message": f"rpc error: Jinja Exception: {BETWEEN}"}}
INSIDE = {
    "LocalAI": (has_user_after_tool, JINJA),
    "OpenRouter": (
        holds("reasoning_content"),
        said("Provider returned error", code=400, metadata={
            "raw": f"{EXTRA}, field: 'messages[2].reasoning_content', value: {'x' * 400!r}"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
async def test_a_refusal_inside_an_answer_is_retryable_for_the_next_request_is_another(name: str) -> None:
    refuses, words = INSIDE[name]

    def answer(asked: Recorded) -> Any:
        return Raw(sse(words)) if refuses(asked.body["messages"]) else HELLO

    with ModelServer([answer], strict=False, repeat=True) as server:
        provider = OpenAIChat("local", server.base_url, None)
        _, error = await fail(provider, talked())
        assert error.retryable
        assert (await read(provider, talked())).text == "Hello, world"
        await provider.aclose()
    assert len(server.requests) == 2


async def test_two_answers_that_are_refused_inside_at_once_are_both_retryable() -> None:
    """The second was asked for before the first was heard, so its next request is another, too."""
    refuses, words = INSIDE["OpenRouter"]

    def answer(asked: Recorded) -> Any:
        return Raw(sse(words)) if refuses(asked.body["messages"]) else HELLO

    with ModelServer([answer], strict=False, repeat=True) as server:
        provider = OpenAIChat("local", server.base_url, None)
        async with provider.stream(talked()) as first, provider.stream(talked()) as second:
            for events in (first, second):
                with pytest.raises(ProviderError) as caught:
                    _ = [event async for event in events]
                assert caught.value.retryable
        assert (await read(provider, talked())).text == "Hello, world"
        await provider.aclose()


async def test_a_refusal_behind_words_of_an_answer_is_an_error() -> None:
    chunk = {"choices": [{"delta": {"content": "Well"}}]}
    words = said("messages.2.assistant.reasoning_content is unsupported")
    with ModelServer([Raw(sse(chunk, words))], strict=False) as server:
        reading, error = await fail(OpenAIChat("local", server.base_url, None), talked())
    assert reading.text == "Well"
    assert not error.retryable
