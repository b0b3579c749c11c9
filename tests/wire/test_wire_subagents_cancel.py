"""Cancel, crash and end of the daemon while sub-agents work: nothing goes on, and everything is closed."""

import json
import signal
from pathlib import Path

import pytest
from fakes.model_server import ModelServer, Raw, Recorded
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed, shape
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.runs import assert_takes_the_next_prompt
from wire.scripts import reply, text, tool
from wire.subagents import Parent, delegate, job, of

UNKNOWN = "Outcome unknown: the daemon stopped while this ran."
CLOSED_IN_THE_CALL = [
    "tool_execution_start(task-1)",
    "tool_execution_end(task-1)",
    "message_start(tool_result)",
    "message_end(tool_result)",
    "turn_end",
    "turn_start",
    "message_start(assistant)",
    "message_end(assistant)",
    "turn_end",
    "agent_end(aborted)",
]


def ends(parent: Parent, name: str) -> str:
    """How the run of the sub-agent with this job ended."""
    (end,) = [p["event"] for p in parent.events_of(parent.child(name)) if p["event"]["type"] == "agent_end"]
    reason: str = end["stopReason"]
    return reason


def cancel_all(parent: Parent, prompt: int) -> None:
    """Cancel, and hold against it what every cancel has to do."""
    answer = parent.cancel()
    assert (answer["state"], answer["quiescent"]) == ("cancelled", True)
    assert parent.result(prompt)["stopReason"] == "aborted"
    assert shape(parent.notifications())[-10:] == CLOSED_IN_THE_CALL
    assert parent.answer() == "Tool execution aborted."
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()
    assert all(ends(parent, name) == "aborted" for name in ("a", "b"))
    where = {"workspaceUri": parent.root.as_uri(), "children": True}
    states = [s["state"] for s in parent.daemon.call("agentd/session/list", where)["sessions"]]
    assert states == ["idle"] * 3
    assert_takes_the_next_prompt(parent, parent.home, f"after the cancel of {parent.id}")


def test_a_cancel_in_the_childrens_streams(daemon: Daemon, shared_home: Home) -> None:
    half = reply("half of it", hang=True)
    parent = Parent(daemon, shared_home, [job("a"), job("b")], of("a", half), of("b", half))
    prompt = parent.start()
    parent.child_event("a", "message_update")
    parent.child_event("b", "message_update")
    cancel_all(parent, prompt)
    got = daemon.call("agentd/session/get", {"sessionId": parent.child("a")})["messages"]
    assert (got[-1]["content"], got[-1]["stopReason"]) == ([text("half of it")], "aborted")


def test_a_cancel_in_the_childrens_commands_leaves_no_process(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    command = reply(tool("bash", {"command": f"trap '' TERM; {sleep} & setsid {sleep} & {sleep}"}))
    parent = Parent(daemon, shared_home, [job("a"), job("b")], of("a", command), of("b", command))
    prompt = parent.start()
    until(lambda: len(sleepers(sleep)) >= 6, "both run, each with what it started")
    cancel_all(parent, prompt)
    assert not processes_with(sleep)


def test_a_cancel_with_one_child_in_a_command_and_one_before_its_first_word(
    daemon: Daemon, shared_home: Home
) -> None:
    sleep = unique_sleep()
    parent = Parent(
        daemon,
        shared_home,
        [job("a"), job("b")],
        of("a", reply(tool("bash", {"command": sleep}))),
        of("b", reply(hang=True)),
    )
    prompt = parent.start()
    until(lambda: sleepers(sleep), "it runs")
    parent.child_event("b", "turn_start")
    cancel_all(parent, prompt)
    assert not processes_with(sleep)


def test_a_cancel_while_one_child_is_done_keeps_the_other_from_going_on(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(
        daemon, shared_home, [job("a"), job("b")], of("a", reply("done")), of("b", reply("half", hang=True))
    )
    prompt = parent.start()
    parent.child_event("a", "agent_end")
    parent.child_event("b", "message_update")
    answer = parent.cancel()
    assert (answer["state"], answer["quiescent"]) == ("cancelled", True)
    assert parent.result(prompt)["stopReason"] == "aborted"
    assert (ends(parent, "a"), ends(parent, "b")) == ("stop", "aborted")
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()


def test_a_cancel_while_children_wait_to_ask_their_server_again_sends_no_more_requests(home: Home) -> None:
    def answer(request: Recorded) -> Json:
        if "Do job" in json.dumps(request.body["messages"][1]):
            return reply(error={"kind": "overloaded", "message": "Later.", "retryAfterMs": 60_000})
        return delegate(job("a"), job("b"))

    with ModelServer([answer], repeat=True) as server:
        home.config.write_text(f'[providers.fake]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n')
        daemon = home.start("--allow-full")
        parent = Parent(daemon, home, [])
        prompt = parent.start(model="fake/m")
        parent.child_event("a", "retry")
        parent.child_event("b", "retry")
        cancel_all(parent, prompt)
        assert len(server.requests) == 3, "the parent's and one of each child"


def test_a_cancel_reaches_a_request_that_the_server_does_not_answer(home: Home) -> None:
    def answer(request: Recorded) -> Json | Raw:
        if "Do job" in json.dumps(request.body["messages"][1]):
            return Raw(answer=False)
        return delegate(job("a"), job("b"))

    with ModelServer([answer], repeat=True) as server:
        home.config.write_text(f'[providers.fake]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n')
        daemon = home.start("--allow-full")
        parent = Parent(daemon, home, [])
        prompt = parent.start(model="fake/m")
        server.wait_for_requests(3)
        cancel_all(parent, prompt)
        server.wait_for_disconnects(2)


def test_a_cancel_of_one_child_ends_that_one_and_its_parent_is_told(
    daemon: Daemon, shared_home: Home
) -> None:
    parent = Parent(
        daemon,
        shared_home,
        [job("a"), job("b")],
        of("a", reply("half of a", hang=True)),
        of("b", reply("b is done")),
    )
    prompt = parent.start()
    parent.child_event("a", "message_update")
    assert daemon.call("agentd/cancel", {"sessionId": parent.child("a")})["state"] == "cancelled"
    assert parent.result(prompt)["text"] == "all done"
    first, second = parent.answer().split("\n\n")
    assert first.endswith("is not done (1 turn): the user stopped it.\nWhat it said last:\nhalf of a")
    assert second.endswith("b is done")
    parent.assert_all_well_formed()


def test_what_children_used_before_a_cancel_counts(daemon: Daemon, shared_home: Home) -> None:
    usage = {"input": 11, "output": 2, "total": 13, "contextTokens": 13}
    look = reply(tool("list_directory", {}), usage=usage)
    parent = Parent(daemon, shared_home, [job("a")], of("a", look, reply("half", hang=True)))
    prompt = parent.start()
    parent.child_event("a", "message_update")
    parent.cancel()
    assert parent.result(prompt)["usage"]["input"] == 11
    assert parent.get()["session"]["usage"]["input"] == 11


def test_a_cancel_reaches_children_while_nobody_reads(home: Home) -> None:
    long = reply("".join(f"{number:09d}\n" for number in range(200_000)), chunkSize=500)
    daemon = home.start("--allow-full")
    parent = Parent(daemon, home, [job("a"), job("b")], of("a", long), of("b", long))
    prompt = parent.start()
    parent.child_event("a", "message_update")
    parent.child_event("b", "message_update")
    daemon.stop_reading()
    cancel = daemon.request("agentd/cancel", {"sessionId": parent.id})
    until(
        lambda: home.journal().count(b'"agent_end"') == 3, "all three runs have ended although nobody reads"
    )
    daemon.read_on()
    assert daemon.response(cancel)["result"]["state"] == "cancelled"
    assert parent.result(prompt)["stopReason"] == "aborted"
    parent.assert_all_well_formed()
    parent.assert_children_lie_inside_their_call()


# --- the end of the daemon -----------------------------------------------------------------------------


def killed_in_a_child(home: Home) -> tuple[Parent, Path]:
    """A session whose daemon was killed while one child is done and the other one's command runs."""
    sleep = unique_sleep()
    daemon = home.start("--allow-full")
    parent = Parent(
        daemon,
        home,
        [job("a"), job("b")],
        of("a", reply(tool("bash", {"command": f"echo ran >> ran.txt; {sleep}"}, "in-a"))),
        of("b", reply("b is done")),
    )
    parent.start("delegate it", promptId="killed")
    until(lambda: sleepers(sleep), "the child's command runs")
    parent.child_event("b", "agent_end")
    daemon.kill()
    until(lambda: not processes_with(sleep), "the child's processes die with the daemon")
    return parent, parent.root


def test_after_a_kill_the_child_is_interrupted_and_its_parents_call_has_an_unknown_outcome(
    home: Home,
) -> None:
    parent, root = killed_in_a_child(home)
    asked_before = len(home.model_requests())
    later = home.start("--allow-full")
    got = later.call("agentd/session/get", {"sessionId": parent.id})
    assert [m["role"] for m in got["messages"]] == ["user", "assistant", "tool_result", "assistant"]
    assert got["messages"][2]["content"] == [text(UNKNOWN)]
    result = later.call(
        "agentd/prompt", {"sessionId": parent.id, "prompt": "delegate it", "promptId": "killed"}
    )
    assert result["stopReason"] == "interrupted"
    child = later.call("agentd/session/get", {"sessionId": parent.child("a")})
    assert (child["session"]["state"], child["session"]["parent"]["sessionId"]) == ("idle", parent.id)
    assert child["messages"][2]["content"] == [text(UNKNOWN)]
    replay = later.call("agentd/session/attach", {"sessionId": parent.child("a")})["events"]
    assert_well_formed(replay)
    assert shape(replay)[-1] == "agent_end(interrupted)"
    done = later.call("agentd/session/get", {"sessionId": parent.child("b")})
    assert done["messages"][-1]["content"] == [text("b is done")]
    assert len(home.model_requests()) == asked_before, "nobody is asked again"
    assert (root / "ran.txt").read_text() == "ran\n", "and nothing runs again"
    where = {"workspaceUri": root.as_uri()}
    assert [s["sessionId"] for s in later.call("agentd/session/list", where)["sessions"]] == [parent.id]
    params = {"sessionId": parent.id, "prompt": "go on after it", "model": home.script(reply("I do"))}
    assert later.call("agentd/prompt", params)["text"] == "I do"
    assert UNKNOWN in str(home.model_requests("go on after it")[-1]["messages"])


def test_after_a_kill_the_session_can_be_deleted_with_its_children(home: Home) -> None:
    parent, _ = killed_in_a_child(home)
    later = home.start("--allow-full")
    later.call("agentd/session/delete", {"sessionId": parent.id})
    assert not [path for path in (home.data / "sessions").rglob("*") if path.is_file()]


def test_what_children_of_an_ended_call_used_and_changed_survives_a_kill(home: Home) -> None:
    usage = {"input": 11, "output": 2, "total": 13, "contextTokens": 13}
    write = reply(tool("write_file", {"file_path": "new.txt", "content": "new\n"}), usage=usage)
    daemon = home.start("--allow-full")
    script = [delegate(job("a")), *of("a", write, reply("written")), reply("half", hang=True)]
    chat = Chat(daemon, home.workspace(), model=home.script(*script), mode="full")
    chat.start("delegate it", promptId="killed")
    chat.event("tool_execution_end")
    daemon.kill()
    later = home.start()
    replay = later.call("agentd/session/attach", {"sessionId": chat.id})["events"]
    (changed,) = [p["event"]["files"] for p in replay if p["event"]["type"] == "files_changed"]
    assert changed == [{"uri": (chat.root / "new.txt").as_uri(), "action": "created"}]
    assert replay[-1]["event"]["usage"]["input"] == 11
    assert later.call("agentd/session/get", {"sessionId": chat.id})["session"]["usage"]["input"] == 11


@pytest.mark.parametrize("end", ["end of input", "terminate", "shutdown"])
def test_the_daemon_ends_with_its_children_interrupted_and_journaled(home: Home, end: str) -> None:
    sleep = unique_sleep()
    daemon = home.start("--allow-full")
    parent = Parent(
        daemon,
        home,
        [job("a"), job("b")],
        of("a", reply(tool("bash", {"command": f"trap '' TERM; {sleep} & {sleep}"}))),
        of("b", reply("half", hang=True)),
    )
    prompt = parent.start()
    until(lambda: sleepers(sleep), "it runs")
    parent.child_event("b", "message_update")
    if end == "end of input":
        daemon.close_stdin()
        assert daemon.exit_code() == 0
    elif end == "terminate":
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.exit_code() == 143
    else:
        daemon.call("shutdown")
        assert parent.result(prompt)["stopReason"] == "interrupted"
        daemon.notify("exit")
        assert daemon.exit_code() == 0
    assert not processes_with(sleep)
    later = home.start()
    for session_id in (parent.id, *parent.children()):
        events = later.call("agentd/session/attach", {"sessionId": session_id})["events"]
        assert_well_formed(events)
        assert shape(events)[-1] == "agent_end(interrupted)"
