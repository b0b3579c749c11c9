"""What a run did to files: the patch of each change, `files_changed` at the end, and what a kill leaves."""

import os
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed, shape
from wire.processes import until
from wire.runs import chat_with, of_type, result_texts, run_events
from wire.scripts import reply, tool

KILLS = (3, pytest.param(20, marks=pytest.mark.nightly))
"""How often it is killed: each kill takes two starts of a daemon."""


def write(name: str, content: str) -> Json:
    return tool("write_file", {"file_path": name, "content": content})


def edit(name: str, old: str, new: str) -> Json:
    return tool("edit_file", {"file_path": name, "old_string": old, "new_string": new})


def edits(name: str, *pairs: tuple[str, str]) -> Json:
    several = [{"old_string": old, "new_string": new} for old, new in pairs]
    return tool("edit_file", {"file_path": name, "edits": several})


def read(name: str) -> Json:
    return tool("read_file", {"file_path": name})


def bash(command: str) -> Json:
    return tool("bash", {"command": command})


def run(daemon: Daemon, home: Home, root: Path, *calls: Json) -> Chat:
    """A run that makes these calls, each in a turn of its own."""
    replies = [*(reply(call) for call in calls), reply("done")]
    chat = chat_with(daemon, home, *replies, root=root, mode="full")
    assert chat.run()["text"] == "done"
    assert_well_formed(chat.notifications())
    return chat


def changed(chat: Chat) -> dict[str, str]:
    """The files of `files_changed`, by name; empty where there is no such event."""
    events = of_type(run_events(chat), "files_changed")
    assert len(events) <= 1
    if events:
        assert shape(run_events(chat))[-2:] == ["files_changed", "agent_end(stop)"]
    return {file["uri"].rsplit("/", 1)[1]: file["action"] for event in events for file in event["files"]}


def patches(chat: Chat) -> list[list[Json]]:
    """What each change of the run did, as its details tell it."""
    ends = of_type(run_events(chat), "tool_execution_end")
    details = [end["result"].get("details") for end in ends]
    return [each["files"] for each in details if each is not None and each["type"] == "edit"]


def test_every_form_of_a_change_has_its_patch_and_its_place_in_the_summary(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace(one_txt="1\n2\n", two_txt="a\nb\n", three_txt="old\n")
    chat = run(
        daemon, shared_home, root,
        read("one.txt"), edit("one.txt", "1", "one"),
        read("two.txt"), edits("two.txt", ("a", "A"), ("b", "B")),
        read("three.txt"), write("three.txt", "new\n"),
        write("sub/four.txt", "4\n"),
    )  # fmt: skip
    assert changed(chat) == {
        "one.txt": "changed", "two.txt": "changed", "three.txt": "changed", "four.txt": "created"
    }  # fmt: skip
    told = [files[0] for files in patches(chat)]
    assert [(each["action"], each["additions"], each["deletions"]) for each in told] == [
        ("changed", 1, 1), ("changed", 2, 2), ("changed", 1, 1), ("created", 1, 0)
    ]  # fmt: skip
    assert [each["patch"].split("\n", 3)[2:] for each in told] == [
        ["@@ -1,2 +1,2 @@", "-1\n+one\n 2\n"],
        ["@@ -1,2 +1,2 @@", "-a\n-b\n+A\n+B\n"],
        ["@@ -1 +1 @@", "-old\n+new\n"],
        ["@@ -0,0 +1 @@", "+4\n"],
    ]
    assert told[3]["patch"].startswith("--- /dev/null\n+++ b/sub/four.txt\n")
    texts = [text for text in result_texts(run_events(chat)) if not text.startswith("File:")]
    assert texts == [
        "Edited one.txt (1 replacement, +1 -1).",
        "Edited two.txt (2 edits, 2 replacements, +2 -2).",
        "Replaced three.txt (+1 -1).",
        "Created sub/four.txt (1 line, +1 -0).",
    ]


def test_a_file_that_is_made_and_then_changed_was_made(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    chat = run(daemon, shared_home, root, write("f", "1\n"), edit("f", "1", "2"), write("f", "3\n"))
    assert changed(chat) == {"f": "created"}
    assert [files[0]["action"] for files in patches(chat)] == ["created", "changed", "changed"]


def test_a_file_that_is_made_and_then_removed_by_a_command_is_not_told_of(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace()
    chat = run(daemon, shared_home, root, write("f", "1\n"), write("g", "1\n"), bash("rm f"))
    assert changed(chat) == {"g": "created"}
    assert changed(run(daemon, shared_home, root, write("f", "1\n"), bash("rm f"))) == {}


def test_a_file_that_is_changed_and_then_removed_by_a_command_was_deleted(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace(a_txt="1\n")
    chat = run(daemon, shared_home, root, read("a.txt"), edit("a.txt", "1", "2"), bash("rm a.txt"))
    assert changed(chat) == {"a.txt": "deleted"}
    again = run(daemon, shared_home, root, write("a.txt", "3\n"), bash("rm a.txt"), write("a.txt", "4\n"))
    assert changed(again) == {"a.txt": "created"}


def test_an_edit_that_changes_nothing_changes_no_file(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(a_txt="1\n")
    chat = run(
        daemon, shared_home, root,
        read("a.txt"), write("a.txt", "1\n"), edit("a.txt", "1", "1"), edits("a.txt", ("1", "2"), ("2", "1")),
        edit("a.txt", "absent", "x"),
    )  # fmt: skip
    assert changed(chat) == {}
    assert patches(chat) == []
    assert "Nothing was written" in result_texts(run_events(chat))[1]
    assert (root / "a.txt").read_text() == "1\n"


@pytest.mark.parametrize("dirty", [True, False])
def test_no_form_of_an_edit_is_made_under_unsaved_text(
    daemon: Daemon, shared_home: Home, dirty: bool
) -> None:
    root = shared_home.workspace(a_txt="1\n")
    uri = (root / "a.txt").as_uri()
    document = {"uri": uri, "languageId": "plaintext", "version": 1, "text": "typing\n" if dirty else "1\n"}
    daemon.notify("textDocument/didOpen", {"textDocument": document})
    calls = [edit("a.txt", "1", "2"), edits("a.txt", ("2", "3")), write("a.txt", "4\n")]
    chat = run(daemon, shared_home, root, read("a.txt"), *calls)
    assert (root / "a.txt").read_text() == ("1\n" if dirty else "4\n")
    if dirty:
        assert result_texts(run_events(chat))[1:] == ["Save or close a.txt first."] * 3
        assert changed(chat) == {}


@pytest.mark.parametrize("kills", KILLS)
def test_after_a_kill_between_write_and_journal_the_file_is_new_and_must_be_read_again(
    home: Home, kills: int
) -> None:
    for number in range(kills):
        root = home.workspace(a_txt="old\n")
        daemon = home.start("--allow-full")
        model = home.script(reply(read("a.txt")), reply(write("a.txt", "new\n" * 1_000)), reply("done"))
        chat = Chat(daemon, root, model=model, mode="full")
        chat.start("write it", promptId=f"killed{number}")
        until(lambda path=root / "a.txt": path.stat().st_size > 4, "the file has its new content")
        daemon.kill()
        assert (root / "a.txt").read_text() == "new\n" * 1_000
        later = home.start("--allow-full")
        after = (edit("a.txt", "new", "x"), read("a.txt"), write("a.txt", "newer\n"))
        second = home.script(*map(reply, after), reply("done"))
        prompt = {"sessionId": chat.id, "prompt": "go on", "model": second, "mode": "full"}
        assert later.call("agentd/prompt", prompt)["text"] == "done"
        messages = later.call("agentd/session/get", {"sessionId": chat.id})["messages"]
        results = [m for m in messages if m["role"] == "tool_result"]
        assert len([m for m in messages if m["role"] == "user"]) == 2
        assert "was not read in this session" in results[-3]["content"][0]["text"]
        assert results[-1]["isError"] is False
        assert (root / "a.txt").read_text() == "newer\n", "and nothing was done twice"
        assert os.listdir(root) == ["a.txt"]


def test_a_daemon_that_starts_removes_what_killed_ones_left_and_no_file_of_others(home: Home) -> None:
    root = home.workspace(a_txt="old\n")
    (root / ".a.txt.0123456789abcdef-1.agentd~").write_text("of nobody we know")
    daemon = home.start("--allow-full")
    chat = chat_with(daemon, home, reply(write("sub/f", "x\n")), reply("done"), root=root, mode="full")
    chat.run()
    (note,) = (home.data / "writes").iterdir()
    planted = root / "sub" / f".f.{note.name}-7.agentd~"
    planted.write_text("half of a fi")
    stale = home.data / "output" / "0123456789abcdef"
    stale.mkdir(parents=True)
    home.start()
    until(lambda: not stale.exists(), "another daemon has swept, and this comes last")
    assert planted.exists()
    daemon.kill()
    home.start()
    until(lambda: not planted.exists(), "it is swept")
    until(lambda: not note.exists(), "its note is gone")
    assert sorted(os.listdir(root)) == [".a.txt.0123456789abcdef-1.agentd~", "a.txt", "sub"]
    assert os.listdir(root / "sub") == ["f"]
