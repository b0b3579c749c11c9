"""The loop's contract with a model on the other side of every wire API: failures, cancels and limits."""

from typing import Any

import pytest
from e2e.every_api import Stage, start
from fakes.gemini_faults import UNSIGNED
from fakes.model_server import Raw
from wire.chat import Chat
from wire.order import SAID, USER, called, shape, turn
from wire.processes import sleepers, unique_sleep, until
from wire.runs import of_type, result_texts, run_events
from wire.scripts import reply, text, tool

BROKE = {"kind": "bad_request", "message": "It broke: invalid request.", "status": 400}
WANTED_BACK = ("reasoning_content", "encrypted_content", "signature", "thoughtSignature")
"""What a message of each API holds for its server alone."""


def wanted_back(body: Any) -> set[str]:
    """All that a request holds for its server alone."""
    if isinstance(body, list):
        return {found for item in body for found in wanted_back(item)}
    if not isinstance(body, dict):
        return set()
    own = {value for name, value in body.items() if name in WANTED_BACK}
    return own.union(*(wanted_back(value) for value in body.values()))


def last_message(events: list[dict[str, Any]]) -> Any:
    return of_type(events, "message_end")[-1]["message"]


def cancelled(chat: Chat, prompt: int) -> Any:
    """Cancel a prompt that runs; give its result."""
    assert chat.cancel()["state"] == "cancelled"
    result = chat.result(prompt)
    assert result["stopReason"] == "aborted"
    return result


# --- the server fails -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status"), [("auth", 401), ("bad_request", 400), ("quota", 429)], ids=lambda value: str(value)
)
def test_a_failure_before_any_text(stage: Stage, kind: str, status: int) -> None:
    message = "You exceeded your current quota." if kind == "quota" else "It was refused."
    chat = stage.chat(reply(error={"kind": kind, "message": message, "status": status}))
    result = chat.run()
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(error)"]
    said = last_message(events)
    assert (said["content"], said["stopReason"]) == ([], "error")
    assert message.rstrip(".") in said["errorMessage"]
    assert (result["text"], result["turns"], result["error"]["kind"]) == ("", 1, kind)
    assert result["error"]["retryable"] is False
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)


def test_a_failure_after_text_keeps_the_text(stage: Stage) -> None:
    chat = stage.chat(reply("half a sentence", error=BROKE))
    result = chat.run()
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(error)"]
    assert last_message(events)["content"] == [text("half a sentence")]
    assert (result["stopReason"], result["text"]) == ("error", "half a sentence")
    assert "It broke" in result["error"]["message"]
    stage.assert_goes_on(chat)


def test_a_failure_after_a_whole_call_runs_nothing_and_asks_no_more(stage: Stage) -> None:
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": "never.txt", "content": "x"}, "call-1")
    chat = stage.chat(reply("some text", call, error=BROKE), root=root)
    assert chat.run()["stopReason"] == "error"
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(error)"]
    assert last_message(events)["content"] == [text("some text")]
    assert list(root.iterdir()) == []
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)
    assert b"call-1" not in stage.server.requests[-1].raw


def test_a_failure_of_a_later_turn_keeps_what_came_before(stage: Stage) -> None:
    chat = stage.chat(reply(tool("list_directory", {}, "call-1")), reply(error=BROKE))
    result = chat.run()
    assert (result["stopReason"], result["turns"]) == ("error", 2)
    (started,) = of_type(run_events(chat), "tool_execution_start")
    assert shape(run_events(chat)) == [
        "agent_start",
        *turn(USER, SAID, called(started["toolCallId"])),
        *turn(SAID),
        "agent_end(error)",
    ]
    stage.assert_goes_on(chat)
    assert b"list_directory" in stage.server.requests[-1].raw


def test_prompts_that_failed_one_after_the_other_are_one_users_words(stage: Stage) -> None:
    chat = stage.chat(reply(error=BROKE), reply(error=BROKE))
    assert chat.run("first question")["stopReason"] == "error"
    assert chat.run("second question")["stopReason"] == "error"
    stage.assert_goes_on(chat)
    sent = stage.server.requests[-1].raw.decode()
    assert sent.index("first question") < sent.index("second question") < sent.index("and then?")
    assert [m["role"] for m in chat.get()["messages"]] == ["user", "assistant"] * 3


# --- cancel ---------------------------------------------------------------------------------------


def test_a_cancel_before_the_first_byte(stage: Stage) -> None:
    chat = stage.chat(Raw(answer=False))
    prompt = chat.start()
    stage.server.wait_for_requests(1)
    assert cancelled(chat, prompt)["text"] == ""
    stage.server.wait_for_disconnects(1)
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    assert last_message(events)["content"] == []
    stage.assert_goes_on(chat)


def test_a_cancel_in_the_stream_keeps_the_text_and_closes_the_connection(stage: Stage) -> None:
    chat = stage.chat(reply("half a sentence", hang=True))
    prompt = chat.start()
    chat.event("message_update")
    assert cancelled(chat, prompt)["text"] == "half a sentence"
    stage.server.wait_for_disconnects(1)
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    assert last_message(events)["content"] == [text("half a sentence")]
    stage.assert_goes_on(chat)


def test_a_cancel_while_the_model_thinks_leaves_a_valid_history(stage: Stage) -> None:
    chat = stage.chat(reply({"type": "thinking", "text": "let me think about this"}, hang=True))
    prompt = chat.start()
    chat.event("message_update")
    cancelled(chat, prompt)
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    stage.assert_goes_on(chat)


def test_a_cancel_behind_a_whole_call_of_an_open_stream_runs_nothing(stage: Stage) -> None:
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": "never.txt", "content": "x"}, "call-1")
    chat = stage.chat(reply("I write", call, hang=True), root=root)
    prompt = chat.start()
    chat.event("message_update")
    cancelled(chat, prompt)
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    assert list(root.iterdir()) == []
    stage.assert_goes_on(chat)


def test_a_cancel_in_a_tool_answers_the_calls_that_were_not_run(stage: Stage) -> None:
    sleep = unique_sleep()
    calls = [tool("bash", {"command": sleep}, "call-1"), tool("bash", {"command": "true"}, "call-2")]
    chat = stage.chat(reply({"type": "thinking", "text": "two commands"}, "I run two", *calls))
    prompt = chat.start()
    until(lambda: sleepers(sleep), "the command runs")
    cancelled(chat, prompt)
    assert not sleepers(sleep)
    events = run_events(chat)
    started = of_type(events, "tool_execution_start")[0]["toolCallId"]
    assert shape(events) == [
        "agent_start",
        *turn(USER, SAID, called(started)),
        *turn(SAID),
        "agent_end(aborted)",
    ]
    assert "aborted" in result_texts(events)[0].lower()
    stage.assert_goes_on(chat)


def test_a_run_that_a_kill_interrupted_in_a_tool_can_go_on(stage: Stage) -> None:
    """Also what the server wants to see again survives: signatures and sealed reasoning are checked by it."""
    root = stage.home.workspace(note_txt="x\n")
    thinking = {"type": "thinking", "text": "I should look"}
    sleep = unique_sleep()
    stage.server.push(
        reply(thinking, tool("read_file", {"file_path": "note.txt"}, "call-1")),
        reply(thinking, tool("bash", {"command": sleep}, "call-2"), tool("bash", {"command": "true"})),
    )
    killed = start(stage.home)
    chat = Chat(killed, root, model=stage.model, mode="full")
    chat.start("run it")
    until(lambda: sleepers(sleep), "the command runs")
    wanted = wanted_back(stage.server.requests[-1].body)
    assert wanted
    assert UNSIGNED not in wanted
    killed.kill()
    until(lambda: not sleepers(sleep), "nothing of the command is left")
    later = start(stage.home)
    stage.server.push(reply("here again"))
    assert later.call("agentd/prompt", {"sessionId": chat.id, "prompt": "and now?"})["text"] == "here again"
    after = stage.server.requests[-1].raw.decode()
    assert "Outcome unknown" in after
    assert wanted <= wanted_back(stage.server.requests[-1].body)


# --- limits ---------------------------------------------------------------------------------------


def test_the_limit_of_turns_ends_the_run_with_a_last_word(stage: Stage) -> None:
    chat = stage.chat(*(reply(tool("list_directory", {}, f"call-{number}")) for number in range(3)))
    result = chat.run(maxTurns=3)
    assert (result["stopReason"], result["turns"], result["text"]) == ("max_turns", 3, "")
    events = run_events(chat)
    ids = [event["toolCallId"] for event in of_type(events, "tool_execution_start")]
    assert shape(events) == [
        "agent_start",
        *turn(USER, SAID, called(ids[0])),
        *turn(SAID, called(ids[1])),
        *turn(SAID, called(ids[2])),
        *turn(SAID),
        "agent_end(max_turns)",
    ]
    assert len(stage.server.requests) == 3
    stage.assert_goes_on(chat)


def test_going_on_without_a_prompt_gives_a_valid_request(stage: Stage) -> None:
    chat = stage.chat(reply("cut off", error=BROKE), reply("resumed"))
    assert chat.run("start here")["stopReason"] == "error"
    assert chat.run([])["text"] == "resumed"
    stage.assert_goes_on(chat)


@pytest.mark.parametrize(
    "said",
    ["\n\n", " ", {"type": "thinking", "text": "only a thought"}],
    ids=["line-ends", "blank", "thought-alone"],
)
def test_an_answer_that_says_nothing_does_not_end_the_session(stage: Stage, said: Any) -> None:
    chat = stage.chat(reply(said))
    assert chat.run()["stopReason"] == "stop"
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    stage.assert_goes_on(chat)
