"""Going back, and looking at what was done, where files are open in the editor."""

import itertools

import pytest
from wire.editing import CAPABILITIES, READ, SimulatedEditor, honest, replace, write
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.rewinding import Author, bash, edit, read, told
from wire.rewinding import write as new
from wire.scripts import reply, tool
from wire.trees import tree

TEXT = "one\ntwo\nthree\n"
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    return shared_home.start("--allow-full", capabilities=CAPABILITIES)


def author_of(editor: SimulatedEditor) -> Author:
    return Author(editor.daemon, editor.home, editor.root)


@pytest.mark.parametrize("on_disk", [TEXT, "older\n"])
def test_a_rewind_is_made_in_the_editor_and_undone_there(
    daemon: Daemon, shared_home: Home, on_disk: str
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT, on_disk=on_disk) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"))
        assert author.ask("diff")["patch"] == PATCH
        assert author.ask("original", promptId="one", uri=editor.uri) == {"text": TEXT}
        assert told(author.rewind("one", dryRun=True)) == {"a.txt": "changed"}
        assert editor.text != TEXT
        assert told(author.rewind("one")) == {"a.txt": "changed"}
        assert editor.text == TEXT
        assert told(author.undo()) == {"a.txt": "changed"}
        assert editor.text == "one\n2\nthree\n"
        assert told(author.rewind("one")) == {"a.txt": "changed"}
        assert editor.text == TEXT
        assert editor.path.read_text() == on_disk, "which is the user's to save"
        author.does("two", READ, replace("three", "3"))
        assert editor.text == "one\ntwo\n3\n"


def test_what_was_saved_meanwhile_goes_back_in_the_editor(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"))
        editor.save()
        author.rewind("one")
        assert (editor.text, editor.path.read_text()) == (TEXT, "one\n2\nthree\n")


def test_what_was_saved_and_closed_goes_back_on_the_disk(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"))
        editor.save()
        editor.close()
        assert told(author.rewind("one")) == {"a.txt": "changed"}
        assert editor.path.read_text() == TEXT


def test_what_was_thrown_away_in_the_editor_is_as_it_was(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"))
        editor.close()
        assert author.rewind("one")["files"] == []
        assert editor.path.read_text() == TEXT


def test_what_the_user_typed_since_is_a_conflict_and_stays(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"))
        editor.type(0, 0, "mine ")
        assert told(author.rewind("one")) == {"a.txt": "conflict"}
        assert editor.text == "mine one\n2\nthree\n"


def test_an_editor_that_refuses_makes_a_rewind_fail_as_a_whole(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        (editor.root / "b.txt").write_text("b\n")
        author.does("one", READ, replace("two", "2"), read("b.txt"), edit("b.txt", "b", "c"))
        seq = author.chat.get()["seq"]

        def refuses(editor: SimulatedEditor, request: Json) -> None:
            editor.daemon.answer(request, {"applied": False})

        editor.on_edit = refuses
        error = author.refused("rewind", promptId="one", scope="files")
        assert error["data"]["kind"] == "storage"
        assert "'a.txt' could not be changed in the editor" in error["message"]
        assert (editor.text, (editor.root / "b.txt").read_text()) == ("one\n2\nthree\n", "c\n")
        assert author.chat.get()["seq"] == seq
        editor.on_edit = honest
        assert told(author.rewind("one")) == {"a.txt": "changed", "b.txt": "changed"}
        assert (editor.text, (editor.root / "b.txt").read_text()) == (TEXT, "b\n")


def test_a_buffer_without_a_file_is_empty_again(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, "", on_disk=False) as editor:
        author = author_of(editor)
        author.does("one", write("new\n"))
        assert told(author.rewind("one")) == {"a.txt": "deleted"}
        assert (editor.text, editor.path.exists()) == ("", False)
        author.undo()
        assert editor.text == "new\n"


def test_a_file_that_was_made_and_saved_is_removed_again(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, "", on_disk=False) as editor:
        author = author_of(editor)
        author.does("one", write("new\n"))
        editor.save()
        assert told(author.rewind("one")) == {"a.txt": "deleted"}
        assert not editor.path.exists()


def test_what_stands_in_the_way_of_a_file_is_none_of_a_document(daemon: Daemon, shared_home: Home) -> None:
    """Each is looked at by itself: the document goes back, and what is in the other's place stays."""
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"), new("b.txt", "made\n"), new("c.txt", "made\n"))
        (editor.root / "b.txt").unlink()
        (editor.root / "b.txt").mkdir()
        (editor.root / "b.txt" / "mine").write_text("mine\n")
        result = author.rewind("one", dryRun=True)
        assert told(result) == {"a.txt": "changed", "c.txt": "deleted"}, "what was b.txt is gone already"
        assert author.rewind("one") == result
        assert editor.text == TEXT
        assert (editor.root / "b.txt" / "mine").read_text() == "mine\n"
        assert not (editor.root / "c.txt").exists()
        assert told(author.undo()) == {"a.txt": "changed", "c.txt": "created"}
        assert editor.text == TEXT.replace("two", "2")


def test_a_document_whose_file_gave_way_to_a_folder_is_a_conflict(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"), new("c.txt", "made\n"))
        editor.path.unlink()
        editor.path.mkdir()
        (editor.path / "mine").write_text("mine\n")
        assert told(author.rewind("one")) == {"a.txt": "conflict", "c.txt": "deleted"}
        assert editor.text == TEXT.replace("two", "2"), "what nobody can save is left alone"
        assert (editor.path / "mine").read_text() == "mine\n"
        assert told(author.undo()) == {"c.txt": "created"}


def test_a_document_whose_file_was_removed_goes_back_in_the_editor(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        author.does("one", READ, replace("two", "2"))
        editor.path.unlink()
        assert told(author.rewind("one")) == {"a.txt": "changed"}
        assert editor.text == TEXT
        assert not editor.path.exists(), "which is the user's to save"


@pytest.mark.parametrize("how", ["a file in the place of its folder", "a folder in its place"])
def test_a_new_document_goes_back_whatever_stands_in_its_place(
    daemon: Daemon, shared_home: Home, how: str
) -> None:
    with SimulatedEditor(daemon, shared_home, "", on_disk=False) as editor:
        author = author_of(editor)
        author.does("one", write("made\n"))
        assert editor.text == "made\n"
        if how == "a folder in its place":
            editor.path.mkdir()
        else:
            editor.root.rename(editor.root.with_name("away"))
            editor.root.mkdir()
        result = told(author.rewind("one"))
        assert (result.get("a.txt"), editor.text) in ((None, "made\n"), ("deleted", ""))
        assert daemon.serves()


# --- the user saves while a command runs ----------------------------------------------------------------


def runs_beside(author: Author, editor: SimulatedEditor, command: str) -> None:
    """A prompt whose command waits until the user has saved, and then does what it does."""
    waits = (
        f"touch {author.root}/began.tmp; until [ -e {author.root}/saved.tmp ]; do sleep 0.02; done; {command}"
    )
    (author.root / ".gitignore").write_text("*.tmp\n")
    model = author.home.script(reply(bash(waits)), reply("done"))
    prompt = author.chat.start(model=model, promptId="one")
    until(lambda: (author.root / "began.tmp").exists(), "the command runs")
    editor.type(0, 0, "mine ")
    editor.save()
    editor.daemon.serves()
    editor.agent_reads()  # so the daemon has heard of it
    (author.root / "saved.tmp").touch()
    assert author.chat.result(prompt)["text"] == "done"


def test_what_the_user_saves_while_a_command_runs_is_the_users(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        runs_beside(author, editor, "echo made > b.txt")
        assert [each["uri"].rsplit("/", 1)[1] for each in author.ask("diff", promptId="one")["files"]] == [
            "b.txt"
        ]
        assert told(author.rewind("one")) == {"b.txt": "deleted"}
        assert editor.path.read_text() == "mine " + TEXT


def test_a_command_that_overwrites_what_the_user_saved_meanwhile_takes_nothing_back_from_them(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = author_of(editor)
        runs_beside(author, editor, "echo more >> a.txt")
        assert told(author.rewind("one")) == {"a.txt": "conflict"}, "what they saved is kept by nobody else"
        assert editor.path.read_text() == "mine " + TEXT + "more\n"


# --- an edit in the editor and a command on the disk ----------------------------------------------------

COMMANDS = {
    "removed": ("rm a.txt", None, "created"),
    "changed": ("echo by a command > a.txt", "by a command\n", "changed"),
    "moved": ("mv a.txt b.txt", None, "created"),
}


def changed_in_both(editor: SimulatedEditor, how: str, dirty: bool) -> Author:
    """A prompt edits the document, of which perhaps something is unsaved, and runs a command on the file."""
    if dirty:
        editor.type(0, 0, "mine ")
    editor.runs_anyway = True
    author = author_of(editor)
    command, then, _ = COMMANDS[how]
    author.does("one", READ, replace("two", "2"), bash(command))
    assert editor.text == ("mine " if dirty else "") + TEXT.replace("two", "2")
    assert (editor.path.read_text() if editor.path.exists() else None) == then
    return author


@pytest.mark.parametrize("dirty", [True, False])
@pytest.mark.parametrize("how", COMMANDS)
def test_a_document_and_its_file_that_one_prompt_changed_apart_both_go_back(
    daemon: Daemon, shared_home: Home, how: str, dirty: bool
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = changed_in_both(editor, how, dirty)
        before = ("mine " if dirty else "") + TEXT
        changed = (editor.text, author.files())
        dry = author.rewind("one", dryRun=True)
        assert told(dry)["a.txt"] == COMMANDS[how][2]
        assert (editor.text, author.files()) == changed
        assert author.rewind("one") == dry
        assert (editor.text, author.files()) == (before, {"a.txt": TEXT})
        author.undo()
        assert (editor.text, author.files()) == changed
        author.undo()
        assert (editor.text, author.files()) == (before, {"a.txt": TEXT})


@pytest.mark.parametrize("how", COMMANDS)
def test_of_the_two_neither_goes_back_where_the_user_has_typed_since(
    daemon: Daemon, shared_home: Home, how: str
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = changed_in_both(editor, how, True)
        editor.type(0, 0, "more ")
        typed, on_disk = editor.text, editor.path.exists()
        assert told(author.rewind("one"))["a.txt"] == "conflict"
        assert (editor.text, editor.path.exists()) == (typed, on_disk)


@pytest.mark.parametrize("how", COMMANDS)
def test_of_the_two_neither_goes_back_where_another_has_written_the_file_since(
    daemon: Daemon, shared_home: Home, how: str
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = changed_in_both(editor, how, True)
        editor.path.write_text("theirs\n")
        text = editor.text
        assert told(author.rewind("one"))["a.txt"] == "conflict"
        assert (editor.text, editor.path.read_text()) == (text, "theirs\n")


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("how", COMMANDS)
def test_what_was_saved_over_what_the_command_did_goes_back_as_one(
    daemon: Daemon, shared_home: Home, how: str, closed: bool
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = changed_in_both(editor, how, True)
        editor.save()
        saved = editor.text
        if closed:
            editor.close()
        assert told(author.rewind("one"))["a.txt"] == "changed"
        assert editor.path.read_text() == ("mine " + TEXT if closed else saved)
        assert closed or editor.text == "mine " + TEXT


@pytest.mark.parametrize("how", COMMANDS)
def test_the_file_goes_back_alone_where_the_document_was_closed_unsaved(
    daemon: Daemon, shared_home: Home, how: str
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = changed_in_both(editor, how, True)
        editor.close()
        author.rewind("one")
        assert author.files() == {"a.txt": TEXT}


def test_an_edit_of_a_dirty_document_is_no_change_of_a_command_in_the_background(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.type(0, 0, "mine ")
        editor.runs_anyway = True
        author = author_of(editor)
        stays = tool("bash", {"command": "sleep 300", "run_in_background": True})
        author.does("one", stays, READ, replace("two", "2"), bash("true"))
        (change,) = author.ask("diff")["files"]
        assert (change["additions"], change["deletions"]) == (1, 1)
        author.rewind("one")
        assert (editor.text, editor.path.read_text()) == ("mine " + TEXT, TEXT)
        author.ask("close")


CALLS = {
    "rm -f a.txt": bash("rm -f a.txt"),
    "write": bash("echo x > a.txt"),
    "append": bash("echo y >> a.txt"),
    "mv": bash("mv -f a.txt b.txt"),
    "mv onto": bash("mv -f c.txt a.txt"),
    "cp": bash("cp a.txt b.txt"),
    "chmod": bash("chmod 600 a.txt"),
    "move_file": tool("move_file", {"file_path": "a.txt", "new_path": "sub/b.txt"}),
    "delete_file": tool("delete_file", {"file_path": "a.txt"}),
}


@pytest.mark.parametrize("between", CALLS)
def test_whatever_is_edited_before_and_behind_a_command_all_of_it_goes_back(
    daemon: Daemon, shared_home: Home, between: str
) -> None:
    for dirty, before, behind in itertools.product((False, True), repeat=3):
        if dirty and not before and not behind:
            continue  # what is unsaved is the user's alone, and a conflict
        with SimulatedEditor(daemon, shared_home, TEXT) as editor:
            if dirty:
                editor.type(0, 0, "mine ")
            editor.runs_anyway = True
            (editor.root / "c.txt").write_text("c\n")
            author = author_of(editor)
            was = (editor.text, tree(author.root))
            edits = [
                [READ, write(text)] if wanted else [] for wanted, text in ((before, "1\n"), (behind, "2\n"))
            ]
            author.does("one", *edits[0], read("a.txt"), CALLS[between], *edits[1])
            now = (editor.text, tree(author.root))
            what = f"dirty {dirty}, edited before {before}, behind {behind}: {now}"
            result = author.rewind("one")
            assert "conflict" not in told(result).values(), (what, result)
            assert (editor.text, tree(author.root)) == was, what
            if before:  # else it may come again in the editor, whose text is that of the file by now
                author.undo()
                assert (editor.text, tree(author.root)) == now, what
                author.undo()
                assert (editor.text, tree(author.root)) == was, what
            editor.close()
