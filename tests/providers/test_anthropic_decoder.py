"""What the decoder of the Messages API makes of what servers send, whole and broken."""

import json
import logging
from itertools import pairwise
from typing import Any

import pytest
from conversation import calls_in
from fakes.anthropic_server import begin, delta, end, event, finish, start, stream
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.protocol.messages import Usage
from agentd.providers.anthropic_decoder import MessagesDecoder
from agentd.providers.base import ProviderError, StreamEnd, StreamEvent, TextDelta, ThinkingDelta
from agentd.providers.http_errors import Peer

KEY = "sk-ant-canary"
PEER = Peer("anthropic", "claude-sonnet-4-5", "https://api.anthropic.com/v1/messages", KEY)
TEXT, CALL = {"type": "text", "text": ""}, {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}


def decode(body: bytes, chunk: int = 10**9) -> tuple[list[StreamEvent], StreamEnd]:
    decoder = MessagesDecoder(PEER)
    events = pieces(decoder, body, chunk)
    return events, decoder.end()


def pieces(decoder: MessagesDecoder, body: bytes, chunk: int = 10**9) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    for at in range(0, len(body), chunk):
        events += decoder.feed(body[at : at + chunk])
    return events + decoder.close()


def text_of(events: list[StreamEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, TextDelta))


def thinking_of(events: list[StreamEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, ThinkingDelta))


def says(text: str, index: int = 0) -> list[dict[str, Any]]:
    return [begin(index, TEXT), delta(index, "text_delta", text=text), end(index)]


def fail(body: bytes) -> tuple[list[StreamEvent], ProviderError]:
    decoder = MessagesDecoder(PEER)
    events = pieces(decoder, body)
    with pytest.raises(ProviderError) as caught:
        decoder.end()
    assert KEY not in caught.value.message
    return events, caught.value


# --- blocks ---------------------------------------------------------------------------------------


def test_thinking_text_and_calls_are_blocks_in_the_order_of_their_first_appearance() -> None:
    events, ended = decode(
        stream(
            start(),
            begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
            delta(0, "thinking_delta", thinking="Hm."),
            delta(0, "signature_delta", signature="c2ln"),
            end(0),
            begin(1, TEXT),
            end(1),
            *says("Hi", 2),
            begin(3, CALL),
            delta(3, "input_json_delta", partial_json=""),
            delta(3, "input_json_delta", partial_json='{"path": '),
            {"type": "ping"},
            delta(3, "input_json_delta", partial_json='"a"}'),
            end(3),
            finish("tool_use"),
        )
    )
    assert [event.index for event in events] == [0, 1, 2, 2, 2]  # type: ignore[union-attr]  # no StreamEnd
    assert (thinking_of(events), text_of(events)) == ("Hm.", "Hi")
    assert calls_in(events) == [{"id": "toolu_1", "name": "read", "arguments": '{"path": "a"}'}]
    assert (ended.stop, ended.raw_stop) == ("tool_use", "tool_use")
    assert ended.provider_data == {
        "blocks": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text"},
            {"type": "tool_use"},
        ]
    }


@pytest.mark.parametrize("deltas", [[], [""], ["", ""]])
def test_a_call_without_arguments_has_empty_arguments(deltas: list[str]) -> None:
    told = [delta(0, "input_json_delta", partial_json=piece) for piece in deltas]
    events, ended = decode(stream(start(), begin(0, CALL), *told, end(0), finish("tool_use")))
    assert calls_in(events) == [{"id": "toolu_1", "name": "read", "arguments": ""}]
    assert ended.provider_data is None


@pytest.mark.parametrize("id", [None, "", 7], ids=["null", "empty", "a number"])
def test_a_call_without_a_usable_id_is_a_call_all_the_same(id: Any) -> None:
    events, _ = decode(stream(start(), begin(0, CALL | {"id": id}), end(0), finish("tool_use")))
    assert calls_in(events) == [{"id": None, "name": "read", "arguments": ""}]


@pytest.mark.parametrize("closed", [True, False])
def test_input_that_comes_with_the_beginning_of_a_call_is_its_arguments(closed: bool) -> None:
    block = CALL | {"input": {"path": "ä"}}
    events, _ = decode(stream(start(), begin(0, block), *([end(0)] if closed else []), finish("tool_use")))
    assert calls_in(events)[0]["arguments"] == '{"path": "ä"}'


def test_deltas_of_a_call_stand_for_the_input_it_began_with() -> None:
    events, _ = decode(
        stream(
            start(),
            begin(0, CALL | {"input": {"path": "a"}}),
            delta(0, "input_json_delta", partial_json='{"path": "b"}'),
            end(0),
            finish("tool_use"),
        )
    )
    assert calls_in(events)[0]["arguments"] == '{"path": "b"}'


def test_text_and_thinking_in_the_beginning_of_a_block_are_said() -> None:
    events, ended = decode(
        stream(
            start(),
            begin(0, {"type": "thinking", "thinking": "Hm", "signature": "c2ln"}),
            delta(0, "thinking_delta", thinking="!"),
            end(0),
            begin(1, {"type": "text", "text": "He"}),
            delta(1, "text_delta", text="y"),
            finish(),
        )
    )
    assert (thinking_of(events), text_of(events)) == ("Hm!", "Hey")
    assert ended.provider_data is not None
    assert ended.provider_data["blocks"][0]["thinking"] == "Hm!"


def test_interleaved_blocks_are_told_apart_by_their_index() -> None:
    other = CALL | {"id": "toolu_2"}
    events, _ = decode(
        stream(
            start(),
            begin(0, CALL),
            begin(1, other),
            delta(1, "input_json_delta", partial_json='{"b":'),
            delta(0, "input_json_delta", partial_json='{"a":'),
            delta(1, "input_json_delta", partial_json="2}"),
            delta(0, "input_json_delta", partial_json="1}"),
            end(1),
            end(0),
            finish("tool_use"),
        )
    )
    assert [call["arguments"] for call in calls_in(events)] == ['{"a":1}', '{"b":2}']


def test_calls_that_share_an_id_stay_two_calls() -> None:
    events, _ = decode(stream(start(), begin(0, CALL), end(0), begin(1, CALL), end(1), finish("tool_use")))
    assert len(calls_in(events)) == 2


def test_a_delta_of_a_block_that_never_began_is_not_lost() -> None:
    events, _ = decode(stream(start(), delta(0, "text_delta", text="Hi"), finish()))
    assert text_of(events) == "Hi"


def test_a_delta_without_an_index_belongs_to_the_last_block() -> None:
    told = [begin(0, TEXT), {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}}]
    events, _ = decode(stream(start(), *told, finish()))
    assert text_of(events) == "Hi"


def test_text_in_a_block_of_thinking_is_text() -> None:
    events, _ = decode(
        stream(start(), begin(0, {"type": "thinking"}), delta(0, "text_delta", text="Hi"), finish())
    )
    assert (text_of(events), thinking_of(events)) == ("Hi", "")


def test_thinking_that_is_not_shown_is_kept_with_its_signature() -> None:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    _, ended = decode(
        stream(
            start(), begin(0, block), delta(0, "signature_delta", signature="c2ln"), *says("Hi", 1), finish()
        )
    )
    assert ended.provider_data == {"blocks": [block | {"signature": "c2ln"}, {"type": "text"}]}


def test_unknown_blocks_are_kept_whole_and_not_shown() -> None:
    odd = {"type": "hologram", "data": {"a": [1]}}
    hidden = {"type": "redacted_thinking", "data": "b3BhcXVl"}
    server = {"type": "server_tool_use", "id": "srv_1", "name": "search", "input": {}}
    events, ended = decode(
        stream(
            start(),
            begin(0, hidden),
            begin(1, odd),
            delta(1, "hologram_delta", data="?"),
            begin(2, server),
            delta(2, "input_json_delta", partial_json='{"q": "x"}'),
            *says("Hi", 3),
            delta(3, "citations_delta", citation={"url": "u"}),
            finish(),
        )
    )
    assert [event.index for event in events] == [0]  # type: ignore[union-attr]  # no StreamEnd
    assert ended.provider_data == {
        "blocks": [
            hidden,
            odd,
            server | {"input": {"q": "x"}},
            {"type": "text", "citations": [{"url": "u"}]},
        ]
    }


def test_a_call_made_by_the_servers_code_keeps_its_caller() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srv_1"}
    _, ended = decode(stream(start(), begin(0, CALL | {"caller": caller}), end(0), finish("tool_use")))
    assert ended.provider_data == {"blocks": [{"type": "tool_use", "caller": caller}]}


def test_a_surrogate_pair_sent_in_halves_is_one_character() -> None:
    body = (
        json.dumps(delta(0, "text_delta", text="\ud83d")),
        json.dumps(delta(0, "text_delta", text="\ude00")),
    )
    told = "".join(f"data: {line}\n\n" for line in body).encode()
    events, _ = decode(event(start()) + event(begin(0, TEXT)) + told + stream(finish()))
    assert text_of(events) == "😀"


def test_what_is_kept_can_be_stored_though_its_characters_came_in_halves() -> None:
    halves = [delta(0, "thinking_delta", thinking=half) for half in ("a\ud83d", "\ude00", "\ud800!")]
    told = "".join(f"data: {json.dumps(payload)}\n\n" for payload in halves).encode()
    events, ended = decode(
        stream(start(), begin(0, {"type": "thinking"}), stop=False) + told + stream(finish())
    )
    assert ended.provider_data == {"blocks": [{"type": "thinking", "thinking": "a😀\ufffd!"}]}
    assert thinking_of(events).startswith("a😀")


# --- the message ----------------------------------------------------------------------------------


def test_a_message_may_begin_with_its_content() -> None:
    content = [{"type": "text", "text": "Hi"}, CALL | {"input": {"path": "a"}}]
    events, ended = decode(stream(start(content=content, stop_reason="tool_use")))
    assert text_of(events) == "Hi"
    assert calls_in(events) == [{"id": "toolu_1", "name": "read", "arguments": '{"path": "a"}'}]
    assert (ended.stop, ended.raw_stop) == ("tool_use", "tool_use")


def test_a_call_that_the_message_began_with_is_not_made_again_by_its_block() -> None:
    call = CALL | {"input": {"path": "a"}}
    again = [begin(0, call), delta(0, "input_json_delta", partial_json='{"path": "a"}'), end(0)]
    events, _ = decode(stream(start(content=[call]), *again, finish("tool_use")))
    assert calls_in(events) == [{"id": "toolu_1", "name": "read", "arguments": '{"path": "a"}'}]


@pytest.mark.parametrize("id", ["msg_1", None, ""])
def test_the_same_message_begun_twice_is_one(id: str | None) -> None:
    events, ended = decode(stream(start("msg_1"), start(id), *says("Hi"), finish()))  # type: ignore[arg-type]
    assert (text_of(events), ended.stop) == ("Hi", "stop")


def test_another_message_in_the_stream_is_an_error_after_what_was_said() -> None:
    events, error = fail(stream(start("msg_1"), *says("Hi"), start("msg_2"), *says("there", 1), finish()))
    assert text_of(events) == "Hi"
    assert (error.kind, error.retryable) == ("protocol", True)
    assert "mixed up" in error.message


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_use"),
        ("refusal", "refusal"),
        ("something_new", "stop"),
        (None, "stop"),
    ],
)
def test_the_stop_reason_is_mapped_and_kept(reason: str | None, stop: str) -> None:
    _, ended = decode(stream(start(), *says("Hi"), finish(reason)))
    assert (ended.stop, ended.raw_stop) == (stop, reason)


def test_calls_are_tool_use_whatever_word_the_server_has_for_the_end() -> None:
    _, ended = decode(stream(start(), begin(0, CALL), end(0), finish("end_turn")))
    assert ended.stop == "tool_use"


def test_a_call_that_the_output_limit_cut_keeps_the_text_that_came() -> None:
    cut = delta(0, "input_json_delta", partial_json='{"path": "README.md", "content": "# Ti')
    events, ended = decode(stream(start(), begin(0, CALL), cut, end(0), finish("max_tokens")))
    assert calls_in(events)[0]["arguments"] == '{"path": "README.md", "content": "# Ti'
    assert ended.stop == "length"


def test_a_refusal_keeps_its_text_and_its_details() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    events, ended = decode(stream(start(), *says("Well, "), finish("refusal", stop_details=details)))
    assert (text_of(events), ended.stop) == ("Well, ", "refusal")
    assert ended.provider_data == {"stopDetails": details}


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"category": "cyber", "explanation": "No."}, "anthropic: No. (cyber)"),
        ({"category": None, "explanation": "No."}, "anthropic: No."),
        ({"category": "bio"}, "anthropic: it does not answer this (bio)"),
        ({"category": 5, "explanation": ["No."]}, None),
        (None, None),
        ("No.", None),
    ],
)
def test_a_refusal_tells_its_reason_as_far_as_the_server_does(details: Any, reason: str | None) -> None:
    _, ended = decode(stream(start(), finish("refusal", stop_details=details)))
    assert (ended.stop, ended.reason) == ("refusal", reason)


def test_an_answer_that_is_no_refusal_has_no_reason_for_one() -> None:
    _, ended = decode(stream(start(), *says("Hi"), finish("end_turn", stop_details={"category": "cyber"})))
    assert (ended.stop, ended.reason) == ("stop", None)


# --- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (
            {
                "input_tokens": 5,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 2,
                "output_tokens": 1,
            },
            {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}},
            Usage(input=5, output=7, cache_read=30, cache_write=2, reasoning=3, total=44, context_tokens=44),
        ),
        (
            {"input_tokens": 408, "output_tokens": 1},
            {"input_tokens": 412, "cache_read_input_tokens": None, "output_tokens": 264},
            Usage(input=412, output=264, total=676, context_tokens=676),
        ),
        (
            {"input_tokens": "n/a", "output_tokens": -4, "cache_read_input_tokens": True},
            {"output_tokens": 0, "output_tokens_details": [], "input_tokens": 9},
            Usage(input=9, total=9, context_tokens=9),
        ),
        (None, "none", None),
    ],
    ids=["the last output counts", "later counts replace", "ill-typed", "none"],
)
def test_usage_is_read_in_our_terms(first: Any, last: Any, expected: Usage | None) -> None:
    _, ended = decode(stream(start(usage=first), *says("Hi"), finish(usage=last)))
    assert ended.usage == expected


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise",
    [
        {"type": "ping"},
        {"type": "brand_new_event", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_start", "index": 9, "content_block": None},
        {"type": "content_block_start", "index": 9},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": ["odd"]}},
        {"type": "content_block_delta", "index": 77, "delta": {"type": "signature_delta"}},
        {"type": "content_block_stop", "index": 77},
        {"type": "message_delta", "delta": None, "usage": []},
        {"type": 7},
        {},
        [],
        7,
    ],
)
def test_an_event_that_says_nothing_is_passed_over(noise: Any) -> None:
    line = f"data: {json.dumps(noise)}\n\n".encode()
    events, ended = decode(event(start()) + line + stream(*says("Hi"), stop=False) + line + stream(finish()))
    assert (text_of(events), ended.stop, ended.provider_data) == ("Hi", "stop", None)


def test_events_may_lack_their_names_or_their_types() -> None:
    told = [start(), *says("Hi"), finish(), {"type": "message_stop"}]
    unnamed = "".join(f"data: {json.dumps(payload)}\n\n" for payload in told).encode()
    untyped = "".join(
        f"event: {payload.pop('type')}\ndata: {json.dumps(payload)}\n\n" for payload in told
    ).encode()
    for body in (unnamed, untyped):
        events, ended = decode(body)
        assert (text_of(events), ended.stop) == ("Hi", "stop")


def test_data_that_is_no_json_is_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    noise = b": comment\n\ndata: : PROCESSING\n\n"
    events, _ = decode(event(start()) + noise + noise + stream(*says("Hi"), finish()))
    assert text_of(events) == "Hi"
    assert [record.message for record in caplog.records if "no JSON" in record.message][1:] == []
    assert len(caplog.records) == 1


# --- how it ends ----------------------------------------------------------------------------------


def test_message_stop_ends_the_reading_at_once() -> None:
    decoder = MessagesDecoder(PEER)
    events = decoder.feed(stream(start(), *says("Hi"), finish()) + event(start("msg_2")))
    assert (decoder.done, decoder.feed(event(begin(3, CALL))), text_of(events)) == (True, [], "Hi")
    assert decoder.end().stop == "stop"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n",
        b": ping\n\n",
        event({"type": "ping"}),
        event({"type": "message_stop"}),
        stream(start(), stop=False),
        stream(start(), *says("Hi"), stop=False),
        stream(start(), begin(0, CALL), delta(0, "input_json_delta", partial_json='{"a"'), stop=False),
        stream(start(), *says("Hi"), finish(), stop=False),
        stream(start(), *says("Hi"), stop=False) + b"data: [DONE]\n\n",
        stream(start(), stop=False) + b'data: {"type": "content_block_delta", "delta": {"text": "\xe4\xbd',
    ],
)
def test_an_answer_without_message_stop_is_truncated_and_may_be_tried_again(body: bytes) -> None:
    _, error = fail(body)
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


def test_a_truncated_answer_tells_the_usage_so_far() -> None:
    _, error = fail(stream(start(), *says("Hi"), stop=False))
    assert error.usage is not None
    assert error.usage.input == 5


@pytest.mark.parametrize(
    ("kind", "message", "told", "retryable"),
    [
        ("overloaded_error", "Overloaded", "overloaded", True),
        ("api_error", "Internal server error", "server", True),
        ("rate_limit_error", "This request would exceed your rate limit", "rate_limit", True),
        ("timeout_error", "Request timed out", "timeout", True),
        (
            "invalid_request_error",
            "prompt is too long: 3333404 tokens > 200000 maximum",
            "context_overflow",
            False,
        ),
        ("invalid_request_error", f"what {KEY}?", "bad_request", False),
        ("authentication_error", f"invalid x-api-key {KEY}", "auth", False),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_an_error_inside_the_stream_is_typed_and_keeps_what_was_said(
    kind: str, message: str, told: str, retryable: bool, named: bool
) -> None:
    payload = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    line = event(payload) if named else f"data: {json.dumps(payload)}\n\n".encode()
    events, error = fail(stream(start(), *says("Hi"), stop=False) + line + stream(finish()))
    assert text_of(events) == "Hi"
    assert (error.kind, error.retryable) == (told, retryable)
    assert error.usage is not None


def test_a_whole_json_answer_is_read_like_a_stream() -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "Hi"},
            CALL | {"input": {"path": "a"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 7},
    }
    events, ended = decode(json.dumps(message, indent=1).encode(), 5)
    assert (thinking_of(events), text_of(events)) == ("Hm.", "Hi")
    assert calls_in(events)[0]["arguments"] == '{"path": "a"}'
    assert (ended.stop, ended.usage and ended.usage.total) == ("tool_use", 12)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', "overloaded"),
        (b'{"error": "model not found"}', "bad_request"),
        (b"<!DOCTYPE html><html>Sign in</html>", "protocol"),
    ],
)
def test_an_answer_that_is_no_message_is_a_typed_error(body: bytes, kind: str) -> None:
    _, error = fail(body)
    assert error.kind == kind
    assert "<" not in error.message


# --- hostile input --------------------------------------------------------------------------------

WHOLE = stream(
    start(),
    begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, "thinking_delta", thinking="Grübel 🌍"),
    delta(0, "signature_delta", signature="c2ln"),
    end(0),
    *says("你好🌍", 1),
    begin(2, CALL),
    delta(2, "input_json_delta", partial_json='{"path": "ä"}'),
    end(2),
    finish("tool_use"),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(WHOLE)), max_size=12), st.booleans())
def test_a_stream_says_the_same_however_it_is_cut(cuts: list[int], crlf: bool) -> None:
    body = WHOLE.replace(b"\n", b"\r\n") if crlf else WHOLE
    expected, expected_end = decode(WHOLE)
    decoder = MessagesDecoder(PEER)
    events: list[StreamEvent] = []
    places = sorted({0, *cuts, len(body)})
    for a, b in pairwise(places):
        events += decoder.feed(body[a:b])
    events += decoder.close()
    assert (text_of(events), thinking_of(events)) == (text_of(expected), thinking_of(expected))
    assert calls_in(events) == calls_in(expected)
    assert decoder.end() == expected_end


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "x", "text", "tool_use"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "id", "input", "index"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS = ("message_start", "content_block_start", "content_block_delta", "message_delta")
BLOCKS = ("text", "thinking", "tool_use", "odd")
DELTAS = ("text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta")


def ill_typed(types: tuple[str, ...], *fields: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of these types with any values in their fields."""
    return st.fixed_dictionaries({"type": st.sampled_from(types)}, optional=dict.fromkeys(fields, VALUES))


EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "index": VALUES,
        "message": VALUES,
        "content_block": VALUES | ill_typed(BLOCKS, "text", "thinking", "input", "citations", "caller", "id"),
        "delta": VALUES | ill_typed(DELTAS, "text", "thinking", "partial_json", "stop_reason", "citation"),
        "usage": VALUES,
    },
)


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENTS, max_size=8))
def test_no_stream_of_ill_typed_events_makes_the_decoder_fail(told: list[dict[str, Any]]) -> None:
    decoder = MessagesDecoder(PEER)
    events = pieces(decoder, stream(start(), *told, finish()))
    try:
        ended = decoder.end()
    except ProviderError:
        return  # a second message, or what looks like an error
    assert json.dumps(ended.provider_data)
    indexes = [event.index for event in events if not isinstance(event, StreamEnd)]
    assert list(dict.fromkeys(indexes)) == list(range(len(set(indexes))))
