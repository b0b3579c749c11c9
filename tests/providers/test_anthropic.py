"""The provider of the Messages API against a real, strict HTTP server."""

import json
from collections.abc import Iterator
from typing import Any

import anyio
import conversation
import pytest
from conversation import HELLO, KEY, PIXEL, Reading, assistant, call, read, request, result, thinking, user
from fakes.anthropic_faults import sign
from fakes.anthropic_server import AnthropicServer, begin, delta, end, finish, start, stream
from fakes.model_server import EVENT_STREAM, Raw, json_answer

from agentd.providers.anthropic import Anthropic, Dialect, Timeouts
from agentd.providers.base import Model, ProviderError, TextDelta

MODEL = Model("local", "claude-opus-4-8", images=True)
ASKED = request(model=MODEL)
SAID = [begin(0, {"type": "text", "text": ""}), delta(0, "text_delta", text="Hi")]
WHOLE = stream(start(), *SAID, end(0), finish())


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with AnthropicServer() as server:
        yield server


async def ask(server: AnthropicServer, asked: Any = ASKED, **fields: Any) -> Reading:
    provider = Anthropic("local", server.base_url, KEY, **fields)
    try:
        return await read(provider, asked)
    finally:
        await provider.aclose()


async def fail(provider: Anthropic, asked: Any = ASKED) -> tuple[Reading, ProviderError]:
    return await conversation.fail(provider, asked)


# --- what is sent and read ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/messages", "/proxy/anthropic", "/x/v1/"])
async def test_an_answer_streams_from_a_base_url_however_it_ends(server: AnthropicServer, path: str) -> None:
    server.push(HELLO | {"usage": {"input": 7, "output": 5, "cacheRead": 2, "cacheWrite": 1}})
    provider = Anthropic("local", server.base_url + path, KEY)
    reading = await read(provider, ASKED)
    await provider.aclose()
    assert [event.text for event in reading.events if isinstance(event, TextDelta)][:2] == ["He", "ll"]
    assert (reading.text, reading.end.stop, reading.end.raw_stop) == ("Hello, world", "stop", "end_turn")
    assert reading.end.usage is not None
    assert (reading.end.usage.input, reading.end.usage.cache_read, reading.end.usage.total) == (7, 2, 15)
    sent = server.requests[0]
    assert sent.path.endswith("/v1/messages")
    assert sent.path.count("v1") == sent.path.count("messages") == 1
    assert sent.headers["x-api-key"] == KEY
    assert sent.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in sent.headers
    assert "anthropic-beta" not in sent.headers
    assert not server.faults


async def test_a_dialect_has_its_own_headers(server: AnthropicServer) -> None:
    server.push(HELLO)
    await ask(server, dialect=Dialect(auth="bearer", version="2024-01-01", betas=("a-1", "b-2")))
    sent = server.requests[0].headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert (sent["anthropic-version"], sent["anthropic-beta"]) == ("2024-01-01", "a-1,b-2")
    assert "x-api-key" not in sent


@pytest.mark.parametrize("auth", ["x-api-key", "bearer"])
async def test_without_a_key_none_is_sent(server: AnthropicServer, auth: Any) -> None:
    server.push(HELLO)
    provider = Anthropic("local", server.base_url, None, dialect=Dialect(auth=auth))
    await read(provider, ASKED)
    await provider.aclose()
    assert not {"x-api-key", "authorization"} & set(server.requests[0].headers)


@pytest.mark.parametrize(("name", "effort"), [("claude-opus-4-8", "high"), ("claude-sonnet-4-5", "low")])
async def test_a_thought_out_tool_turn_goes_back_as_the_server_signed_it(
    server: AnthropicServer, name: str, effort: Any
) -> None:
    server.push(
        {
            "content": [
                {"type": "thinking", "text": "Let me see.\n"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_call", "id": "toolu_1", "name": "read_file", "arguments": {"path": "ä"}},
                {"type": "tool_call", "id": "toolu_2", "name": "read_file"},
            ]
        },
        HELLO,
    )
    model = Model("local", name, images=True)
    provider = Anthropic("local", server.base_url, KEY)
    first = await read(provider, request(model=model, effort=effort))
    assert first.thinking == "Let me see.\n"
    assert first.calls == [
        {"id": "toolu_1", "name": "read_file", "arguments": '{"path": "ä"}'},
        {"id": "toolu_2", "name": "read_file", "arguments": ""},
    ]
    answer = assistant(
        thinking("Let me see.\n"),
        "Reading.",
        call("toolu_1", path="ä"),
        call("toolu_2"),
        model=name,
        provider_data=json.loads(json.dumps(first.end.provider_data)),
    )
    history = (user("Hi"), answer, result("toolu_1", "x", PIXEL), result("toolu_2", "gone", is_error=True))
    await read(provider, request(*history, model=model, effort=effort))
    await provider.aclose()
    assert not server.faults
    sent = server.requests[1].body["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["thinking", "text", "tool_use", "tool_use"]


async def test_a_history_of_another_model_makes_a_valid_request(server: AnthropicServer) -> None:
    server.push(HELLO)
    answer = assistant(
        thinking("Hm."), call("functions.read:0"), model="kimi", provider_data={"reasoningField": "reasoning"}
    )
    await ask(server, request(user("Hi"), answer, result("functions.read:0", "1"), model=MODEL, effort="low"))
    assert not server.faults


@pytest.mark.parametrize(("name", "effort"), [("claude-opus-4-8", "high"), ("claude-sonnet-4-5", "low")])
async def test_thinking_that_the_server_does_not_know_again_does_not_end_the_session(
    server: AnthropicServer, name: str, effort: Any
) -> None:
    server.push(HELLO)
    places = [{"type": "text"}, {"type": "tool_use"}]
    stale = {"blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "c3RhbGU="}, *places]}
    answer = assistant("So: ", call("toolu_1"), model=name, provider_data=stale)
    asked = request(user("Hi"), answer, result("toolu_1", "x"), model=Model("local", name), effort=effort)
    assert (await ask(server, asked)).text == "Hello, world"
    assert ["signature" in fault for fault in server.faults] == [True]
    first, second = (sent.body["messages"][1]["content"] for sent in server.requests)
    assert first[0]["type"] == "thinking"
    assert second == first[1:]


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
    ],
)
async def test_a_second_refusal_of_thinking_is_an_error(server: AnthropicServer, words: str) -> None:
    error = {"type": "invalid_request_error", "message": words}
    server.push(*[json_answer({"type": "error", "error": error}, 400)] * 3)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": sign(MODEL.name, "Hm.")}
    kept = {"blocks": [thought, {"type": "text"}]}
    answer = assistant("So: ", model=MODEL.name, provider_data=kept)
    asked = request(user("Hi"), answer, user("And?"), model=MODEL)
    _, failure = await fail(Anthropic("local", server.base_url, KEY), asked)
    assert (failure.kind, len(server.requests)) == ("bad_request", 2)


async def test_a_model_that_binds_its_thinking_gets_the_beta_that_the_field_needs(
    server: AnthropicServer,
) -> None:
    server.push(HELLO)
    await ask(server, request(model=Model("local", "claude-fable-5-1")))
    assert not server.faults
    assert server.requests[0].headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"


async def test_a_second_request_finds_the_connection_of_the_first_open(server: AnthropicServer) -> None:
    server.push(HELLO, HELLO)
    provider = Anthropic("local", server.base_url, KEY)
    await read(provider, ASKED)
    await read(provider, ASKED)
    await provider.aclose()
    first, second = server.requests
    assert first.connection == second.connection


async def test_a_body_cut_at_every_byte_says_the_same(server: AnthropicServer) -> None:
    words = delta(0, "text_delta", text="你好🌍")
    server.push(Raw(stream(start(), SAID[0], words, finish()), chunk=1))
    assert (await ask(server)).text == "你好🌍"


async def test_a_server_that_does_not_stream_is_read_too(server: AnthropicServer) -> None:
    message = {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    server.push(json_answer(message))
    assert (await ask(server)).text == "Hi"


# --- how a stream ends ----------------------------------------------------------------------------


async def test_message_stop_ends_the_answer_though_the_server_keeps_the_connection(
    server: AnthropicServer,
) -> None:
    server.push(Raw(WHOLE, linger=True))
    with anyio.fail_after(5):
        assert (await ask(server)).text == "Hi"
    server.wait_for_disconnects()


async def test_a_connection_that_breaks_after_message_stop_is_no_error(server: AnthropicServer) -> None:
    server.push(Raw(WHOLE + b"event: x", cut_after=len(WHOLE) + 3))
    assert (await ask(server)).end.stop == "stop"


OPEN = stream(start(), *SAID, stop=False)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Raw(b""), ""),
        (Raw(OPEN), "Hi"),
        (Raw(WHOLE, cut_after=len(OPEN)), "Hi"),
        (Raw(WHOLE, cut_after=0), ""),
        (Raw(stream(start(), *SAID, end(0), finish(), stop=False)), "Hi"),
    ],
    ids=["empty", "ends early", "breaks in the middle", "breaks at once", "ends before its end mark"],
)
async def test_a_clean_end_and_a_broken_connection_are_both_truncation(
    server: AnthropicServer, answer: Raw, said: str
) -> None:
    server.push(answer)
    reading, error = await fail(Anthropic("local", server.base_url, KEY))
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message
    assert reading.text == said


async def test_an_error_after_text_is_told_after_the_text(server: AnthropicServer) -> None:
    server.push(HELLO | {"error": {"kind": "overloaded", "message": "Overloaded"}})
    reading, error = await fail(Anthropic("local", server.base_url, KEY))
    assert reading.text == "Hello, world"
    assert (error.kind, error.retryable) == ("overloaded", True)


async def test_silence_is_a_timeout_and_a_ping_is_none(server: AnthropicServer) -> None:
    pings = stream(start(), *[{"type": "ping"}] * 12, *SAID, finish())
    server.push(Raw(pings, chunk=len(pings) // 12, delay=0.1), Raw(OPEN, stall_after=len(OPEN)))
    timeouts = Timeouts(idle=0.5)
    with anyio.fail_after(20):
        assert (await ask(server, timeouts=timeouts)).text == "Hi"
        reading, error = await fail(Anthropic("local", server.base_url, KEY, timeouts=timeouts))
    assert (reading.text, error.kind, error.retryable) == ("Hi", "timeout", True)


async def test_leaving_the_stream_early_closes_the_connection(server: AnthropicServer) -> None:
    server.push(Raw(OPEN, stall_after=len(OPEN)))
    provider = Anthropic("local", server.base_url, KEY)
    with anyio.fail_after(10):
        async with provider.stream(ASKED) as events:
            await anext(events)
        await anyio.to_thread.run_sync(server.wait_for_disconnects)
    await provider.aclose()


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "message", "told", "retryable"),
    [
        (400, "invalid_request_error", "tools.0.name: bad", "bad_request", False),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 3 tokens > 2 maximum",
            "context_overflow",
            False,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000",
            "context_overflow",
            False,
        ),
        (400, "invalid_request_error", "Your credit balance is too low to access the API", "quota", False),
        (401, "authentication_error", "invalid x-api-key", "auth", False),
        (402, "billing_error", "payment needed", "quota", False),
        (403, "permission_error", "no access", "auth", False),
        (404, "not_found_error", "model: claude-opus-9", "bad_request", False),
        (413, "request_too_large", "Request exceeds the maximum size", "context_overflow", False),
        (429, "rate_limit_error", "Number of tokens exceeded your rate limit", "rate_limit", True),
        (500, "api_error", "Internal server error", "server", True),
        (504, "timeout_error", "Request timed out", "timeout", True),
        (529, "overloaded_error", "Overloaded", "overloaded", True),
    ],
)
async def test_an_http_error_is_typed_by_status_and_words(
    server: AnthropicServer, status: int, kind: str, message: str, told: str, retryable: bool
) -> None:
    payload = {"type": "error", "error": {"type": kind, "message": f"{message} {KEY}"}, "request_id": "req_1"}
    server.push(json_answer(payload, status, retry_after="3"))
    _, error = await fail(Anthropic("local", server.base_url, KEY))
    assert (error.kind, error.status, error.retryable) == (told, status, retryable)
    assert error.retry_after_ms == 3000
    assert message in error.message


async def test_a_login_page_is_told_as_a_wrong_base_url(server: AnthropicServer) -> None:
    server.push(Raw(b"<!DOCTYPE html><html>Sign in</html>", headers={"content-type": "text/html"}))
    server.push(Raw(b"<html>" + b"x" * 50_000, headers=EVENT_STREAM))
    for _ in range(2):
        _, error = await fail(Anthropic("local", server.base_url, KEY))
        assert (error.kind, error.retryable) == ("protocol", False)
        assert "base_url" in error.message
        assert len(error.message) < 600


async def test_a_redirect_is_told_and_not_followed(server: AnthropicServer) -> None:
    with AnthropicServer([HELLO]) as other:
        server.push(Raw(status=307, headers={"location": f"{other.base_url}/v1/messages"}))
        _, error = await fail(Anthropic("local", server.base_url, KEY))
        assert not other.requests
    assert (error.kind, error.status) == ("bad_request", 307)


async def test_an_image_for_a_model_without_eyes_sends_nothing(server: AnthropicServer) -> None:
    asked = request(user(PIXEL), model=Model("local", "claude-opus-4-8"))
    _, error = await fail(Anthropic("local", server.base_url, KEY), asked)
    assert error.kind == "bad_request"
    assert not server.requests
