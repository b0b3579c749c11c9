"""Any transcript makes a valid request: what happened is told, and no server has a reason to refuse it."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from agent.histories import TIME, answer, aside, call, histories, is_asked, result, runs, told, user
from fakes.every_server import refusals
from hypothesis import given, settings
from hypothesis import strategies as st
from strict_history import faults

from agentd.agent.history import cuts
from agentd.agent.images import REFUSED_IMAGE
from agentd.agent.request import GO_ON, LOST_START, NO_OUTPUT, NO_RESULT, project
from agentd.protocol.events import Memory
from agentd.protocol.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    Position,
    Range,
    ResourceContent,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from agentd.protocol.text import clean_text
from agentd.providers.base import Model, ModelRequest


def outline(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    """Roles, with call ids and texts: what a reader of a request sees."""

    def said(message: Message) -> str:
        words = [
            getattr(block, "text", None) or getattr(block, "id", block.type) for block in message.content
        ]
        prefix = f"{message.tool_call_id}=" if isinstance(message, ToolResultMessage) else ""
        return prefix + "|".join(words)

    return [(message.role, said(message)) for message in messages]


# --- any history at all ---------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(histories)
def test_every_history_makes_a_request_that_no_server_refuses(history: list[Message]) -> None:
    assert faults(project(history)) == []


@settings(max_examples=60, deadline=None)
@given(histories)
def test_no_strict_server_of_any_api_finds_a_fault_either(history: list[Message]) -> None:
    projected = project(history)
    if projected:
        asked = ModelRequest(Model("p", "m", images=True), "system", projected, ())
        assert refusals(asked) == {}


@settings(max_examples=60, deadline=None)
@given(histories)
def test_projecting_changes_nothing_the_second_time_and_nothing_in_the_transcript(
    history: list[Message],
) -> None:
    before = [message.model_copy(deep=True) for message in history]
    once = project(history)
    assert project(history) == once
    assert project(once) == once
    assert history == before


@settings(max_examples=60, deadline=None)
@given(histories, st.integers(min_value=0, max_value=10))
def test_any_beginning_of_a_history_is_valid_too(history: list[Message], cut: int) -> None:
    assert faults(project(history[:cut])) == []
    assert faults(project(history[cut:])) == []


# --- what was right stays as it was ---------------------------------------------------------------


def test_a_valid_history_is_sent_word_for_word() -> None:
    history = (
        user("fix it"),
        answer(ThinkingContent(text="hm"), "Reading.", call("a"), call("b", path="x"), stop="tool_use"),
        result("a", "one"),
        result("b", "two", is_error=True),
        answer("Done."),
        user("thanks", message_id="u2"),
    )
    assert project(history) == history
    assert faults(history) == [], "the checker itself takes it for valid"


def test_provider_data_goes_back_with_its_message() -> None:
    signed = answer("Hi", call("a")).model_copy(update={"provider_data": {"signature": "c2ln"}})
    assert project([user("x"), signed, result("a", "y")])[1].provider_data == {"signature": "c2ln"}  # type: ignore[union-attr]  # it is the answer


# --- repair, case by case -------------------------------------------------------------------------


def test_an_unanswered_call_gets_an_error_result_right_behind_it() -> None:
    projected = project([user("go"), answer(call("a"), call("b")), result("b", "two"), user("next")])
    assert outline(projected) == [
        ("user", "go"),
        ("assistant", "a|b"),
        ("tool_result", f"a={NO_RESULT}"),
        ("tool_result", "b=two"),
        ("user", "next"),
    ]
    synthetic = projected[2]
    assert isinstance(synthetic, ToolResultMessage)
    assert synthetic.is_error


def test_results_come_in_the_order_of_the_calls_wherever_they_stood() -> None:
    history = [result("b", "early"), user("go"), answer(call("a"), call("b")), user("x"), result("a", "late")]
    assert outline(project(history)) == [
        ("user", "go"),
        ("assistant", "a|b"),
        ("tool_result", "a=late"),
        ("tool_result", "b=early"),
        ("user", "x"),
    ]


def test_a_second_result_of_a_call_and_a_result_without_call_are_left_out() -> None:
    history = [user("go"), answer(call("a")), result("a", "first"), result("a", "again"), result("z", "?")]
    assert outline(project(history))[2:] == [("tool_result", "a=first")]


def test_two_calls_of_one_id_are_two_calls_with_a_result_each() -> None:
    history = [user("go"), answer(call("a"), call("a")), result("a", "one"), result("a", "two")]
    assert outline(project(history))[1:] == [
        ("assistant", "a|a~2"),
        ("tool_result", "a=one"),
        ("tool_result", "a~2=two"),
    ]


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_answers_that_failed_are_left_out_with_their_calls_and_results(stop: str) -> None:
    history = [user("go"), answer("half", call("a"), stop=stop), result("a", "x"), user("again")]
    assert outline(project(history)) == [("user", "go"), ("user", "again")]


@pytest.mark.parametrize("content", [(), ("",), (" \n",), (ThinkingContent(text="only thought"),)])
def test_answers_that_say_nothing_are_left_out(content: tuple[Any, ...]) -> None:
    assert outline(project([user("go"), answer(*content), user("again")])) == [
        ("user", "go"),
        ("user", "again"),
    ]


def test_a_blank_result_says_that_there_was_no_output() -> None:
    history = [user("go"), answer(call("a"), call("b")), result("a"), result("b", "\n")]
    assert outline(project(history))[2:] == [
        ("tool_result", f"a={NO_OUTPUT}"),
        ("tool_result", f"b={NO_OUTPUT}"),
    ]


def test_a_request_begins_with_the_user_and_never_ends_with_the_assistant() -> None:
    assert outline(project([answer("Hello")])) == [
        ("user", LOST_START),
        ("assistant", "Hello"),
        ("user", GO_ON),
    ]


def test_every_call_has_a_name_of_valid_unicode_and_whose_else_it_is_stays() -> None:
    calls = (call("a", name="my tool!"), call("b", name=""), call("c", name="x\ud800"))
    answered = project([user("go"), answer(*calls)])[1]
    assert isinstance(answered, AssistantMessage)
    assert [each.name for each in answered.calls] == ["my tool!", "unknown", "x\ufffd"]


def test_lone_surrogates_never_reach_a_server_while_whole_letters_do() -> None:
    history = [user("a\ud800b 😀"), answer(call("a", text="\udfff", ok="é")), result("a", "x\udc80")]
    assert outline(project(history))[0] == ("user", "a\ufffdb 😀")
    assert faults(project(history)) == []


def test_a_resource_is_told_as_a_mention_with_one_based_lines() -> None:
    span = Range(start=Position(line=4, character=0), end=Position(line=6, character=2))
    block = ResourceContent(uri="file:///w/a.py", range=span, text="x = 1")
    assert outline(project([user(block)])) == [("user", "[file:///w/a.py lines 5-7]:\nx = 1")]


def test_a_message_is_told_as_it_was_shown_when_it_was_said() -> None:
    said = told("/fix", ResourceContent(uri="file:///a.py"), shown=("Fix it.", "1 | x"))
    (message,) = project([said])
    assert [block.text for block in message.content if isinstance(block, TextContent)] == ["Fix it.", "1 | x"]


def test_agentds_own_commands_are_left_out_with_their_answers_but_for_what_the_model_is_to_know() -> None:
    history = [user("one"), answer("two"), *aside(), *aside("files are back"), user("three")]
    assert [m.content for m in project(history)] == [
        m.content for m in (user("one"), answer("two"), user("files are back"), user("three"))
    ]


def test_clean_text_joins_what_belongs_together_and_keeps_good_text_itself() -> None:
    text = "plain"
    assert clean_text(text) is text
    assert clean_text("\ud83d\ude00") == "😀"
    assert clean_text("\ud83d") == "\ufffd"


# --- images that a server refused -----------------------------------------------------------------

LOOK = UserMessage(
    message_id="look",
    content=(TextContent(text="Look:"), ImageContent(mime_type="image/png", data="aGk=")),
    timestamp=TIME,
)
TOO_LARGE = "p: HTTP 400 Bad Request: messages.0.content.1.image.source: image exceeds 5 MB maximum"


def failed(error: str) -> AssistantMessage:
    return answer(stop="error").model_copy(update={"error_message": error})


def images_in(messages: Iterable[Message]) -> int:
    return sum(isinstance(block, ImageContent) for message in messages for block in message.content)


@pytest.mark.parametrize("error", [TOO_LARGE, "p: HTTP 413 Payload Too Large", "p: HTTP 422: Invalid image"])
def test_an_image_that_a_server_refused_is_not_sent_again(error: str) -> None:
    projected = project([LOOK, failed(error), user("then without")])
    assert images_in(projected) == 0
    assert REFUSED_IMAGE in str(projected[0])
    assert "Look:" in str(projected[0])


@pytest.mark.parametrize(
    "error", ["p: HTTP 500: image service down", "p: HTTP 400: no such tool", "p: cannot reach the image"]
)
def test_an_image_of_a_request_that_failed_for_another_reason_is_sent_again(error: str) -> None:
    assert images_in(project([LOOK, failed(error), user("again")])) == 1


def test_of_several_images_those_that_were_new_in_a_refused_request_go_and_where_none_was_all() -> None:
    begun = [LOOK, answer("I see."), LOOK.model_copy(update={"message_id": "l2"}), failed(TOO_LARGE)]
    assert images_in(project([*begun, user("on")])) == 1
    many = [LOOK, answer("I see."), user("on"), failed("p: HTTP 400: too many images in the request")]
    assert images_in(project([*many, user("on")])) == 0
    assert images_in(project([*begun, answer("I see."), LOOK])) == 2


# --- what a server has in its cache ---------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(runs, st.booleans(), st.integers(0, 40))
def test_a_request_begins_with_all_messages_of_the_one_before(
    history: list[Message], images: bool, shortened: int
) -> None:
    """Whatever runs came to, with and without a summary in front: the request before each answer counts."""
    place = next((p for p in cuts(history, 0) if p >= shortened), None)
    memory = None
    if place is not None:
        memory = Memory(seen=place, text="The summary.", through=history[place - 1].message_id)
    asked = [n for n in range(place or 1, len(history)) if is_asked(history[n])]
    requests = [project(history[:n], memory, images=images) for n in [*asked, len(history)]]
    for before, after in pairwise(requests):
        assert after[: len(before)] == before
