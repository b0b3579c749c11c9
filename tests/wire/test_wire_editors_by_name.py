"""Editors that this project's tests cannot have: what their clients announce, whole, and what they then do.

`announcements` holds the params of their `initialize`: vim-lsp's, Kate's and Sublime Text's as they came from
them (from its package LSP on a stand-in for the editor), Zed's as its source makes them (also those before it
took registrations).
"""

import json
from pathlib import Path
from typing import Any

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.scripts import reply, tool
from wire.test_wire_plain_editor import execute, message, progress, shown, take_progress

ANNOUNCEMENTS = Path(__file__).parent / "announcements"
EDITORS: dict[str, Json] = {path.stem: json.loads(path.read_text()) for path in ANNOUNCEMENTS.glob("*.json")}
EDITING = sorted(EDITORS.keys() - {"kate"})
"""Those that take edits of their buffers."""
NEVER_ASK = {"code": -32601, "message": "window/showMessageRequest"}
EDIT = {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}


def started(home: Home, name: str, *responses: Json, mode: str = "ask") -> tuple[Daemon, Path]:
    root = home.workspace(a_txt="one\ntwo\n")
    model = home.script(*responses)
    home.config.write_text(f'model = "{model}"\nmode = "{mode}"\ntrusted = ["{root}"]\n')
    daemon = home.spawn()
    folders = [{"uri": root.as_uri(), "name": "work"}]
    params = {"processId": None, "rootUri": root.as_uri(), **EDITORS[name]}
    if name != "vim-lsp":
        params["workspaceFolders"] = folders
    daemon.call("initialize", params)
    daemon.notify("initialized", {})
    if registers(EDITORS[name]):
        daemon.answer(daemon.asked("client/registerCapability"))
    return daemon, root


def registers(params: Json) -> bool:
    """Whether the client takes registrations of documents or settings."""
    found = params["capabilities"]
    documents = found["textDocument"].get("synchronization", {})
    settings = found["workspace"].get("didChangeConfiguration", {})
    return any(each.get("dynamicRegistration") is True for each in (documents, settings))


def opened(daemon: Daemon, root: Path, text: str) -> str:
    """Open the file with a text that is not saved; gives its URI."""
    uri = (root / "a.txt").as_uri()
    document = {"uri": uri, "languageId": "plaintext", "version": 1, "text": text}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    return uri


def changed(daemon: Daemon, uri: str, text: str, version: int = 2) -> None:
    """The document has this text now."""
    named = {"uri": uri, "version": version}
    daemon.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [{"text": text}]})


def edited(home: Home) -> str:
    """The results of tools that the model was last told of."""
    return json.dumps(home.model_requests()[-1])


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
    if name == "kate":  # knows no questions
        daemon.answer(asked, error=NEVER_ASK)
        assert "+TWO" in message(daemon, "Allow or reject it in the menu")["message"]
        chosen(daemon, file.as_uri(), "allow")
    else:
        daemon.answer(asked, asked["params"]["actions"][0])
    message(daemon, "It is done.")
    assert file.read_text() == "one\nTWO\n"


@pytest.mark.parametrize("name", EDITORS)
def test_a_rejected_edit_is_not_made(home: Home, name: str) -> None:
    """vim-lsp answers null for all but the first choice; Sublime Text where its popup is gone."""
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, name, reply(read), reply(edit), reply("I see."))
    file = root / "a.txt"
    chosen(daemon, file.as_uri(), "explain this file")
    asked = daemon.asked("window/showMessageRequest")
    if name == "kate":
        daemon.answer(asked, error=NEVER_ASK)
        message(daemon, "Allow or reject it in the menu")
        chosen(daemon, file.as_uri(), "reject")
    else:
        daemon.answer(asked, asked["params"]["actions"][-1] if name.startswith("zed") else None)
    message(daemon, "I see.")
    assert file.read_text() == "one\ntwo\n"


@pytest.mark.parametrize("name", EDITING)
def test_an_unsaved_document_is_changed_in_the_editor(home: Home, name: str) -> None:
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, name, reply(read), reply(edit), reply("It is done."))
    uri = opened(daemon, root, "typed\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, asked["params"]["actions"][0])
    applied = daemon.asked("workspace/applyEdit")
    if name != "vim-lsp":  # which tells of it later
        changed(daemon, uri, "typed\nTWO\n")
    daemon.answer(applied, {"applied": True})
    message(daemon, "It is done.")
    assert "Edited a.txt" in edited(home)
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_an_edit_that_was_skipped_is_not_made_though_zed_answers_that_it_was(home: Home) -> None:
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, "zed", reply(read), reply(edit), reply("I see."))
    opened(daemon, root, "typed\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, asked["params"]["actions"][0])
    daemon.answer(daemon.asked("workspace/applyEdit"), {"applied": True})
    message(daemon, "I see.")
    assert "was not changed" in edited(home)


# --- Sublime Text: what LSP's own client code was seen to do ----------------------------------------


def test_sublime_text_is_announced_documents_as_it_tells_twice_what_is_typed_before_it_registers_them(
    home: Home,
) -> None:
    daemon, _ = started(home, "sublime-text")
    announced = daemon.messages[0]["result"]["capabilities"]
    assert announced["textDocumentSync"]["change"] == 2
    assert "quickfix" in announced["codeActionProvider"]["codeActionKinds"]
    registered = daemon.asked("client/registerCapability")["params"]["registrations"]
    assert [each["method"] for each in registered] == ["workspace/didChangeConfiguration"]


def test_an_edit_that_sublime_text_skipped_is_not_made_though_it_answers_that_it_was(home: Home) -> None:
    """It skips one for an older text, without a word, and tells of the newer one once nobody types."""
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, "sublime-text", reply(read), reply(edit), reply("I see."))
    uri = opened(daemon, root, "typed\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, asked["params"]["actions"][0])
    daemon.answer(daemon.asked("workspace/applyEdit"), {"applied": True})
    changed(daemon, uri, "typed more\ntwo\n")
    message(daemon, "I see.")
    assert "was changed by the user at the same moment" in edited(home)


def test_an_edit_that_sublime_text_tells_of_before_what_was_typed_behind_it_is_made(home: Home) -> None:
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, "sublime-text", reply(read), reply(edit), reply("It is done."))
    uri = opened(daemon, root, "typed\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, asked["params"]["actions"][0])
    daemon.answer(daemon.asked("workspace/applyEdit"), {"applied": True})
    at, end = {"line": 1, "character": 0}, {"line": 1, "character": 3}
    changes = [
        {"range": {"start": at, "end": end}, "text": "TWO"},
        {"range": {"start": at, "end": at}, "text": "and "},
    ]
    named = {"uri": uri, "version": 3}
    daemon.notify("textDocument/didChange", {"textDocument": named, "contentChanges": changes})
    message(daemon, "It is done.")
    assert "Edited a.txt" in edited(home)


def test_sublime_text_is_given_annotated_edits_and_shows_the_answer(home: Home) -> None:
    read, edit = tool("read_file", {"file_path": "a.txt"}), tool("edit_file", EDIT)
    daemon, root = started(home, "sublime-text", reply(read), reply(edit), reply("It is done."))
    opened(daemon, root, "typed\ntwo\n")
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    daemon.answer(asked, asked["params"]["actions"][0])
    applied = daemon.asked("workspace/applyEdit")
    (change,) = applied["params"]["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 1
    assert change["edits"][0]["annotationId"] in applied["params"]["edit"]["changeAnnotations"]
    daemon.answer(applied, {"applied": True})
    assert "It is done." in shown(daemon).read_text()


@pytest.mark.parametrize("answer", ["It is 42.\nAs ever.", "on and on\n" * 100])
def test_sublime_text_is_told_of_each_answer_as_it_leaves_an_open_document_behind(
    home: Home, answer: str
) -> None:
    daemon, _ = started(home, "sublime-text", reply(answer))
    execute(daemon, "agentd.prompt", "go")
    said = message(daemon, "It is 42." if "42" in answer else "agentd has answered at length: ")["message"]
    assert "As ever." not in said
    assert answer.strip() in shown(daemon).read_text()


def test_what_is_asked_to_be_shown_comes_to_the_front_in_sublime_text(home: Home) -> None:
    """LSP goes to the tab of an open document only where it is told a place in it."""
    daemon, _ = started(home, "sublime-text", reply("It is 42."))
    execute(daemon, "agentd.prompt", "go")
    answer = daemon.asked("window/showDocument")
    assert "selection" not in answer["params"]
    daemon.answer(answer, {"success": True})
    since = len(daemon.messages)
    execute(daemon, "agentd.showTranscript")
    asked = daemon.asked("window/showDocument", since)
    assert asked["params"]["uri"] == answer["params"]["uri"]
    assert asked["params"]["selection"]["start"]["line"] > 0
    daemon.answer(asked, {"success": True})
    assert daemon.serves()


# --- vim-lsp: what a real Vim with it was seen to do ------------------------------------------------


def vim(home: Home, *responses: Json) -> tuple[Daemon, str]:
    """vim-lsp with one buffer that is not saved, in which it may edit."""
    daemon, root = started(home, "vim-lsp", *responses, mode="edit")
    return daemon, opened(daemon, root, "typed 😀\ntwo 😀 two\n")


def test_vim_is_asked_for_whole_documents_as_its_positions_count_characters(home: Home) -> None:
    daemon, _ = vim(home)
    announced = daemon.messages[0]["result"]["capabilities"]
    assert announced["textDocumentSync"]["change"] == 1


def told_first(daemon: Daemon, since: int = 0) -> int:
    """Answer the message before an edit; gives how many messages there were by then."""
    asked = daemon.asked("window/showMessageRequest", since)
    assert "actions" not in asked["params"]
    assert "Edited a.txt" in asked["params"]["message"]
    daemon.answer(asked, None)
    return daemon.messages.index(asked) + 1


def test_vim_is_believed_that_it_made_an_edit_and_the_next_builds_on_it(home: Home) -> None:
    edits = [
        reply(tool("edit_file", {"file_path": "a.txt", "old_string": old, "new_string": new}))
        for old, new in (("😀 two", "three"), ("three", "four"))
    ]
    daemon, uri = vim(home, reply(tool("read_file", {"file_path": "a.txt"})), *edits, reply("It is done."))
    execute(daemon, "agentd.prompt", "go")
    since = 0
    for line in ("two three\n", "two four\n"):
        since = told_first(daemon, since)
        applied = daemon.asked("workspace/applyEdit", since)
        (edit,) = applied["params"]["edit"]["changes"][uri]
        assert edit["newText"] == line
        assert (edit["range"]["start"]["character"], edit["range"]["end"]["character"]) == (0, 0)
        daemon.answer(applied, {"applied": True})
    message(daemon, "It is done.")
    assert edited(home).count("Edited a.txt") == 2
    changed(daemon, uri, "typed 😀\ntwo four\nmore\n")
    execute(daemon, "agentd.prompt", "and what is there now?")
    message(daemon, "script")


def test_what_vim_tells_before_an_edit_makes_it_stale(home: Home) -> None:
    edit = reply(tool("edit_file", EDIT | {"old_string": "two 😀"}))
    daemon, uri = vim(home, reply(tool("read_file", {"file_path": "a.txt"})), edit, reply("I see."))
    execute(daemon, "agentd.prompt", "go")
    asked = daemon.asked("window/showMessageRequest")
    changed(daemon, uri, "typed 😀\nand more\ntwo 😀 two\n")
    daemon.answer(asked, None)
    message(daemon, "I see.")
    assert daemon.count(lambda m: m.get("method") == "workspace/applyEdit") == 0
    assert "Read it again with read_file" in edited(home)


def test_an_edit_is_made_though_vim_answers_no_messages(home: Home) -> None:
    edit = reply(tool("edit_file", EDIT | {"old_string": "two 😀"}))
    daemon, _ = vim(home, reply(tool("read_file", {"file_path": "a.txt"})), edit, reply("It is done."))
    execute(daemon, "agentd.prompt", "go")
    daemon.answer(daemon.asked("workspace/applyEdit"), {"applied": True})
    message(daemon, "It is done.")
    assert "Edited a.txt" in edited(home)


def test_vim_is_told_which_file_holds_the_rest_of_an_answer(home: Home) -> None:
    daemon, _ = vim(home, reply("It is 42.\nAs ever."))
    execute(daemon, "agentd.prompt", "go")
    said = message(daemon, "It is 42.")["message"]
    assert "As ever." in Path(said.partition("(all of it: ")[2].removesuffix(")")).read_text()


# --- what is shown meanwhile ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sublime-text", "zed", "kate"])
def test_the_answer_grows_in_progress_where_that_is_one_line(home: Home, name: str) -> None:
    """Kate keeps each report in a pane, so it is told the steps only."""
    daemon, _ = started(home, name, reply(tool("list_directory", {"path": "."})), reply("on and", hang=True))
    execute(daemon, "agentd.prompt", "go")
    token = take_progress(daemon)
    if name == "kate":
        until(lambda: len(home.model_requests()) == 2, "the model writes")
        execute(daemon, "agentd.cancel")
        progress(daemon, token, "end")
    else:
        daemon.wait(lambda m: m.get("method") == "$/progress" and "on and" in str(m["params"]["value"]))
    assert daemon.count(lambda m: "on and" in str(m.get("params", {}).get("value"))) == (name != "kate")


# --- questions --------------------------------------------------------------------------------------


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
    daemon, root = started(home, "kate", reply(tool("bash", {"command": "touch made"})))
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
