"""What is registered with the client and what is announced: one or the other, never both."""

import pytest
from wire.chat import Chat
from wire.editing import CAPABILITIES, results_of
from wire.harness import Daemon, Json, initialize_params
from wire.home import Home
from wire.scripts import reply, tool

SELECTOR = [{"scheme": "file"}, {"scheme": "untitled"}]
DOCUMENTS = [
    "textDocument/didOpen",
    "textDocument/didClose",
    "textDocument/didChange",
    "textDocument/didSave",
]


def dynamic(*names: str) -> Json:
    """Capabilities of a client that takes registrations of these."""
    return {**CAPABILITIES, "textDocument": {name: {"dynamicRegistration": True} for name in names}}


VS_CODE = dynamic("synchronization", "codeAction")
NEOVIM = {
    **CAPABILITIES,
    "textDocument": {
        "synchronization": {"dynamicRegistration": False, "didSave": True},
        "codeAction": {"dynamicRegistration": True},
    },
    "workspace": {**CAPABILITIES["workspace"], "didChangeWatchedFiles": {"dynamicRegistration": False}},
}
EGLOT = {
    **CAPABILITIES,
    "textDocument": {"synchronization": {"dynamicRegistration": False}},
    "workspace": {
        **CAPABILITIES["workspace"],
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "executeCommand": {"dynamicRegistration": False},
    },
}


def announced(daemon: Daemon, capabilities: Json) -> set[str]:
    found: Json = daemon.call("initialize", initialize_params(capabilities=capabilities))["capabilities"]
    daemon.notify("initialized", {})
    return {
        name for name in ("textDocumentSync", "codeActionProvider", "executeCommandProvider") if name in found
    }


def test_documents_and_actions_of_every_language_are_registered_and_not_announced(home: Home) -> None:
    daemon = home.spawn()
    assert announced(daemon, VS_CODE) == {"executeCommandProvider"}
    asked = daemon.asked("client/registerCapability")
    found = {each["method"]: each["registerOptions"] for each in asked["params"]["registrations"]}
    assert list(found) == [*DOCUMENTS, "textDocument/codeAction"]
    assert all(options["documentSelector"] == SELECTOR for options in found.values())
    assert found["textDocument/didChange"]["syncKind"] == 2
    assert found["textDocument/didSave"]["includeText"] is False
    assert found["textDocument/codeAction"]["codeActionKinds"] == ["quickfix", "refactor.rewrite", "source"]
    assert len({each["id"] for each in asked["params"]["registrations"]}) == 5
    daemon.answer(asked, None)
    document = {"uri": "untitled:Untitled-1", "languageId": "x", "version": 0, "text": "draft\n"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    read = tool("read_file", {"file_path": document["uri"]})
    chat = Chat(daemon, home.workspace(), model=home.script(reply(read), reply("done")), mode="ask")
    chat.run()
    assert "draft" in results_of(chat)[0]
    assert daemon.count(lambda m: m.get("method") == "client/registerCapability") == 1


@pytest.mark.parametrize(
    "capabilities", [NEOVIM, EGLOT, {}, {"textDocument": {"synchronization": 1, "codeAction": []}}]
)
def test_a_client_that_takes_no_documents_later_is_told_everything_at_once(
    home: Home, capabilities: Json
) -> None:
    daemon = home.spawn()
    assert announced(daemon, capabilities) == {
        "textDocumentSync",
        "codeActionProvider",
        "executeCommandProvider",
    }
    assert daemon.serves()
    assert daemon.count(lambda m: m.get("method") == "client/registerCapability") == 0


def test_actions_are_announced_where_only_documents_are_registered(home: Home) -> None:
    daemon = home.spawn()
    assert announced(daemon, dynamic("synchronization")) == {"codeActionProvider", "executeCommandProvider"}
    asked = daemon.asked("client/registerCapability")
    assert [each["method"] for each in asked["params"]["registrations"]] == DOCUMENTS


@pytest.mark.parametrize("with_params_first", [True, False])
def test_the_early_answer_and_that_of_the_door_are_the_same(home: Home, with_params_first: bool) -> None:
    daemon = home.spawn()
    params = initialize_params(capabilities=VS_CODE)
    if not with_params_first:
        daemon.refused("agentd/status")  # so that `initialize` is not the first frame
    result = daemon.call("initialize", params)["capabilities"]
    assert "textDocumentSync" not in result
    assert "codeActionProvider" not in result


def test_a_client_that_refuses_what_it_announced_is_served_all_the_same(home: Home) -> None:
    daemon = home.spawn()
    announced(daemon, VS_CODE)
    daemon.answer(daemon.asked("client/registerCapability"), error={"code": -32601, "message": "no"})
    assert daemon.serves()
