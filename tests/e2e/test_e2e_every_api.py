"""The loop's contract with a model on the other side of every wire API: answers and calls.

The order of events is that of the protocol, whatever the server speaks; the servers are strict, so the
history that each prompt leaves behind is one that the real ones take.
"""

import json
from typing import Any

import pytest
from e2e.every_api import MODELS, Stage
from fakes.gemini_faults import UNSIGNED
from fakes.responses_wire import seal
from wire.order import SAID, USER, called, shape, turn, units
from wire.runs import of_type, result_texts, run_events
from wire.scripts import reply, text, tool

USAGE = {"input": 7, "output": 5, "cacheRead": 2, "total": 14}


def executed(stage: Stage, *calls: dict[str, Any], root: Any = None) -> tuple[Any, list[dict[str, Any]]]:
    """Run a turn of these calls and a last answer; give the session and its events, well ordered."""
    chat = stage.chat(reply("I look. ", *calls), reply("done"), root=root)
    result = chat.run("look")
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "done", 2)
    events = run_events(chat)
    ids = [event["toolCallId"] for event in of_type(events, "tool_execution_start")]
    assert len(ids) == len(set(ids)) == len(calls)
    assert [word for word in shape(events) if word != "files_changed"] == [
        "agent_start",
        *turn(USER, SAID, *(called(id) for id in ids)),
        *turn(SAID),
        "agent_end(stop)",
    ]
    assert len(stage.server.requests) == 2
    return chat, events


# --- answers --------------------------------------------------------------------------------------


def test_plain_text(stage: Stage) -> None:
    chat = stage.chat(reply("hello 😀, world", chunkSize=3, usage=USAGE))
    result = chat.run("hi")
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    updates = [event["update"] for event in of_type(events, "message_update")]
    assert "".join(update["delta"] for update in updates) == "hello 😀, world"
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "hello 😀, world", 1)
    usage = result["usage"]
    assert (usage["input"], usage["output"], usage["cacheRead"], usage["total"]) == (7, 5, 2, 14)
    assert usage["contextWindow"] == 200000
    stage.assert_goes_on(chat)


def test_thinking_then_text_are_two_blocks_in_order(stage: Stage) -> None:
    chat = stage.chat(reply({"type": "thinking", "text": "hmm 😀 well"}, "a😀b", chunkSize=1))
    assert chat.run()["text"] == "a😀b"
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    said: dict[tuple[str, int], str] = {}
    for event in of_type(events, "message_update"):
        update = event["update"]
        key = (update["kind"], update["index"])
        assert update["offset"] == units(said.get(key, ""))
        said[key] = said.get(key, "") + update["delta"]
    assert said == {("thinking", 0): "hmm 😀 well", ("text", 1): "a😀b"}
    message = of_type(events, "message_end")[-1]["message"]
    assert [block["type"] for block in message["content"]] == ["thinking", "text"]
    stage.assert_goes_on(chat)


def test_text_that_the_output_limit_cut_ends_the_run_with_length(stage: Stage) -> None:
    chat = stage.chat(reply("and then the", stopReason="length"))
    result = chat.run()
    assert (result["stopReason"], result["text"], result["turns"]) == ("length", "and then the", 1)
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(length)"]
    assert of_type(events, "message_end")[-1]["message"]["stopReason"] == "length"
    stage.assert_goes_on(chat)


def test_a_promise_of_calls_without_any_ends_the_run_after_one_request(stage: Stage) -> None:
    chat = stage.chat(reply("nothing to call", stopReason="tool_use"))
    result = chat.run()
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "nothing to call", 1)
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)


def test_a_refused_answer_ends_the_run_and_keeps_what_was_said(stage: Stage) -> None:
    chat = stage.chat(reply("I would rather", stopReason="refusal"))
    result = chat.run()
    assert (result["text"], result["turns"]) == ("I would rather", 1)
    assert "refusal" in (result["stopReason"], result.get("error", {}).get("kind"))
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), f"agent_end({result['stopReason']})"]
    assert of_type(events, "message_end")[-1]["message"]["stopReason"] == result["stopReason"]
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)


# --- calls ----------------------------------------------------------------------------------------


def test_one_call(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    call = tool("read_file", {"file_path": "note.txt"}, "call-1")
    chat, events = executed(stage, call, root=root)
    (started,) = of_type(events, "tool_execution_start")
    assert (started["toolName"], started["arguments"]) == ("read_file", {"file_path": "note.txt"})
    assert result_texts(events) == ["File: note.txt (1 lines total, showing 1-1)\n    1 | one line"]
    assert "one line" in stage.server.requests[1].raw.decode()
    first, second = of_type(events, "turn_end")
    assert (first["stopReason"], second["stopReason"]) == ("tool_use", "stop")
    stage.assert_goes_on(chat)


def test_two_calls_run_one_after_the_other_in_message_order(stage: Stage) -> None:
    chat, events = executed(
        stage,
        tool("bash", {"command": "test ! -e b && sleep 0.1 && echo a > a"}, "call-a"),
        tool("bash", {"command": "cat a && echo b > b"}, "call-b"),
    )
    assert [end["result"]["details"]["exitCode"] for end in of_type(events, "tool_execution_end")] == [0, 0]
    stage.assert_goes_on(chat)


def test_thinking_before_a_call_goes_back_as_the_server_made_it(stage: Stage) -> None:
    root = stage.home.workspace(note_txt="one line\n")
    thinking = {"type": "thinking", "text": "I should look"}
    call = tool("read_file", {"file_path": "note.txt"}, "call-1")
    chat = stage.chat(reply(thinking, "I look.", call), reply(thinking, call), reply("done"), root=root)
    assert chat.run("look")["text"] == "done"
    sent = stage.server.requests[-1].raw.decode()
    assert UNSIGNED not in sent
    if stage.api == "gemini":  # thoughts stay unsaid: signatures stand for them, and are checked
        assert sent.count('"thoughtSignature":') == 2
    else:
        is_sealed = stage.api == "openai-responses"
        made = seal(MODELS[stage.api], "I should look") if is_sealed else "I should look"
        assert sent.count(made) == 2
    stage.assert_goes_on(chat)


def test_parallel_calls_with_equal_ids_are_calls_of_their_own(stage: Stage) -> None:
    root = stage.home.workspace(one_txt="first\n", two_txt="second\n")
    chat, events = executed(
        stage,
        tool("read_file", {"file_path": "one.txt"}, "same"),
        tool("read_file", {"file_path": "two.txt"}, "same"),
        root=root,
    )
    first, second = result_texts(events)
    assert "first" in first
    assert "second" in second
    stage.assert_goes_on(chat)


def test_calls_without_ids_are_answered_one_by_one(stage: Stage) -> None:
    chat, events = executed(stage, tool("list_directory"), tool("list_directory"))
    assert [end["result"]["isError"] for end in of_type(events, "tool_execution_end")] == [False, False]
    stage.assert_goes_on(chat)


def test_an_id_that_comes_again_in_a_later_turn_is_another_call(stage: Stage) -> None:
    call = tool("list_directory", {}, "call-1")
    chat = stage.chat(reply(call), reply(call), reply("done"))
    assert chat.run()["turns"] == 3
    assert len({event["toolCallId"] for event in of_type(run_events(chat), "tool_execution_start")}) == 2
    stage.assert_goes_on(chat)


@pytest.mark.parametrize("name", ["missing", "no such tool!", "ü" * 200])
def test_an_unknown_tool_is_told_to_the_model_and_the_run_goes_on(stage: Stage, name: str) -> None:
    chat, events = executed(stage, tool(name, {"x": "é😀"}, "call-1"))
    (told,) = result_texts(events)
    assert told.startswith("Unknown tool")
    assert "Unknown tool" in stage.server.requests[1].raw.decode()
    stage.assert_goes_on(chat)


def test_arguments_that_do_not_fit_are_told_to_the_model_and_run_nothing(stage: Stage) -> None:
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": 7, "content": "x"}, "call-1")
    chat, events = executed(stage, call, root=root)
    (ended,) = of_type(events, "tool_execution_end")
    assert ended["result"]["isError"] is True
    assert "file_path" in result_texts(events)[0]
    assert list(root.iterdir()) == []
    stage.assert_goes_on(chat)


@pytest.mark.parametrize("arguments", ["[1]", '"text"', "{not json", "null"])
def test_argument_text_that_is_no_object_is_told_to_the_model(stage: Stage, arguments: str) -> None:
    broken = tool("list_directory", None, "call-1") | {"rawArguments": arguments}
    chat, events = executed(stage, broken)
    (ended,) = of_type(events, "tool_execution_end")
    assert ended["result"]["isError"] is True
    stage.assert_goes_on(chat)


@pytest.mark.parametrize("arguments", ["", "  \n", "{}"])
def test_no_argument_text_at_all_means_no_arguments(stage: Stage, arguments: str) -> None:
    root = stage.home.workspace(note_txt="x")
    call = tool("list_directory", None, "call-1") | {"rawArguments": arguments}
    chat, events = executed(stage, call, root=root)
    (started,) = of_type(events, "tool_execution_start")
    assert started["arguments"] == {}
    assert "note.txt" in result_texts(events)[0]
    stage.assert_goes_on(chat)


def test_a_call_that_the_output_limit_cut_is_not_run_and_the_model_is_told(stage: Stage) -> None:
    root = stage.home.workspace(README_md="# Title\n")
    cut = tool("write_file", None, "call-1") | {"rawArguments": '{"file_path": "README.md", "content": "# Ti'}
    chat = stage.chat(reply(cut, stopReason="length"), reply("in smaller pieces"), root=root)
    result = chat.run("write it")
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "in smaller pieces", 2)
    events = run_events(chat)
    (ended,) = of_type(events, "tool_execution_end")
    assert ended["result"]["isError"] is True
    assert "limit" in result_texts(events)[0]
    assert (root / "README.md").read_text() == "# Title\n"
    stage.assert_goes_on(chat)


def test_a_model_that_is_cut_again_and_again_ends_the_run_with_length(stage: Stage) -> None:
    cut = tool("write_file", None) | {"rawArguments": '{"file_path": "never.txt", "content": "x'}
    root = stage.home.workspace()
    chat = stage.chat(*(reply(cut, stopReason="length") for _ in range(3)), root=root)
    assert chat.run("write it")["stopReason"] == "length"
    assert list(root.iterdir()) == []
    stage.assert_goes_on(chat)


def test_letters_outside_ascii_in_arguments_reach_the_file_byte_for_byte(stage: Stage) -> None:
    content = '你好🌍 é\u2028 \ud7ff \\ "quoted" \t end\n'
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": "ü.txt", "content": content}, "call-1")
    chat, _ = executed(stage, call, root=root)
    assert (root / "ü.txt").read_bytes() == content.encode()
    assert "call-1" in json.dumps(chat.get()["messages"])
    stage.assert_goes_on(chat)


def test_a_text_block_between_two_calls_keeps_its_place_and_the_history_stays_valid(stage: Stage) -> None:
    call_a, call_b = tool("list_directory", {}, "call-a"), tool("list_directory", {}, "call-b")
    chat = stage.chat(reply(call_a, "and once more", call_b), reply("done"))
    assert chat.run()["text"] == "done"
    message = next(
        event["message"]
        for event in of_type(run_events(chat), "message_end")
        if event["message"]["role"] == "assistant"
    )
    assert [block["type"] for block in message["content"]] == ["tool_call", "text", "tool_call"]
    assert text("and once more") in message["content"]
    stage.assert_goes_on(chat)
