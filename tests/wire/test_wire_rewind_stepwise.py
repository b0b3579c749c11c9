"""Going back step by step where prompts edited a document and ran commands on its file, saved in between."""

from collections.abc import Iterator

import pytest
from wire.editing import CAPABILITIES, READ, SimulatedEditor, replace
from wire.harness import Daemon
from wire.home import Home
from wire.rewinding import Author, bash, told

TEXT = "one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def daemon(shared_home: Home) -> Daemon:
    return shared_home.start("--allow-full", capabilities=CAPABILITIES)


@pytest.fixture
def editor(daemon: Daemon, shared_home: Home) -> Iterator[SimulatedEditor]:
    with SimulatedEditor(daemon, shared_home, TEXT) as editor:
        yield editor


def author_of(editor: SimulatedEditor) -> Author:
    return Author(editor.daemon, editor.home, editor.root)


def loads(editor: SimulatedEditor) -> None:
    """The editor reloads what a command has left of the file. It tells of a change, and of no saving."""
    editor.type(0, len(editor.text), editor.path.read_text())


def both(editor: SimulatedEditor) -> tuple[str, str]:
    return editor.text, editor.path.read_text()


def test_each_step_back_is_made_where_one_of_them_was_in_the_editor_and_on_the_disk(
    editor: SimulatedEditor,
) -> None:
    author = author_of(editor)
    author.does("one", READ, replace("one", "1"))
    editor.save()
    author.does("two", READ, replace("two", "2"))
    editor.save()
    author.does("three", bash("echo 4 >> a.txt"))
    loads(editor)
    author.does("four", READ, replace("three", "3"))
    texts = {"four": "1\n2\nthree\n4\n", "three": "1\n2\nthree\n", "two": "1\ntwo\nthree\n", "one": TEXT}
    for prompt_id, text in texts.items():
        assert told(author.rewind(prompt_id)) == {"a.txt": "changed"}, prompt_id
        assert editor.text == text, prompt_id
    author.undo()
    assert editor.text == texts["two"]
    author.undo()
    assert editor.text == TEXT


def test_a_file_that_is_back_in_the_editor_is_not_written_below_it(editor: SimulatedEditor) -> None:
    author = author_of(editor)
    author.does("one", bash("echo by a command > a.txt"))
    loads(editor)
    assert told(author.rewind("one")) == {"a.txt": "changed"}
    assert both(editor) == (TEXT, "by a command\n"), "which is the user's to save"
    assert author.rewind("one")["files"] == []
    assert both(editor) == (TEXT, "by a command\n")
    author.undo()
    assert editor.text == "by a command\n"
    author.undo()
    assert editor.text == TEXT


def test_what_a_command_does_below_a_document_that_is_back_goes_back_alone(editor: SimulatedEditor) -> None:
    author = author_of(editor)
    author.does("one", bash("echo by a command > a.txt"))
    loads(editor)
    author.rewind("one")
    editor.runs_anyway = True
    author.does("two", bash("echo by another > a.txt"))
    assert both(editor) == (TEXT, "by another\n")
    author.rewind("one")
    assert both(editor) == (TEXT, TEXT)


def test_going_back_and_forth_ends_where_it_began(editor: SimulatedEditor) -> None:
    """Of the two changes of a rewind, one in the editor and one on the disk, each is known in both places."""
    author = author_of(editor)
    author.does("one", bash("echo four >> a.txt"))
    loads(editor)
    author.does("two", READ, replace("two", "2"))
    changed = editor.text
    author.rewind("one")
    author.undo()
    author.undo()
    editor.save()
    assert editor.text == TEXT
    author.rewind("two")
    assert editor.text == TEXT + "four\n"
    author.undo()
    author.undo()
    assert told(author.rewind("one")) == {"a.txt": "changed"}
    assert editor.text == TEXT
    author.undo()
    assert editor.text == TEXT + "four\n"
    assert changed == TEXT.replace("two", "2") + "four\n"


def test_what_was_saved_below_a_document_that_went_back_is_nobody_elses(editor: SimulatedEditor) -> None:
    author = author_of(editor)
    author.does("one", bash("echo four >> a.txt"))
    loads(editor)
    author.does("two", READ, replace("two", "2"))
    editor.save()
    author.does("three", bash("echo five >> a.txt"))
    loads(editor)
    author.does("four", READ, replace("three", "3"))
    editor.save()
    saved = editor.text
    assert told(author.rewind("two")) == {"a.txt": "changed"}
    assert both(editor) == (TEXT + "four\n", saved), "which is the user's to save"
    assert told(author.rewind("one")) == {"a.txt": "changed"}
    assert both(editor) == (TEXT, saved)


def test_a_document_beside_what_commands_did_below_it_comes_back_as_it_was(editor: SimulatedEditor) -> None:
    editor.runs_anyway = True
    author = author_of(editor)
    author.does("one", READ, replace("two", "2"))
    edited = editor.text
    author.does("two", bash("echo four >> a.txt"))
    editor.save()
    author.rewind("one")
    assert both(editor) == (TEXT, edited)
    author.rewind("two")
    assert editor.text == edited


def test_what_the_user_typed_and_saved_between_is_a_conflict_though_a_prompt_edited_it(
    editor: SimulatedEditor,
) -> None:
    author = author_of(editor)
    author.does("one", bash("echo four >> a.txt"))
    loads(editor)
    editor.type(0, 0, "mine\n")
    author.does("two", READ, replace("two", "2"))
    editor.save()
    author.does("three", bash("echo five >> a.txt"))
    loads(editor)
    left = both(editor)
    assert told(author.rewind("one")) == {"a.txt": "conflict"}
    assert both(editor) == left


def test_what_was_unsaved_at_first_is_not_taken_back_with_what_commands_did_behind_its_saving(
    editor: SimulatedEditor,
) -> None:
    editor.runs_anyway = True
    editor.type(0, 0, "mine\n")
    author = author_of(editor)
    author.does("one", READ, replace("two", "2"))
    author.does("two", bash("echo four >> a.txt"))
    editor.save()
    author.does("three", bash("echo five >> a.txt"))
    loads(editor)
    left = both(editor)
    assert told(author.rewind("one")) == {"a.txt": "conflict"}
    assert both(editor) == left


def test_a_document_that_went_back_and_is_thrown_away_leaves_a_file_that_goes_back(
    editor: SimulatedEditor,
) -> None:
    author = author_of(editor)
    author.does("one", bash("echo four >> a.txt"))
    loads(editor)
    author.does("two", READ, replace("two", "2"))
    editor.save()
    author.rewind("two")
    author.rewind("one")
    assert both(editor) == (TEXT, TEXT.replace("two", "2") + "four\n")
    editor.close()
    assert told(author.rewind("one")) == {"a.txt": "changed"}
    assert editor.path.read_text() == TEXT


def test_what_somebody_wrote_to_the_file_below_a_document_that_went_back_stays(
    editor: SimulatedEditor,
) -> None:
    editor.runs_anyway = True
    author = author_of(editor)
    author.does("one", READ, replace("two", "2"))
    editor.path.write_text("of somebody else\n")
    author.does("two", bash("echo four >> a.txt"))
    author.rewind("one")
    assert both(editor) == (TEXT, "of somebody else\n")
    author.does("three", READ, replace("two", "2"))
    author.rewind("three")
    assert both(editor) == (TEXT, "of somebody else\n")
    editor.close()
    author.rewind("one")
    assert editor.path.read_text() == "of somebody else\n"
