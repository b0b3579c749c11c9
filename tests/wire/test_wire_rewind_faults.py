"""Rewinds under ill treatment: no room, daemons that are killed, records that somebody has made up."""

import json
import os
import random
import resource
import shutil
from contextlib import suppress
from copy import copy
from pathlib import Path

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.processes import until
from wire.rewinding import Author, bash, edit, read, told, write
from wire.trees import tree

from agentd.sessions.journal_form import encode, record_of

MEGABYTE = 2**20


def kept_folder(home: Home, session_id: str) -> Path:
    (folder,) = home.data.rglob(f"{session_id}.jsonl.files")
    return folder


def notices(author: Author) -> list[str]:
    events = (each["event"] for each in author.chat.notifications())
    return [event["message"] for event in events if event["type"] == "notice"]


# --- room -----------------------------------------------------------------------------------------


def test_beyond_what_is_kept_of_a_session_the_user_is_told_and_a_rewind_names_the_files(home: Home) -> None:
    home.config.write_text("[checkpoints]\nmax_mb = 1\n")
    author = Author(home.start("--allow-full"), home)
    for name in ("a", "b", "c"):
        (author.root / name).write_text(f"{name}\n" * 300_000)
    (author.root / "small").write_text("small\n")
    author.does("one", bash("echo new > a"), bash("echo new > b; echo new > c"), bash("echo new > small"))
    author.does("two", bash("echo newer > c"))
    assert ["checkpoints.max_mb" in notice for notice in notices(author)] == [True]
    folder = kept_folder(home, author.chat.id)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1.1 * MEGABYTE
    assert told(author.rewind("two")) == {"c": "changed"}
    result = author.rewind("one")
    assert told(result) == {"a": "changed", "b": "conflict", "c": "conflict", "small": "changed"}
    assert (author.root / "a").read_text() == "a\n" * 300_000
    assert (author.root / "b").read_text() == "new\n"
    author.undo()
    assert (author.root / "a").read_text() == "new\n"
    author.ask("delete")
    assert not folder.exists()


def test_an_edit_beyond_what_is_kept_is_made_and_told(home: Home) -> None:
    home.config.write_text("[checkpoints]\nmax_mb = 1\n")
    author = Author(home.start("--allow-full"), home)
    (author.root / "large.txt").write_text("line of text\n" * 150_000)
    author.does("one", read("large.txt"), write("large.txt", "short\n"))
    assert (author.root / "large.txt").read_text() == "short\n"
    assert len(notices(author)) == 1
    assert told(author.rewind("one")) == {"large.txt": "conflict"}


def test_a_limit_that_is_none_is_told_as_a_problem(home: Home) -> None:
    home.config.write_text("[checkpoints]\nmax_mb = 0\nmost = 3\n")
    problems = home.start().call("agentd/status")["problems"]
    assert [("max_mb" in p["message"] or "most" in p["message"]) for p in problems] == [True, True]


def limit_files(daemon: Daemon, size: int) -> None:
    """Let no file of the daemon grow beyond this many bytes."""
    resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_where_the_disk_has_no_room_for_what_was_an_edit_is_refused(home: Home) -> None:
    daemon = home.spawn("--allow-full", AGENTD_SCRIPT_REQUESTS="")
    daemon.initialize()
    author = Author(daemon, home)
    (author.root / "large.txt").write_text("line of text\n" * 150_000)
    before = tree(author.root)
    limit_files(daemon, 1_000_000)
    author.does("one", read("large.txt"), write("large.txt", "short\n"))
    limit_files(daemon, resource.RLIM_INFINITY)
    assert tree(author.root) == before
    (said,) = [m for m in author.chat.get()["messages"] if m.get("toolName") == "write_file"]
    assert "could not be kept" in said["content"][0]["text"]
    assert not list(kept_folder(home, author.chat.id).glob("*.new")), "what is full gets its room back"


def test_where_the_disk_has_no_room_for_a_restored_file_nothing_is_restored(home: Home) -> None:
    daemon = home.spawn("--allow-full", AGENTD_SCRIPT_REQUESTS="")
    daemon.initialize()
    author = Author(daemon, home)
    for name in ("a", "m", "z"):
        (author.root / name).write_text(f"{name}\n")
    (author.root / "large").write_text("line of text\n" * 150_000)
    before = tree(author.root)
    author.does("one", bash("for f in a large m z; do echo new > $f; done; mkdir d; echo x > d/x"))
    after = tree(author.root)
    limit_files(daemon, 1_000_000)
    error = author.refused("rewind", promptId="one", scope="both")
    assert (error["data"]["kind"], error["data"]["retryable"]) == ("storage", True)
    assert tree(author.root) == after
    assert len(author.chat.get()["messages"]) == 4
    limit_files(daemon, resource.RLIM_INFINITY)
    author.rewind("one", "both")
    assert tree(author.root) == before


def test_where_the_workspace_is_gone_words_go_back_and_files_are_an_error(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("a/one.txt", "1\n"))
    shutil.rmtree(author.root)
    for scope in ("files", "both"):
        error = author.refused("rewind", promptId="one", scope=scope)
        assert error["data"]["kind"] == "storage"
        assert "workspace folder" in error["message"]
    assert len(author.rewind("one", "conversation")["removedMessageIds"]) == 4
    author.root.mkdir()
    author.undo()
    assert author.rewind("one", "both")["files"] == [], "it is gone already"


# --- kills ----------------------------------------------------------------------------------------


def names_in(root: Path) -> dict[str, int]:
    """The files below a folder that changes meanwhile, by their inode."""
    found = {}
    for folder, _, files in os.walk(root):
        for path in (os.path.join(folder, name) for name in files):
            with suppress(OSError):
                found[path] = os.lstat(path).st_ino
    return found


def changed(root: Path, was: dict[str, int]) -> int:
    """How many files are others by now."""
    return len(was.items() ^ names_in(root).items())


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_at_any_point_of_a_rewind_leaves_one_tree_or_the_other(home: Home, seed: int) -> None:
    chance = random.Random(seed)
    author = Author(home.start("--allow-full"), home)
    for number in range(30):
        path = author.root / f"d{number % 4}" / f"{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n" * 500)
    before = tree(author.root)
    turned = "rm -r d0; echo x > d0; for i in 1 5 9 13; do rm d1/$i; mkdir d1/$i; echo y > d1/$i/y; done; "
    author.does("one", bash(turned + "for f in d2/*; do echo z >> $f; done; mv d3 d4; ln -s d4 d3"))
    after = tree(author.root)
    is_undo = seed % 2 == 1
    if is_undo:
        author.rewind("one", "both")
    asked: Json = {"undo": True} if is_undo else {"promptId": "one", "scope": "both"}
    was, target = names_in(author.root), chance.randrange(40)
    author.rewinds_until(lambda: changed(author.root, was) >= target, **asked)
    author.daemon.kill()
    author.moved_to(home.start("--allow-full"))
    until(lambda: not author.plans(), "what was cut short is settled")
    is_before = not author.chat.get()["messages"]
    assert tree(author.root) == (before if is_before else after)
    if is_before:
        author.undo()
        assert tree(author.root) == after
    author.rewind("one", "both")
    assert tree(author.root) == before


def test_a_daemon_that_is_new_at_every_step_comes_to_the_same(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    (author.root / "kept.txt").write_text("0\n")

    def anew() -> Author:
        author.daemon.kill()
        return author.moved_to(home.start("--allow-full"))

    trees = [tree(author.root)]
    for number, prompt_id in enumerate(("one", "two", "three")):
        calls = read("kept.txt"), edit("kept.txt", f"{number}", f"{number + 1}"), bash("mkdir d; echo >> d/x")
        anew().does(prompt_id, *calls)
        trees.append(tree(author.root))
    anew().rewind("three", "both")
    assert tree(author.root) == trees[2]
    anew().rewind("two", "both")
    assert tree(author.root) == trees[1]
    anew().undo()
    assert tree(author.root) == trees[2]
    assert anew().texts() == ["do one", "done one", "do two", "done two"]
    anew().undo()
    assert tree(author.root) == trees[1]
    fork = forked(anew())
    assert fork.texts() == ["do one", "done one"]
    anew().does("four", bash("echo 4 > kept.txt"))
    anew().rewind("one", "both")
    assert tree(author.root) == trees[0]
    assert fork.moved_to(author.daemon).texts() == ["do one", "done one"]


# --- forks ----------------------------------------------------------------------------------------


def forked(author: Author, **params: str) -> Author:
    fork = copy(author)
    fork.chat = copy(author.chat)
    fork.chat.id = author.ask("fork", **params)["session"]["sessionId"]
    return fork


def test_a_fork_of_a_fork_goes_back_as_its_parents_do(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"))
    author.does("two", write("two.txt", "2\n"))
    child = forked(author)
    child.does("three", write("three.txt", "3\n"))
    grandchild = forked(child)
    grandchild.does("four", write("four.txt", "4\n"))
    result = grandchild.rewind("two", "both")
    assert told(result) == {"four.txt": "deleted"}
    assert grandchild.texts() == ["do one", "done one"]
    grandchild.undo()
    author.ask("delete")
    assert child.texts()[-1] == "done three"
    assert grandchild.texts()[-1] == "done four"
    child.ask("delete")
    grandchild.daemon.kill()
    grandchild.moved_to(home.start("--allow-full"))
    assert grandchild.chat.get()["session"]["forkedFrom"]["sessionId"] == child.chat.id
    assert told(grandchild.rewind("four", "both")) == {"four.txt": "deleted"}
    assert author.files() == {"one.txt": "1\n", "two.txt": "2\n", "three.txt": "3\n"}


def test_a_fork_at_every_message_takes_the_next_prompt_and_goes_back_in_it(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"), read("one.txt"))
    author.does("two", bash("echo 2 > two.txt"))
    messages = author.chat.get()["messages"]
    for number, message in enumerate(messages):
        fork = forked(author, messageId=message["messageId"])
        got = fork.chat.get()["messages"]
        assert got == messages[: len(got)]
        assert len(got) > number
        ends = len(got) == len(messages) or messages[len(got)]["role"] != "tool_result"
        assert ends, "no call is parted from its result"
        fork.does("next", write(f"fork{number}.txt", "x\n"))
        first = fork.rewind("one", "conversation", dryRun=True)["removedMessageIds"]
        assert first[: len(got)] == [each["messageId"] for each in got]
        assert fork.rewind("next", "both")["removedMessageIds"] == first[len(got) :]
        assert fork.chat.get()["messages"] == got
        asked = {"sessionId": fork.chat.id, "promptId": "two", "scope": "conversation"}
        if number < 6:  # the second prompt is not in it
            assert fork.daemon.refused("agentd/session/rewind", asked)["data"]["kind"] == "promptNotFound"
    assert author.files() == {"one.txt": "1\n", "two.txt": "2\n"}


def test_a_fork_of_a_session_that_was_rewound_has_what_is_there(home: Home) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one")
    author.does("two")
    gone = author.chat.get()["messages"][-1]["messageId"]
    author.rewind("two", "conversation")
    assert forked(author).texts() == ["do one", "done one"]
    assert author.refused("fork", messageId=gone)["data"]["kind"] == "invalidParams"
    author.undo()
    assert forked(author, messageId=gone).texts()[-1] == "done two"


# --- what somebody has made up --------------------------------------------------------------------

HOSTILE: list[object] = [
    ["..", "outside.txt"], ["../outside.txt"], ["/etc/agentd-outside"], ["d", "..", "..", "outside.txt"],
    [""], [], ["."], [".."], ["a\x00b"], ["a/b"], [None], [1], "outside.txt", {"a": 1}, None,
]  # fmt: skip


@pytest.mark.parametrize("parts", HOSTILE, ids=repr)
def test_a_record_that_leads_elsewhere_is_left_out(home: Home, parts: object) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("mine.txt", "1\n"))
    outside = author.root.parent / "outside.txt"
    outside.write_text("outside")
    author.daemon.kill()
    folder = kept_folder(home, author.chat.id)
    index = folder / "index.jsonl"
    (line,) = index.read_text().splitlines()
    record = json.loads(line)
    digest = "9b5a3ab6cdb2fae4b6bbb2b6a4c2ad6e7b5ec4f0e2e3a7b1e8a8c1dbb9c5f5aa"
    hostile = {**record, "parts": parts, "before": [digest, 0o644], "after": record["after"]}
    removing = {**record, "parts": parts, "before": None, "after": record["after"], "made": 5}
    odd = [{**record, "after": [digest, mode]} for mode in (-1, "x", 1.5, True, 0o170000, [1])]
    index.write_text("".join(json.dumps(each) + "\n" for each in (hostile, record, removing, *odd)))
    (folder / "rewind.json").write_text(json.dumps([hostile]))
    author.moved_to(home.start("--allow-full"))
    author.ask("diff")
    assert told(author.rewind("one")) == {"mine.txt": "deleted"}
    assert outside.read_text() == "outside"
    assert author.files() == {}


@pytest.mark.parametrize(
    "starts",
    [
        {"one": {"messages": -3}}, {"one": {"messages": 10**9}}, {"one": {"messages": "x"}},
        {"one": None}, "x", {"../one": {"messages": 0}},
    ],
    ids=repr,
)  # fmt: skip
def test_what_a_fork_carries_may_be_made_up_and_breaks_nothing(home: Home, starts: object) -> None:
    author = Author(home.start("--allow-full"), home)
    author.does("one", write("one.txt", "1\n"))
    fork = forked(author)
    fork.daemon.kill()
    (path,) = home.data.rglob(f"{fork.chat.id}.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines):
        record = record_of(line)
        if record is not None and (record.get("carried") or {}).get("starts"):
            lines[number] = encode({"carried": {**record["carried"], "starts": starts}})
    path.write_bytes(b"".join(lines))
    fork.moved_to(home.start("--allow-full"))
    messages = fork.chat.get()["messages"]
    assert len(messages) == 4
    asked = {"sessionId": fork.chat.id, "promptId": "one", "scope": "conversation"}
    answer = fork.daemon.response(fork.daemon.request("agentd/session/rewind", asked))
    assert "error" not in answer or answer["error"]["data"]["kind"] == "promptNotFound"
    left = fork.chat.get()["messages"]
    assert left == messages[: len(left)]
    fork.does("two")
