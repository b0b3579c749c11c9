"""The provider against a real HTTP server: what arrives, what fails and how it is told."""

import json
import math
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from conversation import HELLO, KEY, PIXEL, assistant, call, fail, read, request, result, user
from fakes.model_server import EVENT_STREAM, ModelServer, Raw, json_answer, sse

from agentd.providers.base import Model, StreamEnd, TextDelta
from agentd.providers.openai_chat import OpenAIChat, Timeouts


def chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


# --- what is sent and read ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/", "/chat/completions"])
async def test_an_answer_streams_from_a_base_url_however_it_ends(
    model_server: ModelServer, path: str
) -> None:
    model_server.push(HELLO)
    provider = OpenAIChat("local", model_server.base_url + path, KEY)
    reading = await read(provider)
    await provider.aclose()
    assert [event.text for event in reading.events if isinstance(event, TextDelta)][:2] == ["He", "ll"]
    assert (reading.text, reading.end) == ("Hello, world", StreamEnd("stop", raw_stop="stop"))
    sent = model_server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["accept-encoding"] == "identity"
    assert not model_server.faults


async def test_a_query_in_the_base_url_is_kept_and_not_told(model_server: ModelServer) -> None:
    model_server.push({"content": [], "error": {"kind": "bad_request", "message": "no", "status": 404}})
    _, error = await fail(OpenAIChat("azure", model_server.base_url + "?api-version=1&sig=secret", KEY))
    assert model_server.requests[0].path == "/v1/chat/completions?api-version=1&sig=secret"
    assert "secret" not in error.message
    assert "base_url" in error.message


async def test_a_tool_turn_and_the_next_request_satisfy_a_strict_server(model_server: ModelServer) -> None:
    model_server.push(
        {
            "content": [
                {"type": "thinking", "text": "Let me see."},
                {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "ä"}},
            ],
            "usage": {"input": 7, "output": 5, "cacheRead": 2, "cacheWrite": 1},
        },
        HELLO,
    )
    provider = OpenAIChat("local", model_server.base_url, None)
    first = await read(provider)
    assert first.thinking == "Let me see."
    assert first.calls == [{"id": "c1", "name": "read_file", "arguments": '{"path": "ä"}'}]
    assert first.end.stop == "tool_use"
    assert first.end.usage is not None
    assert (first.end.usage.input, first.end.usage.cache_read, first.end.usage.total) == (7, 2, 15)
    answer = assistant(call("c1", path="ä"), provider_data=first.end.provider_data)
    await read(provider, request(user("Hi"), answer, result("c1", "x")))
    await provider.aclose()
    assert not model_server.faults
    assert "authorization" not in model_server.requests[1].headers


async def test_a_second_request_finds_the_connection_of_the_first_open(model_server: ModelServer) -> None:
    model_server.push(HELLO, HELLO)
    provider = OpenAIChat("local", model_server.base_url, None)
    await read(provider)
    await read(provider)
    await provider.aclose()
    first, second = model_server.requests
    assert first.connection == second.connection


async def test_a_body_cut_at_every_byte_says_the_same(model_server: ModelServer) -> None:
    body = json.dumps(chunk("你好🌍"), ensure_ascii=False)
    model_server.push(Raw(sse(body, chunk("", "stop")), chunk=1))
    provider = OpenAIChat("local", model_server.base_url, None)
    assert (await read(provider)).text == "你好🌍"
    await provider.aclose()


async def test_a_whole_json_answer_is_accepted(model_server: ModelServer) -> None:
    message = {"role": "assistant", "content": "Hi"}
    model_server.push(json_answer({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    provider = OpenAIChat("local", model_server.base_url, None)
    assert (await read(provider)).text == "Hi"
    await provider.aclose()


async def test_a_lone_surrogate_does_not_stop_a_request(model_server: ModelServer) -> None:
    model_server.push(HELLO)
    provider = OpenAIChat("local", model_server.base_url, None)
    await read(provider, request(user("a\ud800b")))
    await provider.aclose()
    assert model_server.requests[0].body["messages"][-1]["content"] == "a?b"


# --- how a stream ends ----------------------------------------------------------------------------


@pytest.mark.parametrize("finish", [chunk("Hi", "stop"), chunk("Hi")])
async def test_done_ends_the_answer_though_the_server_keeps_the_connection(
    model_server: ModelServer, finish: dict[str, Any]
) -> None:
    model_server.push(Raw(sse(finish), linger=True))
    provider = OpenAIChat("local", model_server.base_url, None)
    with anyio.fail_after(5):
        assert (await read(provider)).text == "Hi"
    model_server.wait_for_disconnects()
    await provider.aclose()


async def test_a_server_that_falls_silent_after_its_finish_is_not_waited_for_long(
    model_server: ModelServer,
) -> None:
    model_server.push(Raw(sse(chunk("Hi", "stop"), done=False), linger=True))
    provider = OpenAIChat("local", model_server.base_url, None, timeouts=Timeouts(tail=0.2))
    with anyio.fail_after(10):
        assert (await read(provider)).end.stop == "stop"
    await provider.aclose()


async def test_a_connection_that_breaks_after_the_finish_is_no_error(model_server: ModelServer) -> None:
    body = sse(chunk("Hi", "stop"), done=False)
    model_server.push(Raw(body + b"data: {", cut_after=len(body) + 3))
    provider = OpenAIChat("local", model_server.base_url, None)
    assert (await read(provider)).end.stop == "stop"
    await provider.aclose()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Raw(b""), ""),
        (Raw(sse(chunk("half"), done=False)), "half"),
        (Raw(sse(chunk("half"), chunk("more")), cut_after=len(sse(chunk("half"), done=False))), "half"),
        (Raw(sse(chunk("half")), cut_after=0), ""),
    ],
    ids=["empty", "ends early", "breaks in the middle", "breaks at once"],
)
async def test_a_clean_end_and_a_broken_connection_are_both_truncation(
    model_server: ModelServer, answer: Raw, said: str
) -> None:
    model_server.push(answer)
    reading, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message
    assert reading.text == said


async def test_an_error_after_text_is_told_after_the_text(model_server: ModelServer) -> None:
    model_server.push(HELLO | {"error": {"kind": "overloaded", "message": "the model is overloaded"}})
    reading, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert reading.text == "Hello, world"
    assert (error.kind, error.retryable) == ("overloaded", True)
    assert "overloaded" in error.message


# --- waiting and leaving --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "timeouts", "words"),
    [
        (Raw(answer=False), Timeouts(first_byte=0.2), "no answer"),
        (Raw(sse(chunk("x")), stall_after=0), Timeouts(first_byte=0.2), "no answer"),
        (Raw(sse(chunk("x")), stall_after=60), Timeouts(idle=0.2), "no data"),
    ],
    ids=["no head", "no body", "silence in the middle"],
)
async def test_silence_is_a_timeout_that_may_be_tried_again(
    model_server: ModelServer, answer: Raw, timeouts: Timeouts, words: str
) -> None:
    model_server.push(answer)
    with anyio.fail_after(10):
        _, error = await fail(OpenAIChat("local", model_server.base_url, None, timeouts=timeouts))
    assert (error.kind, error.retryable) == ("timeout", True)
    assert words in error.message


async def test_comments_count_as_signs_of_life(model_server: ModelServer) -> None:
    pings = b": ping\n\n" * 20
    model_server.push(Raw(pings + sse(chunk("Hi", "stop")), chunk=8, delay=0.05))
    provider = OpenAIChat("local", model_server.base_url, None, timeouts=Timeouts(idle=0.8))
    assert (await read(provider)).text == "Hi"  # 20 pings take longer than the limit
    await provider.aclose()


async def test_a_slow_reader_is_not_taken_for_a_slow_server(model_server: ModelServer) -> None:
    model_server.push(Raw(sse(chunk("a"), chunk("b", "stop"))))
    provider = OpenAIChat("local", model_server.base_url, None, timeouts=Timeouts(idle=30))
    async with provider.stream(request()) as events:
        async for _ in events:
            assert anyio.current_effective_deadline() == math.inf  # no wait of the provider's is running
    await provider.aclose()


@pytest.mark.parametrize(
    ("answer", "reached"),
    [
        (Raw(answer=False), "request"),
        (Raw(sse(chunk("x")), stall_after=0), "head"),
        (HELLO | {"hang": True}, "world"),
    ],
    ids=["before the head", "before the body", "in the middle"],
)
async def test_cancelling_closes_the_connection_at_once(
    model_server: ModelServer, answer: Any, reached: str
) -> None:
    model_server.push(answer)
    provider = OpenAIChat("local", model_server.base_url, None)
    marks = {"head": anyio.Event(), "world": anyio.Event()}

    async def listen() -> None:
        said = ""
        async with provider.stream(request()) as events:
            marks["head"].set()
            async for event in events:
                said += event.text if isinstance(event, TextDelta) else ""
                if said.endswith("world"):
                    marks["world"].set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await anyio.to_thread.run_sync(model_server.wait_for_requests, 1)
            if reached in marks:
                await marks[reached].wait()
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(model_server.wait_for_disconnects)
    model_server.push(HELLO)
    assert (await read(provider)).text == "Hello, world"
    await provider.aclose()


async def test_leaving_the_stream_early_closes_the_connection(model_server: ModelServer) -> None:
    model_server.push(HELLO | {"hang": True})
    provider = OpenAIChat("local", model_server.base_url, None)
    async with provider.stream(request()) as events:
        assert await anext(events) == TextDelta(0, "He")
    await anyio.to_thread.run_sync(model_server.wait_for_disconnects)
    await provider.aclose()


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, "auth", False),
        (403, {"error": {"message": "forbidden"}}, "auth", False),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided"}, "auth", False),
        (402, {"error": {"message": "pay"}}, "quota", False),
        (429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, "rate_limit", True),
        (429, {"error": {"message": "spent", "code": "insufficient_quota"}}, "quota", False),
        (429, {"error": {"message": "maximum context length is 8"}}, "context_overflow", False),
        (429, [{"error": {"message": "exceeded your current quota. retry in 4.5s"}}], "rate_limit", True),
        (
            400,
            {"error": {"message": "prompt is too long: 213462 tokens > 200000"}},
            "context_overflow",
            False,
        ),
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "context_overflow", False),
        (500, {"error": {"message": "Context size has been exceeded"}}, "context_overflow", False),
        (413, {"error": {"message": "Request too large"}}, "context_overflow", False),
        (400, None, "context_overflow", False),
        (400, {"error": {"message": "bad field"}}, "bad_request", False),
        (400, {"error": {"message": "filtered", "code": "content_filter"}}, "refusal", False),
        (400, {"error": {"message": "no call", "code": "tool_use_failed"}}, "server", True),
        (404, {"detail": "Not Found"}, "bad_request", False),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_request", False),
        (408, {}, "timeout", True),
        (500, {"error": "boom"}, "server", True),
        (502, {"error": {"message": "engine overloaded"}}, "overloaded", True),
        (503, {"message": "Loading model"}, "overloaded", True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "overloaded", True),
    ],
)
async def test_an_http_error_is_typed_by_status_and_words(
    model_server: ModelServer, status: int, body: Any, kind: str, retryable: bool
) -> None:
    model_server.push(Raw(b"", status) if body is None else json_answer(body, status))
    _, error = await fail(OpenAIChat("local", model_server.base_url, KEY))
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert error.message.startswith(f"local: HTTP {status}")
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry_after": "2"}, 2000),
        ({"retry_after": "1.5"}, 1500),
        ({"retry_after_ms": "250", "retry_after": "9"}, 250),
        ({"retry_after_ms": "0"}, 0),
        ({"retry_after": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "9" * 400}, None),
        ({}, None),
    ],
)
async def test_the_wait_a_server_asks_for_is_read(
    model_server: ModelServer, headers: dict[str, str], expected: int | None
) -> None:
    model_server.push(json_answer({"error": {"message": "busy"}}, 429, **headers))
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert error.retry_after_ms == expected


async def test_a_servers_word_on_trying_again_counts(model_server: ModelServer) -> None:
    model_server.push(json_answer({"error": {"message": "never"}}, 500, x_should_retry="false"))
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert not error.retryable


async def test_a_page_of_html_never_gets_into_a_message(model_server: ModelServer) -> None:
    page = b"<!DOCTYPE html><html><body>Your IP: 203.0.113.9" + b" filler" * 30_000
    model_server.push(Raw(page, 520, {"content-type": "text/html"}))
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert (error.kind, error.status) == ("server", 520)
    assert "203.0.113.9" not in error.message
    assert "<" not in error.message
    assert len(error.message) < 400


async def test_a_login_page_is_told_as_a_wrong_base_url(model_server: ModelServer) -> None:
    model_server.push(Raw(b"<!DOCTYPE html>" + b"x" * 50_000, 200, {"content-type": "text/html"}))
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert (error.kind, error.retryable) == ("protocol", False)
    for part in (f"{model_server.base_url}/chat/completions", "200", "text/html", "base_url", "/v1"):
        assert part in error.message


async def test_a_long_error_is_told_in_short(model_server: ModelServer) -> None:
    model_server.push(json_answer({"error": {"message": "word\x1b[31m " * 9999}}, 400))
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert len(error.message) < 400
    assert error.message.isprintable()


async def test_an_error_body_that_never_ends_does_not_hold_the_error_up(model_server: ModelServer) -> None:
    model_server.push(Raw(b"x" * 100_000, 500, {"content-type": "text/plain"}, stall_after=70_000))
    with anyio.fail_after(8):
        _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert error.kind == "server"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_told_and_not_followed(model_server: ModelServer, status: int) -> None:
    with ModelServer([HELLO]) as elsewhere:
        model_server.push(Raw(b"", status, {"location": f"{elsewhere.base_url}/chat/completions?token=x"}))
        _, error = await fail(OpenAIChat("local", model_server.base_url, KEY))
        assert not elsewhere.requests
        assert elsewhere.base_url in error.message
        assert "token" not in error.message


async def test_a_model_without_tools_is_named(model_server: ModelServer) -> None:
    model_server.push(json_answer({"error": {"message": "m:1b does not support tools"}}, 400))
    _, error = await fail(
        OpenAIChat("local", model_server.base_url, None), request(model=Model("local", "m:1b"))
    )
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "local/m:1b" in error.message
    assert "no tool support" in error.message


async def test_a_refusal_of_stream_options_is_remembered(model_server: ModelServer) -> None:
    refusal = json_answer({"error": {"message": "Unrecognized request argument: stream_options"}}, 400)
    model_server.push(refusal, HELLO, HELLO)
    provider = OpenAIChat("local", model_server.base_url, None)
    for _ in range(2):
        assert (await read(provider)).text == "Hello, world"
    await provider.aclose()
    assert ["stream_options" in asked.body for asked in model_server.requests] == [True, False, False]


async def test_a_second_refusal_of_stream_options_is_an_error(model_server: ModelServer) -> None:
    refusal = json_answer({"error": {"message": "stream_options?"}}, 400)
    model_server.push(refusal, refusal)
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert error.kind == "bad_request"
    assert len(model_server.requests) == 2


async def test_an_answer_in_a_coding_that_does_not_decode_is_an_error(model_server: ModelServer) -> None:
    model_server.push(Raw(b"no gzip", 200, EVENT_STREAM | {"content-encoding": "gzip"}))
    _, error = await fail(OpenAIChat("local", model_server.base_url, None))
    assert "DecodingError" in error.message


# --- address, key and environment -----------------------------------------------------------------


@pytest.mark.parametrize(
    "key", [f"{KEY}\n", f"  {KEY}", f'"{KEY}"', f"'{KEY}'\r\n", f"\ufeff{KEY}", f'\ufeff "{KEY}" ']
)
async def test_a_key_loses_what_copying_added(model_server: ModelServer, key: str) -> None:
    model_server.push(HELLO)
    provider = OpenAIChat("local", model_server.base_url, key)
    await read(provider)
    await provider.aclose()
    assert model_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", [None, "", "  ", '""', "\n"])
async def test_without_a_key_no_authorization_is_sent(model_server: ModelServer, key: str | None) -> None:
    model_server.push(HELLO)
    provider = OpenAIChat("local", model_server.base_url, key)
    await read(provider)
    await provider.aclose()
    assert "authorization" not in model_server.requests[0].headers


@pytest.mark.parametrize("key", [f"{KEY}\n{KEY}", f"sk–{KEY}", f"{KEY}\x00", f"{KEY} x", f"{KEY}ключ"])
async def test_an_unusable_key_is_refused_before_anything_is_sent(
    model_server: ModelServer, key: str
) -> None:
    _, error = await fail(OpenAIChat("local", model_server.base_url, key))
    assert (error.kind, error.retryable) == ("auth", False)
    assert '"local"' in error.message
    assert not model_server.requests


@pytest.mark.parametrize(
    "base_url",
    ["", "localhost:8080/v1", "ftp://host/v1", "http://", "http://[bad/v1", "http://u:pw-canary@h/v1"],
)
async def test_an_unusable_address_is_refused_without_repeating_it(base_url: str) -> None:
    _, error = await fail(OpenAIChat("local", base_url, KEY))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "base_url" in error.message
    assert "pw-canary" not in error.message


async def test_an_image_for_a_model_without_eyes_sends_nothing(model_server: ModelServer) -> None:
    _, error = await fail(OpenAIChat("local", model_server.base_url, None), request(user(PIXEL)))
    assert error.kind == "bad_request"
    assert not model_server.requests


async def test_a_server_that_is_not_there_is_a_network_error() -> None:
    with ModelServer() as gone:
        address = gone.base_url
    _, error = await fail(OpenAIChat("local", address, KEY))
    assert (error.kind, error.retryable) == ("network", True)
    assert address in error.message


async def test_certificates_that_cannot_be_read_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missing = tmp_path / "missing.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(missing))
    _, error = await fail(OpenAIChat("local", "https://127.0.0.1:1/v1", KEY))
    assert (error.kind, error.retryable) == ("network", False)
    assert f"SSL_CERT_FILE names ({missing})" in error.message


async def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://user:pw-canary@proxy:1")
    _, error = await fail(OpenAIChat("local", "https://model.invalid/v1", KEY))
    assert error.kind == "network"
    assert "HTTPS_PROXY" in error.message
    assert "pw-canary" not in error.message


async def test_a_proxy_is_used_for_others_and_never_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, model_server: ModelServer
) -> None:
    with ModelServer([HELLO]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        model_server.push(HELLO)
        local = OpenAIChat("local", model_server.base_url, None)
        await read(local)
        await local.aclose()
        assert not proxy.requests
        other = OpenAIChat("other", "http://model.invalid/v1", None)
        assert (await read(other)).text == "Hello, world"
        await other.aclose()
        assert proxy.requests[0].path == "http://model.invalid/v1/chat/completions"


async def test_plain_http_reads_no_certificates(
    monkeypatch: pytest.MonkeyPatch, model_server: ModelServer, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    model_server.push(HELLO)
    provider = OpenAIChat("local", model_server.base_url, None)
    await read(provider)
    await provider.aclose()


async def test_many_deltas_are_read_in_little_time(model_server: ModelServer) -> None:
    model_server.push(Raw(sse(*[chunk("word ")] * 5000, chunk("", "stop")), chunk=4096))
    provider = OpenAIChat("local", model_server.base_url, None)
    started = time.monotonic()
    assert len((await read(provider)).text) == 25_000
    await provider.aclose()
    assert time.monotonic() - started < 30
