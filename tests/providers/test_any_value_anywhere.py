"""Whatever value a server puts in the place of another, of any API: an answer or an error, and nothing else.

What is kept of an answer beside its message goes into the journal and into the next request, both of which
are strict JSON.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from decoding import decode
from fakes.answers import APIS, answer
from hypothesis import given
from hypothesis import strategies as st

from agentd.agent.response import Response
from agentd.providers.base import ProviderError, StreamEnd, TextDelta
from agentd.providers.json_text import parse_json

HALF, OTHER_HALF = "\ud83d", "\ude00"
ANSWER = (
    {"type": "thinking", "text": "Hm."},
    "I'll look.",
    {"type": "tool_call", "id": "call_1", "name": "read_file", "arguments": {"file_path": "a"}},
)
ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1.5,
        10**40,
        1e400,
        "",
        "x",
        HALF,
        '{"a": "\ud83d"}',
        [],
        {},
        [None],
        [[]],
        {"a": 1},
        [{"type": "text", "text": "x"}],
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value inside a value."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def kept_as_json(end: StreamEnd) -> str:
    """What is kept of an answer, as strict JSON that UTF-8 can hold."""
    text = json.dumps(end.provider_data, ensure_ascii=False, allow_nan=False)
    text.encode()
    return text


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_any_value_in_any_place_makes_an_answer_or_an_error(api: str, data: st.DataObject) -> None:
    lines = answer(api, *ANSWER).decode().splitlines()
    said = [number for number, line in enumerate(lines) if line.startswith("data: {")]
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.sampled_from(said))
        payload = json.loads(lines[number].removeprefix("data: "))
        *way, last = data.draw(st.sampled_from(list(places(payload))))
        place = payload
        for key in way:
            place = place[key]
        place[last] = data.draw(ODD)
        lines[number] = f"data: {json.dumps(payload)}"
    try:
        events, end = decode(api, "".join(f"{line}\n" for line in (*lines, "")).encode())
    except ProviderError:
        return
    kept_as_json(end)
    response = Response(lambda wanted: "call_1")
    for event in events:
        assert not isinstance(event, StreamEnd)
        if response.is_news(event):
            response.add(event)
    response.finish(end, None)


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        ([{"text": HALF}, {"text": f"{OTHER_HALF}!"}], "😀!"),
        ([{"text": f"{HALF}!"}], "\ufffd!"),
        ([{"text": "x", "signature": HALF}], '"signature": "\ufffd"'),
        ([{"text": "x", "score": 1e400}], '"score": null'),
    ],
)
def test_details_of_reasoning_are_kept_though_they_are_no_strict_json(
    chunks: list[dict[str, Any]], kept: str
) -> None:
    details = [{"type": "reasoning.text", "index": 0, **chunk} for chunk in chunks]
    choices = [{"delta": {"reasoning_details": [detail]}} for detail in details]
    choices.append({"delta": {"content": "Hi"}, "finish_reason": "stop"})
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
    _, end = decode("openai-chat", f"{body}data: [DONE]\n\n".encode())
    assert kept in kept_as_json(end)


def test_a_part_that_gemini_wants_back_is_kept_though_half_a_character_is_in_it() -> None:
    parts = [{"executableCode": {"code": HALF}}, {"text": "Hi"}]
    chunk = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    _, end = decode("gemini", f"data: {json.dumps(chunk)}\n\n".encode())
    assert '"code": "\ufffd"' in kept_as_json(end)


@pytest.mark.parametrize(("depth", "is_read"), [(150, True), (300, False), (900, False), (100_000, False)])
@pytest.mark.parametrize("half", ["", HALF])
def test_json_is_read_as_deep_as_a_journal_can_hold_it(depth: int, is_read: bool, half: str) -> None:
    text = "[" * depth + json.dumps(half) + "]" * depth
    assert (parse_json(text) is not None) is is_read


def test_json_is_read_though_half_a_character_stands_in_its_text_itself() -> None:
    assert parse_json(f'{{"a": "{HALF}"}}') == {"a": HALF}


MARK = "\ufeff".encode()


@pytest.mark.parametrize(
    "lead", [MARK, b"\r\n" + MARK, MARK + b"\n"], ids=["mark", "blanks, mark", "mark, blank"]
)
@pytest.mark.parametrize("chunk", [1, 1000])
@pytest.mark.parametrize("api", APIS)
def test_a_byte_order_mark_is_no_part_of_an_answer(api: str, chunk: int, lead: bytes) -> None:
    events, _ = decode(api, lead + answer(api, "Hi"), chunk)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hi"
    with pytest.raises(ProviderError, match="Boom"):
        decode(api, lead + b'{"error": {"message": "Boom"}}', chunk)
    with pytest.raises(ProviderError, match="HTML"):
        decode(api, lead + b"<!DOCTYPE html><p>Hi", chunk)
