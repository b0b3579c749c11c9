"""How the Responses decoder reads an answer: its framing, its end and its failures, as servers send them."""

import json
from typing import Any

import pytest
from conversation import calls_in
from fakes.model_server import sse
from hypothesis import given, settings
from hypothesis import strategies as st
from responses_events import (
    ARGUMENTS,
    CALL,
    COMPLETED,
    PEER,
    Payload,
    added,
    arguments,
    decode,
    done,
    failure,
    message,
    over,
    reasoning,
    text,
    text_of,
    thinking_of,
)

from agentd.protocol.messages import Usage
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta
from agentd.providers.openai_responses_decoder import ResponsesDecoder

# --- framing --------------------------------------------------------------------------------------


def test_the_event_line_the_comments_and_the_end_mark_may_be_there_or_not() -> None:
    named = b"".join(
        f": OPENROUTER PROCESSING\r\n\r\nevent: {each['type']}\r\ndata: {json.dumps(each)}\r\n\r\n".encode()
        for each in (text("Hi"), COMPLETED)
    )
    for body in (named, named + b"data: [DONE]\r\n\r\n", sse(text("Hi"), COMPLETED, done=False)):
        events, end = decode(body)
        assert (text_of(events), end.stop) == ("Hi", "stop")


def test_the_event_line_stands_in_for_a_missing_type() -> None:
    delta = {"output_index": 0, "content_index": 0, "delta": "Hi"}
    body = f"event: response.output_text.delta\ndata: {json.dumps(delta)}\n\n".encode()
    events, _ = decode(body + sse(COMPLETED))
    assert text_of(events) == "Hi"


def test_a_character_cut_at_every_byte_stays_whole() -> None:
    body = f"data: {json.dumps(text('你好🌍'), ensure_ascii=False)}\n\n".encode() + sse(COMPLETED)
    assert text_of(decode(body, 1)[0]) == "你好🌍"


def test_the_halves_of_a_surrogate_pair_in_two_deltas_are_one_character() -> None:
    body = sse(text("a\ud83c"), text("\udf0d!"), done(message("a🌍!")), COMPLETED)
    assert text_of(decode(body)[0]) == "a🌍!"


def test_a_lone_surrogate_never_gets_into_what_is_journaled() -> None:
    _, end = decode(sse(done(message("x", phase="\ud800")), COMPLETED))
    json.dumps(end.provider_data, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "noise",
    [
        {},
        {"type": None},
        {"type": "keepalive", "sequence_number": 3},
        {"type": "response.created", "response": None},
        {"type": "response.mcp_call.failed", "output_index": 0, "error": "x"},
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {}},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.content_part.added", "output_index": 0, "part": {"text": ""}},
        {"type": "response.function_call_arguments.done", "output_index": 5, "arguments": None},
        {"type": "response.code_interpreter_call_code.delta", "output_index": 7, "delta": "print()"},
        "null",
        "[]",
        "7",
        ": PROCESSING",
    ],
)
def test_an_event_that_says_nothing_is_passed_over(noise: Any) -> None:
    events, end = decode(sse(noise, text("Hi"), noise, COMPLETED))
    assert (text_of(events), end.stop, calls_in(events)) == ("Hi", "stop", [])


def test_a_whole_json_answer_is_read_like_a_stream() -> None:
    whole = {
        "object": "response",
        "status": "completed",
        "output": [reasoning("Hm."), message("Hi"), CALL],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    events, end = decode(json.dumps(whole, indent=1).encode(), 7)
    assert (thinking_of(events), text_of(events), end.stop) == ("Hm.", "Hi", "tool_use")
    assert calls_in(events) == [{"id": "call_1", "name": "read", "arguments": ARGUMENTS}]
    assert end.usage is not None


# --- the end --------------------------------------------------------------------------------------


def test_the_terminal_event_ends_the_answer_and_nothing_after_it_counts() -> None:
    decoder = ResponsesDecoder(PEER)
    events = decoder.feed(sse(text("Hi"), COMPLETED, text("no"), over("failed"), done=False))
    assert decoder.done
    assert decoder.feed(sse(text("no"))) == decoder.close() == []
    assert text_of(events) == "Hi"
    assert decoder.end().stop == "stop"


@pytest.mark.parametrize(
    ("terminal", "stop", "raw"),
    [
        (over("completed"), "stop", "completed"),
        (over("done"), "stop", "completed"),
        ({"type": "response.completed"}, "stop", "completed"),
        (
            over("incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "length",
            "max_output_tokens",
        ),
        (over("incomplete", incomplete_details={"reason": "odd"}), "length", "odd"),
        (over("incomplete", incomplete_details=None), "length", "incomplete"),
        ({"type": "response.completed", "response": {"status": "incomplete"}}, "length", "incomplete"),
    ],
)
def test_how_a_response_stopped(terminal: Payload, stop: str, raw: str) -> None:
    _, end = decode(sse(text("Hi"), terminal))
    assert (end.stop, end.raw_stop) == (stop, raw)


def test_a_call_that_the_limit_cut_ends_for_its_length() -> None:
    cut = over(
        "incomplete",
        incomplete_details={"reason": "max_output_tokens"},
        output=[CALL | {"arguments": '{"pa', "status": "incomplete"}],
    )
    events, end = decode(sse(added(CALL | {"arguments": ""}), arguments('{"pa'), cut))
    assert (calls_in(events)[0]["arguments"], end.stop) == ('{"pa', "length")


def test_an_answer_that_the_filter_stopped_is_a_refusal() -> None:
    filtered = over(
        "incomplete",
        incomplete_details={"reason": "content_filter"},
        usage={"input_tokens": 5, "output_tokens": 1},
    )
    events, error = failure(sse(text("Hi"), filtered))
    assert (text_of(events), error.kind, error.retryable) == ("Hi", "refusal", False)
    assert error.usage is not None


def test_a_refusal_is_text_and_the_reason_for_the_stop() -> None:
    refusal = {"output_index": 0, "content_index": 0}
    part = {"type": "refusal", "refusal": "I will not."}
    body = sse(
        {"type": "response.refusal.delta", "delta": "I will"} | refusal,
        {"type": "response.refusal.done", "refusal": "I will not."} | refusal,
        done(message() | {"content": [part]}),
        COMPLETED,
    )
    events, end = decode(body)
    assert (text_of(events), end.stop) == ("I will not.", "refusal")


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"code": "insufficient_quota", "message": "You exceeded your current quota"}, "quota", False),
        ({"code": "rate_limit_exceeded", "message": "Requests have exceeded rate limit"}, "rate_limit", True),
        ({"code": "server_error", "message": "The server had an error"}, "server", True),
        ({"code": "server_is_overloaded", "message": "x"}, "overloaded", True),
        ({"code": "slow_down", "message": "x"}, "overloaded", True),
        ({"code": "context_length_exceeded", "message": "x"}, "context_overflow", False),
        ({"code": "invalid_prompt", "message": "Invalid prompt"}, "bad_request", False),
        (
            {"code": "invalid_prompt", "message": "flagged as potentially violating our usage policy"},
            "refusal",
            False,
        ),
        ({"code": "image_too_large", "message": "x"}, "bad_request", False),
        ({"code": "vector_store_timeout", "message": "x"}, "timeout", True),
        (None, "server", True),
    ],
)
def test_a_failed_response_is_typed_by_its_code(error: Payload | None, kind: str, retryable: bool) -> None:
    usage = {"input_tokens": 7, "output_tokens": 0}
    events, told = failure(sse(text("Hi"), over("failed", error=error, usage=usage)))
    assert text_of(events) == "Hi"
    assert (told.kind, told.retryable) == (kind, retryable)
    assert told.usage is not None
    assert told.usage.input == 7


@pytest.mark.parametrize(
    "body",
    [
        sse({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}),
        sse({"type": "error", "error": {"type": "x", "code": "rate_limit_exceeded", "message": "slow"}}),
        sse({"error": {"code": "rate_limit_exceeded", "message": "slow"}}),
        b'event: error\ndata: {"code": "rate_limit_exceeded", "message": "slow"}\n\n',
        b"event: error\ndata: rate limit: slow\n\n",
        b'{"error": {"code": "rate_limit_exceeded", "message": "slow"}}',
    ],
)
def test_an_error_in_any_form_ends_the_answer_once(body: bytes) -> None:
    later = b"" if body.startswith(b"{") else sse(over("failed", error={"code": "server_error"}))
    _, error = failure(body + later)
    assert (error.kind, error.retryable) == ("rate_limit", True)
    assert "slow" in error.message


def test_the_wait_that_an_error_in_the_stream_names_is_read() -> None:
    words = "Rate limit reached. Please try again in 494ms. Visit the site to learn more."
    _, error = failure(sse(over("failed", error={"code": "rate_limit_exceeded", "message": words})))
    assert error.retry_after_ms == 494


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b": ping\n\n",
        sse(text("half"), done=False),
        sse(text("half")),
        sse(added(CALL), arguments(ARGUMENTS), done(CALL)),
        sse(text("half")) + b'data: {"type":"response.comp',
        b'data: {"type":"response.output_text.delta","delta":"\xf0\x9f',
    ],
)
def test_an_answer_without_its_terminal_event_is_truncated(body: bytes) -> None:
    _, error = failure(body)
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


def test_a_page_of_html_is_a_wrong_address() -> None:
    _, error = failure(b"\n<!DOCTYPE html><html>203.0.113.9</html>")
    assert (error.kind, error.retryable) == ("protocol", False)
    assert "203.0.113.9" not in error.message


def test_an_error_never_tells_the_key() -> None:
    _, error = failure(sse({"type": "error", "message": "Incorrect API key provided: sk-canary"}))
    assert error.kind == "auth"
    assert "sk-canary" not in error.message


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ("n/a", None),
        ({}, None),
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 15},
                "total_tokens": 120,
            },
            Usage(
                input=10,
                output=20,
                cache_read=60,
                cache_write=30,
                reasoning=15,
                total=120,
                context_tokens=120,
            ),
        ),
        (
            {"input_tokens": 5, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2},
             "total_tokens": 10},
            Usage(input=5, output=3, reasoning=2, total=8, context_tokens=8),
        ),
        (
            {"input_tokens": 5, "output_tokens": -1, "input_tokens_details": None},
            Usage(input=5, output=0, total=5, context_tokens=5),
        ),
    ],
)  # fmt: skip
def test_usage_counts_each_token_once(usage: Any, expected: Usage | None) -> None:
    _, end = decode(sse(text("Hi"), over("completed", usage=usage)))
    assert end.usage == expected


# --- anything at all ------------------------------------------------------------------------------

_KINDS = [
    "response.output_text.delta", "response.output_text.done", "response.refusal.delta",
    "response.reasoning_text.delta", "response.reasoning_summary_text.done",
    "response.function_call_arguments.delta", "response.function_call_arguments.done",
    "response.output_item.added", "response.output_item.done", "response.completed", "response.incomplete",
    "response.failed", "error", "odd",
]  # fmt: skip
_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from(["", "x", "{", "\ud83c", "\udf0d"])
)
_ITEM_TYPES = st.sampled_from(["message", "function_call", "reasoning", "web_search_call", None, 3])
_PARTS = st.lists(
    st.fixed_dictionaries({}, optional={"type": _SCALARS, "text": _SCALARS, "refusal": _SCALARS}), max_size=2
)
_ITEMS = st.one_of(
    _SCALARS,
    st.fixed_dictionaries(
        {"type": _ITEM_TYPES},
        optional={
            "id": _SCALARS, "call_id": _SCALARS, "name": _SCALARS, "arguments": _SCALARS,
            "content": st.one_of(_SCALARS, _PARTS), "summary": st.one_of(_SCALARS, _PARTS),
            "encrypted_content": _SCALARS,
        },
    ),
)  # fmt: skip
_RESPONSES = st.one_of(
    _SCALARS,
    st.fixed_dictionaries(
        {},
        optional={
            "status": st.sampled_from(["completed", "incomplete", "failed", 1]),
            "output": st.one_of(_SCALARS, st.lists(_ITEMS, max_size=3)),
            "error": _SCALARS,
            "incomplete_details": st.one_of(_SCALARS, st.just({"reason": "content_filter"})),
            "usage": _SCALARS,
        },
    ),
)
_PAYLOADS = st.fixed_dictionaries(
    {"type": st.sampled_from(_KINDS)},
    optional={
        "output_index": _SCALARS, "content_index": _SCALARS, "summary_index": _SCALARS, "delta": _SCALARS,
        "text": _SCALARS, "arguments": _SCALARS, "refusal": _SCALARS, "item": _ITEMS, "response": _RESPONSES,
    },
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(_PAYLOADS, max_size=12), st.integers(1, 40))
def test_any_stream_is_read_the_same_however_it_is_cut_and_ends_well_or_in_a_typed_error(
    payloads: list[Payload], chunk: int
) -> None:
    body = sse(*payloads)
    readings: list[Any] = []
    for size in (10**9, chunk):
        decoder, events = ResponsesDecoder(PEER), list[StreamEvent]()
        for start in range(0, len(body), size):
            events += decoder.feed(body[start : start + size])
        events += decoder.close()
        calls_in(events)  # no id and no name twice
        indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
        assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))
        try:
            end: Any = decoder.end()
            json.dumps(end.provider_data, ensure_ascii=False).encode()
        except ProviderError as error:
            end = (error.kind, error.message)
        readings.append((events, end))
    assert readings[0] == readings[1]


def test_half_a_character_that_stays_alone_takes_no_place_among_the_blocks() -> None:
    done = {"type": "response.function_call_arguments.done", "arguments": "\ud83c"}
    events, _ = decode(sse(done, text("x", at=1), COMPLETED))
    assert events == [TextDelta(0, "x")]
