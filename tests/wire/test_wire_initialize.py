"""`initialize`: what is announced, what is negotiated, and that nothing written ahead is lost."""

import json

import pytest
from wire.harness import Daemon, Json, error_of, frame, initialize_params, notification, request
from wire.home import Home
from wire.order import assert_well_formed
from wire.scripts import reply, tool


@pytest.fixture(scope="module")
def untold(shared_home: Home) -> Daemon:
    """A daemon that is never initialized."""
    return shared_home.spawn()


def result_of(daemon: Daemon, params: Json) -> Json:
    """The answer to `initialize` with these params."""
    result: Json = daemon.call("initialize", params)
    return result


def test_the_result_announces_protocol_one(home: Home) -> None:
    result = home.spawn().initialize()
    assert result["serverInfo"]["name"] == "agentd"
    capabilities = result["capabilities"]
    agentd = capabilities["experimental"]["agentd"]
    assert agentd["protocol"] == 1
    assert agentd["version"] == result["serverInfo"]["version"]
    assert agentd["limits"] == {
        "maxMessageBytes": 67108864,
        "maxInFlight": 256,
        "maxQueue": 32,
        "maxReplayEvents": 20000,
    }
    assert isinstance(agentd["features"], dict)
    assert {"agentd/prompt", "agentd/cancel", "agentd/session/new"} <= set(agentd["methods"])
    assert capabilities["textDocumentSync"]["openClose"] is True
    assert capabilities["textDocumentSync"]["change"] == 2
    assert capabilities["textDocumentSync"]["save"]
    assert capabilities["workspace"]["workspaceFolders"]["supported"] is True
    assert capabilities["workspace"]["workspaceFolders"]["changeNotifications"]


@pytest.mark.parametrize("spoken", [0, 2, 99])
def test_a_client_of_another_version_is_told_ours_and_served(home: Home, spoken: int) -> None:
    options = {"protocol": spoken, "trusted": True, "ofAnotherVersion": {"x": [1]}}
    daemon = home.spawn()
    told = daemon.initialize(options=options)["capabilities"]["experimental"]["agentd"]
    assert told["protocol"] == 1
    prompt = {"workspaceUri": home.workspace().as_uri(), "prompt": "go", "ofAnotherVersion": 1}
    assert daemon.call("agentd/prompt", {**prompt, "model": home.script(reply("hello"))})["text"] == "hello"


@pytest.mark.parametrize(
    ("general", "agreed"),
    [
        (None, "utf-16"),
        ({"positionEncodings": ["utf-32"]}, "utf-16"),
        ({"positionEncodings": ["utf-16", "utf-8", "utf-32"]}, "utf-8"),
    ],
)
def test_the_position_encoding_is_utf_8_where_it_is_offered(
    home: Home, general: Json | None, agreed: str
) -> None:
    capabilities = {} if general is None else {"general": general}
    result = home.spawn().initialize(capabilities=capabilities)
    assert result["capabilities"]["positionEncoding"] == agreed


def test_initialize_initialized_and_a_prompt_in_one_write_lose_nothing(home: Home) -> None:
    root = home.workspace()
    model = home.script(reply("first"), reply("second"))
    daemon = home.spawn()
    daemon.send(
        request(1, "initialize", initialize_params({**{"trusted": True}, "model": model}, folders=[root])),
        notification("initialized", {}),
        request(2, "agentd/prompt", {"prompt": "hello", "promptId": "p1"}),
        request(3, "agentd/status"),
    )
    assert daemon.response(2)["result"]["text"] == "first"
    assert "result" in daemon.response(3)
    assert next(message.get("id") for message in daemon.messages) == 1
    assert daemon.count(lambda message: message.get("id") == 1) == 1
    kinds = [m["params"]["event"]["type"] for m in daemon.messages if m.get("method") == "agentd/event"]
    assert kinds[:2] == ["session_changed", "agent_start"]
    assert kinds[-1] == "agent_end"
    ended = next(n for n, m in enumerate(daemon.messages) if _is_event(m, "agent_end"))
    assert ended < daemon.messages.index(daemon.response(2))


def _is_event(message: Json, kind: str) -> bool:
    return message.get("method") == "agentd/event" and message["params"]["event"]["type"] == kind


def test_a_whole_life_in_one_write_is_answered(home: Home) -> None:
    daemon = home.spawn()
    daemon.send(
        request(1, "initialize", initialize_params()),
        notification("initialized", {}),
        request(2, "agentd/session/list"),
        request(3, "shutdown"),
        notification("exit"),
    )
    assert daemon.exit_code() == 0
    assert "result" in daemon.response(1)
    assert daemon.response(2)["result"] == {"sessions": []}
    assert daemon.response(3)["result"] is None


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"mode": "bogus"}, "mode"),
        ({"trusted": "yes"}, "trusted"),
        ({"trusted": 1}, "trusted"),
        ({"permission": None}, "permission"),
        ({"updates": "some"}, "updates"),
        ({"model": 7}, "model"),
        ({"credentials": {"anthropic": 7}}, "credentials"),
        ([], "agentd"),
        ("full", "agentd"),
    ],
    ids=json.dumps,
)
def test_a_bad_agentd_option_is_refused_with_its_path(untold: Daemon, options: Json, path: str) -> None:
    error = untold.refused("initialize", initialize_params(options))
    assert error["code"] == -32602
    assert path in error["message"]


def test_a_refused_initialize_may_be_sent_again(home: Home) -> None:
    daemon = home.spawn()
    assert daemon.refused("initialize", initialize_params({"mode": "bogus"}))["code"] == -32602
    assert daemon.refused("agentd/status")["code"] == -32002
    daemon.initialize()
    assert daemon.serves()


def test_an_unknown_agentd_option_is_ignored(home: Home) -> None:
    assert home.spawn().initialize({"colour": "green", "trusted": True})["capabilities"]


def test_initialize_without_params_is_answered(home: Home) -> None:
    daemon = home.spawn()
    daemon.send(request(1, "initialize"))
    answer = daemon.response(1)
    assert "result" in answer or error_of(answer)["code"] == -32602


def nested_list(depth: int) -> str:
    return "[" * depth + "]" * depth


ODD: dict[str, tuple[str, int | None]] = {
    # More params of an `initialize`, and the code of its error where it is one that cannot be overlooked.
    "nan": ('"x":NaN', -32700),
    "513-levels": (f'"x":{nested_list(511)}', -32700),
    "512-levels": (f'"x":{nested_list(510)}', None),
    "surrogate": ('"x":"\\ud800"', None),
    "surrogate-locale": ('"locale":"\\ud800"', None),
    "list-capabilities": ('"capabilities":[1]', -32602),
    "text-capabilities": ('"capabilities":"all"', -32602),
    "null-capabilities": ('"capabilities":null', -32602),
    "text-process": ('"processId":"1"', -32602),
    "bool-process": ('"processId":true', -32602),
    "object-folders": ('"workspaceFolders":{}', -32602),
    "folder-without-uri": ('"workspaceFolders":[{"name":"x"}]', -32602),
    "folder-that-is-not-there": ('"workspaceFolders":[{"name":"x","uri":"file:///no/such/folder"}]', None),
    "folder-that-is-no-file": ('"workspaceFolders":[{"name":"x","uri":"vscode-remote://x/y"}]', None),
    "number-root": ('"rootUri":7', -32602),
    "odd-encodings": ('"capabilities":{"general":{"positionEncodings":"utf-8"}}', None),
    "odd-general": ('"capabilities":{"general":7}', None),
}


@pytest.mark.parametrize(("odd", "code"), ODD.values(), ids=ODD)
def test_an_odd_initialize_is_answered_exactly_once(home: Home, odd: str, code: int | None) -> None:
    daemon = home.spawn()
    params = f'"processId":null,"rootUri":null,"capabilities":{{}},{odd}'
    daemon.write(frame(f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{params}}}}}'.encode()))
    daemon.send(request(2, "agentd/status"))
    daemon.response(2)
    first, second = [message for message in daemon.messages if "method" not in message]
    assert second["id"] == 2
    if "error" in first:
        assert error_of(first)["code"] == (code or -32602)
        assert error_of(second)["code"] == -32002
    else:
        assert first["id"] == 1
        assert code in (None, -32602)
        assert "version" in second["result"]


def test_an_initialize_in_another_encoding_is_answered_exactly_once(home: Home) -> None:
    daemon = home.spawn()
    daemon.write(frame(json.dumps(request(1, "initialize", initialize_params())).encode("utf-16")))
    daemon.send(request(2, "initialize", initialize_params()))
    assert "result" in daemon.response(2)
    first, second = daemon.messages
    assert (first["id"], first["error"]["code"], second["id"]) == (None, -32700, 2)


@pytest.mark.parametrize("options", [None, {}, "text", [1], 7, {"other": {"mode": "bogus"}}], ids=repr)
def test_initialization_options_of_others_do_no_harm(home: Home, options: object) -> None:
    params = {**initialize_params(None), "initializationOptions": options}
    assert result_of(home.spawn(), params)["serverInfo"]["name"] == "agentd"


def test_initialize_is_answered_with_a_broken_configuration(home: Home) -> None:
    home.config.write_text('model = "x/y"\nmodle = "z"\n')
    daemon = home.start()
    problems = daemon.call("agentd/status")["problems"]
    assert any("modle" in problem["message"] for problem in problems)


def test_a_prompt_without_a_model_says_how_to_get_one(home: Home) -> None:
    root = home.workspace()
    daemon = home.start(folders=[root])
    error = daemon.refused("agentd/prompt", {"prompt": "hello"})
    assert (error["code"], error["data"]["kind"]) == (-32803, "noModel")
    assert daemon.serves()


# --- who gets events -----------------------------------------------------------------------------------


def run_one_prompt(home: Home, params: Json) -> Daemon:
    """A daemon that was initialized with these params and has run one prompt."""
    daemon = home.spawn(AGENTD_MODEL=home.script(reply(tool("list_directory")), reply("done")))
    daemon.call("initialize", params)
    daemon.notify("initialized", {})
    assert daemon.call("agentd/prompt", {"prompt": "go"})["text"] == "done"
    return daemon


def test_a_client_without_an_agentd_object_gets_no_events(home: Home) -> None:
    daemon = run_one_prompt(home, initialize_params(None, folders=[home.workspace()]))
    assert [message for message in daemon.messages if "method" in message] == []


@pytest.mark.parametrize("place", ["options", "experimental"])
def test_an_empty_agentd_object_is_enough_to_get_events(home: Home, place: str) -> None:
    params = initialize_params({} if place == "options" else None, folders=[home.workspace()])
    if place == "experimental":
        params["capabilities"] = {"experimental": {"agentd": {}}}
    daemon = run_one_prompt(home, params)
    kinds = {m["params"]["event"]["type"] for m in daemon.messages if m.get("method") == "agentd/event"}
    assert {"session_changed", "agent_start", "message_update", "tool_execution_end", "agent_end"} <= kinds


def test_updates_none_gets_the_durable_events_only(home: Home) -> None:
    daemon = run_one_prompt(home, initialize_params({"updates": "none"}, folders=[home.workspace()]))
    kinds = {m["params"]["event"]["type"] for m in daemon.messages if m.get("method") == "agentd/event"}
    assert "agent_end" in kinds
    assert not kinds & {"message_update", "tool_execution_update"}


def test_updates_coalesced_gets_fewer_updates_with_the_same_text(home: Home) -> None:
    said = "0123456789" * 50
    daemon = home.spawn(AGENTD_MODEL=home.script(reply(said, chunkSize=1, delayMs=1)))
    daemon.call("initialize", initialize_params({"updates": "coalesced"}, folders=[home.workspace()]))
    daemon.notify("initialized", {})
    assert daemon.call("agentd/prompt", {"prompt": "go"})["text"] == said
    notifications = [m["params"] for m in daemon.messages if m.get("method") == "agentd/event"]
    assert_well_formed(notifications)
    deltas = [p["event"]["update"]["delta"] for p in notifications if p["event"]["type"] == "message_update"]
    assert "".join(deltas) == said
    assert len(deltas) < len(said) / 5


def test_options_win_over_experimental_capabilities(home: Home) -> None:
    params = initialize_params({"updates": "all"}, folders=[home.workspace()])
    params["capabilities"] = {"experimental": {"agentd": {"updates": "none"}}}
    daemon = run_one_prompt(home, params)
    assert daemon.count(lambda message: _is_event(message, "message_update"))


def test_without_a_folder_the_working_directory_is_the_workspace(home: Home) -> None:
    daemon = home.start()
    session = daemon.call("agentd/session/new")["session"]
    assert session["workspaceUri"].rstrip("/") == home.path.resolve().as_uri()


def test_with_two_folders_a_new_session_must_name_one(home: Home) -> None:
    first, second = home.workspace(), home.workspace()
    daemon = home.start(folders=[first, second])
    error = daemon.refused("agentd/session/new")
    assert error["code"] == -32602
    assert "workspaceUri" in error["message"]
    session = daemon.call("agentd/session/new", {"workspaceUri": second.as_uri()})["session"]
    assert session["workspaceUri"] == second.as_uri()


def test_a_workspace_folder_that_comes_later_is_used(home: Home) -> None:
    daemon = home.start()
    root = home.workspace()
    added = {"added": [{"uri": root.as_uri(), "name": "later"}], "removed": []}
    daemon.notify("workspace/didChangeWorkspaceFolders", {"event": added})
    assert daemon.call("agentd/session/new")["session"]["workspaceUri"] == root.as_uri()


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    ],
    ids=["ascii", "c-locale"],
)
def test_every_locale_speaks_the_same_bytes(home: Home, env: dict[str, str]) -> None:
    said = "ä€😀\u2028\r\n"
    root = home.workspace()
    (root / "a.txt").write_text("in the file: é😀\n")
    daemon = home.spawn(**env)
    daemon.initialize()
    model = home.script(reply(said, tool("read_file", {"file_path": "a.txt"}, "call-1")), reply(said))
    params = {"workspaceUri": root.as_uri(), "prompt": said, "model": model}
    result = daemon.call("agentd/prompt", params)
    assert result["text"] == said
    messages = daemon.call("agentd/session/get", {"sessionId": result["sessionId"]})["messages"]
    assert messages[0]["content"][0]["text"] == said
    assert "in the file: é😀" in messages[2]["content"][0]["text"]
