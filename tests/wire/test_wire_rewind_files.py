"""Files brought back to before a prompt, what changed them, and what keeps a rewind from doing so."""

import os
import stat
from pathlib import Path

import pytest
from wire.harness import Daemon
from wire.home import Home
from wire.order import assert_well_formed
from wire.processes import until
from wire.rewinding import Author, edit, read, told, write
from wire.scripts import reply

BEFORE = {"kept.txt": "old\n", "other.txt": "same\n"}


@pytest.fixture
def author(daemon: Daemon, shared_home: Home) -> Author:
    author = Author(daemon, shared_home)
    for name, text in BEFORE.items():
        (author.root / name).write_text(text)
    return author


def change_and_make(author: Author, prompt_id: str = "one") -> None:
    author.does(
        prompt_id, read("kept.txt"), edit("kept.txt", "old", "new"), write("deep/er/made.txt", "made\n")
    )


# --- files ----------------------------------------------------------------------------------------


def test_a_rewind_brings_changed_files_back_and_removes_new_ones_with_their_folders(author: Author) -> None:
    change_and_make(author)
    result = author.rewind("one")
    assert told(result) == {"kept.txt": "changed", "made.txt": "deleted"}
    assert result["removedMessageIds"] == []
    assert author.files() == BEFORE
    assert not (author.root / "deep").exists()
    event = author.chat.event("session_rewound")
    assert (event["promptId"], event["scope"], event["files"]) == ("one", "files", result["files"])
    assert_well_formed(author.chat.notifications())


def test_folders_that_hold_something_else_by_then_stay(author: Author) -> None:
    change_and_make(author)
    (author.root / "deep" / "mine.txt").write_text("mine")
    author.rewind("one")
    assert author.files() == {**BEFORE, "deep/mine.txt": "mine"}
    assert not (author.root / "deep" / "er").exists()


def test_a_rewind_can_be_undone_and_that_can_be_undone(author: Author) -> None:
    change_and_make(author)
    after = author.files()
    author.rewind("one")
    assert told(author.undo()) == {"kept.txt": "changed", "made.txt": "created"}
    assert author.files() == after
    assert told(author.undo()) == {"kept.txt": "changed", "made.txt": "deleted"}
    assert author.files() == BEFORE
    author.undo()
    assert author.files() == after
    assert told(author.rewind("one")) == {"kept.txt": "changed", "made.txt": "deleted"}
    assert author.files() == BEFORE


def test_a_dry_run_tells_the_same_and_changes_nothing(author: Author) -> None:
    change_and_make(author)
    files, seq = author.files(), author.chat.get()["seq"]
    dry = author.rewind("one", "both", dryRun=True)
    assert (author.files(), author.chat.get()["seq"]) == (files, seq)
    assert author.rewind("one", "both") == dry


def test_only_the_files_that_are_named_are_brought_back(author: Author) -> None:
    change_and_make(author)
    result = author.rewind("one", uris=[(author.root / "kept.txt").as_uri()])
    assert told(result) == {"kept.txt": "changed"}
    assert author.files() == {**BEFORE, "deep/er/made.txt": "made\n"}
    error = author.refused("rewind", promptId="one", scope="files", uris=["file:///etc/passwd"])
    assert error["data"]["kind"] == "outsideWorkspace"
    other = (author.root / "other.txt").as_uri()
    error = author.refused("rewind", promptId="one", scope="files", uris=[other])
    assert error["data"]["kind"] == "invalidParams"
    assert error["message"].startswith("/uris/0")


def test_a_file_that_two_prompts_changed_goes_back_to_before_either(author: Author) -> None:
    author.does("one", read("kept.txt"), edit("kept.txt", "old", "1"), edit("kept.txt", "1", "2"))
    author.does("two", edit("kept.txt", "2", "3"))
    author.rewind("two")
    assert author.files()["kept.txt"] == "2\n"
    author.undo()
    assert author.files()["kept.txt"] == "3\n"
    author.rewind("one")
    assert author.files()["kept.txt"] == "old\n"


def test_a_file_that_the_user_changed_since_is_a_conflict_and_stays(author: Author) -> None:
    change_and_make(author)
    (author.root / "kept.txt").write_text("mine\n")
    result = author.rewind("one")
    assert told(result) == {"kept.txt": "conflict", "made.txt": "deleted"}
    assert author.files() == {**BEFORE, "kept.txt": "mine\n"}
    assert author.chat.event("session_rewound")["files"] == result["files"]


def test_where_every_file_is_a_conflict_nothing_happened(author: Author) -> None:
    author.does("one", read("kept.txt"), edit("kept.txt", "old", "new"))
    (author.root / "kept.txt").unlink()
    seq = author.chat.get()["seq"]
    assert told(author.rewind("one")) == {"kept.txt": "conflict"}
    assert author.chat.get()["seq"] == seq


def test_a_change_of_the_user_between_two_prompts_is_not_undone_with_them(author: Author) -> None:
    author.does("one", read("kept.txt"), edit("kept.txt", "old", "new"))
    (author.root / "kept.txt").write_text("new and mine\n")
    author.does("two", read("kept.txt"), edit("kept.txt", "new", "newer"))
    assert told(author.rewind("one")) == {"kept.txt": "conflict"}
    author.rewind("two")
    assert author.files()["kept.txt"] == "new and mine\n"


def test_a_file_that_is_as_it_was_already_is_not_told(author: Author) -> None:
    author.does("one", read("kept.txt"), edit("kept.txt", "old", "new"))
    (author.root / "kept.txt").write_text("old\n")
    assert author.rewind("one")["files"] == []


def test_unsaved_changes_in_the_editor_are_a_conflict(author: Author) -> None:
    author.does("one", read("kept.txt"), edit("kept.txt", "old", "new"))
    uri = (author.root / "kept.txt").as_uri()
    document = {"uri": uri, "languageId": "text", "version": 1, "text": "new\n"}
    author.daemon.notify("textDocument/didOpen", {"textDocument": document})
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "unsaved\n"}]}
    author.daemon.notify("textDocument/didChange", change)
    assert told(author.rewind("one")) == {"kept.txt": "conflict"}
    author.daemon.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert told(author.rewind("one")) == {"kept.txt": "changed"}


def test_permissions_come_back_with_a_file_and_those_that_the_user_gave_stay(author: Author) -> None:
    path = author.root / "kept.txt"
    path.chmod(0o750)
    change_and_make(author)
    author.rewind("one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    path.chmod(0o600)
    author.undo()
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new\n", 0o600)


def test_a_link_that_took_the_place_of_a_file_is_left_alone(author: Author, tmp_path: Path) -> None:
    change_and_make(author)
    outside = tmp_path / "outside.txt"
    outside.write_text("outside")
    (author.root / "kept.txt").unlink()
    (author.root / "kept.txt").symlink_to(outside)
    assert told(author.rewind("one"))["kept.txt"] == "conflict"
    assert outside.read_text() == "outside"


def test_an_edit_through_a_link_is_taken_back_where_it_leads(author: Author) -> None:
    (author.root / "link.txt").symlink_to("kept.txt")
    author.does("one", read("link.txt"), edit("link.txt", "old", "new"))
    assert told(author.rewind("one")) == {"kept.txt": "changed"}
    assert os.readlink(author.root / "link.txt") == "kept.txt"
    assert (author.root / "kept.txt").read_text() == "old\n"


def test_the_model_has_to_look_again_before_it_changes_a_file_that_went_back(author: Author) -> None:
    change_and_make(author)
    author.rewind("one")
    author.does("two", edit("kept.txt", "old", "blind"))
    assert author.files()["kept.txt"] == "old\n"
    author.does("three", read("kept.txt"), edit("kept.txt", "old", "seen"))
    assert author.files()["kept.txt"] == "seen\n"


def test_a_rewind_after_a_restart_is_the_same(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    (author.root / "kept.txt").write_text("old\n")
    change_and_make(author)
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    assert told(author.rewind("one")) == {"kept.txt": "changed", "made.txt": "deleted"}
    assert author.files() == {"kept.txt": "old\n"}
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    author.undo()
    assert author.files() == {"deep/er/made.txt": "made\n", "kept.txt": "new\n"}


def test_a_busy_session_is_not_rewound(author: Author) -> None:
    change_and_make(author)
    model = author.home.script(reply("x", delayMs=60_000))
    since = len(author.daemon.messages)
    running = author.chat.start("wait", promptId="long", model=model)
    author.chat.event("agent_start", since)
    error = author.refused("rewind", promptId="one", scope="files")
    assert error["data"]["kind"] == "sessionBusy"
    author.chat.cancel()
    assert author.chat.result(running)["stopReason"] == "aborted"


def test_prompts_that_there_are_not_are_refused(author: Author) -> None:
    change_and_make(author)
    for what in ("rewind", "diff", "original"):
        more = {"rewind": {"scope": "files"}, "original": {"uri": author.root.as_uri()}}.get(what, {})
        assert author.refused(what, promptId="none", **more)["data"]["kind"] == "promptNotFound"
    assert author.refused("rewind", undo=True)["data"]["kind"] == "invalidParams"
    assert author.refused("rewind", promptId="one")["data"]["kind"] == "invalidParams"
    assert author.refused("rewind", scope="files")["data"]["kind"] == "invalidParams"


# --- diff and original ----------------------------------------------------------------------------


def test_the_diff_of_a_prompt_and_of_a_session_is_what_they_came_to(author: Author) -> None:
    author.does("one", read("kept.txt"), edit("kept.txt", "old", "1"), edit("kept.txt", "1", "2"))
    author.does("two", edit("kept.txt", "2", "3"), write("made.txt", "a\nb\n"))
    uri = (author.root / "kept.txt").as_uri()
    one = author.ask("diff", promptId="one")
    assert one["files"] == [{"uri": uri, "action": "changed", "additions": 1, "deletions": 1}]
    assert one["patch"] == "--- a/kept.txt\n+++ b/kept.txt\n@@ -1 +1 @@\n-old\n+2\n"
    assert "-2\n+3\n" in author.ask("diff", promptId="two")["patch"]
    whole = author.ask("diff")
    assert [(f["action"], f["additions"], f["deletions"]) for f in whole["files"]] == [
        ("changed", 1, 1),
        ("created", 2, 0),
    ]
    assert "-old\n+3\n" in whole["patch"]
    author.rewind("one")
    assert author.ask("diff") == {"patch": "", "files": []}
    assert author.ask("diff", promptId="one") == one


def test_the_original_of_a_file_is_its_text_before_a_prompt(author: Author) -> None:
    change_and_make(author)
    author.does("two", edit("kept.txt", "new", "newer"))
    kept, made = ((author.root / name).as_uri() for name in ("kept.txt", "deep/er/made.txt"))
    other = (author.root / "other.txt").as_uri()

    def original(prompt_id: str, uri: str) -> object:
        return author.ask("original", promptId=prompt_id, uri=uri)["text"]

    assert [original("one", uri) for uri in (kept, made, other)] == ["old\n", None, "same\n"]
    assert [original("two", uri) for uri in (kept, made, other)] == ["new\n", "made\n", "same\n"]
    error = author.refused("original", promptId="one", uri="file:///etc/passwd")
    assert error["data"]["kind"] == "outsideWorkspace"


def test_diffs_can_be_read_beside_a_process_that_holds_the_session(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("made.txt", "made\n"))
    expected = author.ask("diff")
    later = home.start()
    held = {"sessionId": author.chat.id}
    assert later.call("agentd/session/diff", held) == expected
    uri = (author.root / "made.txt").as_uri()
    asked = {**held, "promptId": "one", "uri": uri}
    assert later.call("agentd/session/original", asked) == {"text": None}
    error = later.refused("agentd/session/rewind", {**held, "promptId": "one", "scope": "files"})
    assert (error["data"]["kind"], error["data"]["pid"]) == ("sessionLocked", author.daemon.pid)


# --- what is kept ---------------------------------------------------------------------------------


def kept_folder(home: Home, author: Author) -> Path:
    (folder,) = home.data.rglob(f"{author.chat.id}.jsonl.files")
    return folder


def test_what_is_kept_is_for_the_user_alone_and_goes_with_the_session(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    change = [write("a.txt", "1\n"), write("a.txt", "2\n"), write("a.txt", "3\n")]
    author.does("one", *change)
    folder = kept_folder(home, author)
    assert not folder.is_relative_to(author.root)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 2, "the index and what the prompt left; nothing in between"
    author.ask("delete")
    assert not folder.exists()


def test_what_is_kept_for_a_session_that_is_gone_is_swept_at_the_next_start(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("a.txt", "1\n"))
    folder = kept_folder(home, author)
    author.daemon.kill()
    folder.with_name(f"{author.chat.id}.jsonl").unlink()
    home.start()
    until(lambda: not folder.exists(), "what nobody needs is swept")


def test_where_nothing_can_be_kept_nothing_is_changed(author: Author) -> None:
    author.does("zero", write("first.txt", "1\n"))
    folder = kept_folder(author.home, author)
    index = folder / "index.jsonl"
    index.rename(folder / "aside")
    model = author.home.script(reply(write("second.txt", "2\n")), reply("so it is"))
    author.chat.daemon.call("agentd/session/close", {"sessionId": author.chat.id})
    index.symlink_to("nowhere/at/all")
    author.chat.run("write", promptId="bad", model=model)
    assert not (author.root / "second.txt").exists()
    result = author.chat.get()["messages"][-2]
    assert result["isError"]
    assert "could not be kept" in result["content"][0]["text"]
