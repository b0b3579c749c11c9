"""A cancel and a kill behind every event of a run with sub-agents: each moment ends well."""

import pytest
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed, shape
from wire.processes import processes_with, until
from wire.runs import assert_paired, assert_takes_the_next_prompt
from wire.scripts import reply, tool
from wire.subagents import Parent, delegate, job, of

EVENTS = 90
"""About as many as a run has here."""


def script(home: Home, marker: str) -> str:
    """A model that has two sub-agents work, one of them with a command that leaves a line."""
    command = tool("bash", {"command": f"echo {marker} >> effects.txt; sleep 0.02 # {marker}"}, "the-call")
    slow = {"chunkSize": 12, "delayMs": 1}
    return home.script(
        {**delegate(job("a"), job("b")), **slow},
        *of("a", reply("I run it", command, **slow), reply("a is done", **slow)),
        *of(
            "b",
            reply(tool("write_file", {"file_path": "b.txt", "content": "b\n"})),
            reply("b is done", **slow),
        ),
        reply("all done", **slow),
    )


def reached(daemon: Daemon, since: int, count: int, prompt: int) -> None:
    """Wait for the message of this number, or the answer of the prompt."""
    daemon.wait(lambda m: m.get("id") == prompt or len(daemon.messages) > since + count, since)


def test_a_cancel_behind_any_event_leaves_all_closed(daemon: Daemon, shared_home: Home) -> None:
    parent = Parent(daemon, shared_home, [])
    states = set()
    for number in range(0, EVENTS, 2):
        marker = f"moment-{number}-x"
        since = len(daemon.messages)
        prompt = parent.start(marker, promptId=marker, model=script(shared_home, marker))
        reached(daemon, since, number, prompt)
        state = parent.cancel()["state"]
        result = parent.result(prompt)
        assert (state, result["stopReason"]) in (("cancelled", "aborted"), ("notRunning", "stop"))
        states.add(state)
        assert not processes_with(marker)
        opened = {each["sessionId"] for each in daemon.call("agentd/status")["sessions"]}
        assert not opened & set(parent.children()), "no child is open any more"
    assert states == {"cancelled", "notRunning"}
    parent.assert_all_well_formed()
    assert_paired(assert_takes_the_next_prompt(parent, shared_home, "after every moment"))


@pytest.mark.parametrize("number", range(4, EVENTS, 9))
def test_a_kill_behind_any_event_loses_nothing_and_runs_nothing_twice(home: Home, number: int) -> None:
    marker = f"killed-{number}-x"
    daemon = home.start("--allow-full")
    parent = Parent(daemon, home, [])
    since = len(daemon.messages)
    prompt = parent.start("delegate it", promptId="killed", model=script(home, marker))
    reached(daemon, since, number, prompt)
    daemon.kill()
    until(lambda: not processes_with(marker), "the processes die with the daemon")
    asked = len(home.model_requests())
    seen = {each: durable(parent.events_of(each)) for each in (parent.id, *parent.children())}
    later = home.start("--allow-full")
    for session_id, events in seen.items():
        told = later.call("agentd/session/attach", {"sessionId": session_id})["events"]
        assert told[: len(events)] == events, "what was sent is there as it was sent"
        assert_well_formed(told)
        assert shape(told)[-1] in ("session_changed", "agent_end(interrupted)", "agent_end(stop)")
    where = {"workspaceUri": parent.root.as_uri()}
    assert [s["sessionId"] for s in later.call("agentd/session/list", where)["sessions"]] == [parent.id]
    effects = parent.root / "effects.txt"
    assert not effects.exists() or effects.read_text().count(marker) == 1
    assert len(home.model_requests()) == asked
    params = {"sessionId": parent.id, "prompt": "go on", "model": home.script(reply("here again"))}
    assert later.call("agentd/prompt", params)["text"] == "here again"
    assert_paired(home.model_requests("go on")[-1]["messages"])
    later.call("agentd/session/delete", {"sessionId": parent.id})
    assert not [path for path in (home.data / "sessions").rglob("*") if path.is_file()]


def durable(notifications: list[Json]) -> list[Json]:
    return [params for params in notifications if "seq" in params]
