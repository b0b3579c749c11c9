"""Prompts over ACP: what they say, how they end, what waits, what steers and what stops them."""

import base64
from pathlib import Path

import pytest
from fakes.acp_agent import AcpHome, error_of, text
from fakes.pictures import picture
from wire.processes import sleepers, unique_sleep, until
from wire.scripts import reply, tool


def thinking(said: str) -> dict[str, str]:
    return {"type": "thinking", "text": said}


def test_initialize_announces_what_is_served(acp_home: AcpHome) -> None:
    agent = acp_home.spawn()
    result = agent.begin()
    assert result["protocolVersion"] == 1
    assert result["agentCapabilities"]["loadSession"] is True
    assert result["agentCapabilities"]["promptCapabilities"] == {
        "image": True, "audio": False, "embeddedContext": True
    }  # fmt: skip
    assert result["_meta"]["steering"] == {"supported": True}
    for method in ("load", "resume", "new", "close", "delete", "prompt", "set_mode", "set_config_option"):
        assert agent.refused(f"session/{method}", {})["code"] == -32602, method


def test_a_client_of_a_later_version_is_answered_with_ours(acp_home: AcpHome) -> None:
    result = acp_home.spawn().call("initialize", {"protocolVersion": 7})
    assert result["protocolVersion"] == 1


def test_a_prompt_streams_thoughts_words_and_calls_and_ends(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(hello_txt="hi\n")
    agent = acp_home.begun(
        reply(thinking("Let me see."), "I look.", tool("read_file", {"file_path": "hello.txt"}, "c1")),
        reply("It says hi."),
    )
    session = agent.new(folder)
    result = agent.ask(session, "what is in hello.txt?")
    assert result["stopReason"] == "end_turn"
    assert result["_meta"]["agentd"]["turns"] == 2
    assert agent.said(session, "agent_thought_chunk") == "Let me see."
    assert agent.said(session) == "I look.It says hi."
    call = agent.call_of(session, "c1")
    assert call["title"] == "Read hello.txt"
    assert (call["kind"], call["status"]) == ("read", "completed")
    assert call["locations"] == [{"path": str(folder / "hello.txt")}]
    assert call["rawInput"] == {"file_path": "hello.txt"}
    assert "hi" in call["content"][0]["content"]["text"]
    assert call["rawOutput"]["details"]["type"] == "read"
    statuses = [
        each["status"] for each in agent.updates(session, "tool_call", "tool_call_update") if "status" in each
    ]
    assert statuses == ["pending", "in_progress", "completed"]
    assert not agent.updates(session, "user_message_chunk"), "the client knows what its user said"
    messages = {each["messageId"] for each in agent.updates(session, "agent_message_chunk")}
    assert len(messages) == 2
    info = agent.updates(session, "session_info_update")
    assert info[0]["title"] == "what is in hello.txt?"


@pytest.mark.parametrize(
    ("stop", "reason"), [("stop", "end_turn"), ("length", "max_tokens"), ("refusal", "refusal")]
)
def test_each_end_has_its_stop_reason(acp_home: AcpHome, stop: str, reason: str) -> None:
    agent = acp_home.begun(reply("Well.", stopReason=stop))
    session = agent.new(acp_home.workspace())
    assert agent.ask(session, "go")["stopReason"] == reason


def test_too_many_turns_are_max_turn_requests(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    (folder / ".agentd").mkdir()
    (folder / ".agentd" / "config.toml").write_text("max_turns = 1\n")
    acp_home.trust()
    agent = acp_home.begun(*[reply(tool("list_directory", {"path": "."}))] * 3)
    session = agent.new(folder)
    assert agent.ask(session, "go")["stopReason"] == "max_turn_requests"


def test_a_failing_model_is_an_error_with_data(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("So far", error={"kind": "bad_request", "message": "No such thing."}))
    session = agent.new(acp_home.workspace())
    error = error_of(agent.response(agent.prompt(session, "go")))
    assert error["code"] == -32603
    assert "No such thing." in error["message"]
    assert error["data"]["error"] == "bad_request"
    assert agent.said(session) == "So far"


def test_a_missing_key_asks_for_authentication(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply(error={"kind": "auth", "message": "Wrong key."}))
    session = agent.new(acp_home.workspace())
    error = error_of(agent.response(agent.prompt(session, "go")))
    assert error["code"] == -32000
    assert error["data"]["error"] == "auth"


def test_without_a_model_the_prompt_says_how_to_get_one(acp_home: AcpHome) -> None:
    agent = acp_home.begun()
    session = agent.new(acp_home.workspace())
    error = error_of(agent.response(agent.prompt(session, "go")))
    assert error["data"]["kind"] == "noModel"
    assert "AGENTD_MODEL" in error["data"]["hint"]


def test_there_is_nothing_to_authenticate_with(acp_home: AcpHome) -> None:
    error = acp_home.begun().refused("authenticate", {"methodId": "key"})
    assert error["code"] == -32602
    assert "environment" in error["data"]["hint"]


# --- what a prompt says -----------------------------------------------------------------------------


def test_a_link_to_a_file_is_shown_to_the_model_with_its_lines(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(a_txt="one\ntwo\nthree\n")
    agent = acp_home.begun(reply("Seen."))
    session = agent.new(folder)
    link = {"type": "resource_link", "uri": (folder / "a.txt").as_uri() + "#L2:3", "name": "a.txt"}
    agent.ask(session, [*text("what is"), link])
    (request,) = acp_home.model_requests()
    assert "two" in str(request)
    assert "one" not in str(request["messages"])


def test_an_embedded_text_is_shown_and_the_file_not_looked_at(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(a_txt="on disk\n")
    agent = acp_home.begun(reply("Seen."))
    session = agent.new(folder)
    resource = {"uri": (folder / "a.txt").as_uri(), "text": "in the buffer\n", "mimeType": "text/plain"}
    agent.ask(session, [*text("what is"), {"type": "resource", "resource": resource}])
    (request,) = acp_home.model_requests()
    assert "in the buffer" in str(request)
    assert "on disk" not in str(request)


def test_a_link_out_of_the_workspace_is_refused(acp_home: AcpHome, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours\n")
    agent = acp_home.begun(reply("never"))
    session = agent.new(acp_home.workspace())
    link = {"type": "resource_link", "uri": outside.as_uri(), "name": "outside.txt"}
    error = error_of(agent.response(agent.prompt(session, [link])))
    assert error["data"]["kind"] == "outsideWorkspace"
    assert acp_home.model_requests() == []


def test_a_link_in_the_workspace_that_leads_out_of_it_is_refused(acp_home: AcpHome, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("not yours\n")
    folder = acp_home.workspace()
    (folder / "cache").symlink_to(tmp_path / "outside")
    agent = acp_home.begun(reply("never"))
    session = agent.new(folder)
    link = {"type": "resource_link", "uri": (folder / "cache" / "a.txt").as_uri(), "name": "a.txt"}
    error = error_of(agent.response(agent.prompt(session, [link])))
    assert error["data"]["kind"] == "outsideWorkspace"


def test_a_link_to_a_page_is_a_word_and_nothing_is_fetched(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("Seen."))
    session = agent.new(acp_home.workspace())
    agent.ask(session, [*text("see"), {"type": "resource_link", "uri": "https://example.org/x", "name": "x"}])
    assert "[x](https://example.org/x)" in str(acp_home.model_requests())


def test_a_linked_secret_asks_before_the_model_sees_it(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    (folder / ".env").write_text("TOKEN=hidden-word\n")
    agent = acp_home.begun(reply("I saw nothing."))
    session = agent.new(folder)
    link = {"type": "resource_link", "uri": (folder / ".env").as_uri(), "name": ".env"}
    prompt = agent.prompt(session, [*text("what is"), link])
    question = agent.question()
    call_id = question["params"]["toolCall"]["toolCallId"]
    assert agent.call_of(session, call_id)["status"] == "pending"
    agent.answer(question, {"outcome": {"outcome": "selected", "optionId": "reject_once"}})
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert agent.call_of(session, call_id)["status"] == "failed"
    assert "hidden-word" not in str(acp_home.model_requests())


def test_an_image_reaches_the_model(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("A picture."))
    session = agent.new(acp_home.workspace())
    data = base64.b64encode(picture(4, 4)).decode()
    agent.ask(session, [*text("what is it?"), {"type": "image", "mimeType": "image/png", "data": data}])
    assert "image" in str(acp_home.model_requests())


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ([], "blank"),
        ([{"type": "text", "text": "  "}], "blank"),
        ([{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}], "audio"),
        ([{"type": "film"}], "/prompt/0"),
        ([{"type": "image", "mimeType": "image/png", "data": "!"}], "/prompt/0"),
    ],
)
def test_a_prompt_that_cannot_be_said_is_refused_by_its_place(
    acp_home: AcpHome, prompt: list[dict[str, str]], why: str
) -> None:
    agent = acp_home.begun(reply("never"))
    session = agent.new(acp_home.workspace())
    error = error_of(agent.response(agent.prompt(session, prompt)))
    assert error["code"] == -32602
    assert why in error["message"]


# --- the plan, usage --------------------------------------------------------------------------------


def test_the_to_do_list_is_the_plan(acp_home: AcpHome) -> None:
    items = [{"text": "look", "status": "completed"}, {"text": "repair", "status": "in_progress"}]
    agent = acp_home.begun(reply(tool("todo_write", {"items": items})), reply("Planned."))
    session = agent.new(acp_home.workspace())
    agent.ask(session, "plan it")
    (plan,) = agent.updates(session, "plan")
    assert [(each["content"], each["status"]) for each in plan["entries"]] == [
        ("look", "completed"), ("repair", "in_progress")
    ]  # fmt: skip


# --- queue, steer, cancel ---------------------------------------------------------------------------


def waiting(acp_home: AcpHome) -> tuple[str, dict[str, object]]:
    """A command that waits until it is stopped, and the response that calls it."""
    sleep = unique_sleep()
    acp_home.trust()
    return sleep, reply("Now.", tool("bash", {"command": sleep}, "c1"))


def test_a_second_prompt_waits_for_the_first(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    acp_home.trust()
    command = "until [ -e go ]; do sleep 0.05; done"
    agent = acp_home.begun(reply(tool("bash", {"command": command}, "c1")), reply("First."), reply("Second."))
    session = agent.new(folder)
    first = agent.prompt(session, "one")
    agent.told(session, lambda update: update.get("status") == "in_progress")
    second = agent.prompt(session, "two")
    (folder / "go").touch()
    assert agent.response(first)["result"]["stopReason"] == "end_turn"
    assert agent.response(second)["result"]["stopReason"] == "end_turn"
    assert agent.said(session) == "First.Second."
    answered = [message["id"] for message in agent.messages if message.get("id") in (first, second)]
    assert answered == [first, second]


def test_cancel_stops_the_command_the_prompt_and_what_waits(acp_home: AcpHome) -> None:
    sleep, call = waiting(acp_home)
    agent = acp_home.begun(call, reply("never"))
    session = agent.new(acp_home.workspace())
    first = agent.prompt(session, "one")
    until(lambda: sleepers(sleep), "the command runs")
    second = agent.prompt(session, "two")
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.response(first)["result"]["stopReason"] == "cancelled"
    assert agent.response(second)["result"]["stopReason"] == "cancelled"
    assert not sleepers(sleep)
    assert agent.call_of(session, "c1")["status"] == "failed"
    assert agent.said(session) == "Now."


def test_a_cancel_in_the_very_next_message_reaches_its_prompt(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("never"))
    session = agent.new(acp_home.workspace())
    request = {"jsonrpc": "2.0", "id": "p", "method": "session/prompt"}
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    agent.send({**request, "params": {"sessionId": session, "prompt": text("go")}}, cancel)
    assert agent.response("p")["result"]["stopReason"] == "cancelled"
    assert acp_home.model_requests() == []


def test_cancelling_one_request_leaves_the_queue(acp_home: AcpHome) -> None:
    sleep, call = waiting(acp_home)
    agent = acp_home.begun(call, reply("Second."))
    session = agent.new(acp_home.workspace())
    first = agent.prompt(session, "one")
    until(lambda: sleepers(sleep), "the command runs")
    second = agent.prompt(session, "two")
    agent.notify("$/cancel_request", {"requestId": first})
    assert agent.response(first)["result"]["stopReason"] == "cancelled"
    assert agent.response(second)["result"]["stopReason"] == "end_turn"


def test_cancel_reaches_a_model_that_says_nothing(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("So far", hang=True), reply("Next."))
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    agent.told(session, lambda update: update["sessionUpdate"] == "agent_message_chunk")
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.response(prompt)["result"]["stopReason"] == "cancelled"
    assert agent.ask(session, "again")["stopReason"] == "end_turn"


def test_cancel_reaches_the_wait_before_another_try(acp_home: AcpHome) -> None:
    agent = acp_home.begun(
        *[reply(error={"kind": "overloaded", "message": "Later.", "retryAfterMs": 60_000})] * 3
    )
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    agent.told(
        session, lambda update: "Later." in str(update) and update["sessionUpdate"] == "agent_thought_chunk"
    )
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.response(prompt)["result"]["stopReason"] == "cancelled"


def test_a_cancel_of_nothing_is_nothing(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("Hello."))
    session = agent.new(acp_home.workspace())
    agent.notify("session/cancel", {"sessionId": session})
    agent.notify("session/cancel", {"sessionId": "s_unknown"})
    assert agent.ask(session, "hi")["stopReason"] == "end_turn"


def test_steering_says_it_to_the_prompt_that_runs(acp_home: AcpHome) -> None:
    folder = acp_home.workspace()
    acp_home.trust()
    command = "until [ -e go ]; do sleep 0.05; done"
    agent = acp_home.begun(reply(tool("bash", {"command": command}, "c1")), reply("Both."))
    session = agent.new(folder)
    prompt = agent.prompt(session, "one")
    agent.told(session, lambda update: update.get("status") == "in_progress")
    wish = {"steering": {"idleBehavior": "promptRequired"}}
    params = {"sessionId": session, "prompt": text("and that"), "_meta": wish}
    assert agent.call("_session/steering", params) == {"outcome": "injected"}
    (folder / "go").touch()
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert "and that" in str(acp_home.model_requests()[-1])


def test_steering_an_idle_session_is_left_to_the_client_or_is_a_prompt(acp_home: AcpHome) -> None:
    agent = acp_home.begun(reply("Alone."))
    session = agent.new(acp_home.workspace())
    params = {"sessionId": session, "prompt": text("now")}
    wish = {"_meta": {"steering": {"idleBehavior": "promptRequired"}}}
    left = agent.call("_session/steering", params | wish)
    assert left == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    assert agent.call("_session/steering", params) == {"outcome": "startedNewTurn"}
    agent.told(session, lambda update: "Alone" in str(update))
