"""What the items of a Responses answer say, and what is kept of them, however servers send them."""

import logging

import pytest
from conversation import calls_in
from fakes.model_server import sse
from responses_events import (
    ARGUMENTS,
    CALL,
    COMPLETED,
    Payload,
    added,
    arguments,
    decode,
    done,
    failure,
    kept,
    message,
    over,
    reasoning,
    text,
    text_of,
    thinking_of,
)

from agentd.providers.base import TextDelta, ThinkingDelta, ToolCallDelta

# --- deltas and truth -----------------------------------------------------------------------------


def test_text_that_comes_four_times_is_told_once() -> None:
    whole = {"output_index": 0, "content_index": 0}
    body = sse(
        added(message()),
        text("He"),
        text("llo"),
        {"type": "response.output_text.done", "text": "Hello"} | whole,
        {"type": "response.content_part.done", "part": {"type": "output_text", "text": "Hello"}} | whole,
        done(message("Hello")),
        text("Hello"),
        done(message("Hello")),
        over("completed", output=[message("Hello")]),
    )
    events, _ = decode(body)
    assert events == [TextDelta(0, "He"), TextDelta(0, "llo")]


@pytest.mark.parametrize("whole", ["Hello, world", ", world"])
def test_the_end_of_a_text_that_no_delta_brought_is_told_when_the_item_is_done(whole: str) -> None:
    deltas = [text("Hello")] if whole.startswith("Hello") else [text("Hello"), text(", world")]
    events, _ = decode(sse(*deltas, done(message(whole)), COMPLETED))
    assert text_of(events) == "Hello, world"


def test_text_that_was_shown_stands_against_another_truth(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        events, _ = decode(sse(text("Hello"), done(message("Goodbye")), COMPLETED))
    assert text_of(events) == "Hello"
    assert len(caplog.records) == 1
    assert "Goodbye" not in caplog.text


def test_a_delta_that_comes_after_the_whole_text_is_an_echo() -> None:
    whole = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hello"}
    events, _ = decode(sse(text("Hello"), whole, text("Hello"), text("Hello"), COMPLETED))
    assert text_of(events) == "Hello"


def test_a_gateway_that_counts_in_its_own_way_tells_nothing_twice() -> None:
    body = sse(done(message("Hi"), 3), done(CALL, 4), over("completed", output=[message("Hi"), CALL]))
    events, _ = decode(body)
    assert text_of(events) == "Hi"
    assert len(calls_in(events)) == 1


def test_text_under_the_index_of_reasoning_streams_as_text() -> None:
    body = sse(done(reasoning("Hm.", encrypted_content="sealed")), text("H"), text("i"), COMPLETED)
    events, end = decode(body)
    assert events == [ThinkingDelta(0, "Hm."), TextDelta(1, "H"), TextDelta(1, "i")]
    assert [item["type"] for item in kept(end)] == ["reasoning", "message"]


def test_text_is_found_in_the_done_item_or_in_the_response_alone() -> None:
    for body in (sse(done(message("Hi")), COMPLETED), sse(over("completed", output=[message("Hi")]))):
        assert text_of(decode(body)[0]) == "Hi"


def test_the_parts_of_a_message_are_one_block_in_order() -> None:
    body = sse(text("a", part=0), text("b", part=1), done(message("a", "b", "c")), COMPLETED)
    events, end = decode(body)
    assert [(event.index, event.text) for event in events if isinstance(event, TextDelta)] == [
        (0, "a"),
        (0, "b"),
        (0, "c"),
    ]
    assert kept(end) == [{"type": "message", "id": "msg_1"}]


def test_items_are_known_by_their_index_though_their_ids_change_with_every_event() -> None:
    summary = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0}
    body = sse(
        added(reasoning(id="r1")),
        summary | {"item_id": "r2", "delta": "Hm"},
        done(reasoning("Hm.", id="r3", encrypted_content="sealed")),
        added(message(id="m1"), 1),
        text("Hi", 1, item_id="m2"),
        done(message("Hi", id="m3"), 1),
        over("completed", output=[reasoning("Hm.", id="r4"), message("Hi", id="m4")]),
    )
    events, end = decode(body)
    assert (thinking_of(events), text_of(events)) == ("Hm.", "Hi")
    assert [item["id"] for item in kept(end)] == ["r3", "m3"]


def test_a_gateway_that_counts_every_item_as_the_first_loses_none() -> None:
    body = sse(
        added(reasoning()),
        done(reasoning("Hm.", encrypted_content="sealed")),
        text("Hi"),
        done(message("Hi")),
        added(CALL | {"arguments": ""}),
        done(CALL),
        done(CALL | {"call_id": "call_2", "id": "fc_2"}),
        COMPLETED,
    )
    events, end = decode(body)
    assert (thinking_of(events), text_of(events)) == ("Hm.", "Hi")
    assert [call["id"] for call in calls_in(events)] == ["call_1", "call_2"]
    assert [item["type"] for item in kept(end)] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]


def test_events_without_an_index_belong_to_the_latest_item() -> None:
    body = sse(
        {"type": "response.output_item.added", "item": message()},
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.output_item.done", "item": message("Hi")},
        {"type": "response.output_item.added", "item": CALL | {"arguments": ""}},
        {"type": "response.function_call_arguments.delta", "delta": ARGUMENTS},
        {"type": "response.output_item.done", "item": CALL},
        COMPLETED,
    )
    events, _ = decode(body)
    assert text_of(events) == "Hi"
    assert calls_in(events) == [{"id": "call_1", "name": "read", "arguments": ARGUMENTS}]


# --- reasoning ------------------------------------------------------------------------------------


def test_each_part_of_a_summary_is_a_block_of_its_own() -> None:
    events, _ = decode(sse(done(reasoning("One.", "Two.")), COMPLETED))
    assert events == [ThinkingDelta(0, "One."), ThinkingDelta(1, "Two.")]


def test_reasoning_beside_its_summary_is_told_once() -> None:
    raw = {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "Hm."}
    events, _ = decode(sse(raw, done(reasoning("Hm.", content=("Hm.",))), COMPLETED))
    assert thinking_of(events) == "Hm."
    events, _ = decode(sse(done(reasoning("Hm.", content=("Hm.",))), COMPLETED))
    assert thinking_of(events) == "Hm."


def test_encrypted_reasoning_is_taken_when_it_is_whole() -> None:
    partial, whole = (reasoning(encrypted_content=each) for each in ("partial", "whole"))
    _, end = decode(sse(added(partial), done(whole), done(message("Hi"), 1), COMPLETED))
    assert kept(end)[0]["encrypted_content"] == "whole"
    _, end = decode(sse(added(partial), done(message("Hi"), 1), COMPLETED))
    assert [item["type"] for item in kept(end)] == ["message"]


def test_reasoning_that_only_the_servers_memory_could_complete_is_not_kept() -> None:
    _, end = decode(sse(done(reasoning("Hm.")), done(message("Hi"), 1), COMPLETED))
    assert [item["type"] for item in kept(end)] == ["message"]


# --- calls ----------------------------------------------------------------------------------------


def test_a_calls_arguments_stream_behind_its_name() -> None:
    body = sse(
        added(CALL | {"arguments": ""}), arguments('{"pa'), arguments('th":"a"}'), done(CALL), COMPLETED
    )
    events, end = decode(body)
    assert events == [
        ToolCallDelta(0, "", "call_1", "read"),
        ToolCallDelta(0, '{"pa'),
        ToolCallDelta(0, 'th":"a"}'),
    ]
    assert (end.stop, end.raw_stop) == ("tool_use", "completed")


def test_a_call_that_nobody_announced_gets_its_name_when_it_is_done() -> None:
    events, _ = decode(sse(arguments(ARGUMENTS, 3), done(CALL, 3), COMPLETED))
    assert calls_in(events) == [{"id": "call_1", "name": "read", "arguments": ARGUMENTS}]


@pytest.mark.parametrize(
    "last",
    [
        done(CALL),
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": ARGUMENTS},
        over("completed", output=[CALL]),
    ],
    ids=["item", "arguments", "response"],
)
def test_arguments_that_come_only_at_the_end_are_read(last: Payload) -> None:
    events, end = decode(sse(added(CALL | {"arguments": ""}), last, COMPLETED))
    assert calls_in(events) == [{"id": "call_1", "name": "read", "arguments": ARGUMENTS}]
    assert end.stop == "tool_use"


def test_arguments_that_come_with_the_announcement_alone_are_read() -> None:
    events, _ = decode(sse(added(CALL), COMPLETED))
    assert calls_in(events) == [{"id": "call_1", "name": "read", "arguments": ARGUMENTS}]


def test_an_object_for_arguments_means_its_text() -> None:
    events, _ = decode(sse(done(CALL | {"arguments": {"path": "ä"}}), COMPLETED))
    assert calls_in(events)[0]["arguments"] == '{"path": "ä"}'


def test_ciphertext_for_deltas_waits_for_the_truth() -> None:
    body = sse(added(CALL | {"arguments": ""}), arguments("gAAAB3"), arguments("{x=="), done(CALL), COMPLETED)
    events, _ = decode(body)
    assert calls_in(events)[0]["arguments"] == ARGUMENTS


def test_arguments_that_are_no_object_are_told_when_no_truth_comes() -> None:
    events, _ = decode(sse(added(CALL | {"arguments": ""}), arguments("path=a"), COMPLETED))
    assert calls_in(events)[0]["arguments"] == "path=a"


@pytest.mark.parametrize("truth", ["", "}", '{ "path": "a" }'])
def test_the_same_arguments_in_other_words_are_no_conflict(truth: str) -> None:
    events, _ = decode(sse(arguments(ARGUMENTS), done(CALL | {"arguments": truth}), COMPLETED))
    assert calls_in(events)[0]["arguments"] == ARGUMENTS


def test_two_versions_of_a_call_fail_the_answer() -> None:
    other = CALL | {"arguments": '{"path":"b"}'}
    _, error = failure(sse(arguments(ARGUMENTS), done(other), COMPLETED))
    assert (error.kind, error.retryable) == ("protocol", True)
    assert '"read"' in error.message


def test_calls_without_id_or_without_arguments_are_calls() -> None:
    nameless = {"type": "function_call", "name": "list", "call_id": None, "arguments": None}
    events, end = decode(sse(done(nameless), done(nameless | {"name": "pwd"}, 1), COMPLETED))
    assert [(call["id"], call["name"], call["arguments"]) for call in calls_in(events)] == [
        (None, "list", ""),
        (None, "pwd", ""),
    ]
    assert end.stop == "tool_use"


def test_fields_of_a_call_that_we_do_not_know_are_kept_and_its_own_are_not() -> None:
    known = {"status": "completed", "namespace": "fs", "caller": {"type": "program"}, "odd": None}
    _, end = decode(sse(done(CALL | known), COMPLETED))
    assert kept(end) == [
        {"type": "function_call", "id": "fc_1", "namespace": "fs", "caller": {"type": "program"}}
    ]


def test_the_phase_of_a_message_is_kept_and_blank_messages_are_not() -> None:
    body = sse(
        done(message("Let me look.", phase="commentary")), done(message(" \n"), 1), done(CALL, 2), COMPLETED
    )
    _, end = decode(body)
    assert [(item["type"], item.get("phase")) for item in kept(end)] == [
        ("message", "commentary"),
        ("function_call", None),
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "arguments": "{}"},
        {"type": None},
    ],
)
def test_tools_that_are_not_ours_make_no_block_but_leave_their_type(item: Payload) -> None:
    body = sse(
        {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "x"},
        added(item),
        done(item),
        done(message("Hi"), 1),
        COMPLETED,
    )
    events, end = decode(body)
    assert events == [TextDelta(0, "Hi")]
    assert kept(end)[0] == {"type": str(item["type"])}
    assert end.stop == "stop"
