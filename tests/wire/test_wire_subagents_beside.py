"""Sub-agents beside all else that a session can do: steers, forks, attaches, compactions, an editor."""

import subprocess
import sys

import pytest
from wire.editing import CAPABILITIES, SimulatedEditor, replace
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed, shape
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.questions import ASK, option
from wire.rewinding import bash, read, told, write
from wire.runs import assert_paired, assert_takes_the_next_prompt
from wire.scripts import reply, text, tool
from wire.subagents import Parent, Writers, delegate, job, of, steps

HELD = "while [ ! -e go ]; do sleep 0.02; done"


def held(home: Home, daemon: Daemon, *after: Json, **more: object) -> tuple[Parent, int]:
    """A parent whose only child waits in a command until the file `go` is there."""
    parent = Parent(daemon, home, [job("held")], of("held", reply(bash(HELD)), *after, reply("ok")), **more)
    prompt = parent.start("hand it out", promptId="first")
    parent.child_event("held", "tool_execution_start")
    return parent, prompt


# --- what a child is told ------------------------------------------------------------------------------


def test_a_child_begins_with_its_task_and_not_with_where_the_user_looks(home: Home) -> None:
    daemon = home.start("--allow-full")
    root = home.workspace(a_txt="a\n")
    daemon.notify("agentd/focus", {"uri": (root / "a.txt").as_uri()})
    parent = Parent(daemon, home, [job("own")], of("own", reply("ok")), root=root)
    parent.run("where am I")
    assert "looks at a.txt" in str(home.model_requests("where am I")[0]["messages"])
    got = daemon.call("agentd/session/get", {"sessionId": parent.child("own")})
    assert got["messages"][0]["content"] == [text("Do job own.")]


def test_a_task_that_begins_like_a_command_is_text(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace()
    task = {"description": "job slash", "prompt": "/undo @a.txt Do job slash."}
    parent = Parent(daemon, shared_home, [task], of("slash", reply("as text")), root=root)
    assert parent.run()["text"] == "all done"
    assert "as text" in parent.answer()
    got = daemon.call("agentd/session/get", {"sessionId": parent.child("slash")})
    assert got["messages"][0]["content"] == [text("/undo @a.txt Do job slash.")]


def test_a_childs_list_of_things_to_do_is_its_own(daemon: Daemon, shared_home: Home) -> None:
    def todo(what: str) -> Json:
        return tool("todo_write", {"items": [{"text": what, "status": "pending"}]})

    script = [
        reply(todo("of the parent")),
        delegate(job("plans")),
        *of("plans", reply(todo("of the child")), reply("ok")),
        reply("all done"),
    ]
    parent = Parent(daemon, shared_home, [])
    assert parent.run(model=shared_home.script(*script))["text"] == "all done"
    child = daemon.call("agentd/session/get", {"sessionId": parent.child("plans")})
    assert [item["text"] for item in parent.get()["todo"]] == ["of the parent"]
    assert [item["text"] for item in child["todo"]] == ["of the child"]


# --- budget --------------------------------------------------------------------------------------------


def test_what_a_childs_summaries_take_counts_in_its_budget(home: Home) -> None:
    home.config.write_text("[subagents]\nmax_tokens = 1000\n")
    daemon = home.start("--allow-full")
    root = home.workspace(a_txt="many words " * 1000 + "\n")
    small = {"input": 10, "output": 10, "total": 20, "contextTokens": 20}
    dear = {"input": 900, "output": 100, "total": 1000, "contextTokens": 1000}
    look = reply(read("a.txt"), usage=small)
    too_long = reply(error={"kind": "context_overflow", "message": "Too long."})
    parts = of("sums", *[look] * 8, too_long, reply("## Goal\nTo read.", usage=dear), look, look, reply("x"))
    parent = Parent(daemon, home, [job("sums")], parts, root=root)
    assert parent.run()["text"] == "all done"
    assert parent.child_event("sums", "compaction_end")["outcome"] == "compacted"
    assert "it used up the 1,000 tokens it may use." in parent.answer()
    assert parent.get()["session"]["usage"]["total"] == 8 * 20 + 1000, "and nothing more is asked"
    parent.assert_all_well_formed()


@pytest.mark.parametrize(("limit", "done"), [(40, False), (41, True)])
def test_a_budget_that_is_met_to_the_token_is_used_up(home: Home, limit: int, done: bool) -> None:
    home.config.write_text(f"[subagents]\nmax_tokens = {limit}\n")
    daemon = home.start("--allow-full")
    usage = {"input": 10, "output": 10, "total": 20, "contextTokens": 20}
    look = reply(tool("list_directory", {}), usage=usage)
    parent = Parent(daemon, home, [job("even")], of("even", look, look, reply("ok", usage=usage)))
    parent.run()
    assert ("is done (3 turns)" in parent.answer()) == done


def test_what_a_retried_answer_of_a_child_took_counts_once(daemon: Daemon, shared_home: Home) -> None:
    usage = {"input": 10, "output": 10, "total": 20, "contextTokens": 20}
    fails = reply(error={"kind": "overloaded", "message": "Later.", "retryAfterMs": 1})
    parent = Parent(daemon, shared_home, [job("again")], of("again", fails, reply("ok", usage=usage)))
    assert parent.run()["usage"]["total"] == 20
    assert parent.child_event("again", "retry")["reason"]
    steps = [p["event"]["update"]["delta"] for p in parent.notifications() if "update" in p["event"]]
    assert "1 job again: the model server failed, trying again: " in "".join(steps), (
        "the user sees why it waits"
    )


# --- while they run ------------------------------------------------------------------------------------


def test_a_steer_of_the_parent_is_said_once_its_children_are_done(daemon: Daemon, shared_home: Home) -> None:
    parent, prompt = held(shared_home, daemon)
    steer = parent.start("by the way", promptId="steer", whenBusy="steer")
    parent.event("queue_changed")
    (parent.root / "go").touch()
    assert parent.result(prompt)["text"] == "all done"
    parent.result(steer)
    assert "is done" in parent.answer()
    (last,) = shared_home.model_requests("by the way")[-1:]
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "tool_result", "user"]
    heard = [r for r in shared_home.model_requests("by the way") if "You are a sub-agent" in r["system"]]
    assert not heard, "the child hears nothing of it"
    parent.assert_all_well_formed()


def test_an_interruption_of_the_parent_ends_its_children_first(daemon: Daemon, shared_home: Home) -> None:
    parent, prompt = held(shared_home, daemon)
    model = shared_home.script(reply("something else"))
    other = parent.start("no, this", promptId="other", whenBusy="interrupt", model=model)
    assert parent.result(prompt)["stopReason"] == "aborted"
    assert parent.result(other)["text"] == "something else"
    parent.assert_all_well_formed()
    assert_paired(shared_home.model_requests("no, this")[-1]["messages"])


def test_a_session_whose_children_run_is_neither_rewound_nor_summed_up(
    daemon: Daemon, shared_home: Home
) -> None:
    parent, prompt = held(shared_home, daemon)
    for method, params in {"rewind": {"promptId": "first", "scope": "files"}, "compact": {}}.items():
        error = daemon.refused(f"agentd/session/{method}", {"sessionId": parent.id, **params})
        assert error["data"]["kind"] == "sessionBusy"
    (parent.root / "go").touch()
    assert parent.result(prompt)["text"] == "all done"


def test_a_fork_of_a_parent_whose_children_run_goes_on_by_itself(daemon: Daemon, shared_home: Home) -> None:
    parent, prompt = held(shared_home, daemon)
    fork = daemon.call("agentd/session/fork", {"sessionId": parent.id})["session"]["sessionId"]
    child = daemon.call("agentd/session/fork", {"sessionId": parent.child("held")})["session"]
    for number, session_id in enumerate((fork, child["sessionId"])):
        about = f"fork-{number}-of-{parent.id}"
        params = {"sessionId": session_id, "prompt": about, "model": shared_home.script(reply("I do"))}
        assert daemon.call("agentd/prompt", params)["text"] == "I do"
        assert_paired(shared_home.model_requests(about)[-1]["messages"])
        daemon.call("agentd/session/delete", {"sessionId": session_id})
    (parent.root / "go").touch()
    assert parent.result(prompt)["text"] == "all done"
    parent.assert_all_well_formed()


@pytest.mark.parametrize("what", ["close", "delete"])
def test_a_child_that_is_closed_or_deleted_while_it_runs_is_told_to_its_parent(
    daemon: Daemon, shared_home: Home, what: str
) -> None:
    sleep = unique_sleep()
    parent = Parent(
        daemon,
        shared_home,
        [job("gone"), job("stays")],
        of("gone", reply(bash(sleep))),
        of("stays", reply("stays")),
    )
    prompt = parent.start()
    until(lambda: sleepers(sleep), "it runs")
    daemon.call(f"agentd/session/{what}", {"sessionId": parent.child("gone")})
    assert parent.result(prompt)["text"] == "all done"
    assert not processes_with(sleep)
    first, second = parent.answer().split("\n\n")
    assert first.endswith("the user stopped it.")
    assert second.endswith("stays")
    parent.assert_all_well_formed()
    assert_takes_the_next_prompt(parent, shared_home, f"after {what} of {parent.child('gone')}")


def test_attached_in_the_middle_parent_and_child_tell_what_happened_so_far(
    daemon: Daemon, shared_home: Home
) -> None:
    script = of("asks", reply("I want to", bash("echo ran >> ran.txt")), reply("child done"))
    parent = Parent(daemon, shared_home, [job("asks")], script, mode="ask")
    prompt = parent.start()
    asked = daemon.asked(ASK)
    for session_id, pending in ((parent.id, [asked["params"]]), (parent.child("asks"), [])):
        before = [p for p in parent.events_of(session_id) if "seq" in p]
        got = daemon.call("agentd/session/attach", {"sessionId": session_id})
        assert (got["kind"], got["pending"]) == ("replay", pending)
        assert got["events"][: len(before)] == before
        assert [p["seq"] for p in got["events"]] == list(range(1, got["seq"] + 1))
    where = {"workspaceUri": parent.root.as_uri(), "children": True}
    listed = daemon.call("agentd/session/list", where)["sessions"]
    assert {s["sessionId"]: s["state"] for s in listed} == {
        parent.id: "waiting",
        parent.child("asks"): "running",
    }
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    assert parent.result(prompt)["text"] == "all done"
    parent.assert_all_well_formed()
    for session_id in (parent.id, parent.child("asks")):
        seqs = [p["seq"] for p in parent.events_of(session_id) if "seq" in p]
        assert seqs == list(range(1, len(seqs) + 1)), "none twice, none missing"


def test_after_a_kill_during_a_childs_question_nothing_was_allowed(home: Home) -> None:
    daemon = home.start("--allow-full")
    script = of("asks", reply("I want to", bash("echo ran >> ran.txt")), reply("child done"))
    parent = Parent(daemon, home, [job("asks")], script, mode="ask")
    parent.start("hand it out", promptId="killed")
    daemon.asked(ASK)
    daemon.kill()
    later = home.start("--allow-full")
    for session_id in (parent.id, parent.child("asks")):
        got = later.call("agentd/session/attach", {"sessionId": session_id})
        assert got["pending"] == []
        assert_well_formed(got["events"])
        assert shape(got["events"])[-1] == "agent_end(interrupted)"
    assert not (parent.root / "ran.txt").exists()
    params = {"sessionId": parent.id, "prompt": "go on", "model": home.script(reply("here again"))}
    assert later.call("agentd/prompt", params)["text"] == "here again"
    assert_paired(home.model_requests("go on")[-1]["messages"])


def compacting(daemon: Daemon, home: Home) -> tuple[Parent, int]:
    """A parent whose child is being summed up, and its prompt."""
    look = reply(read("a.txt"))
    too_long = reply(error={"kind": "context_overflow", "message": "Too long."})
    parts = of("sums", *[look] * 8, too_long, reply("## Goal", hang=True))
    parent = Parent(
        daemon, home, [job("sums")], parts, root=home.workspace(a_txt="many words " * 1000 + "\n")
    )
    prompt = parent.start("hand it out", promptId="first")
    parent.child_event("sums", "compaction_start")
    return parent, prompt


def test_a_cancel_reaches_the_summary_of_a_child(daemon: Daemon, shared_home: Home) -> None:
    parent, prompt = compacting(daemon, shared_home)
    assert parent.cancel()["state"] == "cancelled"
    assert parent.result(prompt)["stopReason"] == "aborted"
    assert parent.child_event("sums", "compaction_end")["outcome"] == "aborted"
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()


def test_a_kill_in_the_summary_of_a_child_closes_it(home: Home) -> None:
    parent, _ = compacting(home.start("--allow-full"), home)
    parent.daemon.kill()
    later = home.start("--allow-full")
    for session_id in (parent.id, parent.child("sums")):
        events = later.call("agentd/session/attach", {"sessionId": session_id})["events"]
        assert_well_formed(events)
        assert shape(events)[-1] == "agent_end(interrupted)"


def test_four_talkative_children_and_a_client_that_reads_late_lose_nothing(home: Home) -> None:
    """A thousand lines each: memory stays bounded, and what comes in the end is whole and in order."""
    names = ["a", "b", "c", "d"]
    daemon = home.start("--allow-full")
    lines = {name: "".join(f"{name}{n:07d} {'x' * 90}\n" for n in range(3000)) for name in names}
    command = bash("for n in $(seq 1000); do echo line $n; done")
    parts = [of(name, reply(command), reply(lines[name], chunkSize=100)) for name in names]
    parent = Parent(daemon, home, [job(name) for name in names], *parts)
    daemon.serves()
    before = daemon.resident_bytes()
    prompt = parent.start()
    parent.child_event("a", "tool_execution_start")
    daemon.stop_reading()
    for _ in range(10):
        daemon.send(*[{"jsonrpc": "2.0", "method": "$/noise", "params": {"text": "x" * 1000}}] * 100)
        daemon.wait_until_read()
    assert daemon.resident_bytes() - before < 60 * 1024 * 1024
    daemon.read_on()
    assert parent.result(prompt)["text"] == "all done"
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()
    for name in names:
        child = parent.child(name)
        seqs = [p["seq"] for p in parent.events_of(child) if "seq" in p]
        assert seqs == list(range(1, len(seqs) + 1))
        deltas = [
            p["event"]["update"]["delta"]
            for p in parent.events_of(child)
            if p["event"]["type"] == "message_update" and p["event"]["update"]["kind"] == "text"
        ]
        assert "".join(deltas) == lines[name]


def test_sessions_whose_children_run_are_not_pruned_by_another_process(home: Home) -> None:
    daemon = home.start("--allow-full")
    parent, prompt = held(home, daemon)
    command = [sys.executable, "-m", "agentd", "sessions", "prune", "--days", "0.0000001"]
    done = subprocess.run(command, env=home.environment(), cwd=parent.root, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{parent.id} stays" in done.stderr
    assert f"process {daemon.pid}" in done.stderr or f"pid {daemon.pid}" in done.stderr
    (parent.root / "go").touch()
    assert parent.result(prompt)["text"] == "all done"
    parent.assert_all_well_formed()
    daemon.call("agentd/session/close", {"sessionId": parent.id})
    done = subprocess.run(command, env=home.environment(), cwd=parent.root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not [path for path in (home.data / "sessions").rglob("*") if path.is_file()]


# --- files ---------------------------------------------------------------------------------------------


def test_what_a_childs_command_writes_as_it_is_stopped_is_taken_back(
    daemon: Daemon, shared_home: Home
) -> None:
    """A command in the background ends behind the child's last event, and may write even then."""
    serve = f"trap 'echo bye > bye.txt; exit' TERM; touch up.txt; {HELD}"
    script = [
        reply(tool("bash", {"command": serve, "run_in_background": True})),
        reply(bash("while [ ! -e up.txt ]; do sleep 0.02; done")),
        reply("ok"),
    ]
    parent = Writers(daemon, shared_home, [job("one")], of("one", *script))
    assert parent.run("change it", promptId="first")["text"] == "all done"
    assert set(parent.files()) == {"bye.txt", "up.txt"}
    parent.ask("rewind", promptId="first", scope="files")
    assert parent.files() == {}


@pytest.mark.parametrize("attempt", range(3))
def test_two_children_that_edit_one_open_document_do_not_overwrite_each_other(
    home: Home, attempt: int
) -> None:
    """Both have read the document before either edits: who comes second has to read it again."""
    daemon = home.start("--allow-full", capabilities=CAPABILITIES)
    wait = bash("touch ready-$PPID-$$; while [ $(ls ready-* | wc -l) -lt 2 ]; do sleep 0.02; done")
    with SimulatedEditor(daemon, home, "one\ntwo\n") as editor:
        parent = Writers(
            daemon,
            home,
            [job("one"), job("two")],
            of("one", *steps(read("a.txt"), wait, replace("one", "1"))),
            of("two", *steps(read("a.txt"), wait, replace("two", "2"))),
            root=editor.root,
        )
        parent.run("change it", promptId="first")
        results = [
            p["event"]["result"]
            for child in parent.children()
            for p in parent.events_of(child)
            if p["event"]["type"] == "tool_execution_end" and p["event"]["toolName"] == "edit_file"
        ]
        assert sorted(result["isError"] for result in results) == [False, True], results
        assert editor.text in ("1\ntwo\n", "one\n2\n")
        assert editor.path.read_text() == "one\ntwo\n", "which is the user's to save"
        assert told(parent.event("files_changed")) == {"a.txt": "changed"}
        back = parent.ask("rewind", promptId="first", scope="files")
        assert told(back)["a.txt"] == "changed"
        assert editor.text == "one\ntwo\n"
        parent.ask("rewind", undo=True)
        assert editor.text in ("1\ntwo\n", "one\n2\n")


def test_a_fork_of_the_parent_takes_back_nothing_of_its_children(daemon: Daemon, shared_home: Home) -> None:
    parent = Writers(daemon, shared_home, [job("one")], of("one", *steps(write("new.txt", "new\n"))))
    parent.run("change it", promptId="first")
    fork = daemon.call("agentd/session/fork", {"sessionId": parent.id})["session"]["sessionId"]
    assert daemon.call("agentd/session/diff", {"sessionId": fork})["files"] == []
    daemon.call("agentd/session/rewind", {"sessionId": fork, "promptId": "first", "scope": "both"})
    assert parent.files() == {"new.txt": "new\n"}
    parent.ask("rewind", promptId="first", scope="files")
    assert parent.files() == {}
