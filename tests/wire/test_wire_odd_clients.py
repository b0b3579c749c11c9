"""Editors without a plugin that say things twice, too early, too late, wrongly or never."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool
from wire.test_wire_plain_editor import PLAIN, execute, message, take_progress

EDITING: Json = {**PLAIN, "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
REGISTERING: Json = {
    **EDITING,
    "workspace": {**EDITING["workspace"], "configuration": True},
    "textDocument": {**PLAIN["textDocument"], "synchronization": {"dynamicRegistration": True}},
}
UNTITLED = "untitled:Untitled-1"
READ = reply(tool("read_file", {"file_path": "a.txt"}))


def odd_client(
    home: Home, *responses: Json, capabilities: Json = EDITING, mode: str = "edit", **described: Any
) -> tuple[Daemon, Path]:
    """A daemon that was sent `initialize` and nothing else."""
    root = home.workspace(a_txt="one\ntwo\n")
    model = home.script(*responses)
    home.config.write_text(f'model = "{model}"\nmode = "{mode}"\ntrusted = ["{root}"]\n')
    daemon = home.spawn("--allow-full")
    params = {"processId": None, "rootUri": root.as_uri(), "capabilities": capabilities, **described}
    daemon.call("initialize", params)
    return daemon, root


def opened(daemon: Daemon, uri: str, text: str, version: int = 1) -> None:
    document = {"uri": uri, "languageId": "plaintext", "version": version, "text": text}
    daemon.notify("textDocument/didOpen", {"textDocument": document})


def told(home: Home) -> str:
    """What the model was told of last."""
    return json.dumps(home.model_requests()[-1])


def requests_of(daemon: Daemon, method: str) -> int:
    return daemon.count(lambda m: m.get("method") == method and "id" in m)


def test_what_comes_before_initialized_is_served(home: Home) -> None:
    daemon, root = odd_client(home, READ, reply("done"))
    opened(daemon, (root / "a.txt").as_uri(), "in the buffer\n")
    execute(daemon, "agentd.prompt", "go")
    message(daemon, "done")
    assert "in the buffer" in told(home)


def test_initialized_twice_registers_and_asks_once(home: Home) -> None:
    daemon, _ = odd_client(home, reply("done"), capabilities=REGISTERING)
    for _ in range(2):
        daemon.notify("initialized", {})
    daemon.answer(daemon.asked("client/registerCapability"))
    daemon.answer(daemon.asked("workspace/configuration"), [None])
    execute(daemon, "agentd.prompt", "go")
    message(daemon, "done")
    assert requests_of(daemon, "client/registerCapability") == 1
    assert requests_of(daemon, "workspace/configuration") == 1


def test_settings_are_asked_for_though_registrations_are_never_answered(home: Home) -> None:
    daemon, root = odd_client(home, READ, reply("done"), capabilities=REGISTERING)
    daemon.notify("initialized", {})
    daemon.asked("client/registerCapability")
    daemon.answer(daemon.asked("workspace/configuration"), [{"mode": "plan"}])
    opened(daemon, (root / "a.txt").as_uri(), "in the buffer\n")
    execute(daemon, "agentd.prompt", "go")
    message(daemon, "done")
    assert "in the buffer" in told(home)
    assert daemon.call("agentd/session/list")["sessions"][0]["mode"] == "plan"


@pytest.mark.parametrize("answer", [5, False, [], {"x": 1}])
def test_any_answer_to_a_registration_will_do(home: Home, answer: Any) -> None:
    daemon, _ = odd_client(home, reply("done"), capabilities=REGISTERING)
    daemon.notify("initialized", {})
    daemon.answer(daemon.asked("client/registerCapability"), answer)
    daemon.answer(daemon.asked("workspace/configuration"), answer)
    execute(daemon, "agentd.prompt", "go")
    message(daemon, "done")


@pytest.mark.parametrize("name", [5, None, [], {"first": "vim-lsp"}])
def test_a_client_whose_name_is_none_is_one_without_quirks(home: Home, name: Any) -> None:
    daemon, _ = odd_client(home, reply("one\ntwo"), clientInfo={"name": name})
    execute(daemon, "agentd.prompt", "go")
    assert message(daemon, "one")["message"] == "one\ntwo"


def test_a_client_of_an_unknown_encoding_gets_that_of_lsp(home: Home) -> None:
    daemon = home.spawn()
    offered = {**EDITING, "general": {"positionEncodings": ["utf-32"]}}
    assert daemon.initialize(capabilities=offered)["capabilities"]["positionEncoding"] == "utf-16"


def test_a_document_that_is_opened_twice_is_the_newer_one_and_one_close_closes_it(home: Home) -> None:
    daemon, root = odd_client(home, READ, reply("first"), READ, reply("second"))
    uri = (root / "a.txt").as_uri()
    opened(daemon, uri, "older\n")
    opened(daemon, uri, "newer\n", version=2)
    place = {"line": 0, "character": 0}
    change = {"range": {"start": place, "end": place}, "text": "even "}
    named = {"uri": uri, "version": 3}
    daemon.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [change]})
    execute(daemon, "agentd.prompt", "go")
    message(daemon, "first")
    assert "even newer" in told(home)
    daemon.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    execute(daemon, "agentd.prompt", "go on")
    message(daemon, "second")
    (result,) = json.loads(told(home))["messages"][-1:]
    assert "newer" not in json.dumps(result)


def test_a_change_without_changes_has_a_version_that_counts(home: Home) -> None:
    edit = reply(tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}))
    daemon, root = odd_client(home, READ, edit, reply("done"))
    uri = (root / "a.txt").as_uri()
    opened(daemon, uri, "one\ntwo\n")
    daemon.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 7}, "contentChanges": []}
    )
    execute(daemon, "agentd.prompt", "go")
    applied = daemon.asked("workspace/applyEdit")
    assert applied["params"]["edit"]["documentChanges"][0]["textDocument"]["version"] == 7


@pytest.mark.parametrize("answer", [None, "yes", [], {"applied": "true"}, {"applied": 1}])
def test_an_edit_counts_as_made_by_nothing_but_its_text(home: Home, answer: Any) -> None:
    edit = reply(tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}))
    daemon, root = odd_client(home, READ, edit, reply("I see"))
    opened(daemon, (root / "a.txt").as_uri(), "one\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    daemon.answer(daemon.asked("workspace/applyEdit"), answer)
    message(daemon, "I see")
    assert "was not changed" in told(home)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("is_saved", [True, False])
def test_an_untitled_document_that_goes_in_the_middle_of_a_prompt_is_not_edited(
    home: Home, is_saved: bool
) -> None:
    edit = tool("edit_file", {"file_path": UNTITLED, "old_string": "two", "new_string": "TWO"})
    look = reply(tool("read_file", {"file_path": UNTITLED}))
    wait = reply(tool("bash", {"command": "cat gate"}))
    daemon, root = odd_client(home, look, wait, reply(edit), reply("I see"), mode="full")
    os.mkfifo(root / "gate")
    opened(daemon, UNTITLED, "one\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    take_progress(daemon)
    until(lambda: len(home.model_requests()) == 2, "the command runs")
    if is_saved:
        (root / "b.txt").write_text("one\ntwo\n")
        opened(daemon, (root / "b.txt").as_uri(), "one\ntwo\n")
    daemon.notify("textDocument/didClose", {"textDocument": {"uri": UNTITLED}})
    (root / "gate").write_text("open")
    message(daemon, "I see")
    assert f"'{UNTITLED}' is not open in the editor" in told(home)
    assert requests_of(daemon, "workspace/applyEdit") == 0


@pytest.mark.parametrize(
    "answer", [{"title": "Nope"}, {"title": ["Allow once"]}, "Allow once", ["Allow once"], 7]
)
def test_an_answer_of_no_choice_is_a_no_and_a_second_one_is_not_heard(home: Home, answer: Any) -> None:
    daemon, root = odd_client(
        home, reply(tool("bash", {"command": "touch made"})), reply("I see"), mode="ask"
    )
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, answer)
    message(daemon, "I see")
    daemon.answer(asked, asked["params"]["actions"][0])
    assert daemon.serves()
    assert not (root / "made").exists()


def test_progress_is_stopped_twice_and_under_names_that_are_none(home: Home) -> None:
    daemon, _ = odd_client(home, reply("for ever", hang=True), reply("the next"))
    execute(daemon, "agentd.prompt", "go")
    token = take_progress(daemon)
    for each in (5, None, [], {}, "agentd/nobody", token, token):
        daemon.notify("window/workDoneProgress/cancel", {"token": each})
    daemon.wait(lambda m: m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "end")
    daemon.notify("window/workDoneProgress/cancel", {"token": token})
    execute(daemon, "agentd.prompt", "go on")
    message(daemon, "the next")


def test_a_prompt_that_is_cancelled_before_an_editor_that_tells_late_has_told_edits_nothing(
    home: Home,
) -> None:
    edit = reply(tool("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}))
    daemon, root = odd_client(home, READ, edit, reply("x"), clientInfo={"name": "vim-lsp"})
    opened(daemon, (root / "a.txt").as_uri(), "one\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    daemon.asked("window/showMessageRequest")
    execute(daemon, "agentd.cancel")
    assert requests_of(daemon, "workspace/applyEdit") == 0
