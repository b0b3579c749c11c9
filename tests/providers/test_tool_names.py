"""Names of tools on the wire and back: what every server takes, never two for one or one for two."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from providers.conversation import assistant, request, result, user

from agentd.protocol.messages import AssistantMessage, ToolCall, ToolResultMessage
from agentd.providers.base import TextDelta, ToolCallDelta, ToolSpec
from agentd.providers.tool_names import ToolNames

PORTABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
LONG = (
    "mcp__server.with.dots__tool/with/slash and more than ninety characters, so that no server takes it all"
)


@given(st.lists(st.text(max_size=140)))
def test_every_name_goes_out_as_one_that_all_servers_take_and_comes_back(names: list[str]) -> None:
    map_ = ToolNames(names)
    sent = [map_.sent(name) for name in names]
    assert all(PORTABLE.fullmatch(name) for name in sent)
    assert [map_.own(name) for name in sent] == names
    assert len(set(sent)) == len(set(names))


@given(st.lists(st.text(max_size=140), min_size=1), st.randoms())
def test_a_name_is_the_same_whatever_is_beside_it_and_in_whatever_order(
    names: list[str], random: object
) -> None:
    shuffled = sorted(names, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert [ToolNames(names).sent(name) for name in names] == [
        ToolNames(shuffled).sent(name) for name in names
    ]
    assert ToolNames([names[0]]).sent(names[0]) == ToolNames(names).sent(names[0])


@pytest.mark.parametrize("name", ["read_file", "mcp__github__get-issue", "_x", "a" * 64])
def test_a_name_that_fits_goes_out_as_it_is(name: str) -> None:
    assert ToolNames([name]).sent(name) == name
    assert not ToolNames([name])


def test_a_name_that_does_not_fit_can_still_be_recognised() -> None:
    assert re.fullmatch(
        r"mcp__server_with_dots__tool_with_slash_and_more_than__[0-9a-f]{10}", ToolNames([LONG]).sent(LONG)
    )
    assert re.fullmatch(r"_3d_[0-9a-f]{10}", ToolNames(["3d"]).sent("3d"))


def test_names_that_differ_only_in_what_is_cut_or_replaced_stay_apart() -> None:
    names = ["a.b", "a/b", "a b", "a" * 65, "a" * 66, LONG, LONG + "!"]
    map_ = ToolNames(names)
    assert len({map_.sent(name) for name in names}) == len(names)


def test_a_name_that_looks_like_the_short_form_of_another_keeps_itself() -> None:
    short = ToolNames(["a.b"]).sent("a.b")
    map_ = ToolNames(["a.b", short])
    assert map_.sent(short) == short
    assert map_.sent("a.b") != short
    assert map_.own(map_.sent("a.b")) == "a.b"


def test_tools_calls_and_results_are_told_alike_also_of_a_tool_that_is_gone() -> None:
    gone = "gone.tool"
    calls = (ToolCall(id="1", name=LONG), ToolCall(id="2", name=gone), ToolCall(id="3", name="read_file"))
    results = [result(call.id, "x").model_copy(update={"tool_name": call.name}) for call in calls]
    asked = request(user("go"), assistant(*calls), *results, tools=(ToolSpec(LONG, "D", {}),))
    names = ToolNames.of(asked)
    told = names.told(asked)
    _, answer, *answers = told.messages
    assert isinstance(answer, AssistantMessage)
    expected = [names.sent(LONG), names.sent(gone), "read_file"]
    assert [call.name for call in answer.calls] == expected
    assert [each.tool_name for each in answers if isinstance(each, ToolResultMessage)] == expected
    assert [tool.name for tool in told.tools] == expected[:1]
    assert asked.tools[0].name == LONG, "the session's own request stays"


def test_what_a_server_says_comes_back_under_the_sessions_names() -> None:
    names = ToolNames([LONG])
    assert names.heard(ToolCallDelta(0, "{", "c", names.sent(LONG))) == ToolCallDelta(0, "{", "c", LONG)
    assert names.heard(ToolCallDelta(0, "{}")) == ToolCallDelta(0, "{}")
    assert names.heard(ToolCallDelta(0, "", None, "made.up")) == ToolCallDelta(0, "", None, "made.up")
    assert names.heard(TextDelta(0, names.sent(LONG))) == TextDelta(0, names.sent(LONG))


def test_a_request_whose_names_all_fit_is_the_very_same() -> None:
    asked = request()
    assert ToolNames.of(asked).told(asked) is asked
