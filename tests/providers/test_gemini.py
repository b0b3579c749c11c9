"""The provider against a real HTTP server: what arrives, what fails and how it is told."""

from types import SimpleNamespace
from typing import Any

import anyio
import conversation
import pytest
from conversation import HELLO, KEY, PIXEL, Reading, assistant, call, read, request, result, user
from fakes.gemini_server import GeminiServer, chunk, event, stream
from fakes.model_server import Raw, json_answer

from agentd.agent.response import Response
from agentd.protocol.messages import AssistantMessage
from agentd.providers.apis import open_provider
from agentd.providers.base import Model, ModelRequest, ProviderError, StreamEnd, TextDelta
from agentd.providers.gemini import VERTEX, Gemini, GeminiDialect, Timeouts

G2, G3 = "gemini-2.5-flash", "gemini-3-flash-preview"
HI = {"text": "Hi"}


def asked(*messages: Any, model: str = G3, **fields: Any) -> ModelRequest:
    traits = {key: fields.pop(key) for key in list(fields) if key in Model.__dataclass_fields__}
    return request(*messages, model=Model("local", model, **traits), **fields)


def provider(server: GeminiServer, key: str | None = None, **fields: Any) -> Gemini:
    return Gemini("local", server.base_url, key, **fields)


async def fail(gemini: Gemini, what: ModelRequest | None = None) -> tuple[Reading, ProviderError]:
    return await conversation.fail(gemini, what or asked())


def message(reading: Reading, model: str) -> AssistantMessage:
    """What the loop makes of an answer."""
    ids = iter(range(99))
    response = Response(lambda given: given or f"made-{next(ids)}")
    for each in reading.events:
        if not isinstance(each, StreamEnd):
            response.add(each)
    content, _ = response.finish(reading.end, None)
    return assistant(*content, model=model, provider_data=reading.end.provider_data)


# --- what is sent and read ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "base", ["", "/", "/v1beta", "/v1beta/", "/v1beta/models", f"/v1beta/models/{G3}:streamGenerateContent"]
)
async def test_an_answer_streams_from_a_base_url_however_it_ends(
    gemini_server: GeminiServer, base: str
) -> None:
    gemini_server.push(HELLO)
    gemini = Gemini("local", f"http://127.0.0.1:{gemini_server.port}{base}", KEY)
    reading = await read(gemini, asked())
    await gemini.aclose()
    assert [each.text for each in reading.events if isinstance(each, TextDelta)][:2] == ["He", "ll"]
    assert (reading.text, reading.end.stop, reading.end.raw_stop) == ("Hello, world", "stop", "STOP")
    sent = gemini_server.requests[0]
    assert sent.path == f"/v1beta/models/{G3}:streamGenerateContent?alt=sse"
    assert sent.headers["x-goog-api-key"] == KEY
    assert sent.headers["accept-encoding"] == "identity"
    assert "authorization" not in sent.headers
    assert not gemini_server.faults


@pytest.mark.parametrize(
    ("base", "model", "path"),
    [
        ("/v1", G3, f"/v1/models/{G3}:streamGenerateContent?alt=sse"),
        ("/google", f"models/{G3}", f"/google/v1beta/models/{G3}:streamGenerateContent?alt=sse"),
        ("/v1beta?trace=1", G3, f"/v1beta/models/{G3}:streamGenerateContent?trace=1&alt=sse"),
        ("/v1beta", "odd ?#%/name", "/v1beta/models/odd%20%3F%23%25/name:streamGenerateContent?alt=sse"),
    ],
)
async def test_the_path_is_made_of_version_and_model(base: str, model: str, path: str) -> None:
    with GeminiServer([HELLO], strict=False) as server:
        gemini = Gemini("local", f"http://127.0.0.1:{server.port}{base}", None)
        await read(gemini, asked(model=model))
        await gemini.aclose()
        assert server.requests[0].path == path


async def test_vertex_has_its_own_path_and_a_bearer_token(gemini_server: GeminiServer) -> None:
    gemini_server.push(HELLO)
    base = f"http://127.0.0.1:{gemini_server.port}/v1/projects/p/locations/global"
    gemini = Gemini("vertex", base, KEY, dialect=VERTEX)
    await read(gemini, asked())
    await gemini.aclose()
    sent = gemini_server.requests[0]
    assert sent.path == (
        f"/v1/projects/p/locations/global/publishers/google/models/{G3}:streamGenerateContent?alt=sse"
    )
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert "x-goog-api-key" not in sent.headers


async def test_without_a_key_none_is_sent(gemini_server: GeminiServer) -> None:
    gemini_server.push(HELLO)
    gemini = provider(gemini_server, '""')
    await read(gemini, asked())
    await gemini.aclose()
    assert not {"x-goog-api-key", "authorization"} & set(gemini_server.requests[0].headers)


@pytest.mark.parametrize("model", [G2, G3, "gemini-2.0-flash"])
async def test_tool_turns_and_the_requests_after_them_satisfy_a_strict_server(
    gemini_server: GeminiServer, model: str
) -> None:
    calls = [
        {"type": "tool_call", "name": "read_file", "arguments": {"path": path}} for path in ("ä", "b", "b")
    ]
    gemini_server.push(
        {
            "content": [{"type": "thinking", "text": "Let me see."}, *calls],
            "usage": {"input": 7, "output": 5, "cacheRead": 2, "reasoning": 3},
        },
        {"content": [{"type": "text", "text": "One more."}, calls[0] | {"id": "srv-1"}]},
        HELLO,
    )
    gemini = provider(gemini_server)
    history: list[Any] = [user("Hi")]
    for expected in (3, 1, 0):
        reading = await read(gemini, asked(*history, model=model))
        assert len(reading.calls) == expected
        turn = message(reading, model)
        history += [turn, *(result(each.id, "x") for each in turn.calls)]
        if expected == 3:
            assert reading.thinking == "Let me see."
            assert reading.calls[0] == {"id": None, "name": "read_file", "arguments": '{"path": "ä"}'}
            assert reading.end.stop == "tool_use"
            assert reading.end.usage is not None
            usage = reading.end.usage
            assert (usage.input, usage.cache_read, usage.output, usage.reasoning, usage.total) == (
                7,
                2,
                5,
                3,
                14,
            )
    await gemini.aclose()
    assert not gemini_server.faults


async def test_switching_to_another_model_in_mid_session_gives_a_valid_request(
    gemini_server: GeminiServer,
) -> None:
    gemini_server.push(
        {"content": [{"type": "tool_call", "name": "read_file", "id": "srv-1"}]}, HELLO, HELLO, HELLO
    )
    gemini = provider(gemini_server)
    turn = message(await read(gemini, asked()), G3)
    for model in ("gemini-3.1-pro-preview", G2, "gemma-3-27b-it"):
        await read(gemini, asked(user("Hi"), turn, result("srv-1", "x"), model=model))
    await gemini.aclose()
    assert not gemini_server.faults
    foreign = asked(user("Hi"), assistant(call("a"), model="gpt-5"), result("a", "x"))
    gemini_server.push(HELLO)
    await read(gemini, foreign)
    await gemini.aclose()
    assert not gemini_server.faults


async def test_a_second_request_finds_the_connection_of_the_first_open(gemini_server: GeminiServer) -> None:
    gemini_server.push(HELLO, HELLO)
    gemini = provider(gemini_server)
    await read(gemini, asked())
    await read(gemini, asked())
    await gemini.aclose()
    first, second = gemini_server.requests
    assert first.connection == second.connection


async def test_a_body_cut_at_every_byte_says_the_same(gemini_server: GeminiServer) -> None:
    gemini_server.push(Raw(stream(chunk({"text": "你好🌍"}), chunk(finish="STOP")), chunk=1))
    gemini = provider(gemini_server)
    assert (await read(gemini, asked())).text == "你好🌍"
    await gemini.aclose()


async def test_a_whole_json_answer_is_accepted(gemini_server: GeminiServer) -> None:
    gemini_server.push(json_answer([chunk(HI), chunk(finish="STOP")]))
    gemini = provider(gemini_server)
    assert (await read(gemini, asked())).text == "Hi"
    await gemini.aclose()


async def test_an_image_for_a_model_without_eyes_sends_nothing(gemini_server: GeminiServer) -> None:
    _, error = await fail(provider(gemini_server), asked(user(PIXEL)))
    assert error.kind == "bad_request"
    assert not gemini_server.requests


# --- how a stream ends ----------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", event(chunk(HI))])
async def test_the_finish_ends_the_answer_though_the_server_keeps_the_connection(
    gemini_server: GeminiServer, before: bytes
) -> None:
    gemini_server.push(Raw(before + event(chunk(HI, finish="STOP")), linger=True))
    gemini = provider(gemini_server)
    with anyio.fail_after(4):  # without the short wait it would be five seconds
        assert (await read(gemini, asked())).end.stop == "stop"
    await anyio.to_thread.run_sync(gemini_server.wait_for_disconnects)
    await gemini.aclose()


async def test_a_blocked_prompt_ends_the_answer_though_the_server_keeps_the_connection(
    gemini_server: GeminiServer,
) -> None:
    gemini_server.push(Raw(event({"promptFeedback": {"blockReason": "SAFETY"}}), linger=True))
    with anyio.fail_after(4):
        _, error = await fail(provider(gemini_server))
    assert error.kind == "refusal"


async def test_a_finish_in_every_chunk_does_not_end_the_answer_early(gemini_server: GeminiServer) -> None:
    chunks = [event(chunk({"text": word}, finish="STOP")) for word in ("a", "b", "c")]
    gemini_server.push(Raw(b"".join(chunks), chunk=len(chunks[0]), delay=0.1))
    gemini = provider(gemini_server)
    assert (await read(gemini, asked())).text == "abc"
    await gemini.aclose()


async def test_a_connection_that_breaks_after_the_finish_is_no_error(gemini_server: GeminiServer) -> None:
    body = event(chunk(HI, finish="STOP"))
    gemini_server.push(Raw(body + b"data: {", cut_after=len(body) + 3))
    gemini = provider(gemini_server)
    assert (await read(gemini, asked())).end.stop == "stop"
    await gemini.aclose()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Raw(b""), ""),
        (Raw(event(chunk({"text": "half"}))), "half"),
        (
            Raw(stream(chunk({"text": "half"}), chunk(HI)), cut_after=len(event(chunk({"text": "half"})))),
            "half",
        ),
        (Raw(event(chunk(HI)), cut_after=0), ""),
    ],
    ids=["empty", "ends early", "breaks in the middle", "breaks at once"],
)
async def test_a_clean_end_and_a_broken_connection_are_both_truncation(
    gemini_server: GeminiServer, answer: Raw, said: str
) -> None:
    gemini_server.push(answer)
    reading, error = await fail(provider(gemini_server))
    assert reading.text == said
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


@pytest.mark.parametrize(
    ("answer", "timeouts", "words"),
    [
        (Raw(answer=False), Timeouts(first_byte=0.3), "no answer"),
        (Raw(event(chunk(HI)), stall_after=0), Timeouts(first_byte=0.3), "no answer"),
        (Raw(event(chunk(HI)), linger=True), Timeouts(idle=0.3), "the answer stopped"),
    ],
    ids=["before the head", "before the body", "in the middle"],
)
async def test_silence_is_a_timeout(
    gemini_server: GeminiServer, answer: Raw, timeouts: Timeouts, words: str
) -> None:
    gemini_server.push(answer)
    with anyio.fail_after(10):
        _, error = await fail(provider(gemini_server, timeouts=timeouts))
    assert (error.kind, error.retryable) == ("timeout", True)
    assert words in error.message


async def test_cancelling_closes_the_connection_at_once(gemini_server: GeminiServer) -> None:
    gemini_server.push(HELLO | {"hang": True})
    gemini = provider(gemini_server)
    heard = anyio.Event()

    async def listen() -> None:
        async with gemini.stream(asked()) as events:
            async for _ in events:
                heard.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await heard.wait()
            tasks.cancel_scope.cancel()
        await anyio.to_thread.run_sync(gemini_server.wait_for_disconnects)
    gemini_server.push(HELLO)
    assert (await read(gemini, asked())).text == "Hello, world"
    await gemini.aclose()


async def test_an_error_in_mid_stream_is_told_with_what_was_said(gemini_server: GeminiServer) -> None:
    failure = {"kind": "overloaded", "message": "The model is overloaded.", "status": 503}
    gemini_server.push(HELLO | {"error": failure})
    reading, error = await fail(provider(gemini_server))
    assert reading.text == "Hello, world"
    assert (error.kind, error.retryable, error.status) == ("overloaded", True, 503)


# --- refusals -------------------------------------------------------------------------------------


def google(code: int, words: str, status: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": words, "status": status, "details": list(details)}}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "48s"}
QUOTA = "You exceeded your current quota, please check your plan and billing details."
MINUTE = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}
DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
TOO_LONG = "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576)."


@pytest.mark.parametrize(
    ("body", "kind", "retryable", "wait"),
    [
        (
            google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
            "auth",
            False,
            None,
        ),
        (google(400, "API key expired. Please renew the API key.", "INVALID_ARGUMENT"), "auth", False, None),
        (google(403, "Permission denied.", "PERMISSION_DENIED"), "auth", False, None),
        (google(400, TOO_LONG, "INVALID_ARGUMENT"), "context_overflow", False, None),
        (google(400, "Invalid value at contents.", "INVALID_ARGUMENT"), "bad_request", False, None),
        (google(429, QUOTA, "RESOURCE_EXHAUSTED", MINUTE, RETRY), "rate_limit", True, 48000),
        (google(429, f"{QUOTA} Please retry in 34.4s.", "RESOURCE_EXHAUSTED"), "rate_limit", True, 34400),
        (google(429, "Resource exhausted.", "RESOURCE_EXHAUSTED"), "rate_limit", True, None),
        (google(429, QUOTA, "RESOURCE_EXHAUSTED"), "quota", False, None),
        (google(429, QUOTA, "RESOURCE_EXHAUSTED", DAY, RETRY), "quota", False, 48000),
        (
            google(429, QUOTA, "RESOURCE_EXHAUSTED", {"violations": "x", "retryDelay": 5}),
            "quota",
            False,
            None,
        ),
        (google(499, "The operation was cancelled.", "CANCELLED"), "server", True, None),
        (google(500, "Internal error.", "INTERNAL"), "server", True, None),
        (google(503, "The model is overloaded.", "UNAVAILABLE"), "overloaded", True, None),
        (google(504, "Deadline expired.", "DEADLINE_EXCEEDED"), "timeout", True, None),
    ],
)
@pytest.mark.parametrize("in_list", [False, True])
async def test_an_http_error_is_typed_by_status_words_and_details(
    gemini_server: GeminiServer, body: Any, kind: str, retryable: bool, wait: int | None, in_list: bool
) -> None:
    status = body["error"]["code"]
    gemini_server.push(json_answer([body] if in_list else body, status))
    _, error = await fail(provider(gemini_server, KEY))
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert error.retry_after_ms == wait
    assert error.message.startswith(f"local: HTTP {status}")
    assert body["error"]["message"][:40] in error.message
    assert len(gemini_server.requests) == 1


async def test_an_unknown_model_is_told_with_the_address(gemini_server: GeminiServer) -> None:
    gemini_server.push(json_answer(google(404, "models/x is not found", "NOT_FOUND"), 404))
    _, error = await fail(provider(gemini_server))
    assert error.kind == "bad_request"
    for part in (G3, gemini_server.base_url, "base_url", "/v1beta"):
        assert part in error.message


async def test_a_login_page_is_told_as_a_wrong_base_url(gemini_server: GeminiServer) -> None:
    gemini_server.push(Raw(b"<!DOCTYPE html>" + b"x" * 50_000, 200, {"content-type": "text/html"}))
    _, error = await fail(provider(gemini_server))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "/v1beta" in error.message


async def test_a_page_of_html_never_gets_into_a_message(gemini_server: GeminiServer) -> None:
    gemini_server.push(Raw(b"<!DOCTYPE html><html>203.0.113.9", 502, {"content-type": "text/html"}))
    _, error = await fail(provider(gemini_server))
    assert (error.kind, error.status) == ("server", 502)
    assert "203.0.113.9" not in error.message


async def test_a_redirect_is_told_and_the_key_does_not_follow(gemini_server: GeminiServer) -> None:
    with GeminiServer([HELLO]) as elsewhere:
        gemini_server.push(Raw(b"", 307, {"location": elsewhere.base_url}))
        _, error = await fail(provider(gemini_server, KEY))
        assert not elsewhere.requests
        assert elsewhere.base_url in error.message


@pytest.mark.parametrize(
    "base_url", ["", "localhost:8080", "http://[bad/v1beta", "http://u:pw-canary@h/v1beta"]
)
async def test_an_unusable_address_is_refused_without_repeating_it(base_url: str) -> None:
    _, error = await fail(Gemini("local", base_url, KEY))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "base_url" in error.message
    assert "pw-canary" not in error.message


# --- what a server does not take ------------------------------------------------------------------


async def test_a_refusal_of_json_schemas_is_remembered(gemini_server: GeminiServer) -> None:
    words = 'Invalid JSON payload received. Unknown name "parametersJsonSchema": Cannot find field.'
    gemini_server.push(json_answer(google(400, words, "INVALID_ARGUMENT"), 400), HELLO, HELLO)
    gemini = provider(gemini_server)
    for _ in range(2):
        assert (await read(gemini, asked())).text == "Hello, world"
    await gemini.aclose()
    declared = [each.body["tools"][0]["functionDeclarations"][0] for each in gemini_server.requests]
    assert ["parametersJsonSchema" in each for each in declared] == [True, False, False]
    assert declared[1]["parameters"]["type"] == "OBJECT"
    assert not gemini_server.faults


async def test_a_refusal_of_a_thinking_level_is_remembered_for_the_model(gemini_server: GeminiServer) -> None:
    words = "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level."
    refusal = json_answer(google(400, words, "INVALID_ARGUMENT"), 400)
    gemini_server.push(refusal, HELLO, HELLO, HELLO)
    gemini = provider(gemini_server)
    fields: Any = {"effort": "minimal", "efforts": ("minimal",), "reasoning": True}
    for model in (G3, G3, "gemini-3.5-flash"):
        await read(gemini, asked(model=model, **fields))
    await gemini.aclose()
    sent = [each.body["generationConfig"]["thinkingConfig"] for each in gemini_server.requests]
    asks, asks_less = {"includeThoughts": True, "thinkingLevel": "MINIMAL"}, {"includeThoughts": True}
    assert sent == [asks, asks_less, asks_less, asks]


async def test_a_model_that_does_not_think_at_all_is_not_asked_to_again(gemini_server: GeminiServer) -> None:
    refusal = json_answer(google(400, "Thinking is not enabled for this model.", "INVALID_ARGUMENT"), 400)
    gemini_server.push(refusal, refusal, HELLO)
    gemini = provider(gemini_server)
    await read(gemini, asked(effort="low", efforts=("low",)))
    await gemini.aclose()
    assert "generationConfig" not in gemini_server.requests[2].body


async def test_a_refusal_of_what_was_not_asked_for_is_an_error(gemini_server: GeminiServer) -> None:
    refusal = json_answer(google(400, "parametersJsonSchema? thinking level?", "INVALID_ARGUMENT"), 400)
    gemini_server.push(refusal)
    _, error = await fail(provider(gemini_server, dialect=GeminiDialect(schemas="subset")))
    assert error.kind == "bad_request"
    assert len(gemini_server.requests) == 1


def test_the_catalogue_opens_it() -> None:
    address = SimpleNamespace(
        name="google",
        api="gemini",
        base_url="https://generativelanguage.googleapis.com",
        dialect={"auth": "bearer"},
        timeouts={"idle": 60.0},
    )
    assert isinstance(open_provider(address, KEY), Gemini)
