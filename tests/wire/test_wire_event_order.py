"""Section 5 word by word: which events a run gives, in which order, with which texts."""

import json

from wire.chat import Chat
from wire.harness import Daemon, request
from wire.home import Home
from wire.order import SAID, USER, assert_well_formed, called, shape, turn, units
from wire.runs import chat_with, of_type, result_texts, run_events
from wire.scripts import reply, text, tool


def settled(chat: Chat) -> None:
    """Wait until everything that was sent about a finished run has come."""
    assert chat.daemon.serves()


def test_a_new_session_is_answered_before_its_first_event(daemon: Daemon, shared_home: Home) -> None:
    since = len(daemon.messages)
    root = shared_home.workspace()
    answered = daemon.call("agentd/session/new", {"workspaceUri": root.as_uri(), "title": "A title"})[
        "session"
    ]
    assert daemon.serves()
    first, second = daemon.messages[since : since + 2]
    assert first["result"]["session"] == answered
    params = second["params"]
    assert (params["seq"], params["event"]["type"]) == (1, "session_changed")
    assert "promptId" not in params
    session = params["event"]["session"]
    assert session["sessionId"] == answered["sessionId"]
    assert session["workspaceUri"] == root.as_uri()
    assert (session["title"], session["state"], session["messageCount"]) == ("A title", "idle", 0)


def test_a_prompt_without_a_session_makes_one_and_introduces_it_first(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace()
    since = len(daemon.messages)
    params = {
        "workspaceUri": root.as_uri(),
        "prompt": "hi",
        "model": shared_home.script(reply("one"), reply("two")),
    }
    first = daemon.call("agentd/prompt", params)
    kinds = [
        m["params"]["event"]["type"] for m in daemon.messages[since:] if m.get("method") == "agentd/event"
    ]
    assert kinds[:2] == ["session_changed", "agent_start"]
    assert first["promptId"]
    second = daemon.call("agentd/prompt", params)
    assert second["sessionId"] == first["sessionId"]
    assert second["promptId"] != first["promptId"]


def test_plain_text(daemon: Daemon, shared_home: Home) -> None:
    usage = {
        "input": 7,
        "output": 5,
        "cacheRead": 2,
        "cacheWrite": 1,
        "reasoning": 0,
        "total": 15,
        "contextTokens": 15,
    }
    chat = chat_with(daemon, shared_home, reply("hello", chunkSize=2, usage=usage))
    result = chat.run("hi", promptId="plain")
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    assert all(params["promptId"] == "plain" for params in events)
    assert "".join(event["update"]["delta"] for event in of_type(events, "message_update")) == "hello"
    assert all(event["update"]["kind"] == "text" for event in of_type(events, "message_update"))
    (ended,) = of_type(events, "agent_end")
    user, assistant = [event["message"] for event in of_type(events, "message_end")]
    assert user["content"] == [text("hi")]
    assert assistant["content"] == [text("hello")]
    assert assistant["stopReason"] == "stop"
    assert ended["messageIds"] == [user["messageId"], assistant["messageId"]]
    (turn_end,) = of_type(events, "turn_end")
    assert turn_end["messageId"] == assistant["messageId"]
    assert (turn_end["stopReason"], turn_end["toolResultIds"]) == ("stop", [])
    assert turn_end["usage"]["total"] == 15
    assert result["usage"]["total"] == 15
    del result["usage"]
    assert result == {
        "sessionId": chat.id,
        "promptId": "plain",
        "stopReason": "stop",
        "text": "hello",
        "messageId": assistant["messageId"],
        "turns": 1,
        "seq": events[-1]["seq"],
    }


def test_usage_that_nobody_reported_is_absent(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("hello"))
    result = chat.run()
    assert "usage" not in result
    assert "usage" not in of_type(run_events(chat), "turn_end")[0]


def test_agent_start_says_what_the_run_was_started_with(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("never"), mode="ask")
    model = shared_home.script(reply("other"))
    assert chat.run(model=model, mode="plan")["text"] == "other"
    (started,) = of_type(run_events(chat), "agent_start")
    assert started["prompt"] == {"model": model, "mode": "plan"}
    assert chat.get()["session"]["mode"] == "ask"
    assert chat.get()["session"]["model"] != model


def test_thinking_then_text_are_two_blocks_in_order(daemon: Daemon, shared_home: Home) -> None:
    thinking = {"type": "thinking", "text": "hmm 😀 well"}
    chat = chat_with(daemon, shared_home, reply(thinking, "a😀b", chunkSize=1))
    result = chat.run()
    events = run_events(chat)
    said: dict[tuple[str, int], str] = {}
    for event in of_type(events, "message_update"):
        update = event["update"]
        key = (update["kind"], update["index"])
        assert update["offset"] == units(said.get(key, ""))
        said[key] = said.get(key, "") + update["delta"]
    assert said == {("thinking", 0): "hmm 😀 well", ("text", 1): "a😀b"}
    message = of_type(events, "message_end")[-1]["message"]
    assert [block["type"] for block in message["content"]] == ["thinking", "text"]
    assert result["text"] == "a😀b"


def test_updates_are_deltas_and_never_the_text_so_far(daemon: Daemon, shared_home: Home) -> None:
    whole = "0123456789" * 2000
    chat = chat_with(daemon, shared_home, reply(whole, chunkSize=10))
    chat.run()
    updates = of_type(run_events(chat), "message_update")
    assert sum(len(event["update"]["delta"]) for event in updates) == len(whole)


def test_one_tool_call(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(note_txt="one line\n")
    chat = chat_with(
        daemon,
        shared_home,
        reply("Let me look.", tool("read_file", {"file_path": "note.txt"}, "call-1"), stopReason="tool_use"),
        reply("done"),
        root=root,
    )
    result = chat.run("read the note of one tool call")
    events = run_events(chat)
    assert shape(events) == [
        "agent_start",
        *turn(USER, SAID, called("call-1")),
        *turn(SAID),
        "agent_end(stop)",
    ]
    (started,) = of_type(events, "tool_execution_start")
    assert (started["toolName"], started["arguments"]) == ("read_file", {"file_path": "note.txt"})
    assert started["kind"] == "read"
    assert "note.txt" in started["title"]
    assert [location["uri"] for location in started["locations"]] == [(root / "note.txt").as_uri()]
    (ended,) = of_type(events, "tool_execution_end")
    assert ended["result"]["isError"] is False
    assert result_texts(events) == ["File: note.txt (1 lines total, showing 1-1)\n    1 | one line"]
    assert ended["durationMs"] >= 0
    message = next(
        e["message"] for e in of_type(events, "message_end") if e["message"]["role"] == "tool_result"
    )
    assert message == ended["result"]
    first_turn, second_turn = of_type(events, "turn_end")
    assert first_turn["toolResultIds"] == [message["messageId"]]
    assert (first_turn["stopReason"], second_turn["stopReason"]) == ("tool_use", "stop")
    assert (result["text"], result["turns"]) == ("done", 2)
    first, second = shared_home.model_requests("read the note of one tool call")
    assert [m["role"] for m in first["messages"]] == ["user"]
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "tool_result"]


def test_two_tool_calls_run_one_after_the_other_in_message_order(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    chat = chat_with(
        daemon,
        shared_home,
        reply(
            tool("bash", {"command": "test ! -e b && sleep 0.2 && echo a > a"}, "call-a"),
            tool("bash", {"command": "cat a && echo b > b"}, "call-b"),
        ),
        reply("done"),
        root=root,
    )
    chat.run("two calls in a row")
    events = run_events(chat)
    assert shape(events) == [
        "agent_start",
        *turn(USER, SAID, called("call-a"), called("call-b")),
        *turn(SAID),
        "agent_end(stop)",
    ]
    assert [end["result"]["isError"] for end in of_type(events, "tool_execution_end")] == [False, False]
    assert [end["result"]["details"]["exitCode"] for end in of_type(events, "tool_execution_end")] == [0, 0]
    second = shared_home.model_requests("two calls in a row")[1]
    assert [m.get("toolCallId") for m in second["messages"]] == [None, None, "call-a", "call-b"]


def test_a_provider_that_fails_before_any_text(daemon: Daemon, shared_home: Home) -> None:
    error = {"kind": "auth", "message": "The key was refused.", "status": 401}
    chat = chat_with(daemon, shared_home, reply(error=error))
    result = chat.run()
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(error)"]
    message = of_type(events, "message_end")[-1]["message"]
    assert (message["content"], message["stopReason"]) == ([], "error")
    assert "The key was refused." in message["errorMessage"]
    assert (result["stopReason"], result["text"]) == ("error", "")
    assert (result["error"]["kind"], result["error"]["retryable"]) == ("auth", False)
    assert "The key was refused." in result["error"]["message"]
    assert of_type(events, "agent_end")[0]["error"] == result["error"]
    assert chat.run(model=shared_home.script(reply("recovered")))["text"] == "recovered"


def test_a_provider_that_fails_in_the_middle_keeps_the_text_and_drops_the_calls(
    daemon: Daemon, shared_home: Home
) -> None:
    error = {"kind": "bad_request", "message": "It broke."}
    root = shared_home.workspace()
    call = tool("write_file", {"file_path": "never.txt", "content": "x"}, "call-1")
    chat = chat_with(daemon, shared_home, reply("some text", call, error=error), root=root)
    result = chat.run("fails in the middle")
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(error)"]
    message = of_type(events, "message_end")[-1]["message"]
    assert message["content"] == [text("some text")]
    assert result["text"] == "some text"
    assert not (root / "never.txt").exists()
    assert chat.run("after it", model=shared_home.script(reply("recovered")))["text"] == "recovered"
    last = shared_home.model_requests("after it")[-1]
    assert "call-1" not in json.dumps(last)


def test_a_run_that_may_take_three_turns_ends_with_a_closing_message(
    daemon: Daemon, shared_home: Home
) -> None:
    responses = [reply(tool("list_directory", {}, f"call-{number}")) for number in range(1, 6)]
    chat = chat_with(daemon, shared_home, *responses)
    result = chat.run("for ever", maxTurns=3)
    events = run_events(chat)
    assert shape(events) == [
        "agent_start",
        *turn(USER, SAID, called("call-1")),
        *turn(SAID, called("call-2")),
        *turn(SAID, called("call-3")),
        *turn(SAID),
        "agent_end(max_turns)",
    ]
    message = of_type(events, "message_end")[-1]["message"]
    assert (message["content"], message["stopReason"]) == ([], "error")
    assert message["errorMessage"] == "Maximum iteration limit reached."
    assert (result["stopReason"], result["turns"], result["text"]) == ("max_turns", 3, "")
    assert of_type(events, "agent_end")[0]["turns"] == 3
    assert len(shared_home.model_requests("for ever")) == 3
    assert chat.run("on again", model=shared_home.script(reply("valid")))["text"] == "valid"


def test_a_run_that_ends_in_its_last_turn_has_not_met_the_limit(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply(tool("list_directory")), reply("done"))
    assert chat.run(maxTurns=2)["stopReason"] == "stop"


def test_tool_use_without_calls_ends_the_run_after_one_request(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("nothing to call", stopReason="tool_use"), reply("never"))
    result = chat.run("no calls at all")
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    assert (result["stopReason"], result["turns"], result["text"]) == ("stop", 1, "nothing to call")
    assert len(shared_home.model_requests("no calls at all")) == 1


def test_text_that_is_cut_by_the_output_limit_ends_the_run_with_length(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("and then the", stopReason="length"), reply("never"))
    result = chat.run()
    events = run_events(chat)
    assert shape(events) == ["agent_start", *turn(USER, SAID), "agent_end(length)"]
    assert of_type(events, "message_end")[-1]["message"]["stopReason"] == "length"
    assert (result["stopReason"], result["text"], result["turns"]) == ("length", "and then the", 1)


def test_a_response_without_content_still_gives_a_message(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply())
    result = chat.run("say nothing")
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(stop)"]
    assert result["text"] == ""
    assert chat.run("again then", model=shared_home.script(reply("words")))["text"] == "words"
    assert '"text": ""' not in json.dumps(shared_home.model_requests("again then"))


def test_a_script_that_has_run_out_is_an_error_of_the_run_and_not_of_the_daemon(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply(tool("list_directory", {}, "call-1")))
    result = chat.run()
    assert result["stopReason"] == "error"
    assert result["error"]["message"]
    assert_well_formed(chat.notifications())
    assert daemon.serves()


def test_a_written_file_is_told_of_before_the_end_of_the_run(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    call = tool("write_file", {"file_path": "new.txt", "content": "x\n"}, "call-1")
    chat = chat_with(daemon, shared_home, reply(call), reply("done"), root=root)
    chat.run()
    events = run_events(chat)
    assert shape(events)[-2:] == ["files_changed", "agent_end(stop)"]
    assert of_type(events, "files_changed")[0]["files"] == [
        {"uri": (root / "new.txt").as_uri(), "action": "created"}
    ]


def test_the_end_of_the_run_comes_before_the_answer_and_nothing_after_it(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("done"))
    prompt = chat.start()
    chat.result(prompt)
    settled(chat)
    messages = daemon.messages
    answered = messages.index(daemon.response(prompt))
    of_session = [n for n, m in enumerate(messages) if m.get("params", {}).get("sessionId") == chat.id]
    assert messages[of_session[-1]]["params"]["event"]["type"] == "agent_end"
    assert answered == of_session[-1] + 1


def test_an_accepted_prompt_is_answered_at_once_and_told_of_by_events(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("so far", hang=True))
    result = chat.run(wait="accepted", promptId="acc")
    assert result["outcome"] == "started"
    assert (result["sessionId"], result["promptId"]) == (chat.id, "acc")
    assert result["seq"] >= 1
    chat.event("message_update")
    assert chat.cancel()["state"] == "cancelled"
    chat.event("agent_end", stopReason="aborted")


def test_an_empty_prompt_goes_on_from_the_transcript(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("cut", error={"kind": "bad_request", "message": "It broke."}))
    assert chat.run("start here")["stopReason"] == "error"
    before = len(chat.notifications())
    result = chat.run([], model=shared_home.script(reply("resumed")))
    assert result["text"] == "resumed"
    events = chat.notifications()[before:]
    assert shape(events) == ["agent_start", *turn(SAID), "agent_end(stop)"]
    assert len(of_type(events, "agent_end")[0]["messageIds"]) == 1
    error = daemon.refused("agentd/prompt", chat.prompt_params([]))
    assert error["code"] == -32602


def test_an_empty_prompt_in_an_empty_session_is_refused(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("never"))
    error = daemon.refused("agentd/prompt", chat.prompt_params([]))
    assert error["code"] == -32602
    assert "message" in error["message"]


def test_prompts_of_one_session_number_their_events_without_a_gap(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, *(reply(f"answer {number}") for number in range(5)))
    for number in range(5):
        assert chat.run(f"question {number}")["text"] == f"answer {number}"
    assert_well_formed(chat.notifications())
    got = chat.get()
    assert got["seq"] == chat.notifications()[-1]["seq"] == got["session"]["seq"]
    assert [message["role"] for message in got["messages"]] == ["user", "assistant"] * 5


def test_two_runs_at_once_keep_their_events_apart(daemon: Daemon, shared_home: Home) -> None:
    chats = [
        chat_with(
            daemon,
            shared_home,
            reply("abc" * 50, tool("list_directory", {}, "call-1"), chunkSize=5, delayMs=1),
            reply("xyz" * 50, chunkSize=5, delayMs=1),
        )
        for _ in range(4)
    ]
    ids = [f"parallel-{number}" for number in range(4)]
    daemon.send(
        *(request(i, "agentd/prompt", chat.prompt_params()) for i, chat in zip(ids, chats, strict=True))
    )
    for request_id, chat in zip(ids, chats, strict=True):
        assert daemon.response(request_id)["result"]["text"] == "xyz" * 50
        assert_well_formed(chat.notifications())
