"""What servers do to Gemini's stream, and what is read all the same."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from conversation import calls_in
from fakes.gemini_server import chunk, event, stream
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.protocol.messages import Usage
from agentd.providers.base import (
    ProviderError,
    StreamEnd,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.http_errors import Peer

KEY = "AIza-canary-0123456789"
PEER = Peer("google", "gemini-3-flash", "http://127.0.0.1/v1beta/models/x", KEY)
HI = {"text": "Hi"}


def decode(*bodies: bytes) -> tuple[list[StreamEvent], StreamEnd]:
    decoder = GeminiDecoder(PEER)
    events = [each for body in bodies for each in decoder.feed(body)]
    events += decoder.close()
    return events, decoder.end()


def fail(*bodies: bytes) -> tuple[list[StreamEvent], ProviderError]:
    decoder = GeminiDecoder(PEER)
    events = [each for body in bodies for each in decoder.feed(body)]
    events += decoder.close()
    with pytest.raises(ProviderError) as caught:
        decoder.end()
    assert KEY not in caught.value.message
    return events, caught.value


def text(events: list[StreamEvent]) -> str:
    return "".join(each.text for each in events if isinstance(each, TextDelta))


def call(name: str = "read_file", args: Any = None, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name} | ({} if args is None else {"args": args}) | fields}


def partial(*pieces: tuple[str, Any, bool], more: bool = True, **fields: Any) -> dict[str, Any]:
    """A part that goes on with a call: (path, value, whether the value goes on)."""
    kinds = {str: "stringValue", bool: "boolValue", float: "numberValue", int: "numberValue"}
    args = []
    for path, value, goes_on in pieces:
        told = {"nullValue": "NULL_VALUE"} if value is None else {kinds[type(value)]: value}
        args.append({"jsonPath": path, **told} | ({"willContinue": True} if goes_on else {}))
    return {"functionCall": {"partialArgs": args, **fields} | ({"willContinue": True} if more else {})}


def arguments(*parts: dict[str, Any], finish: str = "STOP") -> str:
    events, _ = decode(stream(*(chunk(part) for part in parts), chunk({"text": ""}, finish=finish)))
    (only,) = calls_in(events)
    return str(only["arguments"])


# --- text and thoughts ----------------------------------------------------------------------------


def test_thoughts_text_and_calls_are_blocks_of_their_own() -> None:
    thought = {"text": "Hm.", "thought": True}
    events, end = decode(stream(chunk(thought, HI), chunk(HI, call(args={"path": "a"}), finish="STOP")))
    assert events == [
        ThinkingDelta(0, "Hm."),
        TextDelta(1, "Hi"),
        TextDelta(1, "Hi"),
        ToolCallDelta(2, '{"path": "a"}', None, "read_file"),
    ]
    assert (end.stop, end.raw_stop) == ("tool_use", "STOP")


def test_only_the_first_candidate_is_read() -> None:
    other = {"index": 1, "content": {"parts": [{"text": "other"}]}, "finishReason": "SAFETY"}
    body = chunk(HI, finish="STOP")
    body["candidates"].insert(0, other)
    events, end = decode(event(body))
    assert (text(events), end.stop) == ("Hi", "stop")


@pytest.mark.parametrize(
    "noise",
    [
        {},
        {"candidates": None},
        {"candidates": []},
        {"candidates": ["x", None]},
        {"candidates": [{"content": None}]},
        {"candidates": [{"content": {"parts": None}}]},
        {"candidates": [{"content": {"parts": [None, 7, {}, {"text": None}, {"text": ["x"]}]}}]},
        {"candidates": [{"content": "x", "finishReason": None}]},
        {"candidates": [{"finishReason": "FINISH_REASON_UNSPECIFIED"}]},
        {"usageMetadata": "n/a"},
        {"usageMetadata": {"promptTokenCount": "many", "trafficType": "ON_DEMAND"}},
        {"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}},
        {"promptFeedback": {"safetyRatings": []}},
    ],
)
def test_what_is_absent_or_ill_typed_is_passed_over(noise: Any) -> None:
    events, end = decode(stream(noise, chunk(HI), noise, chunk(finish="STOP")))
    assert (text(events), end) == ("Hi", StreamEnd("stop", raw_stop="STOP"))


def test_text_beside_fields_that_nobody_knows_is_text() -> None:
    events, _ = decode(stream(chunk({"text": "Hi", "mediaResolution": {}}, finish="STOP")))
    assert text(events) == "Hi"


def test_a_pair_of_surrogates_cut_in_two_is_one_character() -> None:
    halves = b'data: {"candidates":[{"content":{"parts":[{"text":"%s"}]}}]}\n\n'
    end = event(chunk(finish="STOP"))
    events, _ = decode(halves % b"\\ud83c", halves % b"\\udf0d", end)
    assert text(events) == "🌍"


def test_lines_may_end_in_any_way_and_comments_do_not_count() -> None:
    body = stream(chunk(HI), chunk(finish="STOP"))
    for ends in (b"\n", b"\r"):
        events, _ = decode(b": ping\n\n" + body.replace(b"\r\n", ends))
        assert text(events) == "Hi"


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_stream_says_the_same_however_it_is_cut(data: st.DataObject) -> None:
    body = stream(
        chunk({"text": "thinking ä", "thought": True}),
        chunk({"text": "你好🌍"}, call(args={"path": "ü"}, id="c1")),
        chunk({"functionCall": {"name": "edit", "willContinue": True}, "thoughtSignature": "c2ln"}),
        chunk(partial(("$.text", "a", True))),
        chunk(partial(("$.text", "b", False), more=False)),
        chunk({"text": ""}, finish="STOP", usageMetadata={"promptTokenCount": 3}),
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=30)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert decode(*pieces) == decode(body)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_bytes_at_all_make_the_decoder_fail(noise: bytes, at: int) -> None:
    body = stream(chunk(HI), chunk(call(args={}), finish="STOP"))
    decoder = GeminiDecoder(PEER)
    decoder.feed(body[:at] + noise + body[at:])
    decoder.close()
    with suppress(ProviderError):
        decoder.end()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from((
            "candidates", "content", "parts", "text", "thought", "functionCall", "name", "args",
            "partialArgs", "jsonPath", "stringValue", "willContinue", "thoughtSignature",
            "finishReason", "usageMetadata", "promptTokenCount", "promptFeedback", "blockReason", "error",
            "message", "details",
        )), inner, max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(JSON, JSON)
def test_no_json_at_all_makes_the_decoder_fail(part: Any, beside: Any) -> None:
    decoder = GeminiDecoder(PEER)
    fields = beside if isinstance(beside, dict) else {}
    decoder.feed(stream(chunk(part), beside, {**chunk(part), **fields}, chunk(HI, finish="STOP")))
    decoder.close()
    with suppress(ProviderError):
        assert decoder.end().stop in ("stop", "tool_use")


# --- calls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True], ids=["in one chunk", "one per chunk"])
def test_parallel_calls_of_one_tool_are_as_many_as_parts(apart: bool) -> None:
    parts = [call(args={"path": path}) for path in "abb"]
    chunks = [chunk(part) for part in parts] if apart else [chunk(*parts)]
    events, end = decode(stream(*chunks, chunk(finish="STOP")))
    assert [told["arguments"] for told in calls_in(events)] == [
        '{"path": "a"}', '{"path": "b"}', '{"path": "b"}',
    ]  # fmt: skip
    assert end.stop == "tool_use"


def test_ids_are_passed_on_where_there_are_any() -> None:
    events, end = decode(stream(chunk(call(id="x"), call(id=""), call(id=None), finish="STOP")))
    assert [told["id"] for told in calls_in(events)] == ["x", None, None]
    assert end.provider_data == {"parts": [{"call": True, "id": "x"}, {"call": True}, {"call": True}]}


@pytest.mark.parametrize("args", [None, {}, "{}"])
def test_a_call_without_arguments_has_an_empty_object(args: Any) -> None:
    events, _ = decode(stream(chunk({"functionCall": {"name": "list", "args": args}}, finish="STOP")))
    assert calls_in(events) == [{"id": None, "name": "list", "arguments": "{}"}]


OPEN = {"functionCall": {"name": "edit", "willContinue": True}}
CLOSED: dict[str, Any] = {"functionCall": {}}


def test_streamed_arguments_are_put_together_by_their_paths() -> None:
    assert json.loads(
        arguments(
            OPEN,
            partial(("$.path", "a/", True)),
            partial(("$.path", "b", True)),
            partial(("$.path", "", False)),
            {"functionCall": {"willContinue": True}},
            partial(("$.edits[0].old", "x", False), ("$.edits[0].all", True, False)),
            partial(("$.edits[1]['odd key']", 2.5, False), ('$.edits[1]["n"]', None, False)),
            CLOSED,
        )
    ) == {"path": "a/b", "edits": [{"old": "x", "all": True}, {"odd key": 2.5, "n": None}]}


def test_a_piece_may_close_its_call_itself() -> None:
    assert arguments(OPEN, partial(("$.n", 1, False), more=False)) == '{"n": 1}'


def test_a_call_whose_closing_part_is_missing_is_whole_when_its_arguments_are() -> None:
    assert arguments(OPEN, partial(("$.n", 1, False))) == '{"n": 1}'


def test_the_next_call_closes_the_one_before() -> None:
    parts = (OPEN, partial(("$.n", 1, False)), OPEN, partial(("$.n", 2, False)), CLOSED, call("list"))
    events, _ = decode(stream(*(chunk(part) for part in parts), chunk(finish="STOP")))
    assert [(told["name"], told["arguments"]) for told in calls_in(events)] == [
        ("edit", '{"n": 1}'), ("edit", '{"n": 2}'), ("list", "{}"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "finish"),
    [
        ((OPEN, partial(("$.text", "cut he", True))), "STOP"),
        ((OPEN, partial(("$.text", "cut he", True)), CLOSED), "STOP"),
        ((OPEN, partial(("$.text", "whole", False))), "MAX_TOKENS"),
        ((OPEN,), "MAX_TOKENS"),
    ],
)
def test_arguments_that_were_cut_are_no_json_object(parts: Any, finish: str) -> None:
    with pytest.raises(ValueError, match=r"delimiter|Expecting"):
        json.loads(arguments(*parts, finish=finish))


@pytest.mark.parametrize(
    "path", ["", "$", "x", "$.a[7]", "$[0]", "$..a", "$.a.b", "$.list.x", "$" + ".a" * 100, "$.a[9999999]"]
)
def test_a_piece_that_fits_nowhere_makes_the_arguments_no_object(path: str) -> None:
    told = arguments(OPEN, partial(("$.a", "x", False), ("$.list[0]", 1, False)), partial((path, "y", False)))
    assert isinstance(json.loads(told), list)


def test_a_long_text_in_many_pieces_takes_little_time() -> None:
    pieces = [chunk(partial(("$.text", "0123456789", True))) for _ in range(20_000)]
    end = chunk(partial(("$.text", "", False), more=False), finish="STOP")
    events, _ = decode(stream(chunk(OPEN), *pieces, end))
    assert len(json.loads(calls_in(events)[0]["arguments"])["text"]) == 200_000


def test_signatures_stay_with_their_parts() -> None:
    _, end = decode(
        stream(
            chunk({"text": "Let me", "thought": True}),
            chunk({"text": " see.", "thought": True, "thoughtSignature": "dA=="}),
            chunk({"text": "I will"}),
            chunk({"text": " read."}),
            chunk({"text": "", "thoughtSignature": "ZQ=="}),
            chunk(call(args={}) | {"thoughtSignature": "Yw=="}, call(args={})),
            chunk({"executableCode": {"code": "1"}, "thoughtSignature": "eA=="}),
            chunk({"text": "\n"}),
            chunk({"text": "", "thoughtSignature": "eQ=="}, finish="STOP"),
        )
    )
    assert end.provider_data == {
        "parts": [
            {"chars": 6, "thought": True},
            {"chars": 5, "thought": True, "thoughtSignature": "dA=="},
            {"chars": 12},
            {"chars": 0, "thoughtSignature": "ZQ=="},
            {"call": True, "thoughtSignature": "Yw=="},
            {"call": True},
            {"part": {"executableCode": {"code": "1"}, "thoughtSignature": "eA=="}},
            {"text": "\n"},
            {"text": "", "thoughtSignature": "eQ=="},
        ]
    }


@pytest.mark.parametrize("name", ["partMetadata", "mediaResolution", "videoMetadata"])
def test_what_only_describes_a_part_is_none_that_could_go_back(name: str) -> None:
    events, end = decode(
        stream(chunk(HI, {name: {"a": 1}}, {name: {}, "thoughtSignature": "eA=="}, finish="STOP"))
    )
    assert text(events) == "Hi"
    assert end.provider_data == {"parts": [{"chars": 2}, {"chars": 0, "thoughtSignature": "eA=="}]}


def test_a_signature_on_a_later_piece_of_a_call_is_that_calls() -> None:
    signed = partial(("$.n", 1, False), more=False) | {"thoughtSignature": "c2ln"}
    _, end = decode(stream(chunk(OPEN), chunk(signed, finish="STOP")))
    assert end.provider_data == {"parts": [{"call": True, "thoughtSignature": "c2ln"}]}


# --- usage ----------------------------------------------------------------------------------------


def usage_of(*metadata: Any) -> Usage | None:
    return decode(stream(*(chunk(HI, usageMetadata=each) for each in metadata), chunk(finish="STOP")))[
        1
    ].usage


def test_thoughts_are_part_of_the_output_and_the_cache_of_the_prompt() -> None:
    told = {
        "promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 7, "thoughtsTokenCount": 20, "totalTokenCount": 132,
    }  # fmt: skip
    assert usage_of(told) == Usage(
        input=45, output=27, cache_read=60, reasoning=20, total=132, context_tokens=132
    )


def test_a_count_stands_until_a_later_chunk_says_another() -> None:
    first = {"promptTokenCount": 9, "cachedContentTokenCount": 4, "thoughtsTokenCount": 3}
    usage = usage_of(
        first, {"candidatesTokenCount": 2}, {"candidatesTokenCount": 5, "promptTokenCount": None}
    )
    assert usage == Usage(input=5, output=8, cache_read=4, reasoning=3, total=17, context_tokens=17)


def test_a_chunk_that_accounts_for_all_tokens_leaves_out_only_zeros() -> None:
    grown = {"promptTokenCount": 9, "candidatesTokenCount": 21, "totalTokenCount": 30}
    all_told = {"promptTokenCount": 87, "thoughtsTokenCount": 78, "totalTokenCount": 165}
    usage = usage_of(grown, all_told)
    assert usage is not None
    assert (usage.output, usage.total) == (78, 165)
    less = {"promptTokenCount": 9, "totalTokenCount": 9}
    assert usage_of(grown, less) == usage_of(grown)


@pytest.mark.parametrize("told", [{"trafficType": "ON_DEMAND"}, {}, None, {"promptTokenCount": True}])
def test_a_usage_without_counts_is_none(told: Any) -> None:
    assert usage_of(told) is None


def test_a_cache_larger_than_the_prompt_and_negative_counts_are_not_believed() -> None:
    usage = usage_of({"promptTokenCount": 5, "cachedContentTokenCount": 9, "candidatesTokenCount": -3})
    assert usage == Usage(cache_read=5, total=5, context_tokens=5)


# --- how it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", ["STOP", "MAX_TOKENS"])
def test_a_finish_in_every_chunk_counts_from_the_last_on(finish: str) -> None:
    decoder = GeminiDecoder(PEER)
    traffic = {"usageMetadata": {"trafficType": "ON_DEMAND"}}
    decoder.feed(event(chunk(HI, finish="STOP", **traffic)))
    assert decoder.finish_reason is None  # Vertex: a usage without counts is not the last
    decoder.feed(event(chunk(HI, finish="STOP")))
    assert decoder.finish_reason is None  # it went on after a finish
    decoder.feed(event(chunk(finish=finish, usageMetadata={"promptTokenCount": 1})))
    assert decoder.finish_reason == finish
    decoder.close()
    assert decoder.end().stop == {"STOP": "stop", "MAX_TOKENS": "length"}[finish]


def test_a_finish_is_told_as_soon_as_it_comes() -> None:
    decoder = GeminiDecoder(PEER)
    decoder.feed(event(chunk(HI)))
    assert decoder.finish_reason is None
    decoder.feed(event(chunk({"text": ""}, finish="STOP")))
    assert (decoder.finish_reason, decoder.done) == ("STOP", False)


def test_the_output_limit_before_any_content_is_a_length_stop() -> None:
    events, end = decode(stream(chunk(finish="MAX_TOKENS")))
    assert (events, end.stop) == ([], "length")


@pytest.mark.parametrize("cut", [b"", b"\r\n", event(chunk(HI)), event(chunk(HI)) + b'data: {"candi'])
def test_an_end_without_a_finish_is_a_truncation(cut: bytes) -> None:
    _, error = fail(cut)
    assert (error.kind, error.retryable) == ("network", True)
    assert "truncated" in error.message


def test_usage_is_kept_with_a_truncation() -> None:
    _, error = fail(event(chunk(HI, usageMetadata={"promptTokenCount": 4, "candidatesTokenCount": 1})))
    assert error.usage is not None
    assert error.usage.total == 5


@pytest.mark.parametrize(
    "finish",
    [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
    ],
)
def test_a_filtered_answer_is_a_refusal_that_names_the_filter(finish: str) -> None:
    said = chunk({"text": "So far"}, finish=finish, usageMetadata={"promptTokenCount": 4})
    said["candidates"][0]["finishMessage"] = f"Because of {KEY}."
    events, error = fail(event(said))
    assert text(events) == "So far"
    assert (error.kind, error.retryable) == ("refusal", False)
    assert finish in error.message
    assert "Because of" in error.message
    assert error.usage == Usage(input=4, total=4, context_tokens=4)


@pytest.mark.parametrize("reason", ["PROHIBITED_CONTENT", "SAFETY", "OTHER", "NEW_REASON"])
def test_a_blocked_prompt_is_a_refusal_that_names_the_reason(reason: str) -> None:
    counts = {"promptTokenCount": 9, "totalTokenCount": 9}
    _, error = fail(event({"promptFeedback": {"blockReason": reason}, "usageMetadata": counts}))
    assert (error.kind, error.retryable) == ("refusal", False)
    assert reason in error.message
    assert "prompt" in error.message
    assert error.usage == Usage(input=9, total=9, context_tokens=9)


@pytest.mark.parametrize(
    "finish",
    [
        "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE",
        "TOO_MANY_TOOL_CALLS", "OTHER", "SOMETHING_NEW",
    ],
)  # fmt: skip
def test_an_answer_that_came_to_no_proper_end_may_be_asked_for_again(finish: str) -> None:
    _, error = fail(event(chunk(finish=finish, usageMetadata={"promptTokenCount": 4})))
    assert (error.kind, error.retryable) == ("server", True)
    assert finish in error.message
    assert error.usage is not None


@pytest.mark.parametrize("parts", [[], [{"text": ""}], [{"text": "", "thoughtSignature": "c2ln"}]])
def test_a_stop_without_any_content_is_an_error_to_try_again(parts: Any) -> None:
    _, error = fail(event(chunk(*parts, finish="STOP", usageMetadata={"promptTokenCount": 4})))
    assert (error.kind, error.retryable) == ("server", True)
    assert "empty" in error.message
    assert error.usage is not None


def test_a_stop_after_a_part_of_the_servers_own_is_no_empty_answer() -> None:
    events, end = decode(
        stream(chunk({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, finish="STOP"))
    )
    assert (events, end.stop) == ([], "stop")


# --- errors in the stream, and answers that are none ----------------------------------------------

UNAVAILABLE = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize(
    "error",
    [
        json.dumps(UNAVAILABLE, indent=2).replace("\n", "\r\n").encode(),
        json.dumps([UNAVAILABLE], indent=2).encode() + b"\n",
        json.dumps([UNAVAILABLE]).encode(),
        b"\r\n" + json.dumps(UNAVAILABLE).encode() + b"\r\n",
        event(UNAVAILABLE),
        b"event: error\ndata: " + json.dumps(UNAVAILABLE).encode() + b"\n\n",
        b"data: [" + json.dumps(UNAVAILABLE).encode() + b"]\n\n",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_an_error_after_the_first_data_is_that_error(error: bytes, size: int) -> None:
    body = event(chunk(HI, usageMetadata={"promptTokenCount": 4})) + error
    events, failure = fail(*(body[at : at + size] for at in range(0, len(body), size)))
    assert text(events) == "Hi"
    assert (failure.kind, failure.retryable, failure.status) == ("overloaded", True, 503)
    assert "The model is overloaded." in failure.message
    assert failure.usage is not None


def test_a_bare_error_is_told_before_the_connection_ends() -> None:
    decoder = GeminiDecoder(PEER)
    decoder.feed(event(chunk(HI)) + json.dumps([UNAVAILABLE], indent=2).encode() + b"\n")
    assert decoder.done


def test_an_error_after_a_finish_is_still_an_error() -> None:
    _, failure = fail(event(chunk(HI, finish="STOP")) + json.dumps(UNAVAILABLE).encode())
    assert failure.kind == "overloaded"


@pytest.mark.parametrize(
    ("error", "kind", "retryable", "wait"),
    [
        ({"code": 500, "message": "Internal error.", "status": "INTERNAL"}, "server", True, None),
        ({"code": 499, "message": "Cancelled.", "status": "CANCELLED"}, "server", True, None),
        ({"code": 504, "message": "Deadline.", "status": "DEADLINE_EXCEEDED"}, "timeout", True, None),
        ({"code": 400, "message": "Bad field.", "status": "INVALID_ARGUMENT"}, "bad_request", False, None),
        (
            {
                "code": 429, "message": "Resource exhausted.", "status": "RESOURCE_EXHAUSTED",
                "details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "34.4s"}],
            },
            "rate_limit", True, 34400,
        ),
    ],
)  # fmt: skip
def test_an_error_object_is_typed(error: Any, kind: str, retryable: bool, wait: int | None) -> None:
    _, failure = fail(event({"error": error}))
    assert (failure.kind, failure.retryable, failure.retry_after_ms) == (kind, retryable, wait)


def test_a_whole_json_answer_is_read() -> None:
    whole = chunk(HI, call(args={}), finish="STOP", usageMetadata={"promptTokenCount": 4})
    events, end = decode(json.dumps(whole, indent=2).encode())
    assert (text(events), end.stop, len(calls_in(events))) == ("Hi", "tool_use", 1)


def test_a_json_list_of_chunks_is_read_as_the_api_sends_it_without_events() -> None:
    events, end = decode(json.dumps([chunk(HI), chunk(HI), chunk(finish="STOP")], indent=1).encode())
    assert (text(events), end.stop) == ("HiHi", "stop")


@pytest.mark.parametrize("body", [UNAVAILABLE, [UNAVAILABLE]])
def test_a_json_error_that_came_with_success_is_an_error(body: Any) -> None:
    _, failure = fail(json.dumps(body).encode())
    assert failure.kind == "overloaded"


def test_json_that_is_no_answer_is_an_error_that_shows_it() -> None:
    _, failure = fail(b'{"detail": "Not here"}')
    assert "Not here" in failure.message


def test_a_page_of_html_is_told_as_a_wrong_address() -> None:
    _, failure = fail(b"<!DOCTYPE html><html>")
    assert (failure.kind, failure.retryable) == ("protocol", False)


def test_the_end_mark_of_proxies_ends_the_answer() -> None:
    decoder = GeminiDecoder(PEER)
    decoder.feed(stream(chunk(OPEN), chunk(finish="STOP")))
    events = decoder.feed(b"data: [DONE]\n\n")
    assert decoder.done
    assert [each.arguments for each in events if isinstance(each, ToolCallDelta)] == ["{}"]
    assert decoder.end().stop == "tool_use"


def test_many_lines_that_are_no_events_take_little_time() -> None:
    decoder = GeminiDecoder(PEER)
    decoder.feed(event(chunk(HI)))
    started = time.monotonic()
    for _ in range(20_000):
        decoder.feed(b"{}\n")
    assert time.monotonic() - started < 20
    decoder.feed(event(chunk(finish="STOP")))
    decoder.close()
    assert decoder.end().stop == "stop"
