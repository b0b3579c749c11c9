"""A file that a prompt changes both in the editor and on the disk has one patch, from before to behind it."""

import pytest
from wire.editing import CAPABILITIES, READ, SimulatedEditor, honest, replace
from wire.harness import Daemon, Json
from wire.home import Home
from wire.rewinding import Author, bash, told

TEXT = "one\ntwo\nthree\nfour\n"
TYPED = "typed\n" + TEXT
BUFFER, BUFFER_AGAIN = (READ, replace("two", "2")), (replace("four", "4"),)
DISK, DISK_AGAIN = (bash("sed -i s/three/3/ a.txt"),), (bash("sed -i s/four/4/ a.txt"),)


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    return shared_home.start("--allow-full", capabilities=CAPABILITIES)


def changed(author: Author, uri: str) -> list[str]:
    """The changed lines of the one patch of the prompt, once file, counts and original fit it."""
    diff = author.ask("diff", promptId="p")
    patch = diff["patch"]
    assert patch.count("\n--- a/a.txt") + patch.startswith("--- a/a.txt") == 1
    found = [line for line in patch.splitlines()[2:] if line[0] in "+-"]
    added = sum(line[0] == "+" for line in found)
    assert diff["files"] == [
        {"uri": uri, "action": "changed", "additions": added, "deletions": len(found) - added}
    ]
    assert author.ask("diff") == diff
    original = author.ask("original", promptId="p", uri=uri)["text"]
    assert all(line[1:] + "\n" in original for line in patch.splitlines()[3:] if line[0] in " -")
    return found


@pytest.mark.parametrize("text", [TEXT, TYPED])
@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        ((*BUFFER, *DISK), ["-two", "+2"]),
        ((*BUFFER, *DISK, *BUFFER_AGAIN), ["-two", "+2", "-four", "+4"]),
        ((*BUFFER, *DISK, *DISK_AGAIN), ["-two", "+2"]),
    ],
)
def test_what_a_command_does_below_an_unsaved_edit_is_not_told_of_the_document(
    daemon: Daemon, shared_home: Home, text: str, calls: tuple[Json, ...], lines: list[str]
) -> None:
    with SimulatedEditor(daemon, shared_home, text, on_disk=TEXT) as editor:
        editor.runs_anyway = True
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *calls)
        assert changed(author, editor.uri) == lines
        assert editor.text == text.replace("two", "2").replace("four", "4" if "+4" in lines else "four")


@pytest.mark.parametrize("calls", [(*DISK, *BUFFER), (*DISK, *BUFFER, *DISK_AGAIN)])
def test_nor_is_what_it_did_before_the_edit_below_text_that_the_user_typed(
    daemon: Daemon, shared_home: Home, calls: tuple[Json, ...]
) -> None:
    with SimulatedEditor(daemon, shared_home, TYPED, on_disk=TEXT) as editor:
        editor.runs_anyway = True
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *calls)
        assert changed(author, editor.uri) == ["-two", "+2"]
        assert set(told(author.rewind("p")).values()) <= {"changed", "conflict"}
        assert (editor.text, editor.path.read_text()) == (TYPED, TEXT)


def test_what_only_a_command_did_below_unsaved_text_is_told(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TYPED, on_disk=TEXT) as editor:
        editor.runs_anyway = True
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *DISK)
        assert changed(author, editor.uri) == ["-three", "+3"]


def test_an_edit_that_came_to_nothing_leaves_what_the_command_did(daemon: Daemon, shared_home: Home) -> None:
    with SimulatedEditor(daemon, shared_home, TYPED, on_disk=TEXT) as editor:
        editor.runs_anyway = True
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *BUFFER, *DISK, replace("2", "two"))
        assert changed(author, editor.uri) == ["-three", "+3"]


def saving(editor: SimulatedEditor, request: Json) -> None:
    """As an editor that saves by itself."""
    honest(editor, request)
    editor.save()


@pytest.mark.parametrize("calls", [(*BUFFER, *DISK), (*BUFFER, *BUFFER_AGAIN, *DISK)])
def test_an_edit_that_was_saved_before_the_command_and_what_that_did_are_one_change(
    daemon: Daemon, shared_home: Home, calls: tuple[Json, ...]
) -> None:
    with SimulatedEditor(daemon, shared_home, TYPED, on_disk=TEXT) as editor:
        editor.on_edit = saving
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *calls)
        four = ["-four", "+4"] if len(calls) > 3 else []
        found = changed(author, editor.uri)
        assert sorted(found) == sorted(["-two", "-three", "+2", "+3", *four])


def test_what_a_command_does_to_a_file_that_is_open_and_saved_is_one_change_with_the_edit_behind_it(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *DISK, *BUFFER)
        assert sorted(changed(author, editor.uri)) == ["+2", "+3", "-three", "-two"]


def test_a_session_whose_changes_in_both_places_went_back_has_no_diff(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.runs_anyway = True
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *BUFFER, *DISK)
        author.rewind("p")
        assert (editor.text, editor.path.read_text()) == (TEXT, TEXT)
        assert author.ask("diff") == {"patch": "", "files": []}
        author.undo()
        assert (editor.text, editor.path.read_text()) == (
            TEXT.replace("two", "2"),
            TEXT.replace("three", "3"),
        )
        assert changed(author, editor.uri) == ["-two", "+2"]


def test_nor_has_one_whose_document_was_closed_before_its_file_went_back(
    daemon: Daemon, shared_home: Home
) -> None:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        editor.runs_anyway = True
        author = Author(daemon, shared_home, editor.root)
        author.does("p", *BUFFER, *DISK)
        editor.close()
        author.rewind("p")
        assert editor.path.read_text() == TEXT
        assert author.ask("diff") == {"patch": "", "files": []}
