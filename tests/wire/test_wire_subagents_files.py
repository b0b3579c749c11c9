"""What sub-agents do to files belongs to their parent's prompt: it is told, shown and taken back with it."""

import pytest
from wire.harness import Daemon
from wire.home import Home
from wire.processes import until
from wire.rewinding import bash, edit, read, told, write
from wire.scripts import reply, tool
from wire.subagents import Writers, job, of, steps


def writers(daemon: Daemon, home: Home) -> Writers:
    """Two children that change, make and remove files, and a prompt that has run."""
    root = home.workspace(a_txt="a\n", b_txt="b\n")
    parent = Writers(
        daemon,
        home,
        [job("one"), job("two")],
        of("one", *steps(read("a.txt"), edit("a.txt", "a", "A"), write("new.txt", "new\n"))),
        of("two", *steps(bash("rm b.txt; echo made > made.txt"))),
        root=root,
    )
    assert parent.run("change it", promptId="first")["text"] == "all done"
    return parent


AFTER = {"a.txt": "A\n", "made.txt": "made\n", "new.txt": "new\n"}


def test_the_parents_prompt_tells_and_shows_what_its_children_changed(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = writers(daemon, shared_home)
    assert parent.files() == AFTER
    assert parent.names_changed() == {"a.txt": "changed", "new.txt": "created"}
    assert told(parent.ask("diff", promptId="first")) == {
        "a.txt": "changed",
        "b.txt": "deleted",
        "made.txt": "created",
        "new.txt": "created",
    }
    uri = (parent.root / "a.txt").as_uri()
    assert parent.ask("original", promptId="first", uri=uri)["text"] == "a\n"
    parent.assert_all_well_formed()


def test_a_rewind_of_the_parent_takes_back_what_its_children_changed_and_its_undo_does_it_again(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = writers(daemon, shared_home)
    back = parent.ask("rewind", promptId="first", scope="both")
    assert set(told(back).values()) <= {"created", "changed", "deleted"}
    assert parent.files() == {"a.txt": "a\n", "b.txt": "b\n"}
    assert parent.get()["messages"] == []
    parent.ask("rewind", undo=True)
    assert parent.files() == AFTER
    assert [m["role"] for m in parent.get()["messages"]] == ["user", "assistant", "tool_result", "assistant"]


def test_a_rewind_takes_back_what_children_of_a_cancelled_prompt_changed(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace(a_txt="a\n")
    calls = [reply(write("new.txt", "new\n")), reply("half", hang=True)]
    parent = Writers(daemon, shared_home, [job("one")], of("one", *calls), root=root)
    prompt = parent.start("change it", promptId="first")
    parent.child_event("one", "message_update")
    until((root / "new.txt").exists, "it is written")
    parent.child_event("one", "turn_end")
    parent.cancel()
    parent.result(prompt)
    assert parent.names_changed() == {"new.txt": "created"}
    parent.ask("rewind", promptId="first", scope="files")
    assert parent.files() == {"a.txt": "a\n"}


def test_a_rewind_after_a_kill_takes_back_what_children_changed(home: Home) -> None:
    daemon = home.start("--allow-full")
    usage = {"input": 11, "output": 2, "total": 13, "contextTokens": 13}
    calls = [reply(write("new.txt", "new\n"), usage=usage), reply("half", hang=True)]
    parent = Writers(
        daemon, home, [job("one"), job("two")], of("one", *calls), of("two", reply("ok", usage=usage))
    )
    parent.start("change it", promptId="first")
    parent.child_event("one", "tool_execution_end")
    parent.child_event("two", "agent_end")
    daemon.kill()
    parent.daemon = home.start("--allow-full")
    replay = parent.ask("attach")["events"]
    (changed,) = [p["event"] for p in replay if p["event"]["type"] == "files_changed"]
    assert told(changed) == {"new.txt": "created"}
    assert replay[-1]["event"]["usage"]["input"] == 22, "what both had used by then"
    assert told(parent.ask("diff", promptId="first")) == {"new.txt": "created"}
    parent.ask("rewind", promptId="first", scope="files")
    assert parent.files() == {}


def test_each_child_has_to_read_a_file_itself_before_it_changes_it(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(a_txt="a\n")
    unread = [reply(edit("a.txt", "a", "B")), reply("ok")]
    script = [
        reply(read("a.txt")),
        reply(tool("task", {"tasks": [job("one")]}, "task-1")),
        *of("one", *unread),
        reply("all done"),
    ]
    parent = Writers(daemon, shared_home, [], root=root)
    assert parent.run(model=shared_home.script(*script))["text"] == "all done"
    (result,) = [
        p["event"]["result"]
        for p in parent.events_of(parent.child("one"))
        if p["event"]["type"] == "tool_execution_end"
    ]
    assert result["isError"]
    assert "was not read in this session" in result["content"][0]["text"]
    assert parent.files() == {"a.txt": "a\n"}


def test_a_file_that_a_child_changed_is_stale_for_its_parent(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(a_txt="a\n")
    script = [
        reply(read("a.txt")),
        reply(tool("task", {"tasks": [job("one")]}, "task-1")),
        *of("one", *steps(read("a.txt"), edit("a.txt", "a", "of the child"))),
        reply(write("a.txt", "of the parent\n")),
        reply("all done"),
    ]
    parent = Writers(daemon, shared_home, [], root=root)
    parent.run(model=shared_home.script(*script))
    results = [
        p["event"]["result"] for p in parent.notifications() if p["event"]["type"] == "tool_execution_end"
    ]
    assert [result["isError"] for result in results] == [False, False, True]
    assert parent.files() == {"a.txt": "of the child\n"}


def test_two_children_that_edit_one_file_do_not_overwrite_each_other(
    daemon: Daemon, shared_home: Home
) -> None:
    """Both have read the file before either writes: the second write is refused as stale."""
    root = shared_home.workspace(a_txt="one\ntwo\n")
    wait = bash("touch ready-$PPID-$$; while [ $(ls ready-* | wc -l) -lt 2 ]; do sleep 0.02; done")
    parent = Writers(
        daemon,
        shared_home,
        [job("one"), job("two")],
        of("one", *steps(read("a.txt"), wait, write("a.txt", "from one\n"))),
        of("two", *steps(read("a.txt"), wait, write("a.txt", "from two\n"))),
        root=root,
    )
    parent.run("change it", promptId="first")
    results = [
        p["event"]["result"]
        for child in parent.children()
        for p in parent.events_of(child)
        if p["event"]["type"] == "tool_execution_end" and p["event"]["toolName"] == "write_file"
    ]
    assert sorted(result["isError"] for result in results) == [False, True]
    assert parent.files()["a.txt"] in ("from one\n", "from two\n")
    parent.ask("rewind", promptId="first", scope="files")
    assert parent.files() == {"a.txt": "one\ntwo\n"}


@pytest.mark.parametrize("attempt", range(3))
def test_commands_of_two_children_at_the_same_time_are_taken_back_as_one(
    daemon: Daemon, shared_home: Home, attempt: int
) -> None:
    """Each command's files change while the other one is looked at from before to behind it."""
    root = shared_home.workspace(a_txt="a\n")
    gate = "touch ready-{0}; while [ $(ls ready-* | wc -l) -lt 2 ]; do sleep 0.01; done; echo {0} >> {0}.txt"
    parent = Writers(
        daemon,
        shared_home,
        [job("one"), job("two")],
        of("one", *steps(bash(gate.format("one")), bash("echo more >> one.txt; echo x > a.txt"))),
        of("two", *steps(bash(gate.format("two")), bash("echo more >> two.txt"))),
        root=root,
    )
    parent.run("change it", promptId="first")
    assert (root / "one.txt").read_text() == "one\nmore\n"
    back = parent.ask("rewind", promptId="first", scope="files")
    assert "conflict" not in told(back).values(), back
    assert parent.files() == {"a.txt": "a\n"}
