"""Editors that this project cannot run: their clients' own words at `initialize`, and a prompt by each.

What they announce is shortened from what public sources and manuals say of them; Kate's from what Kate 22.12
was seen to send.
"""

from pathlib import Path
from typing import Any

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool
from wire.test_wire_plain_editor import execute, message

KINDS = ["quickfix", "refactor", "refactor.rewrite", "source"]
ACTIONS: Json = {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": KINDS}}}}

EDITORS: dict[str, Json] = {
    "Sublime Text LSP": {
        "clientInfo": {"name": "Sublime Text LSP", "version": "2.6.0"},
        "capabilities": {
            "textDocument": {**ACTIONS, "publishDiagnostics": {"relatedInformation": True}},
            "workspace": {
                "applyEdit": True,
                "executeCommand": {},
                "workspaceFolders": True,
                "configuration": True,
                "workspaceEdit": {"documentChanges": True},
            },
            "window": {"workDoneProgress": True, "showDocument": {"support": True}},
        },
    },
    "vim-lsp": {
        "clientInfo": {"name": "vim-lsp"},
        "capabilities": {
            "textDocument": ACTIONS,
            "workspace": {"applyEdit": True, "configuration": True, "workspaceFolders": True},
            "window": {"workDoneProgress": False},
        },
    },
    "Zed": {
        "clientInfo": {"name": "Zed", "version": "0.200.0"},
        "capabilities": {
            "textDocument": ACTIONS,
            "workspace": {
                "applyEdit": True,
                "configuration": True,
                "workspaceFolders": True,
                "workspaceEdit": {"documentChanges": True},
            },
            "window": {"workDoneProgress": True},
        },
    },
    "Kate": {
        "capabilities": {
            "textDocument": {**ACTIONS, "synchronization": {"didSave": True}},
            "window": {"workDoneProgress": True},
            "workspace": {"workspaceFolders": True},
        },
    },
}
NEVER_ASK = {"code": -32601, "message": "window/showMessageRequest"}
EDIT = {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}


def started(home: Home, name: str, *responses: Json) -> tuple[Daemon, Path]:
    root = home.workspace(a_txt="one\ntwo\n")
    home.config.write_text(f'model = "{home.script(*responses)}"\n')
    daemon = home.spawn()
    folders = [{"uri": root.as_uri(), "name": "work"}]
    params = {"processId": None, "rootUri": root.as_uri(), "workspaceFolders": folders, **EDITORS[name]}
    daemon.call("initialize", params)
    daemon.notify("initialized", {})
    return daemon, root


def chosen(daemon: Daemon, uri: str, title: str) -> Any:
    """Choose from the menu of code actions at the beginning of a file, as a user does."""
    place = {"line": 0, "character": 0}
    asked = {
        "textDocument": {"uri": uri},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }
    offered = daemon.call("textDocument/codeAction", asked)
    command = next(each["command"] for each in offered if title in each["title"])
    return execute(daemon, command["command"], *command["arguments"])


@pytest.mark.parametrize("name", EDITORS)
def test_a_prompt_a_question_an_edit_and_an_answer(home: Home, name: str) -> None:
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, name, reply(read), reply(edit), reply("It is done."))
    file = root / "a.txt"
    chosen(daemon, file.as_uri(), "explain this file")
    asked = daemon.asked("window/showMessageRequest")
    if name == "Kate":  # knows no questions
        daemon.answer(asked, error=NEVER_ASK)
        assert "+TWO" in message(daemon, "Allow or reject it in the menu")["message"]
        chosen(daemon, file.as_uri(), "allow")
    else:
        daemon.answer(asked, asked["params"]["actions"][0])
    message(daemon, "It is done.")
    assert file.read_text() == "one\nTWO\n"


@pytest.mark.parametrize("name", EDITORS)
def test_a_rejected_edit_is_not_made(home: Home, name: str) -> None:
    """vim-lsp can answer by the first choice only: whatever else is chosen there comes as null."""
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, name, reply(read), reply(edit), reply("I see."))
    file = root / "a.txt"
    chosen(daemon, file.as_uri(), "explain this file")
    asked = daemon.asked("window/showMessageRequest")
    if name == "Kate":
        daemon.answer(asked, error=NEVER_ASK)
        message(daemon, "Allow or reject it in the menu")
        chosen(daemon, file.as_uri(), "reject")
    else:
        daemon.answer(asked, None if name == "vim-lsp" else asked["params"]["actions"][-1])
    message(daemon, "I see.")
    assert file.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("name", ["Sublime Text LSP", "vim-lsp", "Zed"])
def test_an_unsaved_document_is_changed_in_the_editor(home: Home, name: str) -> None:
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, name, reply(read), reply(edit), reply("It is done."))
    uri = (root / "a.txt").as_uri()
    document = {"uri": uri, "languageId": "plaintext", "version": 1, "text": "typed\ntwo\n"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, asked["params"]["actions"][0])
    applied = daemon.asked("workspace/applyEdit")
    changes = [{"text": "typed\nTWO\n"}]
    daemon.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": changes}
    )
    daemon.answer(applied, {"applied": True})
    message(daemon, "It is done.")
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_a_client_without_a_menu_that_knows_no_questions_has_said_no(home: Home) -> None:
    root = home.workspace()
    home.config.write_text(
        f'model = "{home.script(reply(tool("bash", {"command": "touch made"})), reply("I see."))}"\n'
    )
    daemon = home.start(options=None, capabilities={}, folders=[root])
    execute(daemon, "agentd.prompt", "go")
    daemon.answer(daemon.asked("window/showMessageRequest"), error=NEVER_ASK)
    message(daemon, "I see.")
    assert not (root / "made").exists()


def test_a_question_for_the_menu_goes_with_its_prompt(home: Home) -> None:
    daemon, root = started(home, "Kate", reply(tool("bash", {"command": "touch made"})))
    execute(daemon, "agentd.prompt", "go")
    daemon.answer(daemon.asked("window/showMessageRequest"), error=NEVER_ASK)
    message(daemon, "Allow or reject it in the menu")
    chosen(daemon, (root / "a.txt").as_uri(), "cancel the running prompt")
    place = {"line": 0, "character": 0}
    asked = {"range": {"start": place, "end": place}, "context": {"diagnostics": []}}

    def titles() -> str:
        uri = (root / "a.txt").as_uri()
        return str(daemon.call("textDocument/codeAction", {"textDocument": {"uri": uri}, **asked}))

    until(lambda: "agentd.approve" not in titles() and "agentd.cancel" not in titles(), "it is over")
    assert not (root / "made").exists()
