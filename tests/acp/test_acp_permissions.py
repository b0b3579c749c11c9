"""Questions over ACP: what is asked, what counts as a yes, and what a cancel makes of them."""

from typing import Any

import pytest
from fakes.acp_agent import CANCELLED, AcpHome, Agent, selected
from wire.scripts import reply, tool

COMMAND = "touch ran.txt"


def asking(acp_home: AcpHome) -> tuple[Agent, str, int, dict[str, Any]]:
    """A session that waits for the answer to a question about `COMMAND`."""
    agent = acp_home.begun(reply(tool("bash", {"command": COMMAND}, "c1")), reply("Done."))
    folder = acp_home.workspace()
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    return agent, session, prompt, agent.question()


def has_run(acp_home: AcpHome) -> bool:
    return any(acp_home.path.glob("workspace-*/ran.txt"))


def test_a_question_shows_the_whole_command_and_its_answers(acp_home: AcpHome) -> None:
    agent, session, prompt, question = asking(acp_home)
    call = question["params"]["toolCall"]
    assert (call["toolCallId"], call["kind"], call["status"]) == ("c1", "execute", "pending")
    assert COMMAND in call["content"][0]["content"]["text"]
    kinds = [each["kind"] for each in question["params"]["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once"]
    agent.answer(question, selected("allow_once"))
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert has_run(acp_home)
    since = agent.messages.index(question)
    statuses = [each["status"] for each in agent.updates(session, "tool_call_update", since=since)]
    assert statuses == ["in_progress", "completed"]


def test_a_trusted_workspace_offers_to_remember_for_good(acp_home: AcpHome) -> None:
    acp_home.trust("ask")
    agent, _, prompt, question = asking(acp_home)
    options = question["params"]["options"]
    assert [each["optionId"] for each in options] == [
        "allow_once", "allow_always", "allow_workspace", "reject_once"
    ]  # fmt: skip
    assert all("touch" in each["name"] for each in options if each["kind"] == "allow_always")
    agent.answer(question, selected("allow_workspace"))
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"


def test_what_is_allowed_for_the_session_is_not_asked_again(acp_home: AcpHome) -> None:
    call = reply(tool("bash", {"command": COMMAND}))
    agent = acp_home.begun(call, call, reply("Done."))
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    agent.answer(agent.question(), selected("allow_always"))
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert agent.count(lambda message: message.get("method") == "session/request_permission") == 1


@pytest.mark.parametrize(
    "answer",
    [
        selected("reject_once"),
        selected("no_such_option"),
        CANCELLED,
        None,
        {},
        {"outcome": "selected"},
        {"outcome": {"outcome": "selected"}},
        {"outcome": {"outcome": "agreed", "optionId": "allow_once"}},
        {"optionId": "allow_once"},
        [],
    ],
)
def test_nothing_but_an_allow_is_a_permission(acp_home: AcpHome, answer: Any) -> None:
    agent, session, prompt, question = asking(acp_home)
    agent.answer(question, answer)
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert not has_run(acp_home)
    assert agent.call_of(session, "c1")["status"] == "failed"
    assert "rejected" in str(acp_home.model_requests()[-1])


def test_an_error_for_an_answer_is_no_permission(acp_home: AcpHome) -> None:
    agent, _, prompt, question = asking(acp_home)
    agent.answer(question, error={"code": -32601, "message": "Method not found"})
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert not has_run(acp_home)


def test_a_cancel_withdraws_the_question_and_a_late_yes_runs_nothing(acp_home: AcpHome) -> None:
    agent, session, prompt, question = asking(acp_home)
    agent.notify("session/cancel", {"sessionId": session})
    withdrawn = agent.wait(lambda message: message.get("method") == "$/cancel_request")
    assert withdrawn["params"]["requestId"] == question["id"]
    agent.answer(question, selected("allow_once"))
    assert agent.response(prompt)["result"]["stopReason"] == "cancelled"
    assert agent.ask(session, "and now?")["stopReason"] == "end_turn"
    assert not has_run(acp_home)


def test_a_question_about_an_edit_shows_the_difference(acp_home: AcpHome) -> None:
    folder = acp_home.workspace(a_txt="one\ntwo\nthree\n")
    agent = acp_home.begun(
        reply(tool("read_file", {"file_path": "a.txt"})),
        reply(tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "2"}, "c1")),
        reply(tool("write_file", {"file_path": "new.txt", "content": "new\n"}, "c2")),
        reply("Done."),
    )
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    wanted = {
        "c1": {"path": str(folder / "a.txt"), "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"},
        "c2": {"path": str(folder / "new.txt"), "oldText": None, "newText": "new\n"},
    }
    since = 0
    for call_id, diff in wanted.items():
        question = agent.question(since)
        since = agent.messages.index(question) + 1
        call = question["params"]["toolCall"]
        assert call["toolCallId"] == call_id
        assert call["content"] == [{"type": "diff", **diff}]
        agent.answer(question, selected("allow_once"))
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    for call_id, diff in wanted.items():
        assert agent.call_of(session, call_id)["content"] == [{"type": "diff", **diff}]
    assert (folder / "a.txt").read_text() == "one\n2\nthree\n"


def test_a_new_mode_makes_an_open_question_idle(acp_home: AcpHome) -> None:
    acp_home.trust("ask")
    folder = acp_home.workspace()
    agent = acp_home.begun(
        reply(tool("write_file", {"file_path": "a.txt", "content": "a\n"}, "c1")), reply("Done.")
    )
    session = agent.new(folder)
    prompt = agent.prompt(session, "go")
    agent.question()
    agent.call("session/set_mode", {"sessionId": session, "modeId": "edit"})
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert (folder / "a.txt").read_text() == "a\n"


def test_a_question_of_a_sub_agent_has_a_call_of_its_own(acp_home: AcpHome) -> None:
    task = {"tasks": [{"description": "look", "prompt": "child: run it"}]}
    agent = acp_home.begun(
        reply(tool("task", task, "c1")),
        reply("Parent."),
        {**reply(tool("bash", {"command": COMMAND}, "k1")), "when": "child:"},
        {**reply("Child."), "when": "child:"},
    )
    session = agent.new(acp_home.workspace())
    prompt = agent.prompt(session, "go")
    question = agent.question()
    call_id = question["params"]["toolCall"]["toolCallId"]
    assert question["params"]["sessionId"] == session
    assert call_id.endswith("/k1")
    agent.answer(question, selected("allow_once"))
    assert agent.response(prompt)["result"]["stopReason"] == "end_turn"
    assert agent.call_of(session, call_id)["status"] == "completed"
    told = {m["params"]["sessionId"] for m in agent.messages if m.get("method") == "session/update"}
    assert told == {session}, "a client hears of its own sessions only"
