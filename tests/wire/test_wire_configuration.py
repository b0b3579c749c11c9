"""Settings of the editor in a running daemon, and workspace folders that come and go."""

import pytest
from wire.chat import Chat
from wire.editing import results_of
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool

PULLS: Json = {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}}


def session(daemon: Daemon, home: Home) -> Json:
    params = {"workspaceUri": home.workspace().as_uri()}
    made: Json = daemon.call("agentd/session/new", params)["session"]
    return made


def change(daemon: Daemon, section: object) -> None:
    daemon.notify("workspace/didChangeConfiguration", {"settings": {"agentd": section}})


def test_settings_that_are_sent_count_for_new_sessions(home: Home) -> None:
    daemon = home.start()
    assert session(daemon, home)["mode"] == "ask"
    change(daemon, {"model": "local/coder", "mode": "plan"})
    made = session(daemon, home)
    assert (made["model"], made["mode"]) == ("local/coder", "plan")
    change(daemon, {})
    assert session(daemon, home)["mode"] == "ask"


def test_an_editor_that_is_to_be_asked_is_asked(home: Home) -> None:
    daemon = home.start(capabilities=PULLS)
    registered = daemon.asked("client/registerCapability")
    (registration,) = registered["params"]["registrations"]
    assert registration["method"] == "workspace/didChangeConfiguration"
    assert registration["registerOptions"] == {"section": "agentd"}
    daemon.answer(registered, None)
    first = daemon.asked("workspace/configuration")
    assert first["params"] == {"items": [{"section": "agentd"}]}
    daemon.answer(first, [{"mode": "plan"}])
    until(lambda: session(daemon, home)["mode"] == "plan", "what is set at the start counts")
    daemon.notify("workspace/didChangeConfiguration", {"settings": None})
    since = daemon.messages.index(first) + 1
    daemon.answer(daemon.asked("workspace/configuration", since), [None])
    until(lambda: session(daemon, home)["mode"] == "ask", "what is set later counts")


def test_an_answer_that_settings_have_overtaken_does_not_count(home: Home) -> None:
    daemon = home.start(capabilities={"workspace": {"configuration": True}})
    first = daemon.asked("workspace/configuration")
    change(daemon, {"mode": "plan"})
    until(lambda: session(daemon, home)["mode"] == "plan", "what is sent counts")
    daemon.answer(first, [{"mode": "ask"}])
    assert daemon.serves()
    assert session(daemon, home)["mode"] == "plan"


def test_an_editor_that_announces_nothing_is_asked_nothing(home: Home) -> None:
    daemon = home.start()
    daemon.notify("workspace/didChangeConfiguration", {"settings": None})
    daemon.notify("workspace/didChangeConfiguration", {})
    assert daemon.serves()
    assert (
        daemon.count(lambda m: m.get("method") in ("client/registerCapability", "workspace/configuration"))
        == 0
    )


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ({"mode": "wild"}, "agentd.mode"),
        ({"model": "no-provider"}, "agentd.model"),
        ({"model": "scripted/demo"}, "agentd.model"),
        ({"updates": 3}, "agentd.updates"),
    ],
)
def test_what_is_wrong_in_the_settings_is_a_problem(home: Home, section: Json, named: str) -> None:
    daemon = home.start()
    change(daemon, section)
    until(lambda: named in str(daemon.call("agentd/status")["problems"]), "the problem is told")
    assert session(daemon, home)["mode"] == "ask"


def test_settings_choose_no_model_in_a_workspace_that_is_not_trusted(home: Home) -> None:
    home.config.write_text('model = "scripted/demo"\n')
    daemon = home.start(options={"trusted": False})
    change(daemon, {"model": "local/coder", "mode": "plan"})
    made = daemon.call("agentd/session/new", {"workspaceUri": home.workspace().as_uri()})["session"]
    assert (made["model"], made["mode"]) == ("scripted/demo", "plan")


def test_settings_loosen_nothing(home: Home) -> None:
    daemon = home.start("--allow-full", options={"trusted": False})
    change(daemon, {"mode": "full", "trusted": True, "allowFull": True, "credentials": {"x": "y"}})
    assert session(daemon, home)["mode"] == "ask"


def test_settings_change_the_pace_of_updates(home: Home) -> None:
    daemon = home.start()
    change(daemon, {"updates": "none"})
    chat = Chat(daemon, home.workspace(), model=home.script(reply("hello")))
    chat.run()
    assert not [p for p in chat.notifications() if p["event"]["type"] == "message_update"]


def test_a_folder_that_is_closed_takes_its_runs_with_it(home: Home) -> None:
    one, other = home.workspace(), home.workspace()
    daemon = home.start("--allow-full", folders=[one, other])
    calls = reply(tool("bash", {"command": "echo begun; sleep 60"})), reply("done")
    chats = [Chat(daemon, root, model=home.script(*calls), mode="full") for root in (one, other)]
    prompts = [chat.start() for chat in chats]
    for chat in chats:
        chat.event("tool_execution_update")
    gone = {"event": {"added": [], "removed": [{"uri": one.as_uri(), "name": "one"}]}}
    daemon.notify("workspace/didChangeWorkspaceFolders", gone)
    assert chats[0].result(prompts[0])["stopReason"] == "aborted"
    assert results_of(chats[0]) == ["error: Tool execution aborted."]
    assert chats[1].get()["session"]["state"] == "running"
    chats[1].cancel()
    new = home.workspace()
    back = {"event": {"added": [{"uri": new.as_uri(), "name": "new"}], "removed": []}}
    daemon.notify("workspace/didChangeWorkspaceFolders", back)
    assert daemon.refused("agentd/session/new", {})["data"]["kind"] == "invalidParams", "which of the two?"
    assert Chat(daemon, new, model=home.script(reply("hi"))).run()["text"] == "hi"
