"""Sessions over ACP: made, listed, loaded with all that was said, resumed, closed and removed."""

import signal
from pathlib import Path

import pytest
from fakes.acp_agent import AcpHome, Agent, error_of
from fakes.model_server import ModelServer
from fakes.pictures import picture
from wire.processes import sleepers, unique_sleep, until
from wire.scripts import reply, tool


def load(agent: Agent, session: str, folder: Path) -> dict[str, object]:
    result: dict[str, object] = agent.call(
        "session/load", {"sessionId": session, "cwd": str(folder), "mcpServers": []}
    )
    return result


@pytest.mark.parametrize("cwd", ["relative", "/does/not/exist", ""])
def test_a_session_needs_an_existing_absolute_folder(acp_home: AcpHome, cwd: str) -> None:
    error = acp_home.begun().refused("session/new", {"cwd": cwd, "mcpServers": []})
    assert error["code"] == -32602
    assert error["message"].startswith("/cwd")


def test_sessions_are_listed_by_folder_newest_first(acp_home: AcpHome) -> None:
    one, other = acp_home.workspace(), acp_home.workspace()
    agent = acp_home.begun(*[reply("Hello.")] * 3)
    first, second, elsewhere = agent.new(one), agent.new(one), agent.new(other)
    for session in (first, second, elsewhere):
        agent.ask(session, f"I am {session}")
    listed = agent.call("session/list", {"cwd": str(one)})["sessions"]
    assert [each["sessionId"] for each in listed] == [second, first]
    assert listed[0]["cwd"] == str(one)
    assert listed[0]["title"] == f"I am {second}"
    assert len(agent.call("session/list", {})["sessions"]) == 3


def test_a_long_list_goes_on_at_its_cursor(acp_home: AcpHome) -> None:
    agent = acp_home.begun()
    folder = acp_home.workspace()
    made = {agent.new(folder) for _ in range(52)}
    page = agent.call("session/list", {})
    rest = agent.call("session/list", {"cursor": page["nextCursor"]})
    assert len(page["sessions"]) == 50
    assert rest.get("nextCursor") is None
    assert {each["sessionId"] for each in (*page["sessions"], *rest["sessions"])} == made


def test_load_tells_all_that_was_said_before_it_answers(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(a_txt="one\n")
    acp_home.trust("edit")
    items = [{"text": "look", "status": "completed"}]
    agent = acp_home.begun(
        reply(
            {"type": "thinking", "text": "Hm."},
            "I change it.",
            tool("read_file", {"file_path": "a.txt"}, "c1"),
            tool("edit_file", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}, "c2"),
            tool("read_file", {"file_path": "missing.txt"}, "c3"),
            tool("todo_write", {"items": items}, "c4"),
        ),
        reply("Done."),
    )
    session = agent.new(folder)
    agent.ask(session, "change it")
    live = {call: agent.call_of(session, call) for call in ("c1", "c2", "c3")}
    words = agent.said(session)
    agent.kill()

    later = acp_home.begun()
    params = {"sessionId": session, "cwd": str(folder), "mcpServers": []}
    response = later.response(later.request("session/load", params))
    replayed = later.messages[: later.messages.index(response)]
    commands = later.told(session, lambda update: update["sessionUpdate"] == "available_commands_update")
    said = [each for each in later.updates(session) if each != commands]  # those come behind the answer
    told = [m["params"]["update"] for m in replayed if m.get("method") == "session/update"]
    assert [each for each in told if each != commands] == said, "all of it comes before the answer"
    assert later.said(session, "user_message_chunk") == "change it"
    assert later.said(session) == words == "I change it.Done."
    assert later.said(session, "agent_thought_chunk") == "Hm."
    for call_id, known in live.items():
        assert later.call_of(session, call_id) == known
    assert later.updates(session, "plan")[0]["entries"][0]["content"] == "look"
    assert response["result"]["modes"]["currentModeId"] == "edit"
    assert "undo" in [each["name"] for each in commands["availableCommands"]]


def test_resume_tells_nothing_and_goes_on(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    agent = acp_home.begun(reply("First."))
    session = agent.new(folder)
    agent.ask(session, "one")
    agent.kill()

    later = acp_home.begun(reply("Second."))
    later.call("session/resume", {"sessionId": session, "cwd": str(folder)})
    later.call("session/set_config_option", {
        "sessionId": session, "configId": "model", "value": acp_home.script(reply("Second."))
    })  # fmt: skip
    assert later.ask(session, "two")["stopReason"] == "end_turn"
    assert later.said(session) == "Second."
    assert not later.updates(session, "user_message_chunk")
    assert "First." in str(acp_home.model_requests()[-1])


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_what_opens_a_session_tells_its_title_and_how_full_it_is(acp_home: AcpHome, method: str) -> None:
    folder = acp_home.workspace()
    with ModelServer([{**reply("First."), "usage": {"input": 1000, "output": 10}}]) as server:
        acp_home.config.write_text(
            'model = "server/model"\n[providers.server]\napi = "openai-chat"\n'
            f'base_url = "{server.base_url}"\n'
            "[providers.server.models.model]\ncontext_window = 64000\n"
        )
        agent = acp_home.begun()
        session = agent.new(folder)
        agent.ask(session, "Mend it")
        (*_, used) = agent.updates(session, "usage_update")
        agent.kill()

    later = acp_home.begun()
    later.call(method, {"sessionId": session, "cwd": str(folder), "mcpServers": []})
    assert used["used"] == 1010
    assert later.updates(session, "usage_update") == [used]
    (named,) = later.updates(session, "session_info_update")
    assert named["title"] == "Mend it"


def test_a_call_that_a_kill_cut_off_is_told_as_failed(acp_home: AcpHome) -> None:
    acp_home.trust()
    sleep = unique_sleep()
    folder = acp_home.workspace()
    agent = acp_home.begun(reply(tool("bash", {"command": sleep}, "c1")))
    session = agent.new(folder)
    agent.prompt(session, "go")
    until(lambda: sleepers(sleep), "the command runs")
    agent.kill()
    until(lambda: not sleepers(sleep), "the command is dead")

    later = acp_home.begun()
    load(later, session, folder)
    call = later.call_of(session, "c1")
    assert call["status"] == "failed"
    assert "Outcome unknown" in str(call["content"])


def test_load_in_the_midst_of_a_prompt_tells_what_is_there_and_then_goes_on(acp_home: AcpHome) -> None:
    acp_home.trust()
    folder = acp_home.workspace()
    command = "echo started; until [ -e go ]; do sleep 0.05; done"
    agent = acp_home.begun(reply("I wait.", tool("bash", {"command": command}, "c1")), reply("Done."))
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    agent.told(session, lambda update: "started" in str(update.get("content")))
    before = len(agent.messages)
    load(agent, session, folder)
    assert agent.said(session, since=before) == "I wait."
    replayed = agent.updates(session, "tool_call", "tool_call_update", since=before)
    assert [each.get("status") for each in replayed][:2] == ["pending", "in_progress"]
    assert any("started" in str(each.get("content")) for each in replayed)
    (folder / "go").touch()
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert agent.said(session, since=before) == "I wait.Done."


def test_images_and_links_come_back_as_they_were_sent(acp_home: AcpHome) -> None:
    import base64

    folder = acp_home.workspace(a_txt="one\n")
    agent = acp_home.begun(reply("Seen."))
    session = agent.new(folder)
    uri = (folder / "a.txt").as_uri()
    data = base64.b64encode(picture()).decode()
    prompt = [
        {"type": "text", "text": "look"},
        {"type": "image", "mimeType": "image/png", "data": data},
        {"type": "resource_link", "uri": uri, "name": "a.txt"},
        {"type": "resource", "resource": {"uri": uri, "text": "unsaved"}},
    ]
    agent.ask(session, prompt)
    since = len(agent.messages)
    load(agent, session, folder)
    assert [each["content"] for each in agent.updates(session, "user_message_chunk", since=since)] == prompt


def test_a_session_of_another_folder_is_not_opened_there(acp_home: AcpHome) -> None:
    agent = acp_home.begun()
    session = agent.new(acp_home.workspace())
    other = {"sessionId": session, "cwd": str(acp_home.workspace()), "mcpServers": []}
    for method in ("session/load", "session/resume"):
        error = agent.refused(method, other)
        assert error["message"].startswith("/cwd")


def test_a_session_of_another_process_says_whose_it_is(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    first, second = acp_home.begun(), acp_home.begun()
    session = first.new(folder)
    error = second.refused("session/load", {"sessionId": session, "cwd": str(folder), "mcpServers": []})
    assert error["data"]["kind"] == "sessionLocked"
    assert error["data"]["pid"] == first.pid


def test_an_unknown_session_is_not_found(acp_home: AcpHome) -> None:
    agent = acp_home.begun()
    error = error_of(agent.response(agent.prompt("s_unknown", "hi")))
    assert error["code"] == -32002
    assert error["data"]["kind"] == "sessionNotFound"


def test_a_closed_session_is_told_of_no_more_and_opens_again(acp_home: AcpHome) -> None:
    acp_home.trust()
    sleep = unique_sleep()
    folder = acp_home.workspace()
    agent = acp_home.begun(reply(tool("bash", {"command": sleep}, "c1")), reply("Again."))
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    until(lambda: sleepers(sleep), "the command runs")
    agent.call("session/close", {"sessionId": session})
    assert agent.response(prompt)["result"]["stopReason"] == "cancelled"
    assert not sleepers(sleep)
    assert agent.ask(session, "again")["stopReason"] == "end_turn"


def test_a_deleted_session_is_gone(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    agent = acp_home.begun(reply("A very special word."))
    session = agent.new(folder)
    agent.ask(session, "hi")
    agent.call("session/delete", {"sessionId": session})
    assert agent.call("session/list", {})["sessions"] == []
    assert b"very special word" not in acp_home.journal()
    assert agent.refused("session/delete", {"sessionId": session})["code"] == -32002


def test_mcp_servers_are_not_silently_left_out(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("Hello."))
    server = {"name": "x", "command": "/bin/x", "args": [], "env": []}
    params = {"cwd": str(acp_home.workspace()), "mcpServers": [server]}
    session = agent.call("session/new", params)["sessionId"]
    assert not agent.updates(session, "agent_thought_chunk")
    agent.ask(session, "hi")
    assert "MCP" in agent.said(session, "agent_thought_chunk")


def test_a_killed_process_leaves_no_command(acp_home: AcpHome) -> None:
    acp_home.trust()
    sleep = unique_sleep()
    agent = acp_home.begun(reply(tool("bash", {"command": f"setsid {sleep}"}, "c1")))
    session = agent.new(acp_home.workspace())
    agent.prompt(session, "go")
    until(lambda: sleepers(sleep), "the command runs")
    agent.process.send_signal(signal.SIGKILL)
    until(lambda: not sleepers(sleep), "the command is dead")
