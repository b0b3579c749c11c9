"""Cancel at every moment: what is said, in which order, and that the session takes the next prompt."""

import json

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json, notification, request
from wire.home import Home
from wire.order import SAID, USER, assert_well_formed, called, shape, turn, units
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.runs import assert_paired, assert_takes_the_next_prompt, chat_with, run_events
from wire.scripts import reply, text, tool


def messages_said(chat: Chat) -> list[Json]:
    return [
        params["event"]["message"]
        for params in chat.notifications()
        if params["event"]["type"] == "message_end"
    ]


def test_a_cancel_in_the_stream_keeps_what_was_said(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("abcdef", chunkSize=2, hang=True))
    prompt = chat.start()
    until(lambda: "".join(_deltas(chat)) == "abcdef", "the text was streamed")
    answer = chat.cancel()
    assert (answer["state"], answer["quiescent"], answer["restored"]) == ("cancelled", True, [])
    result = chat.result(prompt)
    assert (result["stopReason"], result["text"], result["turns"]) == ("aborted", "abcdef", 1)
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    said = messages_said(chat)[-1]
    assert (said["stopReason"], said["content"]) == ("aborted", [text("abcdef")])
    assert [
        m["role"] for m in assert_takes_the_next_prompt(chat, shared_home, "after a cancelled stream")
    ] == [
        "user",
        "user",
    ]


def _deltas(chat: Chat) -> list[str]:
    return [
        params["event"]["update"]["delta"]
        for params in chat.notifications()
        if params["event"]["type"] == "message_update"
    ]


def test_a_cancel_between_two_deltas_says_the_same_to_everyone(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("0123456789" * 100, chunkSize=2, delayMs=20))
    prompt = chat.start()
    chat.event("message_update")
    chat.cancel()
    result = chat.result(prompt)
    assert result["stopReason"] == "aborted"
    assert 0 < len(result["text"]) < 1000
    assert result["text"] == "".join(_deltas(chat)) == messages_said(chat)[-1]["content"][0]["text"]
    assert_well_formed(chat.notifications())


def test_a_cancel_before_the_first_word_gives_an_empty_aborted_message(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply(hang=True))
    prompt = chat.start("no word yet")
    until(lambda: shared_home.model_requests("no word yet"), "the model was asked")
    chat.cancel()
    assert chat.result(prompt)["text"] == ""
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    assert messages_said(chat)[-1]["content"] == []
    assert_takes_the_next_prompt(chat, shared_home, "after no word")


def test_a_half_call_never_appears(daemon: Daemon, shared_home: Home) -> None:
    call = tool("write_file", {"file_path": "never.txt", "content": "x" * 400}, "call-1")
    chat = chat_with(daemon, shared_home, reply("words", call, chunkSize=20, delayMs=30), reply("never"))
    prompt = chat.start()
    daemon.wait(lambda message: _is_call_update(message, chat))
    chat.cancel()
    assert chat.result(prompt)["text"] == "words"
    assert messages_said(chat)[-1]["content"] == [text("words")]
    assert shape(run_events(chat)) == ["agent_start", *turn(USER, SAID), "agent_end(aborted)"]
    assert not (chat.root / "never.txt").exists()
    assert "call-1" not in json.dumps(assert_takes_the_next_prompt(chat, shared_home, "after half a call"))


def _is_call_update(message: Json, chat: Chat) -> bool:
    event = message.get("params", {}).get("event", {})
    return (
        event.get("type") == "message_update"
        and message["params"]["sessionId"] == chat.id
        and event["update"]["kind"] == "tool_call"
    )


def test_a_cancel_in_a_tool_closes_everything_and_leaves_no_process(
    daemon: Daemon, shared_home: Home
) -> None:
    sleep = unique_sleep()
    first = tool("bash", {"command": f"echo begun; {sleep} & setsid {sleep} & {sleep}"}, "call-1")
    second = tool("write_file", {"file_path": "never.txt", "content": "x"}, "call-2")
    chat = chat_with(daemon, shared_home, reply("I run two", first, second), reply("never"))
    prompt = chat.start("run two")
    until(lambda: len(sleepers(sleep)) >= 3, "the command and its children run")
    answer = chat.cancel()
    assert not processes_with(sleep), "child processes are dead when the cancel is answered"
    assert (answer["state"], answer["quiescent"]) == ("cancelled", True)
    result = chat.result(prompt)
    assert (result["stopReason"], result["turns"], result["text"]) == ("aborted", 1, "")
    assert shape(run_events(chat)) == [
        "agent_start",
        *turn(USER, SAID, called("call-1")),
        *turn(SAID),
        "agent_end(aborted)",
    ]
    *_, tool_result, last = messages_said(chat)
    assert (tool_result["content"], tool_result["isError"]) == ([text("Tool execution aborted.")], True)
    assert (last["content"], last["stopReason"]) == ([], "aborted")
    assert last["errorMessage"] == "Tool loop aborted"
    assert not (chat.root / "never.txt").exists()
    messages = assert_takes_the_next_prompt(chat, shared_home, "after a cancelled tool")
    assert_paired(messages)
    results = [m for m in messages if m["role"] == "tool_result"]
    assert [m["toolCallId"] for m in results] == ["call-1", "call-2"]
    assert all(m["isError"] for m in results)


def test_a_cancel_in_the_second_tool_keeps_the_result_of_the_first(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    first = tool("bash", {"command": "echo one"}, "call-1")
    second = tool("bash", {"command": sleep}, "call-2")
    chat = chat_with(daemon, shared_home, reply(first, second))
    prompt = chat.start()
    until(lambda: sleepers(sleep), "the second command runs")
    chat.cancel()
    chat.result(prompt)
    assert shape(run_events(chat)) == [
        "agent_start",
        *turn(USER, SAID, called("call-1"), called("call-2")),
        *turn(SAID),
        "agent_end(aborted)",
    ]
    results = [message for message in messages_said(chat) if message["role"] == "tool_result"]
    assert [result["isError"] for result in results] == [False, True]


def test_a_command_that_ignores_sigterm_is_killed_by_a_cancel(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    command = f"trap '' TERM INT HUP; {sleep} & while :; do wait; done"
    chat = chat_with(daemon, shared_home, reply(tool("bash", {"command": command}, "call-1")))
    prompt = chat.start()
    until(lambda: sleepers(sleep), "the command runs")
    assert chat.cancel()["quiescent"] is True
    assert not processes_with(sleep)
    assert chat.result(prompt)["stopReason"] == "aborted"


CANCELS = 100
"""Each comes in one write with its prompt."""


@pytest.mark.parametrize("how", ["agentd/cancel", "$/cancelRequest"])
def test_a_cancel_in_the_frame_behind_the_prompt_asks_no_model(
    daemon: Daemon, shared_home: Home, how: str
) -> None:
    about = f"never asked {how}"
    chat = chat_with(daemon, shared_home, *(reply("asked") for _ in range(CANCELS + 1)))
    for number in range(CANCELS):
        prompt_id, request_id, cancel_id = f"n{number}", f"{how}-p{number}", f"{how}-c{number}"
        prompt = request(request_id, "agentd/prompt", chat.prompt_params(about, promptId=prompt_id))
        if how == "agentd/cancel":
            cancel = request(cancel_id, how, {"sessionId": chat.id, "promptId": prompt_id})
        else:
            cancel = notification(how, {"id": request_id})
        daemon.send(prompt, cancel)
        result = daemon.response(request_id)["result"]
        assert (result["stopReason"], result["text"], result["promptId"]) == ("aborted", "", prompt_id)
        run = chat.notifications(prompt_id)
        assert run[0]["event"]["type"] == "agent_start"
        assert run[-1]["event"]["type"] == "agent_end"
        assert run[-1]["event"]["stopReason"] == "aborted"
        if how == "agentd/cancel":
            assert daemon.response(cancel_id)["result"]["state"] == "cancelled"
            assert daemon.messages.index(daemon.response(request_id)) < daemon.messages.index(
                daemon.response(cancel_id)
            )
    assert shared_home.model_requests(about) == []
    assert_well_formed(chat.notifications())
    assert_takes_the_next_prompt(chat, shared_home, f"after none was asked {how}")


def test_the_prompt_is_answered_before_the_cancel_and_after_the_end_of_the_run(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("so far", hang=True))
    prompt = chat.start()
    chat.event("message_update")
    cancel = daemon.request("agentd/cancel", {"sessionId": chat.id})
    daemon.response(cancel)
    ended = next(
        n
        for n, message in enumerate(daemon.messages)
        if message.get("params", {}).get("sessionId") == chat.id
        and message["params"]["event"]["type"] == "agent_end"
    )
    order = [
        ended,
        daemon.messages.index(daemon.response(prompt)),
        daemon.messages.index(daemon.response(cancel)),
    ]
    assert order == sorted(order)


def test_a_cancelled_request_of_a_prompt_is_answered_with_its_result(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("so far", hang=True))
    prompt = chat.start()
    chat.event("message_update")
    daemon.notify("$/cancelRequest", {"id": prompt})
    result = chat.result(prompt)
    assert (result["stopReason"], result["text"]) == ("aborted", "so far")
    assert_takes_the_next_prompt(chat, shared_home, "after a cancelled request")


def test_a_second_cancel_is_harmless(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    chat = chat_with(daemon, shared_home, reply(tool("bash", {"command": sleep}, "call-1")))
    prompt = chat.start()
    until(lambda: sleepers(sleep), "the command runs")
    cancels = [daemon.request("agentd/cancel", {"sessionId": chat.id}) for _ in range(3)]
    states = [daemon.response(cancel)["result"]["state"] for cancel in cancels]
    assert states[0] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert chat.cancel()["state"] == "notRunning"
    assert_well_formed(chat.notifications())


def test_a_cancel_of_an_idle_session_or_another_prompt_is_not_running(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("done"), reply("so far", hang=True))
    assert chat.cancel()["state"] == "notRunning"
    chat.run(promptId="first")
    prompt = chat.start(promptId="second")
    until(lambda: "so far" in "".join(_deltas(chat)), "the second prompt runs")
    assert chat.cancel(promptId="first")["state"] == "notRunning"
    assert chat.cancel(promptId="unknown")["state"] == "notRunning"
    assert chat.get()["session"]["state"] == "running"
    assert chat.cancel(promptId="second")["state"] == "cancelled"
    assert chat.result(prompt)["stopReason"] == "aborted"


def test_a_cancel_after_the_last_word_changes_nothing(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, *(reply(f"whole {number}") for number in range(10)))
    for number in range(10):
        since = len(daemon.messages)
        prompt = chat.start()
        chat.event("agent_end", since)
        state = chat.cancel()["state"]
        result = chat.result(prompt)
        assert (state, result["stopReason"], result["text"]) == ("notRunning", "stop", f"whole {number}") or (
            state,
            result["stopReason"],
        ) == ("cancelled", "aborted")
    assert_well_formed(chat.notifications())


def test_reads_are_not_queued_behind_a_run(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    chat = chat_with(
        daemon, shared_home, reply("I run", tool("bash", {"command": f"echo out; {sleep}"}, "call-1"))
    )
    prompt = chat.start()
    chat.event("tool_execution_update")
    states = daemon.call("agentd/status")["sessions"]
    assert {"running"} == {s["state"] for s in states if s["sessionId"] == chat.id}
    got = chat.get()
    assert got["session"]["state"] == "running"
    assert got["partial"]["tools"][0]["toolCallId"] == "call-1"
    assert got["partial"]["tools"][0]["output"].strip() == "out"
    assert daemon.call("agentd/session/list")["sessions"]
    assert daemon.call("agentd/tools")["tools"]
    chat.cancel()
    assert chat.result(prompt)["stopReason"] == "aborted"


def test_the_partial_message_of_a_running_prompt_is_what_was_streamed(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("so far", hang=True))
    prompt = chat.start()
    until(lambda: "".join(_deltas(chat)) == "so far", "the text was streamed")
    got = chat.get()
    assert got["partial"]["message"]["content"] == [text("so far")]
    assert got["seq"] == chat.notifications()[-1].get("seq", got["seq"])
    chat.cancel()
    assert "partial" not in chat.get()
    assert chat.result(prompt)["stopReason"] == "aborted"


def test_closing_a_session_cancels_its_run(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    chat = chat_with(daemon, shared_home, reply(tool("bash", {"command": sleep}, "call-1")))
    prompt = chat.start()
    until(lambda: sleepers(sleep), "the command runs")
    assert daemon.call("agentd/session/close", {"sessionId": chat.id}) == {}
    assert not processes_with(sleep)
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert_takes_the_next_prompt(chat, shared_home, "after it was closed")


def test_a_prompt_that_makes_its_session_can_be_cancelled_in_the_next_frame(
    daemon: Daemon, shared_home: Home
) -> None:
    model = shared_home.script(reply("asked"))
    for number in range(10):
        params = {
            "workspaceUri": shared_home.workspace().as_uri(),
            "prompt": "never asked, made",
            "model": model,
        }
        request_id = f"made-{number}"
        daemon.send(
            request(request_id, "agentd/prompt", params), notification("$/cancelRequest", {"id": request_id})
        )
        answer = daemon.response(request_id)
        assert answer["result"]["stopReason"] == "aborted"
        of_session = [
            m["params"]
            for m in daemon.messages
            if m.get("params", {}).get("sessionId") == answer["result"]["sessionId"]
        ]
        assert_well_formed(of_session)
        assert of_session[-1]["event"]["type"] == "agent_end"
    assert shared_home.model_requests("never asked, made") == []


def test_a_prompt_and_a_close_in_one_write_both_end(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, *(reply("x") for _ in range(20)))
    for number in range(10):
        prompt, close, again = (f"{name}-{number}" for name in ("pc-prompt", "pc-close", "pc-again"))
        daemon.send(
            request(prompt, "agentd/prompt", chat.prompt_params()),
            request(close, "agentd/session/close", {"sessionId": chat.id}),
            request(again, "agentd/prompt", chat.prompt_params()),
        )
        assert daemon.response(prompt)["result"]["stopReason"] in ("aborted", "stop")
        assert daemon.response(close)["result"] == {}
        assert daemon.response(again)["result"]["stopReason"] == "stop"
    assert_well_formed(chat.notifications())


def test_updates_after_a_read_go_on_at_the_offsets_of_its_partial(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("😀b" * 300, chunkSize=1, delayMs=1))
    prompt = chat.start()
    chat.event("message_update")
    for _ in range(5):
        asked = daemon.request("agentd/session/get", {"sessionId": chat.id})
        answer = daemon.response(asked)
        place = daemon.messages.index(answer)
        partial = answer["result"].get("partial", {}).get("message")
        chat.result(prompt) if partial is None else chat.event("message_update", place)
        if partial is not None:
            following = next(
                m["params"]["event"]["update"]
                for m in daemon.messages[place:]
                if m.get("params", {}).get("sessionId") == chat.id
                and m["params"]["event"]["type"] == "message_update"
            )
            assert following["offset"] == sum(units(block["text"]) for block in partial["content"])
    chat.result(prompt)
