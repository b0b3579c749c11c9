"""A response as it grows: live deltas that add up to the message, and calls told from halves of calls."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.agent.response import ArgumentsError, Response, parse_arguments
from agentd.protocol.messages import TextContent, ThinkingContent, ToolCall, Usage
from agentd.protocol.text import utf16_length
from agentd.providers.base import StreamEnd, TextDelta, ThinkingDelta, ToolCallDelta


def ids() -> Callable[[str | None], str]:
    """The provider's own id, else new1, new2 and so on."""
    made: list[str] = []

    def call_id(wanted: str | None) -> str:
        if wanted is not None:
            return wanted
        made.append(f"new{len(made) + 1}")
        return made[-1]

    return call_id


def response() -> Response:
    return Response(ids())


def finish(grown: Response, stop: str = "stop", usage: Usage | None = None, limit: int | None = None):  # type: ignore[no-untyped-def]
    return grown.finish(StreamEnd(stop, usage), limit)  # type: ignore[arg-type]  # stop is one of the four


# --- deltas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "units"), [("", 0), ("abc", 3), ("é", 1), ("😀", 2), ("\ud800", 1)])
def test_length_is_counted_in_utf16_code_units(text: str, units: int) -> None:
    assert utf16_length(text) == units


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet="aé😀\ud800\u2028", max_size=4), max_size=8))
def test_each_delta_starts_where_the_text_before_it_ended(pieces: list[str]) -> None:
    grown, told = response(), ""
    for piece in pieces:
        delta = grown.add(TextDelta(0, piece))
        assert (delta is None) == (piece == "")
        if delta is not None:
            assert delta.offset == utf16_length(told)
            told += delta.delta
    content, _ = finish(grown)
    assert "".join(block.text for block in content) == told
    told.encode()


def test_offsets_count_within_their_own_block() -> None:
    grown = response()
    events = [ThinkingDelta(0, "😀"), TextDelta(1, "ab"), ThinkingDelta(0, "x"), TextDelta(1, "c")]
    deltas = [grown.add(event) for event in events]
    assert [(d.kind, d.index, d.offset) for d in deltas if d] == [
        ("thinking", 0, 0),
        ("text", 1, 0),
        ("thinking", 0, 2),
        ("text", 1, 2),
    ]


def test_fragments_of_two_calls_may_interleave() -> None:
    grown = response()
    pieces = [
        ('{"path"', "c1", "read"),
        ('{"path"', "c2", "write"),
        (':"a"}', None, None),
        (':"b"}', None, None),
    ]
    for number, (arguments, call_id, name) in enumerate(pieces):
        grown.add(ToolCallDelta(number % 2, arguments, call_id, name))
    content, cut = finish(grown, "tool_use")
    assert content == (
        ToolCall(id="c1", name="read", arguments={"path": "a"}),
        ToolCall(id="c2", name="write", arguments={"path": "b"}),
    )
    assert cut == set()


def test_two_responses_do_not_touch_each_other() -> None:
    first, second = response(), response()
    first.add(TextDelta(0, "one"))
    second.add(TextDelta(0, "two"))
    assert finish(first)[0] == (TextContent(text="one"),)
    assert finish(second)[0] == (TextContent(text="two"),)


def test_an_id_and_a_name_are_told_when_they_come_though_no_arguments_came() -> None:
    grown = response()
    assert grown.add(ToolCallDelta(0, "")) is None
    named = grown.add(ToolCallDelta(0, "", "c1", "read"))
    assert named is not None
    assert (named.delta, named.tool_call_id, named.tool_name) == ("", "c1", "read")
    assert grown.add(ToolCallDelta(0, "", "other", "names")) is None, "the first id and name stay"


def test_a_call_without_an_id_gets_one_that_no_other_has() -> None:
    grown = response()
    grown.add(ToolCallDelta(0, "{}", None, "a"))
    grown.add(ToolCallDelta(1, "{}", "", "b"))
    content, _ = finish(grown, "tool_use")
    assert [block.id for block in content if isinstance(block, ToolCall)] == ["new1", "new2"]


def test_blocks_come_in_their_order_and_empty_ones_not_at_all() -> None:
    grown = response()
    for event in (TextDelta(2, "c"), ThinkingDelta(0, "a"), TextDelta(1, "")):
        grown.add(event)
    assert finish(grown)[0] == (ThinkingContent(text="a"), TextContent(text="c"))


def test_what_was_said_so_far_holds_no_calls_whole_or_half() -> None:
    grown = response()
    grown.add(TextDelta(0, "ab"))
    grown.add(ToolCallDelta(1, "{}", "c1", "read"))
    grown.add(ToolCallDelta(2, '{"pa', "c2", "read"))
    assert grown.partial() == (TextContent(text="ab"),)


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n\t", "{}", " {} "])
def test_no_argument_text_is_no_arguments(text: str) -> None:
    assert parse_arguments(text) == {}


@pytest.mark.parametrize("text", ["null", "[]", '"text"', "42", "true"])
def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    with pytest.raises(ArgumentsError, match="must be a JSON object"):
        parse_arguments(text)


@pytest.mark.parametrize(
    "text",
    ['{"path":', "{'path': 1}", '{"n": NaN}', '{"n": [1e400]}', "{} {}", '{"a": "\\ud800"}', "[" * 9999],
)
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ArgumentsError, match="must be valid JSON"):
        parse_arguments(text)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="{}[],: 0", max_size=6), st.text(alphabet='{}[]",:\\ 0', max_size=6))
def test_an_error_tells_where_and_never_what(before: str, after: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(f"{before}MARKER{after}")
    assert "MARKER" not in str(caught.value)
    assert len(str(caught.value)) < 120


def test_broken_argument_text_is_kept_as_it_came() -> None:
    grown = response()
    grown.add(ToolCallDelta(0, '{"path": "a', "c1", "read"))
    (block,), cut = finish(grown, "tool_use")
    assert block == ToolCall(id="c1", name="read", raw_arguments='{"path": "a')
    assert cut == set(), "the limit had no part in it"


# --- cut by the output limit ----------------------------------------------------------------------


def cut_of(arguments: str, stop: str, usage: Usage | None = None, limit: int | None = None) -> set[str]:
    grown = response()
    grown.add(ToolCallDelta(0, arguments, "c1", "write"))
    cut: set[str] = finish(grown, stop, usage, limit)[1]
    return cut


def test_half_arguments_of_a_response_that_ended_for_its_length_are_cut() -> None:
    assert cut_of('{"path": "a', "length") == {"c1"}


def test_half_arguments_at_the_limit_are_cut_whatever_the_server_calls_it() -> None:
    assert cut_of('{"path": "a', "tool_use", Usage(output=100), limit=100) == {"c1"}
    assert cut_of('{"path": "a', "tool_use", Usage(output=99), limit=100) == set()


def test_whole_arguments_are_no_cut_call_though_the_response_was_cut() -> None:
    assert cut_of('{"path": "a"}', "length") == set()


def test_a_call_that_had_not_begun_when_the_response_was_cut_is_cut() -> None:
    assert cut_of("", "length") == {"c1"}
    assert cut_of("", "tool_use") == set()


def test_only_the_last_call_can_be_one_that_had_not_begun() -> None:
    grown = response()
    grown.add(ToolCallDelta(0, "", "c1", "list"))
    grown.add(ToolCallDelta(1, '{"pa', "c2", "write"))
    assert finish(grown, "length")[1] == {"c2"}
