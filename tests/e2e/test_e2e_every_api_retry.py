"""Failures that pass, with a server of every wire API: tried again, told of, never said twice."""

from typing import Any

import pytest
from e2e.every_api import Stage
from fakes.model_server import json_answer
from wire.order import shape
from wire.runs import of_type, run_events
from wire.scripts import reply, text, tool

BUSY = {"kind": "overloaded", "message": "The model is overloaded.", "status": 503}


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types of the events that tell of attempts, in order."""
    told = [params["event"]["type"] for params in events]
    return [kind for kind in told if kind in ("message_reset", "retry", "turn_start", "agent_end")]


def test_a_busy_server_is_asked_again_when_it_says(stage: Stage) -> None:
    chat = stage.chat(reply(error=BUSY | {"retryAfterMs": 1}), reply("here it is"))
    result = chat.run()
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "here it is", 1)
    events = run_events(chat)
    assert kinds(events) == ["turn_start", "retry", "agent_end"]
    (told,) = of_type(events, "retry")
    assert (told["attempt"], told["maxAttempts"], told["delayMs"]) == (1, 5, 1)
    assert "overloaded" in told["reason"]
    assert len(stage.server.requests) == 2
    stage.assert_goes_on(chat)


def test_text_that_a_failure_cut_off_is_taken_back_and_said_once(stage: Stage) -> None:
    root = stage.home.workspace()
    call = tool("write_file", {"file_path": "never.txt", "content": "x"}, "call-1")
    chat = stage.chat(reply("first try", call, error=BUSY), reply("second try"), root=root)
    assert chat.run()["text"] == "second try"
    events = run_events(chat)
    assert kinds(events) == ["turn_start", "message_reset", "retry", "agent_end"]
    assert of_type(events, "message_end")[-1]["message"]["content"] == [text("second try")]
    assert list(root.iterdir()) == []
    stage.assert_goes_on(chat)
    assert b"first try" not in stage.server.requests[-1].raw


def test_the_request_of_another_attempt_is_the_same_to_the_byte(stage: Stage) -> None:
    thinking = {"type": "thinking", "text": "I look"}
    chat = stage.chat(reply(thinking, tool("list_directory", {}, "call-1")))
    stage.server.push(reply(error=BUSY | {"retryAfterMs": 1}), reply("done"))
    assert chat.run()["text"] == "done"
    _, first, second = stage.server.requests
    assert first.raw == second.raw
    assert len(of_type(run_events(chat), "tool_execution_start")) == 1
    stage.assert_goes_on(chat)


def test_a_server_that_stays_busy_is_left_after_five_attempts(stage: Stage) -> None:
    chat = stage.chat(*[reply(error=BUSY | {"retryAfterMs": 1})] * 5)
    result = chat.run()
    assert (result["stopReason"], result["turns"]) == ("error", 1)
    assert (result["error"]["kind"], result["error"]["retryable"]) == ("overloaded", True)
    assert kinds(run_events(chat)) == ["turn_start", *["retry"] * 4, "agent_end"]
    assert len(stage.server.requests) == 5
    stage.assert_goes_on(chat)


def test_a_wait_that_nobody_would_wait_is_told_at_once(stage: Stage) -> None:
    chat = stage.chat(json_answer({"error": {"message": "Too many."}}, 429, retry_after="3600"))
    result = chat.run()
    assert result["error"]["kind"] == "rate_limit"
    assert "1 h 0 min" in result["error"]["message"]
    assert result["error"]["retryAfterMs"] == 3_600_000
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)


def test_a_cancel_ends_the_wait_at_once(stage: Stage) -> None:
    chat = stage.chat(reply("half", error=BUSY), json_answer({"error": "busy"}, 429, retry_after="100"))
    prompt = chat.start()
    chat.event("retry", attempt=2)
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert shape(run_events(chat))[-2:] == ["turn_end", "agent_end(aborted)"]
    assert len(stage.server.requests) == 2
    stage.assert_goes_on(chat)


@pytest.mark.parametrize("kind", ["auth", "bad_request", "quota"])
def test_what_will_not_pass_is_asked_once(stage: Stage, kind: str) -> None:
    message = "You exceeded your current quota, please check your plan and billing details."
    chat = stage.chat(reply(error={"kind": kind, "message": message if kind == "quota" else "No."}))
    assert chat.run()["error"]["kind"] == kind
    assert kinds(run_events(chat)) == ["turn_start", "agent_end"]
    assert len(stage.server.requests) == 1
    stage.assert_goes_on(chat)
