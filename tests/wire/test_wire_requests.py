"""Requests and responses: ids, the life of a connection, params and the form of errors."""

import json
from typing import Any

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json, error_of, frame, initialize_params, notification, request
from wire.home import Home
from wire.scripts import reply

from agentd.protocol.capabilities import NOTIFICATIONS


@pytest.fixture
def busy(daemon: Daemon, shared_home: Home) -> Chat:
    """A session whose model never goes on; its prompts stay in flight."""
    return Chat(daemon, shared_home.workspace(), model=shared_home.script(reply("so far", hang=True)))


# --- ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_id", ["abc", "", "é😀", "1", 1, 0, -1, 9007199254740993, -(2**31), "x" * 1000]
)
def test_an_id_comes_back_with_its_type_and_value(daemon: Daemon, request_id: Any) -> None:
    before = len(daemon.messages)
    daemon.send(request(request_id, "agentd/status"))
    answer = daemon.wait(lambda message: "method" not in message, since=before)
    assert type(answer["id"]) is type(request_id)
    assert answer["id"] == request_id


def test_ids_1_and_string_1_are_two_requests(daemon: Daemon, busy: Chat, shared_home: Home) -> None:
    other = Chat(daemon, shared_home.workspace(), model=shared_home.script(reply(hang=True)))
    daemon.send(
        request(1, "agentd/prompt", busy.prompt_params()),
        request("1", "agentd/prompt", other.prompt_params()),
    )
    busy.event("agent_start")
    other.event("agent_start")
    answered = len(daemon.messages)
    daemon.notify("$/cancelRequest", {"id": "1"})
    result = daemon.wait(lambda message: message.get("id") == "1", since=answered)["result"]
    assert result["sessionId"] == other.id
    assert result["stopReason"] == "aborted"
    assert busy.get()["session"]["state"] == "running"
    daemon.notify("$/cancelRequest", {"id": 1})
    result = daemon.wait(lambda message: message.get("id") == 1, since=answered)["result"]
    assert result["sessionId"] == busy.id


def test_an_id_in_flight_is_refused_and_the_first_request_goes_on(daemon: Daemon, busy: Chat) -> None:
    first = busy.start()
    busy.event("agent_start")
    daemon.send(request(first, "agentd/status"))
    error = error_of(daemon.response(first))
    assert error["code"] == -32600
    assert busy.get()["session"]["state"] == "running"
    busy.cancel()
    answers = [m for m in daemon.messages if "method" not in m and m["id"] == first]
    assert [("error" in answer) for answer in answers] == [True, False]
    assert answers[1]["result"]["stopReason"] == "aborted"


def test_a_response_to_nothing_we_asked_is_ignored(daemon: Daemon) -> None:
    before = len(daemon.messages)
    daemon.send(
        {"jsonrpc": "2.0", "id": 987654, "result": {}},
        {"jsonrpc": "2.0", "id": "never", "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}},
    )
    assert daemon.serves()
    assert daemon.messages[before + 1 :] == []


def test_a_cancel_of_an_unknown_request_is_ignored(daemon: Daemon) -> None:
    before = len(daemon.messages)
    for params in ({"id": 424242}, {"id": None}, {"id": {}}, {}, None, []):
        daemon.notify("$/cancelRequest", params)
    assert daemon.serves()
    assert daemon.messages[before + 1 :] == []


# --- methods and the life of a connection ----------------------------------------------------------------


def test_an_unknown_method_is_named_in_its_error(daemon: Daemon) -> None:
    error = daemon.refused("agentd/no/such/method", {"x": 1})
    assert error["code"] == -32601
    assert "agentd/no/such/method" in error["message"]


def test_an_unknown_notification_is_ignored_without_an_answer(daemon: Daemon) -> None:
    before = len(daemon.messages)
    daemon.notify("agentd/no/such/notification", {"x": 1})
    daemon.notify("$/unknown")
    assert daemon.serves()
    assert daemon.messages[before + 1 :] == []


def test_an_unknown_dollar_request_is_method_not_found(daemon: Daemon) -> None:
    assert daemon.refused("$/unknownRequest")["code"] == -32601


def test_a_notification_method_sent_as_a_request_is_answered(daemon: Daemon) -> None:
    daemon.response(daemon.request("initialized", {}))
    daemon.response(daemon.request("agentd/trust/didChange", {"trusted": True}))
    assert daemon.serves()


def test_a_notification_with_bad_params_is_not_answered_and_fails_alone(daemon: Daemon) -> None:
    before = len(daemon.messages)
    daemon.notify("agentd/trust/didChange", {"trusted": "yes"})
    daemon.notify("textDocument/didOpen", {"textDocument": 7})
    daemon.notify("textDocument/didChange")
    assert daemon.serves()
    assert daemon.messages[before + 1 :] == []


def test_a_request_before_initialize_is_not_initialized(home: Home) -> None:
    daemon = home.spawn()
    assert daemon.refused("agentd/status")["code"] == -32002
    assert daemon.refused("no/such/method")["code"] == -32002
    assert daemon.refused("shutdown")["code"] == -32002
    daemon.notify("textDocument/didOpen", {})
    daemon.initialize()
    assert daemon.serves()


def test_a_second_initialize_is_refused_and_the_daemon_serves_on(daemon: Daemon) -> None:
    assert daemon.refused("initialize", initialize_params())["code"] == -32600
    assert daemon.serves()


def test_a_second_initialize_in_the_same_write_is_refused(home: Home) -> None:
    daemon = home.spawn()
    daemon.send(request(1, "initialize", initialize_params()), request(2, "initialize", initialize_params()))
    assert "result" in daemon.response(1)
    assert error_of(daemon.response(2))["code"] == -32600


def test_a_request_after_shutdown_is_refused(home: Home) -> None:
    daemon = home.start()
    assert daemon.call("shutdown") is None
    assert daemon.refused("agentd/status")["code"] == -32600
    assert daemon.refused("shutdown")["code"] == -32600
    daemon.notify("exit")
    assert daemon.exit_code() == 0


def test_a_request_written_behind_shutdown_is_answered_too(home: Home) -> None:
    daemon = home.start()
    daemon.send(request(1, "shutdown"), request(2, "agentd/status"), notification("exit"))
    assert daemon.exit_code() == 0
    assert daemon.response(1)["result"] is None
    assert error_of(daemon.response(2))["code"] == -32600


# --- params --------------------------------------------------------------------------------------------


def test_absent_params_are_empty_params(daemon: Daemon) -> None:
    assert "version" in daemon.call("agentd/status")
    assert "models" in daemon.call("agentd/models")
    assert daemon.call("agentd/session/list")["sessions"] is not None
    error = daemon.refused("agentd/session/get")
    assert error["code"] == -32602
    assert "sessionId" in error["message"]


@pytest.mark.parametrize("params", [[], ["x"], "x", 7, True], ids=repr)
def test_params_that_are_no_object_are_refused(daemon: Daemon, params: Any) -> None:
    assert daemon.refused("agentd/session/get", params)["code"] in (-32602, -32600)
    assert daemon.serves()


def test_null_params_are_answered(daemon: Daemon) -> None:
    daemon.write(frame(b'{"jsonrpc":"2.0","id":"null params","method":"agentd/session/get","params":null}'))
    assert error_of(daemon.response("null params"))["code"] in (-32602, -32600)


def test_a_nested_object_that_looks_like_a_message_is_data(daemon: Daemon, shared_home: Home) -> None:
    looks = {"jsonrpc": "2.0", "method": "exit", "id": 5, "type_name": "a b", "_meta": {"class": 1}}
    assert "version" in daemon.call("agentd/status", {"log": [looks, {"deep": looks}], **looks})
    chat = Chat(daemon, shared_home.workspace(), model=shared_home.script(reply("seen")))
    result = chat.run([{"type": "text", "text": json.dumps(looks), **looks}])
    assert result["text"] == "seen"


def test_extra_members_beside_the_standard_ones_are_ignored(daemon: Daemon) -> None:
    daemon.send({**request("extra", "agentd/status"), "traceparent": "00-1", "id2": {"jsonrpc": "2.0"}})
    assert "result" in daemon.response("extra")


def test_unknown_fields_are_ignored(daemon: Daemon) -> None:
    assert "sessions" in daemon.call(
        "agentd/session/list", {"limit": 1, "from": 1, "class": 2, "type_name": "x"}
    )


GET = "agentd/session/get"
NEW = "agentd/session/new"
LIST = "agentd/session/list"
PROMPT = "agentd/prompt"

BAD_PARAMS: list[tuple[str, Json, str]] = [
    (GET, {"sessionId": 7}, "sessionId"),
    (GET, {"sessionId": None}, "sessionId"),
    (GET, {"sessionId": "no spaces allowed"}, "sessionId"),
    (GET, {"sessionId": "x" * 129}, "sessionId"),
    (GET, {"sessionId": "s\n"}, "sessionId"),
    (NEW, {"mode": "bogus"}, "mode"),
    (NEW, {"effort": "enormous"}, "effort"),
    (NEW, {"title": 5}, "title"),
    (NEW, {"workspaceUri": "file:///no/such/folder/anywhere"}, "workspaceUri"),
    (NEW, {"workspaceUri": "https://example.com/"}, "workspaceUri"),
    (NEW, {"workspaceUri": "no uri"}, "workspaceUri"),
    (LIST, {"limit": "10"}, "limit"),
    (LIST, {"limit": 0}, "limit"),
    (LIST, {"limit": -1}, "limit"),
    (LIST, {"limit": 1.5}, "limit"),
    (LIST, {"limit": True}, "limit"),
    (LIST, {"limit": 10**30}, "limit"),
    (LIST, {"children": 1}, "children"),
    (PROMPT, {}, "prompt"),
    (PROMPT, {"prompt": ""}, "prompt"),
    (PROMPT, {"prompt": " \n\t"}, "prompt"),
    (PROMPT, {"prompt": None}, "prompt"),
    (PROMPT, {"prompt": 7}, "prompt"),
    (PROMPT, {"prompt": {"type": "text", "text": "x"}}, "prompt"),
    (PROMPT, {"prompt": [{"type": "text"}]}, "text"),
    (PROMPT, {"prompt": [{"type": "text", "text": 7}]}, "text"),
    (PROMPT, {"prompt": [{"type": "text", "text": "a"}, {"type": "video", "text": "x"}]}, "prompt"),
    (PROMPT, {"prompt": [{"type": "text", "text": "   "}]}, "prompt"),
    (PROMPT, {"prompt": "x", "promptId": "with space"}, "promptId"),
    (PROMPT, {"prompt": "x", "promptId": 1}, "promptId"),
    (PROMPT, {"prompt": "x", "whenBusy": "wait"}, "whenBusy"),
    (PROMPT, {"prompt": "x", "wait": "forever"}, "wait"),
    (PROMPT, {"prompt": "x", "mode": "FULL"}, "mode"),
    (PROMPT, {"prompt": "x", "maxTurns": 0}, "maxTurns"),
    (PROMPT, {"prompt": "x", "maxTurns": "3"}, "maxTurns"),
    (PROMPT, {"prompt": "x", "maxTurns": 2.5}, "maxTurns"),
    ("agentd/cancel", {}, "sessionId"),
    ("agentd/credentials/set", {"provider": "x"}, "secret"),
    ("agentd/permission/respond", {"requestId": "r"}, "optionId"),
]


@pytest.mark.parametrize(
    ("method", "params", "path"), BAD_PARAMS, ids=[f"{m.split('/')[-1]}-{p}"[:60] for m, p, _ in BAD_PARAMS]
)
def test_bad_params_are_refused_with_their_path(daemon: Daemon, method: str, params: Json, path: str) -> None:
    error = daemon.refused(method, params)
    assert error["code"] == -32602
    assert error["data"]["kind"] == "invalidParams"
    assert path in error["message"]
    assert len(error["message"]) < 1000


def test_bad_params_are_not_echoed(daemon: Daemon) -> None:
    canary = "canary-" * 1000
    for method, params in (
        (GET, {"sessionId": canary}),
        (NEW, {"mode": canary}),
        (PROMPT, {"prompt": [canary]}),
    ):
        error = daemon.refused(method, params)
        assert len(json.dumps(error)) < 1000


def test_a_lone_surrogate_in_a_prompt_is_made_valid_text(daemon: Daemon, shared_home: Home) -> None:
    model = shared_home.script(reply("taken"))
    chat = Chat(daemon, shared_home.workspace(), model=model)
    params = json.dumps(chat.prompt_params("surrogate: \ud800 !"))
    assert "\\ud800" in params
    body = f'{{"jsonrpc":"2.0","id":"surrogate","method":"agentd/prompt","params":{params}}}'
    daemon.write(frame(body.encode()))
    assert daemon.response("surrogate")["result"]["text"] == "taken"
    (asked,) = list(map(json.dumps, shared_home.model_requests("surrogate: ")))
    assert "\\ud800" not in asked
    chat.get()


def test_a_surrogate_pair_written_as_two_escapes_is_one_character(daemon: Daemon, shared_home: Home) -> None:
    chat = Chat(daemon, shared_home.workspace(), model=shared_home.script(reply("ok")))
    chat.run("pair: 😀")
    assert chat.get()["messages"][0]["content"][0]["text"] == "pair: 😀"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (GET, {}),
        (PROMPT, {"prompt": "x"}),
        ("agentd/cancel", {}),
        ("agentd/session/update", {"title": "t"}),
        ("agentd/session/close", {}),
    ],
)
def test_an_unknown_session_is_session_not_found(daemon: Daemon, method: str, params: Json) -> None:
    error = daemon.refused(method, {"sessionId": "no-such-session", **params})
    assert (error["code"], error["data"]["kind"]) == (-32803, "sessionNotFound")
    assert "no-such-session" in error["message"]


@pytest.mark.parametrize("session_id", ["..", ".", "~", "a.b:c~d-e_f", "....-etc-passwd"])
def test_a_session_id_is_never_taken_for_a_path(daemon: Daemon, session_id: str) -> None:
    error = daemon.refused(GET, {"sessionId": session_id})
    assert error["data"]["kind"] == "sessionNotFound"


# --- what is announced works -----------------------------------------------------------------------------


def test_every_announced_method_is_served(daemon: Daemon, shared_home: Home) -> None:
    probe = shared_home.start()
    announced = probe.messages[0]["result"]["capabilities"]["experimental"]["agentd"]["methods"]
    assert "agentd/prompt" in announced
    for method in set(announced) - set(NOTIFICATIONS):
        answer = daemon.response(daemon.request(method, {"sessionId": "no-such-session"}))
        assert answer.get("error", {}).get("code") != -32601, method


def test_requests_in_flight_above_the_limit_are_overloaded_but_cancel_gets_through(
    daemon: Daemon, busy: Chat
) -> None:
    params = busy.prompt_params(promptId="joined")
    ids = [f"joined-{number}" for number in range(256)]
    daemon.send(*(request(request_id, "agentd/prompt", params) for request_id in ids))
    busy.event("agent_start")
    error = daemon.refused("agentd/status")
    assert (error["code"], error["data"]["kind"], error["data"]["retryable"]) == (-32803, "overloaded", True)
    assert busy.cancel()["state"] == "cancelled"
    results = [busy.result(request_id) for request_id in ids]
    assert all(result == results[0] for result in results)
    assert results[0]["stopReason"] == "aborted"
    assert daemon.serves()


def test_a_request_that_is_no_prompt_keeps_its_answer_when_it_is_cancelled_late(daemon: Daemon) -> None:
    daemon.send(request("late", "agentd/status"), notification("$/cancelRequest", {"id": "late"}))
    answer = daemon.response("late")
    assert "result" in answer or answer["error"]["code"] == -32800
    assert daemon.serves()
    assert daemon.count(lambda message: "method" not in message and message["id"] == "late") == 1


def test_a_flood_of_requests_in_one_write_is_answered_to_the_last(daemon: Daemon) -> None:
    ids = [f"flood-{number}" for number in range(1000)]
    daemon.send(*(request(request_id, "agentd/models") for request_id in ids))
    answers = [daemon.response(request_id) for request_id in ids]
    assert all("result" in a or a["error"]["data"]["kind"] == "overloaded" for a in answers)
    assert daemon.count(lambda message: str(message.get("id")).startswith("flood-")) == 1000


def test_many_notifications_leave_nothing_behind(daemon: Daemon) -> None:
    def flood() -> int:
        for _ in range(10):
            daemon.send(*[notification("agentd/trust/didChange", {"trusted": True})] * 1000)
        assert daemon.serves()
        return daemon.resident_bytes()

    flood()
    before = flood()
    assert flood() - before < 4 * 1024 * 1024


@pytest.mark.parametrize(
    "model", ["", " ", "/", "scripted", "scripted/", "/demo", "scripted/no-such", "unknown/x", "a/b/c", "\n"]
)
def test_a_model_that_is_none_is_named_as_such(daemon: Daemon, shared_home: Home, model: str) -> None:
    params = {"workspaceUri": shared_home.workspace().as_uri(), "prompt": "x", "model": model}
    answer = daemon.response(daemon.request("agentd/prompt", params))
    if "error" in answer:
        assert error_of(answer)["data"]["kind"] in ("noModel", "invalidParams")
    else:
        assert answer["result"]["stopReason"] == "error"
        assert answer["result"]["error"]["kind"] == "bad_request"


@pytest.mark.parametrize("busy_means", ["queue", "steer", "interrupt"])
def test_on_an_idle_session_every_busy_rule_means_start(
    daemon: Daemon, shared_home: Home, busy_means: str
) -> None:
    chat = Chat(daemon, shared_home.workspace(), model=shared_home.script(reply("started")))
    assert chat.run(whenBusy=busy_means)["text"] == "started"


def test_a_session_named_after_its_prompt_has_a_short_title(daemon: Daemon, shared_home: Home) -> None:
    prompt = "  Fix the\nbroken \u202e test\u0007  " + "very " * 5000
    params = {"workspaceUri": shared_home.workspace().as_uri(), "prompt": prompt}
    result = daemon.call("agentd/prompt", {**params, "model": shared_home.script(reply("x"))})
    title = daemon.call(GET, {"sessionId": result["sessionId"]})["session"]["title"]
    assert title.startswith("Fix the")
    assert len(title) <= 200
    assert "\n" not in title
