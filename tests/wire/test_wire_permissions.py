"""Permissions on the wire: who is asked what, what counts as an answer, and what each mode lets through."""

from typing import Any

import pytest
from wire.harness import Daemon, Json, error_of
from wire.home import Home
from wire.order import assert_well_formed, shape
from wire.processes import processes_with, unique_sleep, until
from wire.questions import COMMAND, WRITE, asking, option, question, resolved, said, tool_result, withdrawn
from wire.scripts import reply, tool

# --- question and answer -------------------------------------------------------------------------------


def test_a_question_says_what_it_is_about_and_allowing_it_runs_the_tool(
    daemon: Daemon, shared_home: Home
) -> None:
    chat, prompt = asking(daemon, shared_home, WRITE)
    asked = question(chat)
    params = asked["params"]
    assert (params["sessionId"], params["toolCallId"], params["toolName"]) == (
        chat.id,
        "call-1",
        "write_file",
    )
    assert params["kind"] == "edit"
    assert params["title"]
    assert params["subject"]["type"] == "edit"
    assert params["subject"]["uri"] == (chat.root / "new.txt").as_uri()
    assert "+new" in params["subject"]["patch"]
    assert 2 <= len(params["options"]) <= 4
    assert {"allow_once", "reject_once"} <= {o["kind"] for o in params["options"]}
    for choice in params["options"]:
        assert choice["label"]
        assert (choice["scope"] == "once") == choice["kind"].endswith("_once")
        assert ("rule" in choice) == choice["kind"].endswith("_always")
    got = chat.get()
    assert got["session"]["state"] == "waiting"
    assert got["pending"] == [params]
    assert not (chat.root / "new.txt").exists()
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / "new.txt").read_text() == "new\n"
    assert chat.get()["pending"] == []
    assert_well_formed(chat.notifications())
    words = shape(chat.notifications())
    at = words.index("permission_requested")
    assert words[at - 1 : at + 3] == [
        "tool_execution_start(call-1)",
        "permission_requested",
        "permission_resolved",
        "tool_execution_end(call-1)",
    ]
    assert (resolved(chat)["outcome"], resolved(chat)["by"]) == ("allowed", "client")
    assert resolved(chat)["optionId"] == option(asked, "allow_once")
    event = chat.event("permission_requested")
    assert {key: value for key, value in event.items() if key != "type"} == params


def test_a_command_is_asked_with_its_text_and_folder(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    assert asked["params"]["subject"]["type"] == "command"
    assert asked["params"]["subject"]["command"] == "echo ran > ran.txt"
    assert asked["params"]["subject"]["cwd"] == str(chat.root)
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    chat.result(prompt)
    assert (chat.root / "ran.txt").exists()


def test_a_rejection_with_feedback_is_an_error_the_model_sees_and_the_run_goes_on(
    daemon: Daemon, shared_home: Home
) -> None:
    chat, prompt = asking(daemon, shared_home, WRITE)
    asked = question(chat)
    daemon.answer(asked, {"optionId": option(asked, "reject_once"), "feedback": "Use another file, please."})
    result = chat.result(prompt)
    assert (result["stopReason"], result["text"], result["turns"]) == ("stop", "done", 2)
    assert tool_result(chat)["isError"] is True
    assert "Use another file, please." in said(chat)
    assert (resolved(chat)["outcome"], resolved(chat)["by"]) == ("rejected", "client")
    assert not (chat.root / "new.txt").exists()


NO_PERMISSION: dict[str, Json] = {
    "null": {"result": None},
    "error": {"error": {"code": -32603, "message": "the view is gone"}},
    "method-not-found": {"error": {"code": -32601, "message": "no such method"}},
    "unknown-option": {"result": {"optionId": "no-such-option"}},
    "cancelled": {"result": {"cancelled": True}},
    "empty": {"result": {}},
    "wrong-type": {"result": {"optionId": True}},
    "string": {"result": "allow_once"},
    "kind-for-id": {"result": {"kind": "allow_once"}},
    "list": {"result": ["allow"]},
}


@pytest.mark.parametrize("answer", NO_PERMISSION.values(), ids=NO_PERMISSION)
def test_anything_but_a_well_formed_allow_is_no_permission(
    daemon: Daemon, shared_home: Home, answer: Json
) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    daemon.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
    assert chat.result(prompt)["stopReason"] == "stop"
    assert tool_result(chat)["isError"] is True
    assert not (chat.root / "ran.txt").exists()
    assert resolved(chat)["outcome"] != "allowed"
    assert_well_formed(chat.notifications())


def test_an_answer_under_another_type_of_id_does_not_count(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    other = str(asked["id"]) + "x"
    daemon.send({"jsonrpc": "2.0", "id": other, "result": {"optionId": option(asked, "allow_once")}})
    assert chat.get()["session"]["state"] == "waiting"
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    assert not (chat.root / "ran.txt").exists()


def test_an_answer_for_the_session_is_remembered(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, WRITE, "ask", reply({**WRITE, "id": "call-2"}))
    asked = question(chat)
    always = [o for o in asked["params"]["options"] if (o["kind"], o["scope"]) == ("allow_always", "session")]
    if not always:
        pytest.skip("this version offers no answer for the session")
    daemon.answer(asked, {"optionId": always[0]["optionId"]})
    assert chat.result(prompt)["stopReason"] == "stop"
    assert sum(p["event"]["type"] == "permission_requested" for p in chat.notifications()) == 1


# --- cancel, respond, mode -----------------------------------------------------------------------------


def test_a_cancel_withdraws_the_question_and_the_late_answer_is_ignored(
    daemon: Daemon, shared_home: Home
) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    assert chat.cancel()["state"] == "cancelled"
    result = chat.result(prompt)
    assert (result["stopReason"], result["turns"]) == ("aborted", 1)
    assert withdrawn(daemon, asked)
    assert (resolved(chat)["outcome"], resolved(chat)["by"]) == ("cancelled", "cancel")
    words = shape(chat.notifications())
    assert words.index("permission_resolved") < words.index("tool_execution_end(call-1)")
    assert said(chat) == "Tool execution aborted."
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    requested = {"requestId": asked["params"]["requestId"], "optionId": option(asked, "allow_once")}
    error = daemon.refused("agentd/permission/respond", requested)
    assert (error["code"], error["data"]["kind"]) == (-32803, "permissionClosed")
    assert not (chat.root / "ran.txt").exists()
    assert chat.run(model=shared_home.script(reply("next")))["text"] == "next"
    assert_well_formed(chat.notifications())


def test_a_respond_counts_once_and_the_first_answer_wins(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    request_id = asked["params"]["requestId"]
    rejected = {"requestId": request_id, "optionId": option(asked, "reject_once"), "feedback": "Not now."}
    assert daemon.call("agentd/permission/respond", rejected) == {}
    allowed = {"requestId": request_id, "optionId": option(asked, "allow_once")}
    assert daemon.refused("agentd/permission/respond", allowed)["data"]["kind"] == "permissionClosed"
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    chat.result(prompt)
    assert "Not now." in said(chat)
    assert not (chat.root / "ran.txt").exists()
    assert resolved(chat)["outcome"] == "rejected"


def test_a_respond_may_allow(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    allowed = {"requestId": asked["params"]["requestId"], "optionId": option(asked, "allow_once")}
    assert daemon.call("agentd/permission/respond", allowed) == {}
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / "ran.txt").exists()
    assert withdrawn(daemon, asked)


def test_a_respond_to_an_unknown_question_is_permission_closed(daemon: Daemon) -> None:
    params = {"requestId": "no-such-question", "optionId": "allow"}
    assert daemon.refused("agentd/permission/respond", params)["data"]["kind"] == "permissionClosed"


def test_a_respond_with_an_unknown_option_leaves_no_permission(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    params = {"requestId": asked["params"]["requestId"], "optionId": "no-such-option"}
    answer = daemon.response(daemon.request("agentd/permission/respond", params))
    if "error" in answer:
        assert error_of(answer)["code"] == -32602
        assert chat.get()["session"]["state"] == "waiting"
        chat.cancel()
    chat.result(prompt)
    assert not (chat.root / "ran.txt").exists()


def test_a_new_mode_judges_an_open_question_anew_and_may_allow_it(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, WRITE)
    asked = question(chat)
    updated = daemon.call("agentd/session/update", {"sessionId": chat.id, "mode": "edit"})
    assert updated["session"]["mode"] == "edit"
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / "new.txt").exists()
    assert (resolved(chat)["outcome"], resolved(chat)["by"]) == ("allowed", "rule")
    assert withdrawn(daemon, asked)
    daemon.answer(asked, None)
    assert daemon.serves()


def test_a_new_mode_judges_an_open_question_anew_and_may_refuse_it(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, WRITE)
    asked = question(chat)
    daemon.call("agentd/session/update", {"sessionId": chat.id, "mode": "plan"})
    assert chat.result(prompt)["text"] == "done"
    assert not (chat.root / "new.txt").exists()
    assert (resolved(chat)["outcome"], resolved(chat)["by"]) == ("rejected", "rule")
    assert withdrawn(daemon, asked)


def test_a_new_mode_that_still_asks_leaves_the_question_open(daemon: Daemon, shared_home: Home) -> None:
    chat, prompt = asking(daemon, shared_home, COMMAND)
    asked = question(chat)
    daemon.call("agentd/session/update", {"sessionId": chat.id, "mode": "edit"})
    assert chat.get()["session"]["state"] == "waiting"
    assert not withdrawn(daemon, asked)
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / "ran.txt").exists()


# --- without the capability ----------------------------------------------------------------------------

SHOW = "window/showMessageRequest"


@pytest.fixture(scope="module")
def plain(shared_home: Home) -> Daemon:
    """A daemon whose client gets events but does not answer permission requests."""
    return shared_home.start(options={"trusted": True})


@pytest.mark.parametrize("allow", [True, False])
def test_without_the_capability_the_question_is_a_message_with_the_labels(
    plain: Daemon, shared_home: Home, allow: bool
) -> None:
    since = len(plain.messages)
    chat, prompt = asking(plain, shared_home, COMMAND)
    asked = plain.asked(SHOW, since)
    options = chat.event("permission_requested")["options"]
    assert [action["title"] for action in asked["params"]["actions"]] == [o["label"] for o in options]
    assert "echo ran > ran.txt" in asked["params"]["message"]
    kind = "allow_once" if allow else "reject_once"
    label = next(o["label"] for o in options if o["kind"] == kind)
    plain.answer(asked, {"title": label})
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / "ran.txt").exists() is allow


@pytest.mark.parametrize(
    "answer",
    [
        {"result": None},
        {"error": {"code": -32601, "message": "?"}},
        {"result": {"title": "Something else"}},
        {"result": 1},
    ],
    ids=["dismissed", "unknown-method", "unknown-label", "number"],
)
def test_a_dismissed_message_is_no_permission(plain: Daemon, shared_home: Home, answer: Json) -> None:
    since = len(plain.messages)
    chat, prompt = asking(plain, shared_home, COMMAND)
    asked = plain.asked(SHOW, since)
    plain.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
    assert chat.result(prompt)["text"] == "done"
    assert not (chat.root / "ran.txt").exists()


def test_two_sessions_may_ask_at_the_same_time(daemon: Daemon, shared_home: Home) -> None:
    (first, prompt_1), (second, prompt_2) = (asking(daemon, shared_home, COMMAND) for _ in range(2))
    asked_1, asked_2 = question(first), question(second)
    assert asked_1["id"] != asked_2["id"]
    daemon.answer(asked_2, {"optionId": option(asked_2, "allow_once")})
    assert second.result(prompt_2)["text"] == "done"
    assert first.get()["session"]["state"] == "waiting"
    daemon.answer(asked_1, {"optionId": option(asked_1, "reject_once")})
    assert first.result(prompt_1)["text"] == "done"
    assert ((first.root / "ran.txt").exists(), (second.root / "ran.txt").exists()) == (False, True)


def test_a_rejected_command_never_starts(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    chat, prompt = asking(daemon, shared_home, tool("bash", {"command": sleep}, "call-1"))
    asked = question(chat)
    assert not processes_with(sleep)
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    assert not processes_with(sleep)


def test_an_open_question_survives_the_end_of_the_daemon_as_a_closed_one(home: Home) -> None:
    daemon = home.start()
    chat, _ = asking(daemon, home, COMMAND)
    question(chat)
    daemon.kill()
    after: Any = home.start()
    got = after.call("agentd/session/get", {"sessionId": chat.id})
    assert got["pending"] == []
    params = {"sessionId": chat.id, "prompt": "on", "model": home.script(reply("next"))}
    assert after.call("agentd/prompt", params)["text"] == "next"
    assert not (chat.root / "ran.txt").exists()
    until(lambda: after.serves(), "the daemon serves")
