"""Files that are made, moved and deleted: in the editor where it does that, and once however it answers."""

from collections.abc import Iterator

import pytest
from wire.chat import Chat
from wire.editing import READ, replace, results_of
from wire.editing import write as write_open
from wire.harness import OPTIONS, Daemon, Json
from wire.home import Home
from wire.operating import (
    OPERATES,
    OperatingEditor,
    answered_and_not_done,
    answered_before,
    done,
    done_and_denied,
    done_without_an_answer,
    ignored,
    refused,
    refused_with_an_error,
)
from wire.rewinding import Author, bash, edit, read, told, write
from wire.scripts import reply, tool

DELETE = tool("delete_file", {"file_path": "a.txt"})
MOVE = tool("move_file", {"file_path": "a.txt", "new_path": "sub/b.txt"})
NEW = write("deep/new.txt", "made\n")
CALLS = {"create": [NEW], "rename": [MOVE], "delete": [READ, DELETE]}
AFTER = {
    "create": {"a.txt": "one\n", "deep/new.txt": "made\n"},
    "rename": {"sub/b.txt": "one\n"},
    "delete": {},
}
BEHAVIOURS = [
    done, done_without_an_answer, done_and_denied, answered_before, refused, refused_with_an_error,
    answered_and_not_done, ignored,
]  # fmt: skip


@pytest.fixture
def daemon(home: Home) -> Daemon:
    return home.start("--allow-full", capabilities=OPERATES)


@pytest.fixture
def editor(daemon: Daemon, home: Home) -> Iterator[OperatingEditor]:
    with OperatingEditor(daemon, home) as editor:
        yield editor


def author_of(editor: OperatingEditor) -> Author:
    return Author(editor.daemon, editor.home, editor.root)


def operation(editor: OperatingEditor) -> Json:
    (request,) = editor.operations
    (change,) = request["params"]["edit"]["documentChanges"]
    return dict(change)


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("kind", CALLS)
def test_whatever_the_editor_does_it_is_done_once_and_taken_back_whole(
    editor: OperatingEditor, kind: str, behaviour: object
) -> None:
    editor.on_operation = behaviour  # type: ignore[assignment]
    author = author_of(editor)
    author.does("one", *CALLS[kind])
    results = results_of(author.chat)
    assert not any(text.startswith("error") for text in results), results
    assert author.files() == AFTER[kind]
    assert editor.kinds == [kind], "it is asked once"
    editor.on_operation = done
    author.rewind("one")
    assert author.files() == {"a.txt": "one\n"}
    assert sorted(path.name for path in editor.root.iterdir()) == ["a.txt"], "with no folder left"
    author.undo()
    assert author.files() == AFTER[kind]


def test_a_new_file_is_made_by_the_editor_and_has_its_content_at_once(editor: OperatingEditor) -> None:
    author = author_of(editor)
    author.does("one", NEW, bash("cat deep/new.txt"))
    assert results_of(author.chat)[0] == "Created deep/new.txt (1 line, +1 -0)."
    assert results_of(author.chat)[1].startswith("made")
    assert operation(editor) == {
        "kind": "create",
        "uri": (editor.root / "deep/new.txt").as_uri(),
        "options": {"overwrite": False, "ignoreIfExists": True},
        "annotationId": "agentd",
    }
    annotation = editor.operations[0]["params"]["edit"]["changeAnnotations"]["agentd"]
    assert annotation == {"label": "agentd: Created deep/new.txt (1 line, +1 -0)", "needsConfirmation": False}


def test_a_file_that_is_open_is_renamed_in_the_editor_and_can_be_edited_there(
    editor: OperatingEditor,
) -> None:
    author = author_of(editor)
    author.does("one", READ, MOVE, edit("sub/b.txt", "one", "two"))
    assert operation(editor) == {
        "kind": "rename",
        "oldUri": (editor.root / "a.txt").as_uri(),
        "newUri": editor.uri,
        "options": {"overwrite": False, "ignoreIfExists": False},
        "annotationId": "agentd",
    }
    assert editor.uri.endswith("/sub/b.txt")
    assert (editor.text, editor.path.read_text()) == ("two\n", "one\n"), "the edit is the user's to save"


def test_a_rewind_renames_an_open_file_back_in_the_editor(editor: OperatingEditor) -> None:
    author = author_of(editor)
    author.does("one", READ, MOVE)
    assert told(author.rewind("one")) == {"a.txt": "created", "b.txt": "deleted"}
    assert editor.kinds == ["rename", "rename"]
    assert editor.uri.endswith("/a.txt")
    author.does("two", READ, replace("one", "1"))
    assert editor.text == "1\n"


def test_what_is_not_open_is_moved_and_deleted_on_the_disk(editor: OperatingEditor) -> None:
    editor.close()
    author = author_of(editor)
    author.does("one", READ, MOVE, tool("delete_file", {"file_path": "sub/b.txt"}))
    assert (author.files(), editor.operations) == ({}, [])


def test_an_editor_that_does_not_answer_is_not_asked_again(editor: OperatingEditor) -> None:
    editor.on_operation = ignored
    author = author_of(editor)
    author.does("one", NEW, write("second.txt", "x"), MOVE)
    assert editor.kinds == ["create"]
    assert author.files() == {"deep/new.txt": "made\n", "second.txt": "x", "sub/b.txt": "one\n"}


def test_an_operation_that_comes_late_does_no_harm(editor: OperatingEditor) -> None:
    editor.on_operation = ignored
    author = author_of(editor)
    author.does("one", NEW)
    assert editor.operate(editor.operations[0]), "LSP says to leave a file that is there"
    assert author.files()["deep/new.txt"] == "made\n"


def test_a_rewind_deletes_an_open_file_that_was_made_in_the_editor(editor: OperatingEditor) -> None:
    author = author_of(editor)
    editor.close()
    editor.path.unlink()
    author.does("one", write("a.txt", "made\n"))
    editor.open("made\n")
    assert told(author.rewind("one")) == {"a.txt": "deleted"}
    assert editor.kinds == ["create", "delete"]
    assert not editor.is_open


def test_a_rewind_takes_back_a_file_that_was_made_and_then_changed_in_the_editor(
    editor: OperatingEditor,
) -> None:
    """What is unsaved is the session's own, so the file goes with it; what the user typed would stay."""
    author = author_of(editor)
    editor.close()
    editor.path.unlink()
    author.does("one", write("a.txt", "made\n"))
    editor.open("made\n")
    author.does("two", READ, replace("made", "changed"))
    assert (editor.text, editor.path.read_text()) == ("changed\n", "made\n")
    assert told(author.rewind("one")) == {"a.txt": "deleted"}
    assert (editor.is_open, editor.path.exists()) == (False, False)
    author.undo()
    assert editor.path.read_text() == "changed\n"


def test_what_the_user_typed_in_a_file_that_was_made_stays(editor: OperatingEditor) -> None:
    author = author_of(editor)
    editor.close()
    editor.path.unlink()
    author.does("one", write("a.txt", "made\n"))
    editor.open("made\n")
    editor.type(0, 0, "mine ")
    assert told(author.rewind("one")) == {"a.txt": "conflict"}
    assert (editor.text, editor.path.read_text()) == ("mine made\n", "made\n")


def test_a_rewind_that_the_editor_refuses_fails_as_a_whole(editor: OperatingEditor) -> None:
    author = author_of(editor)
    editor.close()
    editor.path.unlink()
    author.does("one", write("a.txt", "made\n"), write("b.txt", "b\n"))
    editor.open("made\n")
    author.does("two", READ, replace("made", "changed"))
    editor.on_operation = refused
    error = author.refused("rewind", promptId="one", scope="files")
    assert "'a.txt' could not be removed in the editor" in error["message"]
    assert author.files() == {"a.txt": "made\n", "b.txt": "b\n"}
    assert editor.text == "changed\n"
    editor.on_operation = done
    assert told(author.rewind("one")) == {"a.txt": "deleted", "b.txt": "deleted"}
    assert author.files() == {}


def answers_saving(editor: OperatingEditor, author: Author, answer: str) -> Json:
    """Runs a prompt that moves the file, and answers the question to save."""
    model = author.home.script({"content": [MOVE]}, {"content": []})
    prompt = author.chat.start(model=model)
    asked = editor.daemon.asked("window/showMessageRequest")
    if answer == "Saved, go on":
        editor.save()
    editor.daemon.answer(asked, {"title": answer})
    author.chat.result(prompt)
    return dict(asked["params"])


@pytest.mark.parametrize("answer", ["Saved, go on", "Cancel"])
def test_what_is_unsaved_is_saved_before_its_file_is_moved(editor: OperatingEditor, answer: str) -> None:
    editor.type(0, 0, "mine ")
    author = author_of(editor)
    asked = answers_saving(editor, author, answer)
    assert asked["message"].startswith("Save it before it is moved:\n")
    assert [each["title"] for each in asked["actions"]] == ["Saved, go on", "Cancel"]
    if answer == "Cancel":
        assert "are not saved" in results_of(author.chat)[0]
        assert author.files() == {"a.txt": "one\n"}
    else:
        assert author.files() == {"sub/b.txt": "mine one\n"}
        assert editor.text == "mine one\n"


@pytest.mark.parametrize("name", ["Neovim"])
def test_an_editor_whose_creating_empties_files_is_not_asked_to_create(home: Home, name: str) -> None:
    daemon = home.spawn()
    params = {
        "processId": None,
        "rootUri": None,
        "capabilities": OPERATES,
        "clientInfo": {"name": name},
        "initializationOptions": {"agentd": OPTIONS},
    }
    daemon.call("initialize", params)
    daemon.notify("initialized", {})
    with OperatingEditor(daemon, home) as editor:
        chat = editor.chat(NEW, MOVE, mode="ask")
        prompt = chat.start()
        since = 0
        for _ in range(2):
            asked = daemon.asked("agentd/permission/request", since)
            since = daemon.messages.index(asked) + 1
            daemon.answer(asked, {"optionId": "allow_once"})
        chat.result(prompt)
        assert editor.kinds == ["rename"]
        assert (editor.root / "deep/new.txt").read_text() == "made\n"


def test_an_editor_without_such_operations_is_not_asked(home: Home) -> None:
    from wire.editing import CAPABILITIES

    daemon = home.start("--allow-full", capabilities=CAPABILITIES)
    with OperatingEditor(daemon, home) as editor:
        author = author_of(editor)
        author.does("one", NEW, READ, MOVE)
        assert author.files() == {"deep/new.txt": "made\n", "sub/b.txt": "one\n"}
        assert editor.operations == []
        author.rewind("one")
        assert author.files() == {"a.txt": "one\n"}


def test_moves_and_deletions_are_told_asked_about_and_refused_in_plan_mode(home: Home) -> None:
    daemon = home.start(capabilities=OPERATES)
    with OperatingEditor(daemon, home) as editor:
        refusals = editor.results(READ, MOVE, DELETE, mode="plan")[1:]
        assert all('Mode "plan" only reads' in text for text in refusals)
        chat = editor.chat(MOVE, mode="ask")
        prompt = chat.start()
        asked = daemon.asked("agentd/permission/request")["params"]
        assert (asked["kind"], asked["title"]) == ("move", "Move a.txt to sub/b.txt")
        assert asked["subject"] == {
            "type": "edit",
            "uri": (editor.root / "a.txt").as_uri(),
            "targetUri": (editor.root / "sub/b.txt").as_uri(),
            "patch": "rename from a.txt\nrename to sub/b.txt\n",
        }
        assert asked["options"][1]["rule"] == "moving a.txt to sub/b.txt with move_file"
        daemon.answer(daemon.asked("agentd/permission/request"), {"optionId": "allow_always"})
        chat.result(prompt)
        changed = chat.event("files_changed")["files"]
        assert {(each["uri"].rsplit("/", 1)[1], each["action"]) for each in changed} == {
            ("a.txt", "deleted"),
            ("b.txt", "created"),
        }


def test_edits_moves_and_deletions_of_one_prompt_come_to_what_they_come_to(
    editor: OperatingEditor,
) -> None:
    author = author_of(editor)
    author.does(
        "one",
        READ,
        write_open("new\n"),
        NEW,
        tool("delete_file", {"file_path": "deep/new.txt"}),
        read("a.txt"),
    )
    assert author.files() == {"a.txt": "one\n"}
    assert editor.text == "new\n"
    author.rewind("one")
    assert (author.files(), editor.text) == ({"a.txt": "one\n"}, "one\n")


@pytest.mark.parametrize("kind", CALLS)
def test_what_is_done_while_its_prompt_is_cancelled_is_told_and_taken_back(
    editor: OperatingEditor, kind: str
) -> None:
    author = author_of(editor)

    def cancelled_in_the_midst(editor: OperatingEditor, request: Json) -> None:
        editor.daemon.request("agentd/cancel", {"sessionId": author.chat.id})
        editor.daemon.wait_until_read()
        done(editor, request)

    editor.on_operation = cancelled_in_the_midst
    model = editor.home.script(*map(reply, CALLS[kind]), reply("done"))
    assert author.chat.run("do one", promptId="one", model=model)["stopReason"] == "aborted"
    assert author.files() == AFTER[kind]
    assert results_of(author.chat)[-1].startswith(("Created ", "Moved ", "Deleted "))
    names = {each["uri"].rsplit("/", 1)[1] for each in author.chat.event("files_changed")["files"]}
    assert names == {"create": {"new.txt"}, "rename": {"a.txt", "b.txt"}, "delete": {"a.txt"}}[kind]
    editor.on_operation = done
    author.rewind("one")
    assert author.files() == {"a.txt": "one\n"}


@pytest.mark.parametrize("kind", ["rename", "delete"])
def test_nothing_new_is_put_where_an_editor_that_has_not_answered_may_yet_remove_it(
    editor: OperatingEditor, kind: str
) -> None:
    editor.on_operation = ignored
    author = author_of(editor)
    author.does("one", *CALLS[kind])
    editor.close()
    again, moved = write("a.txt", "new\n"), tool("move_file", {"file_path": "c.txt", "new_path": "a.txt"})
    author.does("two", write("c.txt", "other\n"), again, moved)
    for refusal in results_of(author.chat)[-2:]:
        assert "'a.txt', has not answered, and may do it yet" in refusal, refusal
    editor.operate(editor.operations[0])
    assert author.files() == {**AFTER[kind], "c.txt": "other\n"}, "the late editor has found nothing"


def test_beside_a_command_in_the_background_nothing_is_left_to_the_editor(editor: OperatingEditor) -> None:
    """It goes by names, and the command could put a link in the place of a folder."""
    author = author_of(editor)
    stays = tool("bash", {"command": "sleep 300", "run_in_background": True})
    author.does("one", stays, NEW, MOVE)
    assert author.files() == {"deep/new.txt": "made\n", "sub/b.txt": "one\n"}
    author.rewind("one")
    assert author.files() == {"a.txt": "one\n"}
    assert editor.operations == []


def test_a_rewind_beside_a_command_in_the_background_is_done_on_the_disk(editor: OperatingEditor) -> None:
    author = author_of(editor)
    author.does("one", MOVE)
    assert editor.uri.endswith("/sub/b.txt")
    author.does("two", tool("bash", {"command": "sleep 300", "run_in_background": True}))
    author.rewind("one")
    assert author.files() == {"a.txt": "one\n"}
    assert editor.kinds == ["rename"]


@pytest.mark.parametrize(
    ("name", "to"),
    [(".env", "notes.txt"), ("notes.txt", ".git/hooks/pre-commit"), ("notes.txt", ".env.local")],
)
def test_a_move_of_a_secret_or_into_a_repository_is_asked_about_where_edits_are_not(
    home: Home, name: str, to: str
) -> None:
    daemon = home.start()
    root = home.workspace()
    (root / name).write_text("KEY=hunter2\n")
    (root / ".git/hooks").mkdir(parents=True)
    move = tool("move_file", {"file_path": name, "new_path": to})
    model = home.script(reply(move), reply("done"))
    chat = Chat(daemon, root, model=model, mode="edit")
    prompt = chat.start()
    asked = daemon.asked("agentd/permission/request")
    assert asked["params"]["title"] == f"Move {name} to {to}"
    daemon.answer(asked, {"optionId": "reject_once"})
    chat.result(prompt)
    assert (root / name).read_text() == "KEY=hunter2\n"


def test_beside_a_command_of_another_session_nothing_is_left_to_the_editor(editor: OperatingEditor) -> None:
    author, other = author_of(editor), author_of(editor)
    other.does("serve", tool("bash", {"command": "sleep 300", "run_in_background": True}))
    author.does("one", NEW, MOVE)
    assert author.files() == {"deep/new.txt": "made\n", "sub/b.txt": "one\n"}
    author.rewind("one")
    assert (author.files(), editor.operations) == ({"a.txt": "one\n"}, [])
    other.ask("close")
    author.does("two", MOVE)
    assert editor.kinds == ["rename"]


@pytest.mark.parametrize("kind", ["rename", "delete"])
@pytest.mark.parametrize("is_rewind", [False, True])
def test_an_editor_that_a_swapped_folder_led_astray_is_told_of_and_the_file_is_there(
    editor: OperatingEditor, kind: str, is_rewind: bool
) -> None:
    """A program that nobody here started exchanges the folder for a link after the last look at it."""
    author = author_of(editor)
    outside = editor.root.with_name(editor.root.name + "-outside")
    outside.mkdir()
    (outside / "b.txt").write_text("theirs\n")
    author.does("one", MOVE if kind == "rename" or not is_rewind else write("sub/b.txt", "one\n"))
    if not editor.path.match("sub/b.txt"):
        editor.close()
        editor.uri, editor.path = (editor.root / "sub/b.txt").as_uri(), editor.root / "sub/b.txt"
        editor.open("one\n")
    sub = editor.root / "sub"

    def swapped(editor: OperatingEditor, request: Json) -> None:
        sub.rename(editor.root / "moved")
        sub.symlink_to(outside)
        done(editor, request)

    editor.on_operation = swapped
    if is_rewind:
        said = author.refused("rewind", promptId="one", scope="files")["message"]
    else:
        back = tool("move_file", {"file_path": "sub/b.txt", "new_path": "c.txt"})
        drop = tool("delete_file", {"file_path": "sub/b.txt"})
        author.does("two", read("sub/b.txt"), back if kind == "rename" else drop)
        said = results_of(author.chat)[-1]
    assert "something else took the place of a folder. The editor goes by names" in said, said
    assert str(sub) in said
    assert (editor.root / "moved/b.txt").read_text() == "one\n", "what was meant is untouched"
    sub.unlink()
    (editor.root / "moved").rename(sub)
    assert not list(editor.home.data.rglob("rewind.json"))
