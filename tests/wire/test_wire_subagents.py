"""Sub-agents over the wire: what they are told, what comes back of them, and what is seen of them."""

import threading

import pytest
from fakes.model_server import ModelServer, Recorded
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import SAID, USER, assert_well_formed, called, shape, turn
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.runs import assert_takes_the_next_prompt
from wire.scripts import reply, text, tool
from wire.subagents import Parent, delegate, job, of


def spent(number: int, cached: int = 0) -> Json:
    total = 3 * number + cached
    return {
        "input": number,
        "output": 2 * number,
        "cacheRead": cached,
        "cacheWrite": 0,
        "reasoning": 0,
        "total": total,
        "contextTokens": total,
    }


# --- answers -------------------------------------------------------------------------------------------


def test_answers_come_back_in_the_order_of_the_tasks_and_nothing_else_does(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace(a_txt="secret of the file\n")
    look = tool("read_file", {"file_path": "a.txt"}, "look-1")
    parent = Parent(
        daemon,
        shared_home,
        [job("one"), job("two"), job("three")],
        of("one", reply("thinking aloud", look), reply("first answer")),
        of("two", reply("second answer")),
        of("three", reply("third answer", delayMs=1)),
        root=root,
    )
    result = parent.run("hand it out")
    assert (result["text"], result["turns"]) == ("all done", 2)
    assert parent.answer() == (
        'Task 1 of 3, "job one", is done (2 turns):\nfirst answer\n\n'
        'Task 2 of 3, "job two", is done (1 turn):\nsecond answer\n\n'
        'Task 3 of 3, "job three", is done (1 turn):\nthird answer'
    )
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()
    asked = shared_home.model_requests("hand it out")[-1]
    assert "secret of the file" not in str(asked["messages"])
    assert asked["messages"][-1]["content"] == [text(parent.answer())]
    assert shape(parent.notifications())[1:] == [
        "agent_start",
        *turn(USER, SAID, called("task-1")),
        *turn(SAID),
        "agent_end(stop)",
    ]


def test_a_child_is_a_session_with_its_own_history_that_names_its_parent(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(daemon, shared_home, [job("own")], of("own", reply("the answer")))
    parent.run("keep it to yourself", mode="edit")
    (child,) = parent.children()
    got = daemon.call("agentd/session/get", {"sessionId": child})
    assert got["session"]["parent"] == {"sessionId": parent.id, "toolCallId": "task-1"}
    assert (got["session"]["title"], got["session"]["state"]) == ("job own", "idle")
    assert got["session"]["mode"] == "edit", "that of the prompt which runs it"
    assert got["session"]["model"] == parent.get()["session"]["model"]
    assert [m["role"] for m in got["messages"]] == ["user", "assistant"]
    assert got["messages"][0]["content"] == [text("Do job own.")]
    (asked,) = shared_home.model_requests('"Do job own."}')[:1]
    assert "keep it to yourself" not in str(asked["messages"])
    assert "You are a sub-agent" in asked["system"]
    assert "You are a sub-agent" not in shared_home.model_requests("keep it to yourself")[0]["system"]
    assert "the answer" in daemon.call("agentd/session/export", {"sessionId": child})["text"]


def progress(parent: Parent) -> str:
    """What the call that ran the sub-agents told meanwhile."""
    events = [p["event"] for p in parent.notifications()]
    updates = [event["update"] for event in events if event["type"] == "tool_execution_update"]
    assert {update["channel"] for update in updates} == {"progress"}
    return "".join(update["delta"] for update in updates)


def test_steps_of_the_children_are_the_progress_of_their_call(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(a_txt="a\n")
    look = reply(tool("read_file", {"file_path": "a.txt"}))
    parent = Parent(daemon, shared_home, [job("seen")], of("seen", look, reply("ok")), root=root)
    parent.run()
    assert progress(parent) == "1 job seen: Read a.txt\n1 job seen: done (2 turns)\n"


def test_a_child_that_fails_does_not_end_the_others(daemon: Daemon, shared_home: Home) -> None:
    refused = reply(error={"kind": "bad_request", "message": "No such luck."})
    parent = Parent(
        daemon,
        shared_home,
        [job("bad"), job("good"), job("silent")],
        of("bad", refused),
        of("good", reply("good answer")),
        of("silent", reply()),
    )
    assert parent.run()["text"] == "all done"
    first, second, third = parent.answer().split("\n\n")
    assert first == 'Task 1 of 3, "job bad", is not done (1 turn): it failed: No such luck.'
    assert second == 'Task 2 of 3, "job good", is done (1 turn):\ngood answer'
    assert third.endswith("(it gave no answer)")
    assert parent.ended()["isError"] is False
    parent.assert_all_well_formed()


def test_when_none_is_done_the_call_has_failed(daemon: Daemon, shared_home: Home) -> None:
    refused = reply("I began", error={"kind": "bad_request", "message": "No such luck."})
    parent = Parent(daemon, shared_home, [job("only")], of("only", refused))
    assert parent.run()["text"] == "all done"
    assert parent.ended()["isError"] is True
    assert parent.answer().endswith("it failed: No such luck.\nWhat it said last:\nI began")


def test_long_answers_share_the_room_of_one_result(daemon: Daemon, shared_home: Home) -> None:
    names = ["a", "b", "c", "d"]
    parts = [
        of(name, reply(f"begin {name} " + "x" * 60_000 + f" end {name}", chunkSize=9000)) for name in names
    ]
    parent = Parent(daemon, shared_home, [job(name) for name in names], *parts)
    parent.run()
    answer = parent.answer()
    assert len(answer.encode()) <= 50_000
    for name in names:
        assert f"begin {name}" in answer
        assert f"end {name}" in answer
    assert answer.count("characters are left out here") == 4


# --- tools ---------------------------------------------------------------------------------------------


def test_a_child_has_its_parents_tools_but_task_or_fewer_where_it_is_given_fewer(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(
        daemon,
        shared_home,
        [job("all"), job("few", tools=["search_files", "read_file"])],
        of("all", reply("ok")),
        of("few", reply(tool("write_file", {"file_path": "x", "content": "x"})), reply("could not")),
    )
    parent.run("who has which tools")
    whole = shared_home.model_requests("who has which tools")[0]["tools"]
    assert "task" in whole
    (all_of_them,) = shared_home.model_requests('Do job all."}]')[:1]
    assert all_of_them["tools"] == [name for name in whole if name != "task"]
    few = [
        r
        for r in shared_home.model_requests("Do job few.")
        if r["messages"][0]["content"] == [text("Do job few.")]
    ]
    assert [r["tools"] for r in few] == [["read_file", "search_files"]] * 2, "in the order of the parent's"
    assert few[1]["messages"][-1]["content"] == [text('Unknown tool "write_file".')]
    assert not (parent.root / "x").exists()


def test_a_child_loads_skills_only_where_it_is_given_the_tool_for_them(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace()
    folder = root / ".agentd" / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: How to greet.\n---\nSay hello.\n")
    jobs = [job("with", tools=["read_file", "skill"]), job("without", tools=["read_file"])]
    parent = Parent(daemon, shared_home, jobs, *(of(n, reply("ok")) for n in ("with", "without")), root=root)
    assert parent.run()["text"] == "all done"
    tools = {
        request["messages"][0]["content"][0]["text"]: (request["tools"], "How to greet." in request["system"])
        for request in shared_home.model_requests("You are a sub-agent")
    }
    assert tools["Do job with."] == (["read_file", "skill"], True)
    assert tools["Do job without."] == (["read_file"], False)


@pytest.mark.parametrize(("name", "shown"), [("no_such_tool", "'no_such_tool'"), ("task", "'task'")])
def test_a_tool_that_cannot_be_given_is_an_error_that_the_model_sees_and_nothing_begins(
    daemon: Daemon, shared_home: Home, name: str, shown: str
) -> None:
    parent = Parent(daemon, shared_home, [job("fine"), job("wrong", tools=["read_file", name])])
    assert parent.run()["text"] == "all done"
    assert parent.ended()["isError"] is True
    assert f"Task 2 cannot have {shown}. A sub-agent can have: read_file, " in parent.answer()
    assert parent.children() == []


@pytest.mark.parametrize("count", [0, 5])
def test_one_call_takes_one_to_four_tasks(daemon: Daemon, shared_home: Home, count: int) -> None:
    parent = Parent(daemon, shared_home, [job(str(n)) for n in range(count)])
    assert parent.run()["text"] == "all done"
    assert parent.ended()["isError"] is True
    assert parent.children() == []


def test_a_child_that_calls_task_is_told_that_there_is_no_such_tool(
    daemon: Daemon, shared_home: Home
) -> None:
    deeper = delegate(job("deeper"), call_id="task-2")
    parent = Parent(daemon, shared_home, [job("deep")], of("deep", deeper, reply("I did it myself")))
    parent.run()
    child = parent.child("deep")
    ends = [p["event"] for p in parent.events_of(child) if p["event"]["type"] == "tool_execution_end"]
    assert ends[0]["result"]["content"] == [text('Unknown tool "task".')]
    assert len(parent.children()) == 1


def test_mode_plan_lets_children_read_and_no_more(daemon: Daemon, shared_home: Home) -> None:
    root = shared_home.workspace(a_txt="a\n")
    calls = [tool("read_file", {"file_path": "a.txt"}), tool("bash", {"command": "touch ran"})]
    parent = Parent(
        daemon, shared_home, [job("plan")], of("plan", reply(*calls), reply("ok")), root=root, mode="plan"
    )
    assert parent.run()["text"] == "all done"
    ends = [
        p["event"]["result"]
        for p in parent.events_of(parent.child("plan"))
        if p["event"]["type"] == "tool_execution_end"
    ]
    assert [end["isError"] for end in ends] == [False, True]
    assert 'Mode "plan" only reads' in ends[1]["content"][0]["text"]
    assert not (root / "ran").exists()


# --- at the same time ----------------------------------------------------------------------------------


def test_four_children_run_at_the_same_time(home: Home) -> None:
    """None of the four requests is answered before all of them are there."""
    gate = threading.Barrier(4, timeout=20)
    names = ["a", "b", "c", "d"]

    def answer(request: Recorded) -> Json:
        said = request.body["messages"][1]["content"]
        first = said if isinstance(said, str) else said[0]["text"]
        if "Do job" in first:
            gate.wait()
            return reply(f"answer {first}")
        is_first = request.body["messages"][-1]["role"] == "user"
        return delegate(*map(job, names)) if is_first else reply("all done")

    with ModelServer([answer], repeat=True) as server:
        home.config.write_text(f'[providers.fake]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n')
        daemon = home.start("--allow-full")
        chat = Chat(daemon, home.workspace(), model="fake/m", mode="full")
        assert chat.run()["text"] == "all done"
        assert not server.faults
        assert len(server.requests) == 6
    assert not gate.broken
    (told,) = [
        p["event"]["result"] for p in chat.notifications() if p["event"]["type"] == "tool_execution_end"
    ]
    assert [f"answer Do job {name}." in told["content"][0]["text"] for name in names] == [True] * 4
    assert_well_formed(chat.notifications())


def test_a_recording_of_children_at_the_same_time_gives_each_its_own_answers_again(home: Home) -> None:
    """In the recording b is done before a has its first answer; in the replay they ask by turns."""
    b_is_done = threading.Event()

    def answer(request: Recorded) -> Json:
        said = request.body["messages"][1]["content"]
        first = said if isinstance(said, str) else said[0]["text"]
        is_first = request.body["messages"][-1]["role"] == "user"
        if "Do job" not in first:
            return delegate(job("a"), job("b")) if is_first else reply("all done")
        name = first[len("Do job ")]
        if name == "a":
            assert b_is_done.wait(20)
        elif not is_first:
            b_is_done.set()
        return reply(tool("list_directory", {})) if is_first else reply(f"answer of {name}")

    record = home.path / "recorded.jsonl"
    with ModelServer([answer], repeat=True) as server:
        home.config.write_text(f'[providers.fake]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n')
        parent = Parent(home.start("--allow-full", f"--record={record}"), home, [])
        assert parent.run(model="fake/m")["text"] == "all done"
        assert not server.faults
    again = Parent(home.start("--allow-full"), home, [], root=parent.root)
    assert again.run(model=f"scripted/{record}")["text"] == "all done"
    assert parent.answer() == again.answer()
    assert "answer of a" in again.answer().split("\n\n")[0]


# --- budget and usage ----------------------------------------------------------------------------------


def test_what_children_use_counts_as_their_parents(daemon: Daemon, shared_home: Home) -> None:
    look = tool("list_directory", {})
    parts = [
        *of("a", reply(look, usage=spent(10)), reply("a", usage=spent(20))),
        *of("b", reply("b", usage=spent(100, cached=7))),
    ]
    script = [
        {**delegate(job("a"), job("b")), "usage": spent(1000)},
        *parts,
        reply("all done", usage=spent(2000)),
        reply("again", usage=spent(5)),
    ]
    chat = Chat(daemon, shared_home.workspace(), model=shared_home.script(*script), mode="full")
    usage = chat.run()["usage"]
    assert (usage["input"], usage["output"], usage["cacheRead"]) == (3130, 6260, 7)
    assert usage["total"] == 3 * 3130 + 7
    assert usage["contextTokens"] == 6000, "that of its own last response"
    assert chat.get()["session"]["usage"] == usage
    assert chat.event("agent_end")["usage"] == usage
    second = chat.run("and once more")["usage"]
    assert second["input"] == 5
    assert chat.get()["session"]["usage"]["input"] == 3135
    listed = daemon.call("agentd/session/list", {"workspaceUri": chat.root.as_uri(), "children": True})
    inputs = {s["title"]: s["usage"]["input"] for s in listed["sessions"] if "parent" in s}
    assert inputs == {"job a": 30, "job b": 100}


def test_a_child_stops_at_its_turns(home: Home) -> None:
    home.config.write_text("[subagents]\nmax_turns = 2\n")
    daemon = home.start("--allow-full")
    look = reply("still looking", tool("list_directory", {}))
    parent = Parent(daemon, home, [job("long")], of("long", look, look, look))
    assert parent.run()["text"] == "all done"
    assert "is not done (2 turns): it took all of the 2 turns that it may take." in parent.answer()
    parent.assert_all_well_formed()
    (end,) = [p["event"] for p in parent.events_of(parent.child("long")) if p["event"]["type"] == "agent_end"]
    assert end["stopReason"] == "max_turns"


def test_a_child_stops_at_its_tokens_which_do_not_count_what_a_cache_answers(home: Home) -> None:
    home.config.write_text("[subagents]\nmax_tokens = 600\n")
    daemon = home.start("--allow-full")
    look = reply("looking", tool("list_directory", {}), usage=spent(100, cached=5000))
    parent = Parent(daemon, home, [job("dear")], of("dear", look, look, look))
    assert parent.run()["text"] == "all done"
    assert "is not done (2 turns): it used up the 600 tokens it may use." in parent.answer()
    assert parent.answer().endswith("What it said last:\nlooking")
    assert "1 job dear: not done: it used up the 600 tokens it may use.\n" in progress(parent)
    assert len(home.model_requests("Do job dear.")) == 3, "two of its own, and the last of its parent"
    parent.assert_all_well_formed()


def test_a_child_that_is_done_with_its_last_token_is_done(home: Home) -> None:
    home.config.write_text("[subagents]\nmax_tokens = 600\n")
    daemon = home.start("--allow-full")
    parent = Parent(daemon, home, [job("even")], of("even", reply("just so", usage=spent(1000))))
    parent.run()
    assert "is done (1 turn):\njust so" in parent.answer()


def test_the_user_may_choose_another_model_for_children(home: Home) -> None:
    model = home.script(reply("from the other model"))
    home.config.write_text(f'[subagents]\nmodel = "{model}"\n')
    daemon = home.start("--allow-full")
    parent = Parent(daemon, home, [job("cheap")])
    parent.run()
    assert "from the other model" in parent.answer()
    assert (
        daemon.call("agentd/session/get", {"sessionId": parent.child("cheap")})["session"]["model"] == model
    )


def test_a_model_of_children_that_cannot_be_asked_is_told_and_the_run_goes_on(home: Home) -> None:
    home.config.write_text('[subagents]\nmodel = "nowhere/none"\n')
    daemon = home.start("--allow-full")
    parent = Parent(daemon, home, [job("lost")])
    assert parent.run()["text"] == "all done"
    assert "it could not begin: There is no provider" in parent.answer()
    assert_well_formed(parent.notifications())


# --- the sessions of children --------------------------------------------------------------------------


def test_lists_leave_children_out_unless_they_are_asked_for(daemon: Daemon, shared_home: Home) -> None:
    parent = Parent(daemon, shared_home, [job("a"), job("b")], of("a", reply("a")), of("b", reply("b")))
    parent.run()
    where = {"workspaceUri": parent.root.as_uri()}
    assert [s["sessionId"] for s in daemon.call("agentd/session/list", where)["sessions"]] == [parent.id]
    whole = daemon.call("agentd/session/list", {**where, "children": True})["sessions"]
    assert {s["sessionId"] for s in whole} == {parent.id, *parent.children()}
    page = daemon.call("agentd/session/list", {**where, "limit": 1})
    assert "nextCursor" not in page


def test_while_a_child_runs_it_is_listed_running_and_takes_no_prompt(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(daemon, shared_home, [job("busy")], of("busy", reply("half a", hang=True)))
    prompt = parent.start()
    parent.child_event("busy", "message_update")
    child = parent.child("busy")
    got = daemon.call("agentd/session/get", {"sessionId": child})
    assert got["session"]["state"] == "running"
    assert got["partial"]["message"]["content"] == [text("half a")]
    for params in ({}, {"whenBusy": "queue"}, {"whenBusy": "steer"}, {"whenBusy": "interrupt"}):
        error = daemon.refused("agentd/prompt", {"sessionId": child, "prompt": "and me?", **params})
        assert error["data"]["kind"] == "unsupported"
        assert parent.id in error["data"]["hint"]
    assert daemon.refused("agentd/session/update", {"sessionId": child, "mode": "plan"})["data"]["kind"] == (
        "unsupported"
    )
    parent.cancel()
    parent.result(prompt)
    parent.assert_all_well_formed()


def test_a_prompt_that_names_no_session_never_goes_to_a_child(daemon: Daemon, shared_home: Home) -> None:
    parent = Parent(daemon, shared_home, [job("last")], of("last", reply("ok")))
    parent.run()
    params = {
        "workspaceUri": parent.root.as_uri(),
        "prompt": "and now?",
        "model": shared_home.script(reply("x")),
    }
    assert daemon.call("agentd/prompt", params)["sessionId"] == parent.id


def test_after_its_end_a_child_is_read_exported_and_forked_and_not_prompted(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(daemon, shared_home, [job("past")], of("past", reply("what it found")))
    parent.run()
    child = parent.child("past")
    assert child not in [s["sessionId"] for s in daemon.call("agentd/status")["sessions"]], "it is closed"
    assert daemon.call("agentd/session/attach", {"sessionId": child})["kind"] == "replay"
    for method, params in {
        "agentd/prompt": {"prompt": "go on"},
        "agentd/session/compact": {},
        "agentd/session/rewind": {"undo": True},
        "agentd/session/diff": {},
    }.items():
        error = daemon.refused(method, {"sessionId": child, **params})
        assert (error["code"], error["data"]["kind"]) == (-32803, "unsupported")
    fork = daemon.call("agentd/session/fork", {"sessionId": child})["session"]
    assert "parent" not in fork
    going_on = {
        "sessionId": fork["sessionId"],
        "prompt": "say more",
        "model": shared_home.script(reply("more")),
    }
    assert daemon.call("agentd/prompt", going_on)["text"] == "more"


def test_a_fork_of_the_parent_has_the_answers_and_no_children(daemon: Daemon, shared_home: Home) -> None:
    parent = Parent(daemon, shared_home, [job("a")], of("a", reply("the answer of a")))
    parent.run()
    fork = daemon.call("agentd/session/fork", {"sessionId": parent.id})["session"]
    params = {"sessionId": fork["sessionId"], "prompt": "go on", "model": shared_home.script(reply("I do"))}
    assert daemon.call("agentd/prompt", params)["text"] == "I do"
    asked = shared_home.model_requests("the answer of a")[-1]["messages"]
    assert [m["role"] for m in asked] == ["user", "assistant", "tool_result", "assistant", "user"]
    daemon.call("agentd/session/delete", {"sessionId": fork["sessionId"]})
    assert daemon.call("agentd/session/get", {"sessionId": parent.child("a")})["messages"]


def test_deleting_the_parent_deletes_its_children_and_no_others(daemon: Daemon, shared_home: Home) -> None:
    parent = Parent(daemon, shared_home, [job("a"), job("b")], of("a", reply("a")), of("b", reply("b")))
    parent.run()
    other = Parent(daemon, shared_home, [job("c")], of("c", reply("c")), root=parent.root)
    other.run()
    daemon.call("agentd/session/get", {"sessionId": parent.child("a")})
    daemon.call("agentd/session/attach", {"sessionId": parent.child("b")})
    daemon.call("agentd/session/delete", {"sessionId": parent.id})
    for gone in (parent.id, *parent.children()):
        assert daemon.refused("agentd/session/get", {"sessionId": gone})["data"]["kind"] == "sessionNotFound"
        assert not list(shared_home.data.rglob(f"*{gone}*"))
    where = {"workspaceUri": parent.root.as_uri(), "children": True}
    left = {s["sessionId"] for s in daemon.call("agentd/session/list", where)["sessions"]}
    assert left == {other.id, *other.children()}


@pytest.mark.parametrize("request_name", ["close", "delete"])
def test_closing_or_deleting_the_parent_ends_its_children(
    daemon: Daemon, shared_home: Home, request_name: str
) -> None:
    sleep = unique_sleep()
    parent = Parent(daemon, shared_home, [job("deep")], of("deep", reply(tool("bash", {"command": sleep}))))
    prompt = parent.start()
    until(lambda: sleepers(sleep), "the child's command runs")
    daemon.call(f"agentd/session/{request_name}", {"sessionId": parent.id})
    assert parent.result(prompt)["stopReason"] == "aborted"
    assert not processes_with(sleep)
    parent.assert_all_well_formed()
    assert daemon.serves()


def test_what_a_child_runs_in_the_background_ends_with_it(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    serve = tool("bash", {"command": sleep, "run_in_background": True})
    wait = tool("bash", {"command": "true"})
    parent = Parent(
        daemon, shared_home, [job("serve")], of("serve", reply(serve), reply(wait), reply("it runs"))
    )
    parent.start()
    until(lambda: sleepers(sleep), "it runs")
    parent.event("tool_execution_end")
    assert not processes_with(sleep)


def test_after_a_run_with_children_the_next_prompt_has_the_same_beginning(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(daemon, shared_home, [job("a")], of("a", reply("a")))
    parent.run("the first of two")
    before = shared_home.model_requests("the first of two")[-1]
    parent.assert_all_well_formed()
    messages = assert_takes_the_next_prompt(parent, shared_home, "the second of two")
    assert messages[: len(before["messages"])] == before["messages"]


def test_the_history_of_a_child_is_made_shorter_where_its_server_calls_it_too_long(
    daemon: Daemon, shared_home: Home
) -> None:
    root = shared_home.workspace(a_txt="many words " * 1000 + "\n")
    look = reply(tool("read_file", {"file_path": "a.txt"}))
    too_long = reply(error={"kind": "context_overflow", "message": "Too long."})
    parts = of("read", *[look] * 8, too_long, reply("## Goal\nTo read."), reply("read it all"))
    parent = Parent(daemon, shared_home, [job("read")], parts, root=root)
    assert parent.run()["text"] == "all done"
    assert "is done" in parent.answer()
    end = parent.child_event("read", "compaction_end")
    assert (end["outcome"], "compaction_end" in shape(parent.notifications())) == ("compacted", False)
    parent.assert_all_well_formed()
