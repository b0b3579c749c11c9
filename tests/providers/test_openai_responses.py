"""The Responses provider against a real HTTP server: what is sent, what fails, and whole conversations."""

import itertools
from typing import Any

import anyio
import pytest
from conversation import (
    HELLO,
    KEY,
    NOW,
    PIXEL,
    READ,
    assistant,
    call,
    fail,
    read,
    request,
    result,
    user,
)
from fakes.model_server import ModelServer, Raw, json_answer, sse
from fakes.responses_server import ResponsesServer
from responses_events import CALL, COMPLETED, added, arguments, done, message, over, text

from agentd.agent.request import project
from agentd.agent.response import Response
from agentd.protocol.messages import AssistantMessage, Message
from agentd.providers.base import Model, ModelRequest, StreamEnd, TextDelta
from agentd.providers.openai_responses import OpenAIResponses, ResponsesDialect, Timeouts

THINKER = Model("local", "m", reasoning=True)


def provider_of(server: ModelServer, key: str | None = None, **fields: Any) -> OpenAIResponses:
    return OpenAIResponses("local", server.base_url, key, **fields)


# --- what is sent and read ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/", "/responses"])
async def test_an_answer_streams_from_a_base_url_however_it_ends(
    responses_server: ResponsesServer, path: str
) -> None:
    responses_server.push(HELLO)
    provider = OpenAIResponses("local", responses_server.base_url + path, KEY)
    reading = await read(provider)
    await provider.aclose()
    assert [event.text for event in reading.events if isinstance(event, TextDelta)][:2] == ["He", "ll"]
    assert (reading.text, reading.end.stop) == ("Hello, world", "stop")
    sent = responses_server.requests[0]
    assert sent.path == "/v1/responses"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert not responses_server.faults


async def test_without_a_key_no_authorization_is_sent(responses_server: ResponsesServer) -> None:
    responses_server.push(HELLO, HELLO)
    provider = provider_of(responses_server)
    for _ in range(2):
        await read(provider)
    await provider.aclose()
    first, second = responses_server.requests
    assert "authorization" not in first.headers
    assert first.connection == second.connection


async def test_a_body_cut_at_every_byte_says_the_same(responses_server: ResponsesServer) -> None:
    responses_server.push(Raw(sse(text("你好🌍"), COMPLETED), chunk=1))
    provider = provider_of(responses_server)
    assert (await read(provider)).text == "你好🌍"
    await provider.aclose()


async def test_a_whole_json_answer_is_accepted(responses_server: ResponsesServer) -> None:
    part = {"type": "output_text", "text": "Hi"}
    item = {"type": "message", "role": "assistant", "content": [part]}
    responses_server.push(json_answer({"object": "response", "status": "completed", "output": [item]}))
    provider = provider_of(responses_server)
    assert (await read(provider)).text == "Hi"
    await provider.aclose()


async def test_usage_counts_what_was_cached_apart(responses_server: ResponsesServer) -> None:
    usage = {"input": 7, "output": 5, "cacheRead": 2, "cacheWrite": 1, "reasoning": 3}
    responses_server.push(HELLO | {"usage": usage})
    provider = provider_of(responses_server)
    told = (await read(provider)).end.usage
    await provider.aclose()
    assert told is not None
    assert (told.input, told.output, told.cache_read, told.cache_write, told.reasoning) == (7, 5, 2, 1, 3)
    assert told.total == told.context_tokens == 15


# --- conversations --------------------------------------------------------------------------------


class Conversation:
    """A transcript as a session has it: what the model sends is assembled, kept and projected anew."""

    def __init__(self, provider: OpenAIResponses) -> None:
        self.provider = provider
        self.transcript: list[Message] = []
        self._numbers = itertools.count(1)
        self._ids: set[str] = set()

    async def ask(self, *messages: Message, model: Model = THINKER) -> AssistantMessage:
        self.transcript += messages
        asked = ModelRequest(model, "Be brief.", project(self.transcript), (READ,))
        response = Response(self._unique)
        end: StreamEnd | None = None
        async with self.provider.stream(asked) as events:
            async for event in events:
                if isinstance(event, StreamEnd):
                    end = event
                else:
                    response.add(event)
        assert end is not None
        content, _ = response.finish(end, None)
        answer = AssistantMessage(
            message_id=f"a{next(self._numbers)}",
            content=content,
            provider=model.provider,
            model=model.name,
            stop_reason="tool_use" if end.stop == "tool_use" else "stop",
            timestamp=NOW,
            provider_data=end.provider_data,
        )
        self.transcript.append(answer)
        return answer

    def _unique(self, wanted: str | None) -> str:
        base = wanted or f"made_{next(self._numbers)}"
        unique = next(
            id for id in itertools.chain([base], (f"{base}~{n}" for n in itertools.count(2)))
            if id not in self._ids
        )  # fmt: skip
        self._ids.add(unique)
        return unique


THOUGHTFUL = {
    "content": [
        {"type": "thinking", "text": "I need both."},
        {"type": "text", "text": "Let me look.", "phase": "commentary"},
        {"type": "tool_call", "id": "call_0", "name": "read_file", "arguments": {"path": "ä"}},
        {"type": "thinking", "text": "And one more."},
        {"type": "tool_call", "id": "call_" + "1" * 60, "name": "read_file", "rawArguments": ""},
    ]
}


async def test_a_conversation_with_thoughts_and_tools_satisfies_a_strict_server(
    responses_server: ResponsesServer,
) -> None:
    responses_server.push(THOUGHTFUL, THOUGHTFUL, HELLO)
    talk = Conversation(provider_of(responses_server))
    asked: Message = user("Hi")
    for _ in range(2):
        answer = await talk.ask(asked)
        results = [result(each.id, "x") for each in answer.calls]
        talk.transcript += results[:1]
        asked = results[1]
    last = await talk.ask(asked)
    await talk.provider.aclose()
    assert last.text == "Hello, world"
    assert not responses_server.faults
    sent = responses_server.requests[-1].body["input"]
    kinds = [item["type"] for item in sent[1:8]]
    assert kinds == [
        "reasoning",
        "message",
        "function_call",
        "reasoning",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert sent[2]["phase"] == "commentary"
    ids = [item["call_id"] for item in sent if item["type"] == "function_call"]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 4


async def test_switching_the_model_midway_makes_a_valid_request_for_each(
    responses_server: ResponsesServer,
) -> None:
    responses_server.push(THOUGHTFUL, HELLO, HELLO)
    talk = Conversation(provider_of(responses_server))
    answer = await talk.ask(user("Hi"))
    results = [result(each.id, "x") for each in answer.calls]
    await talk.ask(*results, model=Model("local", "other", reasoning=True))
    await talk.ask(user("And now?"))
    await talk.provider.aclose()
    assert not responses_server.faults
    of_reasoning = [
        sum(item["type"] == "reasoning" for item in each.body["input"]) for each in responses_server.requests
    ]
    assert of_reasoning == [0, 0, 2]  # the other model's one answer had none


async def test_a_run_that_broke_off_in_the_middle_of_its_calls_can_go_on(
    responses_server: ResponsesServer,
) -> None:
    responses_server.push(THOUGHTFUL, HELLO)
    talk = Conversation(provider_of(responses_server))
    await talk.ask(user("Hi"))
    await talk.ask(user("Where were we?"))
    await talk.provider.aclose()
    assert not responses_server.faults


async def test_images_of_results_satisfy_a_strict_server(responses_server: ResponsesServer) -> None:
    responses_server.push(HELLO)
    provider = provider_of(responses_server)
    asked = request(
        user("Look", PIXEL),
        assistant(call("c1")),
        result("c1", "shot", PIXEL),
        model=Model("local", "m", images=True),
    )
    await read(provider, asked)
    await provider.aclose()
    assert not responses_server.faults


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [
        ({"typed": True}, ResponsesDialect(item_ids=True)),
        ({"adjacent": True}, ResponsesDialect(adjacent_calls=True)),
        ({}, ResponsesDialect(strict=True)),
        ({}, ResponsesDialect(reasoning_summary=False, prompt_cache_key=False)),
    ],
    ids=["typed", "adjacent calls", "strict", "less"],
)
async def test_each_dialect_satisfies_its_server(kind: dict[str, bool], dialect: ResponsesDialect) -> None:
    with ResponsesServer([THOUGHTFUL, HELLO], **kind) as server:
        talk = Conversation(provider_of(server, dialect=dialect))
        answer = await talk.ask(user("Hi"))
        await talk.ask(*(result(each.id, "x") for each in answer.calls))
        await talk.provider.aclose()
        assert not server.faults


# --- what a server refuses without need -----------------------------------------------------------


async def test_a_model_that_does_not_reason_after_all_is_asked_again_without() -> None:
    with ResponsesServer([HELLO, HELLO], reasons=False) as server:
        provider = provider_of(server)
        for _ in range(2):
            assert (await read(provider, request(model=THINKER))).text == "Hello, world"
        await provider.aclose()
        assert ["include" in each.body for each in server.requests] == [True, False, False, False]
        assert ["reasoning" in each.body for each in server.requests] == [True, True, False, False]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("Your organization must be verified to generate reasoning summaries.", "reasoning"),
        ("Unsupported parameter: prompt_cache_key", "prompt_cache_key"),
        ("Unsupported parameter: max_output_tokens", "max_output_tokens"),
        ("Encrypted content is not supported with this model.", "include"),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning"),
    ],
)
async def test_a_refused_field_is_left_out_from_then_on_for_that_model(
    responses_server: ResponsesServer, words: str, field: str
) -> None:
    responses_server.push(json_answer({"error": {"message": words}}, 400), HELLO, HELLO, HELLO)
    provider = provider_of(responses_server)
    models = [Model("local", name, reasoning=True, max_output=99) for name in ("m", "m", "other")]
    for model in models:
        await read(provider, request(model=model))
    await provider.aclose()
    assert [field in each.body for each in responses_server.requests] == [True, False, False, True]
    assert not responses_server.faults


async def sent_after(words: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    """What is sent of an answer of these items, with its results, once a server has refused it so."""
    refusal = json_answer({"error": {"message": words}}, 400)
    with ResponsesServer(strict=False) as server:
        server.push(Raw(sse(*(done(item, at) for at, item in enumerate(items)), COMPLETED)), refusal, HELLO)
        talk = Conversation(provider_of(server))
        answer = await talk.ask(user("Hi"))
        assert (await talk.ask(*(result(each.id, "x") for each in answer.calls))).text == "Hello, world"
        await talk.provider.aclose()
    sent: list[dict[str, Any]] = server.requests[-1].body["input"]
    return sent


async def test_what_one_server_of_a_gateway_adds_to_its_items_another_need_not_know() -> None:
    seen = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed", "extra": 1}
    said = message("Well", phase="commentary")
    refused = "Unknown parameter: 'input[1].extra'."
    _, reasoned, spoken, called, _ = await sent_after(refused, seen, said, CALL | {"namespace": "x"})
    assert reasoned == {"type": "reasoning", "summary": [], "encrypted_content": "sealed"}
    assert set(spoken) == {"type", "role", "content"}
    assert set(called) == {"type", "call_id", "name", "arguments"}


async def test_an_output_that_is_not_found_stands_closer_to_its_call() -> None:
    second = CALL | {"id": "fc_2", "call_id": "call_2"}
    refused = "No tool output found for tool call call_1"
    sent = await sent_after(refused, CALL, message("and"), second)
    calls = ["function_call"] * 2 + ["function_call_output"] * 2
    assert [item["type"] for item in sent] == ["message", "message", *calls]


@pytest.mark.parametrize(
    "error",
    [
        {"message": "The encrypted content for item rs_1 could not be verified."},
        {"message": "x", "code": "invalid_encrypted_content"},
        {"message": "Could not decrypt the provided encrypted_content."},
        {"message": "reasoning `encrypted_content` was not issued to this caller"},
        {"message": "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
    ],
)
async def test_reasoning_that_its_server_cannot_open_any_more_does_not_end_the_session(
    responses_server: ResponsesServer, error: dict[str, str]
) -> None:
    responses_server.push(THOUGHTFUL, json_answer({"error": error}, 400), HELLO)
    talk = Conversation(provider_of(responses_server))
    answer = await talk.ask(user("Hi"))
    last = await talk.ask(*(result(each.id, "x") for each in answer.calls))
    await talk.provider.aclose()
    assert last.text == "Hello, world"
    kinds = [[item["type"] for item in each.body["input"]] for each in responses_server.requests]
    assert ["reasoning" in each for each in kinds] == [False, True, False]
    assert not responses_server.faults


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "Invalid schema for function 'f'"}, "bad_request"),
        (400, {"message": "max_output_tokens: context window exceeded"}, "context_overflow"),
        (500, {"message": "prompt_cache_key"}, "server"),
        (401, {"message": f"Incorrect API key provided: {KEY}"}, "auth"),
        (429, {"message": "spent", "code": "insufficient_quota"}, "quota"),
        (404, {"message": "The model does not exist", "code": "model_not_found"}, "bad_request"),
    ],
)
async def test_another_refusal_is_told_at_once(
    responses_server: ResponsesServer, status: int, error: dict[str, str], kind: str
) -> None:
    responses_server.push(json_answer({"error": error}, status))
    _, told = await fail(provider_of(responses_server, KEY))
    assert (told.kind, told.status) == (kind, status)
    assert len(responses_server.requests) == 1


async def test_a_field_that_is_refused_twice_is_an_error(responses_server: ResponsesServer) -> None:
    refusal = json_answer({"error": {"message": "prompt_cache_key?"}}, 400)
    responses_server.push(refusal, refusal)
    _, error = await fail(provider_of(responses_server))
    assert error.kind == "bad_request"
    assert len(responses_server.requests) == 2


async def test_a_server_that_checks_types_is_understood_after_its_first_refusal() -> None:
    with ResponsesServer([THOUGHTFUL, THOUGHTFUL, HELLO], typed=True) as server:
        talk = Conversation(provider_of(server))
        answer = await talk.ask(user("Hi"))
        answer = await talk.ask(*(result(each.id, "x") for each in answer.calls))
        last = await talk.ask(*(result(each.id, "x") for each in answer.calls))
        await talk.provider.aclose()
        assert last.text == "Hello, world"
        assert len(server.faults) == 1
        assert len(server.requests) == 4


# --- how a stream ends ----------------------------------------------------------------------------


async def test_the_terminal_event_ends_the_answer_though_the_server_keeps_the_connection(
    responses_server: ResponsesServer,
) -> None:
    responses_server.push(Raw(sse(text("Hi"), COMPLETED, done=False), linger=True))
    provider = provider_of(responses_server)
    with anyio.fail_after(5):
        assert (await read(provider)).text == "Hi"
    responses_server.wait_for_disconnects()
    await provider.aclose()


async def test_a_connection_that_breaks_after_the_terminal_event_is_no_error(
    responses_server: ResponsesServer,
) -> None:
    body = sse(text("Hi"), COMPLETED, done=False)
    responses_server.push(Raw(body + b"data: {", cut_after=len(body) + 3))
    provider = provider_of(responses_server)
    assert (await read(provider)).end.stop == "stop"
    await provider.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b""),
        Raw(sse(text("half"), done=False)),
        Raw(sse(text("half"))),
        Raw(sse(added(CALL), arguments('{"path":"a"}'), done(CALL), COMPLETED), cut_after=300),
        Raw(sse(text("half"), text("more")), cut_after=0),
    ],
    ids=["empty", "ends early", "ends with its mark alone", "breaks in a call", "breaks at once"],
)
async def test_a_clean_end_and_a_broken_connection_are_both_truncation(
    responses_server: ResponsesServer, answer: Raw
) -> None:
    responses_server.push(answer)
    _, error = await fail(provider_of(responses_server))
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


async def test_an_error_after_text_is_told_after_the_text(responses_server: ResponsesServer) -> None:
    responses_server.push(HELLO | {"error": {"kind": "overloaded", "message": "the model is overloaded"}})
    reading, error = await fail(provider_of(responses_server))
    assert reading.text == "Hello, world"
    assert (error.kind, error.retryable) == ("overloaded", True)


async def test_a_response_that_failed_is_typed(responses_server: ResponsesServer) -> None:
    quota = {"code": "insufficient_quota", "message": "You exceeded your current quota"}
    responses_server.push(Raw(sse({"type": "error", "error": quota}, over("failed", error=quota))))
    _, error = await fail(provider_of(responses_server))
    assert (error.kind, error.retryable) == ("quota", False)


@pytest.mark.parametrize(
    ("answer", "timeouts", "words"),
    [
        (Raw(answer=False), Timeouts(first_byte=0.2), "no answer"),
        (Raw(sse(text("x")), stall_after=60), Timeouts(idle=0.2), "no data"),
    ],
    ids=["no head", "silence in the middle"],
)
async def test_silence_is_a_timeout_that_may_be_tried_again(
    responses_server: ResponsesServer, answer: Raw, timeouts: Timeouts, words: str
) -> None:
    responses_server.push(answer)
    with anyio.fail_after(10):
        _, error = await fail(provider_of(responses_server, timeouts=timeouts))
    assert (error.kind, error.retryable) == ("timeout", True)
    assert words in error.message


async def test_leaving_the_stream_early_closes_the_connection(responses_server: ResponsesServer) -> None:
    responses_server.push(HELLO | {"hang": True})
    provider = provider_of(responses_server)
    async with provider.stream(request()) as events:
        assert await anext(events) == TextDelta(0, "He")
    await anyio.to_thread.run_sync(responses_server.wait_for_disconnects)
    await provider.aclose()


async def test_a_login_page_is_told_as_a_wrong_base_url(responses_server: ResponsesServer) -> None:
    responses_server.push(Raw(b"<!DOCTYPE html>" + b"x" * 50_000, 200, {"content-type": "text/html"}))
    _, error = await fail(provider_of(responses_server))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert f"{responses_server.base_url}/responses" in error.message


async def test_a_server_without_this_api_is_told_by_its_address(model_server: ModelServer) -> None:
    _, error = await fail(provider_of(model_server))
    assert (error.kind, error.status) == ("bad_request", 404)
    assert "/v1/responses" in error.message
