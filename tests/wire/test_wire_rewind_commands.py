"""What commands changed is seen as edits are: in the diff, and by a rewind."""

import stat

import pytest
from wire.harness import Daemon
from wire.home import Home
from wire.order import assert_well_formed
from wire.processes import until
from wire.rewinding import Author, bash, edit, read, told, write
from wire.scripts import reply

from agentd.workspace.command_changes import MOST_FILES

BEFORE = {"kept.txt": "old\n", "gone.txt": "here\n"}


@pytest.fixture
def author(daemon: Daemon, shared_home: Home) -> Author:
    author = Author(daemon, shared_home)
    for name, text in BEFORE.items():
        (author.root / name).write_text(text)
    return author


def test_files_that_a_command_changed_made_and_removed_come_back(author: Author) -> None:
    (author.root / "gone.txt").chmod(0o640)
    author.does("one", bash("echo new > kept.txt; rm gone.txt; mkdir -p a/b; echo made > a/b/made.txt"))
    diff = author.ask("diff", promptId="one")
    assert {file["uri"].rsplit("/", 1)[1]: file["action"] for file in diff["files"]} == {
        "made.txt": "created",
        "gone.txt": "deleted",
        "kept.txt": "changed",
    }
    assert "-here\n" in diff["patch"]
    result = author.rewind("one")
    assert told(result) == {"kept.txt": "changed", "gone.txt": "created", "made.txt": "deleted"}
    assert author.files() == BEFORE
    assert not (author.root / "a").exists()
    assert stat.S_IMODE((author.root / "gone.txt").stat().st_mode) == 0o640
    author.undo()
    assert author.files() == {"a/b/made.txt": "made\n", "kept.txt": "new\n"}
    assert_well_formed(author.chat.notifications())


def test_a_file_that_an_edit_and_a_command_changed_goes_back_to_before_both(author: Author) -> None:
    author.does(
        "one", read("kept.txt"), edit("kept.txt", "old", "edited"), bash("echo more >> kept.txt"),
        write("made.txt", "1\n"), bash("rm made.txt"),
    )  # fmt: skip
    author.does("two", bash("echo last >> kept.txt"))
    author.rewind("two")
    assert author.files()["kept.txt"] == "edited\nmore\n"
    assert told(author.rewind("one")) == {"kept.txt": "changed"}
    assert author.files() == BEFORE


def test_permissions_that_a_command_changed_come_back(author: Author) -> None:
    path = author.root / "kept.txt"
    path.chmod(0o644)
    author.does("one", bash("chmod 755 kept.txt"))
    patch = author.ask("diff", promptId="one")["patch"]
    assert patch == "diff --git a/kept.txt b/kept.txt\nold mode 100644\nnew mode 100755\n"
    assert told(author.rewind("one")) == {"kept.txt": "changed"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    author.undo()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_what_git_ignores_is_left_alone(author: Author) -> None:
    (author.root / ".gitignore").write_text("build/\n")
    author.does("one", bash("mkdir build; echo x > build/out; echo new > kept.txt"))
    assert told(author.rewind("one")) == {"kept.txt": "changed"}
    assert (author.root / "build" / "out").exists()


def test_a_folder_that_was_there_before_a_command_stays(author: Author) -> None:
    (author.root / "mine").mkdir()
    author.does("one", bash("mkdir mine/new; echo x > mine/new/made.txt"))
    author.rewind("one")
    assert (author.root / "mine").is_dir()
    assert not (author.root / "mine" / "new").exists()


def test_a_command_that_was_cancelled_is_seen(author: Author) -> None:
    model = author.home.script({"content": [bash("echo new > kept.txt; touch ready; sleep 60")]})
    running = author.chat.start("go", promptId="one", model=model)
    until((author.root / "ready").exists, "the command runs")
    author.chat.cancel()
    assert author.chat.result(running)["stopReason"] == "aborted"
    assert told(author.rewind("one")) == {"kept.txt": "changed", "ready": "deleted"}
    assert author.files() == BEFORE


def test_where_a_workspace_is_too_large_for_that_the_user_is_told_once(author: Author) -> None:
    many = author.root / "many"
    many.mkdir()
    for number in range(MOST_FILES + 1):
        (many / str(number)).touch()
    author.does("one", bash("echo new > kept.txt"), bash("true"))
    notices = [e for e in author.chat.notifications() if e["event"]["type"] == "notice"]
    assert ["rewind" in notice["event"]["message"] for notice in notices] == [True]
    assert author.rewind("one")["files"] == []
    assert author.files()["kept.txt"] == "new\n"


def test_agentds_own_data_in_a_workspace_is_none_of_its_files(home: Home) -> None:
    author = Author(home.start("--allow-full"), home, home.path)
    author.does("one", bash("echo new > kept.txt"))
    changed = author.ask("diff", promptId="one")["files"]
    assert not [file["uri"] for file in changed if "/data/" in file["uri"]]
    assert "kept.txt" in told(author.rewind("one"))
    assert author.texts() == ["do one", "done one"]


def test_what_another_session_edits_while_a_command_runs_is_not_the_commands(author: Author) -> None:
    other = Author(author.daemon, author.home, author.root)
    go = author.root.with_name(f"{author.root.name}-go")
    wait = bash(f"touch begun; while ! [ -e {go} ]; do sleep 0.02; done; echo mine > mine.txt")
    running = author.chat.start("go", promptId="one", model=author.home.script(reply(wait), reply("end")))
    until((author.root / "begun").exists, "the command runs")
    other.does("one", read("kept.txt"), edit("kept.txt", "old", "others"), write("others.txt", "1\n"))
    other.does("two", write("undone.txt", "1\n"))
    other.rewind("two", "both")
    go.touch()
    author.chat.result(running)
    assert told(author.rewind("one")) == {"begun": "deleted", "mine.txt": "deleted"}
    assert author.files() == {**BEFORE, "kept.txt": "others\n", "others.txt": "1\n"}
    assert told(other.rewind("one")) == {"kept.txt": "changed", "others.txt": "deleted"}
    assert author.files() == BEFORE
