"""What the decoder makes of streams that break the rules, each as some server breaks them."""

import json
import logging
from typing import Any

import pytest
from conversation import calls_in
from fakes.model_server import sse

from agentd.protocol.messages import Usage
from agentd.providers.base import (
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from agentd.providers.http_errors import Peer
from agentd.providers.openai_chat_decoder import ChatDecoder

PEER = Peer("local", "m", "http://127.0.0.1/v1/chat/completions", secret="sk-canary")


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call_fragment(**fields: Any) -> dict[str, Any]:
    return delta(tool_calls=[{"index": 0, **fields}])


STOP = delta("stop")
USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}


def decode(body: bytes, chunk: int = 10**9) -> tuple[list[StreamEvent], StreamEnd]:
    decoder, events = ChatDecoder(PEER), list[StreamEvent]()
    for start in range(0, len(body), chunk):
        events += decoder.feed(body[start : start + chunk])
    events += decoder.close()
    return events, decoder.end()


def text_of(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def failure(body: bytes) -> tuple[list[StreamEvent], ProviderError]:
    decoder = ChatDecoder(PEER)
    events = decoder.feed(body) + decoder.close()
    with pytest.raises(ProviderError) as caught:
        decoder.end()
    assert caught.value.message
    return events, caught.value


# --- deltas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"choices": None},
        {"choices": "none"},
        {"choices": [None]},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": "x"}]},
        delta(content=None, reasoning_content=None, tool_calls=None, role="assistant"),
        delta(content=7, reasoning=[1], tool_calls={"a": 1}, refusal=False),
        {"choices": [], "prompt_filter_results": [{}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}, "finish_reason": "length"}]},
        {"error": None, "choices": []},
    ],
)
def test_a_chunk_that_says_nothing_is_passed_over(chunk: dict[str, Any]) -> None:
    events, end = decode(sse(chunk, delta(content="hi"), chunk, STOP))
    assert text_of(events) == "hi"
    assert end.stop == "stop"


def test_ill_typed_side_fields_do_not_cost_the_delta() -> None:
    chunk = call_fragment(id="c1", function={"name": "read", "arguments": "{}"})
    events, end = decode(sse(chunk | {"usage": "n/a", "created": "yesterday", "x_groq": 3}, STOP))
    assert calls_in(events) == [{"id": "c1", "name": "read", "arguments": "{}"}]
    assert end.usage is None


def test_thinking_text_and_calls_are_blocks_in_the_order_of_their_first_appearance() -> None:
    events, _ = decode(
        sse(
            delta(reasoning_content="a"),
            delta(reasoning_content="b"),
            delta(content="c"),
            call_fragment(id="c1", function={"name": "f", "arguments": "{"}),
            delta(content="\n"),
            call_fragment(function={"arguments": "}"}),
            delta("tool_calls", content="\n"),
        )
    )
    assert events == [
        ThinkingDelta(0, "a"),
        ThinkingDelta(0, "b"),
        TextDelta(1, "c"),
        ToolCallDelta(2, "{", "c1", "f"),
        TextDelta(3, "\n"),
        ToolCallDelta(2, "}"),
        TextDelta(3, "\n"),
    ]


def test_the_same_reasoning_in_two_fields_is_said_once_and_its_field_is_remembered() -> None:
    events, end = decode(sse(delta(reasoning="x", reasoning_content="x"), delta(reasoning="y"), STOP))
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["x", "y"]
    assert end.provider_data == {"reasoningField": "reasoning_content"}


def test_reasoning_only_in_details_is_said_and_kept() -> None:
    pieces = [{"type": "reasoning.text", "index": 0, "text": text, "signature": None} for text in ("a", "b")]
    signed = {"type": "reasoning.text", "index": 0, "signature": "sig"}
    chunks = [delta(reasoning_details=[piece]) for piece in [*pieces, signed]]
    events, end = decode(sse(*chunks, STOP))
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["a", "b"]
    kept = {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "sig"}
    assert end.provider_data == {"reasoningDetails": [kept]}


def test_details_of_several_calls_without_an_index_are_not_glued() -> None:
    """What Gemini has signed comes in a detail for each of its parallel calls, which its id names."""
    details = [
        {"type": "reasoning.encrypted", "id": id, "data": data} for id, data in (("a", "x"), ("b", "y"))
    ]
    _, end = decode(sse(*(delta(reasoning_details=[detail]) for detail in details), STOP))
    assert end.provider_data == {"reasoningDetails": details}


def test_a_calls_extra_content_is_kept_for_its_position() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    chunks = [
        delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "f"}, "extra_content": extra}]),
    ]
    _, end = decode(sse(*chunks, STOP))
    assert end.provider_data == {"callExtras": [None, {"extra_content": extra}]}


def test_whatever_else_a_server_says_of_a_call_is_kept_and_nothing_is_not() -> None:
    fragments = [
        {
            "index": 0,
            "id": "a",
            "type": "function",
            "function": {"name": "f"},
            "extra_content": None,
            "x": "",
        },
        {"index": 0, "function": {"arguments": "{}"}, "thought_signature": "c2ln"},
        {"index": 0, "provider_specific_fields": {"n": 1}},
    ]
    _, end = decode(sse(*(delta(tool_calls=[fragment]) for fragment in fragments), STOP))
    kept = {"thought_signature": "c2ln", "provider_specific_fields": {"n": 1}}
    assert end.provider_data == {"callExtras": [kept]}


def test_the_extra_content_of_a_text_is_kept() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    _, end = decode(
        sse(delta(content="Hi"), delta(content="", extra_content=extra), delta(content="!"), STOP)
    )
    assert end.provider_data == {"extraContent": extra}


def test_content_as_a_list_of_parts_is_thinking_and_text() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "hi"},
        {"type": "reference", "reference_ids": [1]},
        "!",
        None,
    ]
    events, _ = decode(sse(delta(content=parts), STOP))
    assert events == [ThinkingDelta(0, "hm"), TextDelta(1, "hi"), TextDelta(1, "!")]


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_characters_cut_by_the_network_stay_whole(chunk: int) -> None:
    said = "你好🌍é"
    body = f"data: {json.dumps(delta(content=said), ensure_ascii=False)}\n\n".encode() + sse(STOP)
    events, _ = decode(body, chunk)
    assert text_of(events) == said


def test_a_surrogate_pair_sent_in_halves_is_one_character() -> None:
    first, second = "\ud83c", "\udf0d"
    piece = [call_fragment(function={"name": "f", "arguments": half}) for half in (f'"{first}', f'{second}"')]
    events, _ = decode(sse(delta(content=f"a{first}"), delta(content=f"{second}b"), *piece, STOP))
    assert text_of(events) == "a🌍b"
    assert calls_in(events)[0]["arguments"] == '"🌍"'


def test_half_a_surrogate_pair_costs_no_other_text() -> None:
    events, _ = decode(sse(delta(content="a\udf0db\ud83c"), delta(content="c"), STOP))
    assert text_of(events).replace("\udf0d", "").replace("\ud83c", "") == "abc"


def test_noise_is_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        events, end = decode(sse(": PROCESSING", delta(content="a"), "{half", "", delta(content="b"), STOP))
    assert text_of(events) == "ab"
    assert end.stop == "stop"
    assert len(caplog.records) == 1


def test_events_that_are_not_parted_by_blank_lines_are_read_one_by_one() -> None:
    lines = [json.dumps(delta(content=text)) for text in "ab"]
    body = "".join(f"data: {line}\n" for line in [*lines, json.dumps(STOP), "[DONE]"])
    events, end = decode(body.encode())
    assert text_of(events) == "ab"
    assert end.stop == "stop"


def test_numbers_and_nesting_that_no_parser_takes_are_noise() -> None:
    events, _ = decode(sse("[" * 100_000, "1" * 10_000, delta(content="a"), STOP))
    assert text_of(events) == "a"


# --- the end --------------------------------------------------------------------------------------


def test_usage_after_the_finish_is_read_and_the_last_one_stands() -> None:
    early = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    _, end = decode(sse(delta(content="a") | early, STOP, USAGE, {"choices": []}))
    assert end.usage == Usage(input=10, output=2, total=12, context_tokens=12)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(input=5, cache_read=4, output=5, total=14, context_tokens=14),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
            },
            Usage(input=2, cache_read=4, cache_write=3, output=5, total=14, context_tokens=14),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 5, "prompt_cache_hit_tokens": 8},
            Usage(input=1, cache_read=8, output=5, total=14, context_tokens=14),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 2,
                "total_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 8},
            },
            Usage(input=10, output=10, reasoning=8, total=20, context_tokens=20),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 10,
                "total_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 11},
            },
            Usage(input=10, output=10, reasoning=10, total=20, context_tokens=20),
        ),
        (
            {"prompt_tokens": -3, "completion_tokens": 2.0, "prompt_tokens_details": None},
            Usage(output=2, total=2, context_tokens=2),
        ),
        ({"prompt_tokens": "many", "completion_tokens": True}, None),
        ({}, None),
    ],
)
def test_usage_is_read_in_our_terms(usage: dict[str, Any], expected: Usage | None) -> None:
    _, end = decode(sse(delta("stop", content="a"), {"choices": [], "usage": usage}))
    assert end.usage == expected


def test_usage_is_found_in_groqs_and_moonshots_places() -> None:
    usage = USAGE["usage"]
    _, groq = decode(sse(delta("stop", content="a") | {"x_groq": {"usage": usage}}))
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}
    _, moonshot = decode(sse(delta(content="a"), {"choices": [choice]}))
    assert groq.usage == moonshot.usage == Usage(input=10, output=2, total=12, context_tokens=12)


@pytest.mark.parametrize(
    ("finish", "with_call", "stop"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_use"),
        ("eos", True, "tool_use"),
        ("tool_calls", True, "tool_use"),
        ("tool_calls", False, "tool_use"),
        ("function_call", True, "tool_use"),
        ("length", True, "length"),
        ("max_tokens", False, "length"),
        ("model_length", False, "length"),
        ("something new", False, "stop"),
        ("something new", True, "tool_use"),
        ("STOP", False, "stop"),
    ],
)
def test_the_finish_reason_is_mapped_and_kept(finish: str, with_call: bool, stop: str) -> None:
    said = (
        call_fragment(id="c", function={"name": "f", "arguments": "{"}) if with_call else delta(content="a")
    )
    _, end = decode(sse(said, delta(finish)))
    assert (end.stop, end.raw_stop) == (stop, finish)


def test_a_finish_that_repeats_before_the_usage_ends_nothing() -> None:
    _, end = decode(sse(delta(content="a"), STOP, STOP | {"usage": USAGE["usage"]}))
    assert end.usage is not None


@pytest.mark.parametrize("tail", [sse(), sse(USAGE, done=False), b"data: [DONE]"])
def test_a_stream_without_finish_is_whole_with_done_or_a_usage_of_its_own(tail: bytes) -> None:
    events, end = decode(sse(delta(content="a"), done=False) + tail)
    assert (text_of(events), end.stop, end.raw_stop) == ("a", "stop", None)


def test_a_stream_without_done_is_whole_with_finish() -> None:
    _, end = decode(sse(delta(content="a"), STOP, done=False))
    assert end.stop == "stop"


def test_done_ends_the_reading_at_once() -> None:
    decoder = ChatDecoder(PEER)
    decoder.feed(sse(delta(content="a"), STOP))
    assert decoder.done
    assert decoder.feed(sse(delta(content="after"))) == []


def test_refusal_text_is_said_and_stops_as_a_refusal() -> None:
    events, end = decode(sse(delta(refusal="I can"), delta(refusal="not."), STOP))
    assert text_of(events) == "I cannot."
    assert (end.stop, end.raw_stop) == ("refusal", "stop")


def test_a_finish_behind_which_the_answer_goes_on_was_none() -> None:
    """Gateways that hand on a reason with every chunk."""
    decoder = ChatDecoder(PEER)
    decoder.feed(sse(delta("STOP", content="a"), delta("STOP", content="b"), done=False))
    assert decoder.finish_reason is None, "more may come after any time"
    decoder.feed(sse(delta("STOP"), done=False))
    assert decoder.finish_reason == "STOP"
    decoder.close()
    assert decoder.end("the connection broke").stop == "stop"


def test_an_answer_with_a_finish_in_every_chunk_is_whole_at_the_end_of_the_connection() -> None:
    events, end = decode(sse(delta("STOP", content="a"), delta("STOP", content="b"), done=False))
    assert (text_of(events), end.stop) == ("ab", "stop")


@pytest.mark.parametrize("last", [USAGE, delta("STOP")])
def test_what_follows_the_last_chunk_with_a_finish_is_not_waited_for_long(last: dict[str, Any]) -> None:
    decoder = ChatDecoder(PEER)
    decoder.feed(sse(delta("STOP", content="a"), delta("STOP", content="b"), last, done=False))
    assert decoder.finish_reason == "STOP"


def test_an_answer_with_a_finish_in_every_chunk_that_breaks_off_is_truncated() -> None:
    decoder = ChatDecoder(PEER)
    decoder.feed(sse(delta("STOP", content="a"), delta("STOP", content="b"), done=False))
    decoder.close()
    with pytest.raises(ProviderError, match="truncated") as caught:
        decoder.end("the connection broke")
    assert caught.value.retryable


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n",
        b": ping\n\n",
        b"data: [DONE]\n\n",
        sse(delta(content="half"), done=False),
        sse(call_fragment(id="c", function={"name": "f", "arguments": '{"a'}), done=False),
        sse(delta(content="a") | {"usage": USAGE["usage"]}, done=False),
        sse(delta(content="a"), done=False)[:-9],
        sse(delta(content="a"), done=False) + b'data: {"choices":[{"delta":{"content":"\xe4\xbd',
        b'{"choices": [{"message": {"content": "half',
    ],
)
def test_a_stream_that_just_ends_is_truncated_and_may_be_tried_again(body: bytes) -> None:
    _, error = failure(body)
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


def test_a_stream_cut_after_its_finish_is_whole() -> None:
    _, end = decode(sse(delta("stop", content="a"), done=False) + b'data: {"choices":[],"usage":{"\xe4')
    assert end.stop == "stop"


def test_a_content_filter_is_a_refusal_that_names_it_and_keeps_usage_and_text() -> None:
    events, error = failure(sse(delta(content="a"), delta("content_filter"), USAGE))
    assert text_of(events) == "a"
    assert error.kind == "refusal"
    assert "content_filter" in error.message
    assert error.usage == Usage(input=10, output=2, total=12, context_tokens=12)
    assert not error.retryable


ERRORS = [
    (sse({"error": {"message": "Overloaded", "type": "overloaded_error"}}), "overloaded", "Overloaded"),
    (sse({"error": {"code": 502, "message": "Bad gateway"}, "choices": None}), "server", "Bad gateway"),
    (sse({"error": "out of memory"}), "server", "out of memory"),
    (sse({"object": "error", "message": "no GPU", "code": 500}), "server", "no GPU"),
    (sse({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}), "rate_limit", "slow"),
    (sse({"choices": [{"index": 0, "error": {"code": 429, "message": "busy"}}]}), "rate_limit", "busy"),
    (sse({"error": {"code": 400, "message": "Token limit reached"}}), "context_overflow", "Token limit"),
    (sse([{"error": {"code": 503, "message": "unavailable"}}]), "overloaded", "unavailable"),
    (
        b'event: error\ndata: {"error":{"message":"bad call","code":"tool_use_failed"}}\n\n',
        "server",
        "bad call",
    ),
    (b'event: error\ndata: {"message":"plain"}\n\n', "server", "plain"),
    (b"event: error\ndata: just words\n\n", "server", "just words"),
    (b'error: {"code":500,"message":"old llama","type":"server_error"}\n\n', "server", "old llama"),
    (sse({"error": {"message": "", "code": None}}), "server", "local: "),
]


@pytest.mark.parametrize(("error_bytes", "kind", "words"), ERRORS)
def test_an_error_inside_the_stream_is_typed_and_keeps_what_was_said(
    error_bytes: bytes, kind: str, words: str
) -> None:
    events, error = failure(sse(delta(content="part"), done=False) + error_bytes)
    assert text_of(events) == "part"
    assert error.kind == kind
    assert words in error.message
    assert error.message.startswith("local: ")


def test_an_error_after_a_finish_still_counts() -> None:
    body = sse(delta("length", content="a"), {"error": {"code": 400, "message": "Token limit reached"}})
    assert failure(body)[1].kind == "context_overflow"


@pytest.mark.parametrize("finish", ["error", "abort", "function_call_filter: MALFORMED_FUNCTION_CALL"])
def test_a_finish_that_means_failure_may_be_tried_again(finish: str) -> None:
    _, error = failure(sse(delta(content="a"), delta(finish), USAGE))
    assert (error.kind, error.retryable) == ("server", True)
    assert error.usage is not None


def test_an_error_never_repeats_the_key() -> None:
    _, error = failure(sse({"error": {"message": "bad key sk-canary given"}}))
    assert "sk-canary" not in error.message
    assert "[key]" in error.message


# --- answers that are no stream -------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_json_answer_is_read_like_a_stream(indent: int | None) -> None:
    calls = [{"id": f"c{n}", "function": {"name": "f", "arguments": "{}"}} for n in (1, 2)]
    message = {"role": "assistant", "content": "hi", "reasoning_content": "hm", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = json.dumps({"choices": [choice], "usage": USAGE["usage"]}, indent=indent).encode()
    events, end = decode(b" \n" + body, 5)
    assert events == [
        ThinkingDelta(0, "hm"),
        TextDelta(1, "hi"),
        ToolCallDelta(2, "{}", "c1", "f"),
        ToolCallDelta(3, "{}", "c2", "f"),
    ]
    assert end.stop == "tool_use"
    assert end.usage is not None


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"error": {"message": "The prompt is too long: 9 tokens"}}, "context_overflow", "too long"),
        ({"detail": "Invalid API Key"}, "auth", "Invalid API Key"),
        ({"unexpected": 1}, "server", "unexpected"),
        ([{"error": {"code": 429, "message": "quota of the minute"}}], "rate_limit", "quota of the minute"),
    ],
)
def test_a_json_error_with_status_200_is_typed(body: Any, kind: str, words: str) -> None:
    _, error = failure(json.dumps(body).encode())
    assert error.kind == kind
    assert words in error.message


def test_a_page_of_html_is_no_stream() -> None:
    _, error = failure(b"<!DOCTYPE html><html>" + b"x" * 1000)
    assert error.kind == "protocol"
    assert "base_url" in error.message
    assert "DOCTYPE" not in error.message
