"""Idempotence of prompts, and sessions that are busy, side by side, listed, changed and closed."""

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json, request
from wire.home import Home
from wire.order import assert_well_formed
from wire.runs import chat_with
from wire.scripts import reply, tool

PROMPT = "agentd/prompt"


def runs_begun(chat: Chat) -> int:
    return sum(params["event"]["type"] == "agent_start" for params in chat.notifications())


# --- the same prompt id ----------------------------------------------------------------------------------


def test_the_same_prompt_joins_while_it_runs(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("so far", hang=True))
    first = chat.start("do it", promptId="same")
    chat.event("message_update")
    second, third = (chat.start("do it", promptId="same") for _ in range(2))
    assert daemon.serves()
    assert daemon.count(lambda message: message.get("id") in (second, third)) == 0
    chat.cancel()
    results = [chat.result(request_id) for request_id in (first, second, third)]
    assert results[0]["stopReason"] == "aborted"
    assert results == [results[0]] * 3
    assert runs_begun(chat) == 1


def test_two_equal_prompts_in_one_write_are_one_run(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("once"), reply("twice"))
    params = chat.prompt_params("do it", promptId="twin")
    daemon.send(request("twin-1", PROMPT, params), request("twin-2", PROMPT, params))
    assert daemon.response("twin-1")["result"] == daemon.response("twin-2")["result"]
    assert runs_begun(chat) == 1


def test_cancelling_one_of_two_joined_requests_cancels_their_prompt(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("so far", hang=True))
    first = chat.start("do it", promptId="joined")
    chat.event("message_update")
    second = chat.start("do it", promptId="joined")
    daemon.notify("$/cancelRequest", {"id": second})
    assert chat.result(first) == chat.result(second)
    assert chat.result(first)["stopReason"] == "aborted"


def test_a_finished_prompt_is_answered_again_without_events(daemon: Daemon, shared_home: Home) -> None:
    usage = {"input": 3, "output": 4, "total": 7, "contextTokens": 7}
    chat = chat_with(daemon, shared_home, reply(tool("list_directory")), reply("done", usage=usage))
    result = chat.run("do it", promptId="done-1")
    chat.run("something else", promptId="done-2", model=shared_home.script(reply("other")))
    before = len(chat.notifications())
    assert chat.run("do it", promptId="done-1") == result
    blocks = [{"type": "text", "text": "do it"}]
    assert chat.run(blocks, promptId="done-1") == result, "a text is the same prompt as its one block"
    assert daemon.serves()
    assert len(chat.notifications()) == before


@pytest.mark.parametrize(
    "params", [{"error": {"kind": "auth", "message": "no"}}, {}], ids=["failed", "max-turns"]
)
def test_a_prompt_that_did_not_end_well_is_answered_again_as_it_ended(
    daemon: Daemon, shared_home: Home, params: Json
) -> None:
    chat = chat_with(daemon, shared_home, reply(tool("list_directory"), **params))
    result = chat.run("do it", promptId="bad", maxTurns=1)
    assert result["stopReason"] == ("error" if params else "max_turns")
    assert chat.run("do it", promptId="bad") == result
    assert runs_begun(chat) == 1


def test_another_prompt_under_a_used_id_is_refused(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("done"), reply("so far", hang=True))
    chat.run("do it", promptId="used")
    error = daemon.refused(PROMPT, chat.prompt_params("do something else", promptId="used"))
    assert error["code"] == -32602
    assert "promptId" in error["message"] or "used" in error["message"]
    running = chat.start("long one", promptId="running")
    error = daemon.refused(PROMPT, chat.prompt_params("another", promptId="running"))
    assert error["code"] == -32602
    chat.cancel()
    assert chat.result(running)["stopReason"] == "aborted"


def test_the_same_id_in_two_sessions_is_two_prompts(daemon: Daemon, shared_home: Home) -> None:
    first, second = (chat_with(daemon, shared_home, reply(name)) for name in ("one", "two"))
    assert first.run("do it", promptId="shared")["text"] == "one"
    assert second.run("do it", promptId="shared")["text"] == "two"


def test_without_a_session_the_id_is_sought_in_the_open_sessions_of_the_workspace(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace()
    first = Chat(daemon, root, model=shared_home.script(reply("one"), reply("again")))
    result = first.run("do it", promptId="sought")
    Chat(daemon, root, model=shared_home.script(reply("of the later session")))
    params = {"workspaceUri": root.as_uri(), "prompt": "do it", "promptId": "sought"}
    assert daemon.call(PROMPT, params) == result


def test_two_equal_prompts_without_a_session_make_one_session(daemon: Daemon, shared_home: Home) -> None:
    model = shared_home.script(reply("once"), reply("twice"))
    root = shared_home.workspace()
    params = {"workspaceUri": root.as_uri(), "prompt": "do it", "promptId": "first-of-all", "model": model}
    daemon.send(request("fresh-1", PROMPT, params), request("fresh-2", PROMPT, params))
    assert daemon.response("fresh-1")["result"] == daemon.response("fresh-2")["result"]
    sessions = daemon.call("agentd/session/list", {"workspaceUri": root.as_uri()})["sessions"]
    assert len(sessions) == 1


def test_an_accepted_prompt_can_be_waited_for_later(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("a" * 40, chunkSize=1, delayMs=10))
    assert chat.run("do it", promptId="later", wait="accepted")["outcome"] == "started"
    result = chat.run("do it", promptId="later")
    assert (result["text"], result["stopReason"]) == ("a" * 40, "stop")
    assert runs_begun(chat) == 1


@pytest.mark.parametrize("end", ["shutdown", "kill -9"])
def test_a_finished_prompt_is_answered_again_after_a_restart(home: Home, end: str) -> None:
    daemon = home.start()
    chat = chat_with(daemon, home, reply(tool("list_directory")), reply("done"), mode="edit")
    result = chat.run("do it", promptId="kept")
    if end == "shutdown":
        daemon.call("shutdown")
        daemon.notify("exit")
        assert daemon.exit_code() == 0
    else:
        daemon.kill()
    later = home.start()
    params = {"sessionId": chat.id, "prompt": "do it", "promptId": "kept"}
    assert later.call(PROMPT, params) == result
    assert later.serves()
    kinds = [m["params"]["event"]["type"] for m in later.messages if m.get("method") == "agentd/event"]
    assert "agent_start" not in kinds
    assert later.refused(PROMPT, {**params, "prompt": "other"})["code"] == -32602
    assert len(home.model_requests()) == 2


# --- busy and side by side -------------------------------------------------------------------------------


def test_a_second_prompt_on_a_busy_session_is_refused_and_the_first_goes_on(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(daemon, shared_home, reply("a" * 40, chunkSize=1, delayMs=20), reply("unused"))
    first = chat.start()
    chat.event("message_update")
    for params in ({}, {"whenBusy": "reject"}):
        error = daemon.refused(PROMPT, chat.prompt_params("second", **params))
        assert (error["code"], error["data"]["kind"]) == (-32803, "sessionBusy")
        assert error["message"] == "Agent is already processing a prompt."
    result = chat.result(first)
    assert (result["stopReason"], result["text"]) == ("stop", "a" * 40)
    assert runs_begun(chat) == 1
    assert chat.run()["text"] == "unused"
    assert_well_formed(chat.notifications())


def test_two_prompts_without_a_session_in_one_write_are_for_one_session(
    daemon: Daemon, shared_home: Home
) -> None:
    model = shared_home.script(reply("a" * 40, chunkSize=1, delayMs=10), reply("unused"))
    params = {"workspaceUri": shared_home.workspace().as_uri(), "model": model}
    daemon.send(
        request("pair-1", PROMPT, {**params, "prompt": "one"}),
        request("pair-2", PROMPT, {**params, "prompt": "two"}),
    )
    assert daemon.response("pair-2")["error"]["data"]["kind"] == "sessionBusy"
    assert daemon.response("pair-1")["result"]["text"] == "a" * 40


def test_sessions_do_not_wait_for_each_other(daemon: Daemon, shared_home: Home) -> None:
    hanging = [chat_with(daemon, shared_home, reply("so far", hang=True)) for _ in range(2)]
    prompts = [chat.start() for chat in hanging]
    for chat in hanging:
        chat.event("message_update")
    assert (
        chat_with(daemon, shared_home, reply(tool("list_directory")), reply("quick")).run()["text"] == "quick"
    )
    assert [chat.get()["session"]["state"] for chat in hanging] == ["running", "running"]
    for chat, prompt in zip(hanging, prompts, strict=True):
        chat.cancel()
        assert chat.result(prompt)["text"] == "so far"


def test_two_sessions_of_one_workspace_run_at_the_same_time(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    first = Chat(daemon, root, model=shared_home.script(reply("first", hang=True)))
    second = Chat(daemon, root, model=shared_home.script(reply("second")))
    prompt = first.start()
    first.event("message_update")
    assert second.run()["text"] == "second"
    first.cancel()
    assert first.result(prompt)["text"] == "first"


# --- list, get, update, close ----------------------------------------------------------------------------


def test_sessions_are_listed_newest_first_and_by_workspace(home: Home) -> None:
    daemon = home.start()
    root, other = home.workspace(), home.workspace()
    chats = [Chat(daemon, folder, model=home.script(reply("x"))) for folder in (root, other, root)]
    chats[0].run()
    everything = daemon.call("agentd/session/list")["sessions"]
    assert [s["sessionId"] for s in everything] == [chats[0].id, chats[2].id, chats[1].id]
    here = daemon.call("agentd/session/list", {"workspaceUri": root.as_uri()})["sessions"]
    assert [s["sessionId"] for s in here] == [chats[0].id, chats[2].id]
    first = daemon.call("agentd/session/list", {"limit": 2})
    assert [s["sessionId"] for s in first["sessions"]] == [chats[0].id, chats[2].id]
    second = daemon.call("agentd/session/list", {"limit": 2, "cursor": first["nextCursor"]})
    assert [s["sessionId"] for s in second["sessions"]] == [chats[1].id]
    assert "nextCursor" not in second
    assert everything[0]["messageCount"] == 2


def test_messages_are_read_page_by_page_from_the_end(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, *(reply(f"answer {number}") for number in range(3)))
    for number in range(3):
        chat.run(f"question {number}")
    whole = chat.get()["messages"]
    assert len(whole) == 6
    page = daemon.call("agentd/session/get", {"sessionId": chat.id, "limit": 4})
    assert (page["messages"], page["hasMore"]) == (whole[2:], True)
    before = page["messages"][0]["messageId"]
    rest = daemon.call("agentd/session/get", {"sessionId": chat.id, "limit": 4, "before": before})
    assert (rest["messages"], rest["hasMore"]) == (whole[:2], False)


def test_a_session_changes_its_title_model_and_mode(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("old"), mode="ask")
    model = shared_home.script(reply("new"))
    changed = daemon.call(
        "agentd/session/update", {"sessionId": chat.id, "title": "Named", "model": model, "mode": "plan"}
    )["session"]
    assert (changed["title"], changed["model"], changed["mode"]) == ("Named", model, "plan")
    assert daemon.serves()
    event = [p for p in chat.notifications() if p["event"]["type"] == "session_changed"][-1]
    assert event["event"]["session"]["title"] == "Named"
    assert chat.run()["text"] == "new"
    assert_well_formed(chat.notifications())


def test_a_closed_session_opens_again_at_its_next_use(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("one"))
    chat.run()
    assert daemon.call("agentd/session/close", {"sessionId": chat.id}) == {}
    assert chat.id not in {s["sessionId"] for s in daemon.call("agentd/status")["sessions"]}
    assert len(chat.get()["messages"]) == 2
    assert chat.run(model=shared_home.script(reply("two")))["text"] == "two"
    assert_well_formed(chat.notifications())


def test_another_process_may_read_a_session_but_not_write_it(home: Home) -> None:
    first = home.start()
    chat = chat_with(first, home, reply("one"), reply("so far", hang=True), mode="edit")
    chat.run()
    second = home.start()
    (listed,) = second.call("agentd/session/list")["sessions"]
    assert (listed["sessionId"], listed["lockedBy"]) == (chat.id, first.pid)
    assert len(second.call("agentd/session/get", {"sessionId": chat.id})["messages"]) == 2
    reading = ("agentd/session/get", "agentd/session/export", "agentd/session/diff", "agentd/session/fork")
    for method in reading:
        second.call(method, {"sessionId": chat.id})
    locked: tuple[tuple[str, Json], ...] = (
        (PROMPT, {"prompt": "x"}),
        ("agentd/cancel", {}),
        ("agentd/queue/update", {"op": "clear"}),
        ("agentd/session/attach", {}),
        ("agentd/session/update", {"title": "x"}),
        ("agentd/session/compact", {}),
        ("agentd/session/rewind", {"undo": True}),
        ("agentd/session/close", {}),
        ("agentd/session/delete", {}),
    )
    for method, params in locked:
        error = second.refused(method, {"sessionId": chat.id, **params})
        assert (error["code"], error["data"]["kind"], error["data"]["pid"]) == (
            -32803,
            "sessionLocked",
            first.pid,
        )
    first.close_stdin()
    assert first.exit_code() == 0
    params = {"sessionId": chat.id, "prompt": "mine", "model": home.script(reply("two"))}
    assert second.call(PROMPT, params)["text"] == "two"


# --- what a client can ask about -------------------------------------------------------------------------


def test_the_schema_describes_the_params_of_every_announced_method(daemon: Daemon) -> None:
    schema = daemon.call("agentd/schema")
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_tools_are_those_of_the_model_request(daemon: Daemon, shared_home: Home) -> None:
    tools = daemon.call("agentd/tools", {"workspaceUri": shared_home.workspace().as_uri()})["tools"]
    names = [described["name"] for described in tools]
    assert {
        "read_file",
        "write_file",
        "edit_file",
        "list_directory",
        "find_files",
        "search_files",
        "bash",
    } <= set(names)
    assert all(described["parameters"]["type"] == "object" for described in tools)
    chat = chat_with(daemon, shared_home, reply("x"))
    chat.run("which tools do I have")
    (asked,) = shared_home.model_requests("which tools do I have")
    assert set(asked["tools"]) == {described["name"] for described in tools if described["available"]}
    assert 0 < len(asked["system"]) < 2048


def test_the_models_name_the_default(home: Home) -> None:
    model = home.script(reply("x"))
    daemon = home.spawn(AGENTD_MODEL=model)
    daemon.initialize()
    models = daemon.call("agentd/models")
    assert models["default"] == model


def test_the_status_tells_time_and_sessions(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(daemon, shared_home, reply("x"))
    status = daemon.call("agentd/status")
    assert status["uptimeMs"] > 0
    assert {"sessionId", "state", "lastActivityAt"} <= set(status["sessions"][0])
    assert chat.id in {session["sessionId"] for session in status["sessions"]}
