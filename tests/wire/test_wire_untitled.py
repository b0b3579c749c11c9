"""Documents that are no file yet: read, found, changed and taken back in the editor, by their URI."""

from collections.abc import Callable

import pytest
from wire.chat import Chat
from wire.editing import CAPABILITIES, SimulatedEditor, honest, results_of
from wire.harness import Daemon, Json
from wire.home import Home
from wire.rewinding import Author, bash, told
from wire.scripts import reply, tool

NAME = "untitled:Untitled-1"
TEXT = "one\ntwo\nthree\n"
READ = tool("read_file", {"file_path": NAME})


class Draft(SimulatedEditor):
    """An editor with such a document."""

    def __init__(self, daemon: Daemon, home: Home, text: str = TEXT, uri: str = NAME) -> None:
        self.named = uri
        super().__init__(daemon, home, text, on_disk=False, uri=uri)


@pytest.fixture
def daemon(home: Home) -> Daemon:
    return home.start("--allow-full", capabilities=CAPABILITIES)


def edit(old: str, new: str, name: str = NAME) -> Json:
    return tool("edit_file", {"file_path": name, "old_string": old, "new_string": new})


def write(content: str, name: str = NAME) -> Json:
    return tool("write_file", {"file_path": name, "content": content})


def test_it_is_read_and_changed_under_its_name(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        shown, changed, rewritten = editor.results(READ, edit("two", "2"), write("all new\n"))
        assert shown.split("\n")[0] == f"File: {NAME} (3 lines total, showing 1-3)"
        assert changed == (
            f"Edited {NAME} (1 replacement, +1 -1). It is no file yet: the user has to save it under a name."
        )
        assert rewritten.startswith(f"Replaced {NAME}")
        assert editor.text == "all new\n"
        (first, _) = editor.requests
        named = first["params"]["edit"]["documentChanges"][0]["textDocument"]
        assert named == {"uri": NAME, "version": 0}
        assert list(editor.root.iterdir()) == [], "no file has come of it"


@pytest.mark.parametrize(
    "uri", ["vscode-userdata:/User/settings.json", "output:extension-output-1", "git:/a.txt", "UNTITLED:x"]
)
def test_documents_of_other_kinds_are_not_read_by_their_uri(daemon: Daemon, home: Home, uri: str) -> None:
    """Settings and output of the editor may hold what is nobody's."""
    with Draft(daemon, home, "token: hunter2\n", uri) as editor:
        looks = (tool("read_file", {"file_path": uri}), tool("search_files", {"pattern": "hunter"}))
        for result in editor.results(*looks, write("x", uri)):
            assert "token" not in result, result
        assert editor.text == "token: hunter2\n"


def refuses(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": False, "failureReason": "no"})


def says_so_and_does_not(editor: SimulatedEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": True})


def types_at_once(editor: SimulatedEditor, request: Json) -> None:
    typed = editor.type(0, 0, "typed\n", tell=False)
    editor.tell(typed, *editor.make(request))
    editor.daemon.answer(request, {"applied": True})


@pytest.mark.parametrize(
    ("on_edit", "said", "text"),
    [
        (refuses, "was not changed: the editor refused the edit (no)", TEXT),
        (says_so_and_does_not, "but its text was the same after 2 s", TEXT),
        (types_at_once, "was changed by the user at the same moment", None),
    ],
)
def test_what_came_of_an_edit_its_text_says(
    daemon: Daemon, home: Home, on_edit: Callable[..., None], said: str, text: str | None
) -> None:
    with Draft(daemon, home) as editor:
        editor.on_edit = on_edit
        result = editor.results(READ, edit("two", "2"))[1]
        assert result.startswith("error: ")
        assert said in result
        assert text is None or editor.text == text
        assert len(editor.requests) == 1


def test_it_has_to_be_read_first_and_again_once_the_user_has_typed(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        assert "was not read in this session" in editor.results(write("x"))[0]
        chat = editor.chat(READ, edit("two", "2"), mode="ask")
        prompt = chat.start()
        asked = daemon.asked("agentd/permission/request")
        assert asked["params"]["subject"]["uri"] == NAME
        assert asked["params"]["options"][1]["rule"] == f"edits to {NAME} with edit_file"
        editor.type(0, 3, "typed")
        daemon.answer(asked, {"optionId": "allow_once"})
        chat.result(prompt)
        assert "changed since it was read" in results_of(chat)[1]
        assert editor.text == "typed\ntwo\nthree\n"


def test_an_empty_one_is_written_without_being_read(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home, "") as editor:
        (result,) = editor.results(write("first\n"))
        assert result.startswith(f"Created {NAME} (1 line, +1 -0).")
        assert editor.text == "first\n"


def test_one_that_is_not_open_is_named_with_those_that_are(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        other = "untitled:Untitled-7"
        calls = [tool("read_file", {"file_path": other}), write("x", other), edit("a", "b", other)]
        for result in editor.results(*calls):
            assert result == f"error: '{other}' is not open in the editor. Open are: {NAME}."
        for name, more in (("delete_file", {}), ("move_file", {"new_path": "x.txt"})):
            assert "is no file yet" in editor.results(tool(name, {"file_path": NAME, **more}))[0]
        assert list(editor.root.iterdir()) == []


def test_searches_find_it(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        (editor.root / "a.txt").write_text("two\n")
        everywhere, named, by_glob, names = editor.results(
            tool("search_files", {"pattern": "^two"}),
            tool("search_files", {"pattern": "^two", "path": NAME}),
            tool("search_files", {"pattern": "^two", "glob": "*.txt"}),
            tool("find_files", {"glob": "*"}),
        )
        assert everywhere.split("\n") == ["a.txt:1: two", f"{NAME}:2: two"]
        assert named == f"{NAME}:2: two"
        assert by_glob == "a.txt:1: two"
        assert NAME in names.split("\n")


def test_a_prompt_refers_to_it_and_so_does_the_focus(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        spot = {"line": 1, "character": 0}
        daemon.notify("agentd/focus", {"uri": NAME, "selection": {"start": spot, "end": spot}})
        chat = Chat(
            daemon, editor.root, model=home.script(reply(edit("two", "2")), reply("done")), mode="full"
        )
        chat.run([{"type": "text", "text": "look here"}, {"type": "resource", "uri": NAME}])
        request = str(home.model_requests("look here")[0])
        assert f"The user refers to {NAME}. Between the marks is the content" in request
        assert "2 | two" in request
        assert f"the user looks at {NAME}; the cursor is in line 2" in request
        assert editor.text == "one\n2\nthree\n", "what was shown whole counts as read"


def test_a_reference_to_one_that_is_closed_is_named_only(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        chat = Chat(daemon, editor.root, model=home.script(reply("done")), mode="full")
        chat.run([{"type": "text", "text": "look there"}, {"type": "resource", "uri": "untitled:No"}])
        assert "which is not shown: 'untitled:No' is not open in the editor" in str(
            home.model_requests("look there")[0]
        )


def test_a_rewind_takes_it_back_in_the_editor_and_tells_what_was_done(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        author = Author(daemon, home, editor.root)
        author.does("one", READ, edit("two", "2"), bash("touch made.txt"))
        diff = author.ask("diff", promptId="one")
        assert diff["files"][0] == {"uri": NAME, "action": "changed", "additions": 1, "deletions": 1}
        assert f"--- a/{NAME}\n+++ b/{NAME}\n@@ -1,3 +1,3 @@" in diff["patch"]
        assert author.ask("original", promptId="one", uri=NAME) == {"text": TEXT}
        changed = author.chat.event("files_changed")["files"]
        assert {"uri": NAME, "action": "changed"} in changed
        assert told(author.rewind("one")) == {NAME: "changed", "made.txt": "deleted"}
        assert editor.text == TEXT
        author.undo()
        assert editor.text == "one\n2\nthree\n"
        author.daemon.call("agentd/session/close", {"sessionId": author.chat.id})
        assert told(author.rewind("one")) == {NAME: "changed", "made.txt": "deleted"}, "kept on the disk"
        assert editor.text == TEXT


def test_a_look_at_what_commands_beside_it_change_leaves_it_out(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        author = Author(daemon, home, editor.root)
        server = tool("bash", {"command": "sleep 600", "run_in_background": True})
        author.does("one", server, READ, edit("two", "2"), bash("touch made.txt"))
        assert told(author.ask("diff", promptId="one")) == {NAME: "changed", "made.txt": "created"}
        assert told(author.rewind("one")) == {NAME: "changed", "made.txt": "deleted"}
        assert editor.text == TEXT


def test_what_the_user_typed_in_it_or_closed_is_a_conflict(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home) as editor:
        author = Author(daemon, home, editor.root)
        author.does("one", READ, edit("two", "2"))
        editor.type(0, 0, "mine ")
        assert told(author.rewind("one")) == {NAME: "conflict"}
        assert editor.text == "mine one\n2\nthree\n"
        editor.close()
        (file,) = author.rewind("one")["files"]
        assert file["conflict"] == "It is no file, and not open in the editor any more."


def test_the_menu_offers_actions_on_it(daemon: Daemon, home: Home) -> None:
    with Draft(daemon, home, "# agentd: write a poem\n") as editor:
        top = {"line": 0, "character": 0}
        params = {
            "textDocument": {"uri": NAME},
            "range": {"start": top, "end": {"line": 1, "character": 0}},
            "context": {"diagnostics": []},
        }
        commands = daemon.call("textDocument/codeAction", params)
        assert [each["title"] for each in commands] == [
            "agentd: write a poem",
            "agentd: improve the selection",
            "agentd: explain the selection",
            "agentd: write tests for the selection",
        ]
        model = home.script(reply(edit("# agentd: write a poem", "roses")), reply("done"))
        folder = daemon.call("agentd/session/new", {"workspaceUri": editor.root.as_uri(), "model": model})
        daemon.call("agentd/session/update", {"sessionId": folder["session"]["sessionId"], "mode": "full"})
        daemon.notify(
            "workspace/didChangeWorkspaceFolders",
            {"event": {"added": [{"uri": editor.root.as_uri(), "name": "w"}], "removed": []}},
        )
        action = commands[0]
        daemon.call(
            "workspace/executeCommand", {"command": action["command"], "arguments": action["arguments"]}
        )
        daemon.wait(lambda m: m.get("params", {}).get("event", {}).get("type") == "agent_end")
        assert editor.text == "roses\n"
        other = {**params, "textDocument": {"uri": "untitled:Untitled-9"}}
        assert daemon.call("textDocument/codeAction", other) == []


def test_one_that_would_hold_secrets_asks(home: Home) -> None:
    daemon = home.start(capabilities=CAPABILITIES)
    with Draft(daemon, home, "KEY=1\n", uri="untitled:/home/me/.env") as editor:
        chat = editor.chat(tool("read_file", {"file_path": editor.uri}), mode="ask")
        prompt = chat.start()
        asked = daemon.asked("agentd/permission/request")
        assert asked["params"]["subject"] == {"type": "read", "uri": editor.uri}
        daemon.answer(asked, {"optionId": "reject_once"})
        chat.result(prompt)
        assert "KEY" not in results_of(chat)[0]
        (found,) = editor.results(tool("search_files", {"pattern": "KEY"}), mode="plan")
        assert "KEY=1" not in found


def test_an_editor_that_takes_no_edits_shows_it_only(home: Home) -> None:
    daemon = home.start("--allow-full")
    with Draft(daemon, home) as editor:
        shown, refused = editor.results(READ, edit("two", "2"))
        assert "two" in shown
        assert refused == (
            f"error: '{NAME}' is only in the editor, which lets nobody else change its documents."
        )
        assert (editor.text, editor.on_edit) == (TEXT, honest)
