"""What streams of servers have done to their readers elsewhere, tried on the decoder of every API."""

import re
from typing import Any

import pytest
from conversation import calls_in
from decoding import DECODERS, PEER, decode
from fakes.answers import APIS, answer
from fakes.model_server import sse

from agentd.protocol.messages import Usage
from agentd.providers.base import ProviderError, StreamEvent, TextDelta, ThinkingDelta

CALL = {"type": "tool_call", "id": "c1", "name": "write", "arguments": {"path": "a", "content": "你好🌍"}}
THOUGHT = {"type": "thinking", "text": "hm, é"}


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    """Each wire API in turn."""
    return str(request.param)


def said(events: list[StreamEvent]) -> tuple[str, str, list[dict[str, Any]]]:
    """The text, the thinking and the calls."""
    texts = ("".join(e.text for e in events if isinstance(e, kind)) for kind in (TextDelta, ThinkingDelta))
    return (*texts, calls_in(events))  # type: ignore[return-value]  # two texts and the calls


# --- truncation -----------------------------------------------------------------------------------


def test_an_answer_cut_at_any_byte_is_an_error_or_has_lost_nothing(api: str) -> None:
    """A clean end of the connection before the end of the answer is no end of the answer."""
    body = answer(api, THOUGHT, "Ünïcode 🌍 ", CALL)
    whole = said(decode(api, body)[0])
    found = [_outcome(api, body[:cut]) for cut in range(len(body))]
    errors = [outcome for outcome in found if isinstance(outcome, ProviderError)]
    assert len(errors) > len(body) * 0.7
    assert all(error.retryable for error in errors)
    assert all(outcome == whole for outcome in found if not isinstance(outcome, ProviderError))


def _outcome(api: str, body: bytes) -> Any:
    try:
        return said(decode(api, body)[0])
    except ProviderError as error:
        return error


def test_no_character_cut_in_two_is_ever_said_as_another(api: str) -> None:
    body = answer(api, "🌍" * 4, CALL, chunkSize=4)
    for cut in range(len(body)):
        decoder = DECODERS[api](PEER)
        events = [*decoder.feed(body[:cut]), *decoder.close()]
        assert "\ufffd" not in said(events)[0]
        assert all("\ufffd" not in call["arguments"] for call in calls_in(events))


# --- framing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("chunk", [1, 2, 13, 10**9])
def test_any_line_end_at_any_cut_says_the_same(api: str, line_end: bytes, chunk: int) -> None:
    body = answer(api, THOUGHT, "你好 🌍", CALL)
    other = body.replace(b"\r\n", b"\n").replace(b"\n", line_end)
    assert said(decode(api, other, chunk)[0]) == said(decode(api, body)[0])


def test_data_without_a_blank_behind_its_colon_says_the_same(api: str) -> None:
    body = answer(api, "hello", CALL)
    assert said(decode(api, body.replace(b"data: ", b"data:"))[0]) == said(decode(api, body)[0])


@pytest.mark.parametrize("noise", [b": keep\n\n", b":\n\n", b"data: : PROCESSING\n\n", b"data:\n\n", b"\n\n"])
def test_comments_and_noise_between_the_events_are_passed_over(api: str, noise: bytes) -> None:
    body = answer(api, THOUGHT, "hello", CALL).replace(b"\r\n", b"\n")
    noisy = noise + body.replace(b"\n\n", b"\n\n" + noise)
    assert said(decode(api, noisy)[0]) == said(decode(api, body)[0])


def test_the_last_event_without_its_blank_line_counts(api: str) -> None:
    body = answer(api, "hello", CALL)
    assert said(decode(api, body.rstrip())[0]) == said(decode(api, body)[0])


# --- what the text looks like ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "In HTML `<think>` is no element, </think> neither.",
        '<tool_call>{"name": "list", "arguments": {}}</tool_call>',
        "<function=list></function>",
        "data: [DONE]\n\nevent: error\n\n",
        '{"error": {"message": "is what the server says"}}',
        "<!DOCTYPE html><p>page",
        "None null undefined NaN",
        "\x00\x1b[31m\u2028\u2029\ufeff",
        "  leading and trailing blanks \n\n",
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_text_that_looks_like_something_else_is_text(api: str, text: str, size: int) -> None:
    events, end = decode(api, answer(api, text, chunkSize=size))
    assert said(events) == (text, "", [])
    assert end.stop == "stop"


# --- single symptoms of chat servers --------------------------------------------------------------


def test_a_last_usage_chunk_without_choices_is_counted() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}
    usage = {"usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}
    _, end = decode("openai-chat", sse(chunk, usage))
    assert end.usage == Usage(input=10, output=2, total=12, context_tokens=12)


def test_a_finish_of_calls_without_calls_and_a_null_finish_at_the_end_say_what_there_is() -> None:
    empty = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "tool_calls"}]}
    events, end = decode("openai-chat", sse(empty))
    assert (events, end.stop, end.raw_stop) == ([], "tool_use", "tool_calls")


def test_the_sum_of_all_tokens_is_that_of_their_kinds(api: str) -> None:
    counts = {"input": 7, "output": 5, "cacheRead": 2, "total": 14}
    _, end = decode(api, answer(api, "hi", usage=counts))
    assert end.usage is not None
    usage = end.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (7, 5, 2, 0)
    assert usage.total == usage.input + usage.output + usage.cache_read + usage.cache_write == 14


def test_an_error_of_overload_in_mid_stream_keeps_the_text_and_says_so(api: str) -> None:
    failure = {"kind": "overloaded", "message": "The model is overloaded.", "status": 503}
    decoder = DECODERS[api](PEER)
    events = [*decoder.feed(answer(api, "so far", error=failure)), *decoder.close()]
    with pytest.raises(ProviderError, match=re.compile("overloaded", re.IGNORECASE)) as caught:
        decoder.end()
    assert said(events)[0] == "so far"
    assert (caught.value.kind, caught.value.retryable) == ("overloaded", True)
