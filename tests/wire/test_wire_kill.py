"""`kill -9` at any moment: what was acknowledged is there, nothing runs twice, and the session goes on."""

import json
import os
from pathlib import Path
from typing import Any

from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import LIVE
from wire.processes import children_of, is_alive, processes_with, sleepers, unique_sleep, until
from wire.scripts import reply, text, tool

UNKNOWN = "Outcome unknown: the daemon stopped while this ran."


def assert_request_is_valid(messages: list[Json]) -> None:
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        assert message["role"] != "tool_result"
        for block in message["content"]:
            assert block.get("text") != ""
            if block["type"] == "tool_call":
                assert rest.pop(0)["toolCallId"] == block["id"]


def durable(daemon: Daemon, session_id: str) -> list[Json]:
    return [
        message["params"]
        for message in daemon.messages
        if message.get("method") == "agentd/event"
        and message["params"]["sessionId"] == session_id
        and message["params"]["event"]["type"] not in LIVE
    ]


def go_on(home: Home, chat: Chat, about: str, **params: Any) -> tuple[Daemon, Json]:
    """A later daemon finds the session, reads it and runs a next prompt; gives it and the next request."""
    seen = durable(chat.daemon, chat.id)
    daemon = home.start("--allow-full")
    (listed,) = daemon.call("agentd/session/list")["sessions"]
    assert (listed["sessionId"], listed["state"]) == (chat.id, "idle")
    assert "lockedBy" not in listed
    got = daemon.call("agentd/session/get", {"sessionId": chat.id})
    acknowledged = [p["event"]["message"] for p in seen if p["event"]["type"] == "message_end"]
    assert got["messages"][: len(acknowledged)] == acknowledged
    assert got["seq"] >= seen[-1]["seq"]
    following = {"sessionId": chat.id, "prompt": about, "model": home.script(reply("here again")), **params}
    assert daemon.call("agentd/prompt", following)["text"] == "here again"
    numbers = [params["seq"] for params in durable(daemon, chat.id)]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] > seen[-1]["seq"]
    (asked,) = home.model_requests(about)
    assert_request_is_valid(asked["messages"])
    return daemon, asked


def test_kill_in_the_middle_of_a_tool(home: Home) -> None:
    sleep = unique_sleep()
    command = f"echo ran >> ran.txt; {sleep} & setsid {sleep} & {sleep}"
    calls = [
        tool("bash", {"command": command}, "call-1"),
        tool("write_file", {"file_path": "never.txt", "content": "x"}, "call-2"),
    ]
    daemon = home.start("--allow-full")
    chat = Chat(daemon, home.workspace(), model=home.script(reply("I run it", *calls)), mode="full")
    chat.start("run it", promptId="killed")
    until(lambda: len(sleepers(sleep)) >= 3, "the command and its children run")
    chat.event("tool_execution_start")
    daemon.kill()
    until(lambda: not processes_with(sleep), "the tool's processes die with the daemon")
    later, asked = go_on(home, chat, "after the kill")
    results = [m for m in asked["messages"] if m["role"] == "tool_result"]
    assert [m["toolCallId"] for m in results] == ["call-1", "call-2"]
    assert results[0]["content"] == [text(UNKNOWN)]
    assert all(m["isError"] for m in results)
    assert (chat.root / "ran.txt").read_text() == "ran\n"
    assert not (chat.root / "never.txt").exists()
    got = later.call("agentd/session/get", {"sessionId": chat.id})["messages"]
    assert [m["role"] for m in got] == ["user", "assistant", "tool_result", "assistant", "user", "assistant"]
    assert got[2]["content"] == [text(UNKNOWN)]
    assert (got[3]["content"], got[3]["stopReason"]) == ([], "aborted")
    result = later.call("agentd/prompt", {"sessionId": chat.id, "prompt": "run it", "promptId": "killed"})
    assert (result["stopReason"], result["turns"]) == ("interrupted", 1)
    ends = [p["event"] for p in durable(later, chat.id) if p["event"]["type"] == "agent_end"]
    assert [end["stopReason"] for end in ends] == ["stop"], "the reading closed the other, and told it all"


def test_a_search_dies_with_the_daemon(home: Home) -> None:
    """Its regular expression would go on for ever, and nothing inside Python can interrupt one."""
    daemon = home.start()
    script = home.script(reply(tool("search_files", {"pattern": "(a+)+$"})))
    chat = Chat(daemon, home.workspace(**{"a.txt": "a" * 60 + "b\n"}), model=script)
    chat.start()
    chat.event("tool_execution_start")
    (worker,) = until(lambda: children_of(daemon.process.pid), "the search has begun")
    until(lambda: computed(worker) > 1, "it is in the midst of a match: it begins in far less")
    daemon.kill()
    until(lambda: not is_alive(worker), "the search is dead, long before its own alarm", timeout=6)


def computed(pid: int) -> float:
    """Seconds that a process has computed so far: proc_pid_stat(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def test_kill_in_the_middle_of_a_stream(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("half a sent", hang=True)))
    chat.start("say it", promptId="killed")
    chat.event("message_update")
    daemon.kill()
    later, asked = go_on(home, chat, "after the kill")
    assert [m["role"] for m in asked["messages"]] == ["user", "user"]
    result = later.call("agentd/prompt", {"sessionId": chat.id, "prompt": "say it", "promptId": "killed"})
    assert result["stopReason"] == "interrupted"
    got = later.call("agentd/session/get", {"sessionId": chat.id})["messages"]
    assert [m["role"] for m in got] == ["user", "assistant", "user", "assistant"]
    assert got[1]["stopReason"] == "aborted"


def test_kill_between_two_calls_keeps_the_result_of_the_first(home: Home) -> None:
    sleep = unique_sleep()
    calls = [tool("bash", {"command": "echo first"}, "call-1"), tool("bash", {"command": sleep}, "call-2")]
    daemon = home.start("--allow-full")
    chat = Chat(daemon, home.workspace(), model=home.script(reply(*calls)), mode="full")
    chat.start("run both")
    until(lambda: sleepers(sleep), "the second command runs")
    daemon.kill()
    _, asked = go_on(home, chat, "after the kill")
    first, second = [m for m in asked["messages"] if m["role"] == "tool_result"]
    assert "first" in first["content"][0]["text"]
    assert first["isError"] is False
    assert second["content"] == [text(UNKNOWN)]


def test_kill_right_after_an_accepted_answer_keeps_the_prompt(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply(hang=True)))
    assert chat.run("remember this", wait="accepted", promptId="accepted")["outcome"] == "started"
    daemon.kill()
    _, asked = go_on(home, chat, "after the kill")
    assert asked["messages"][0]["content"] == [text("remember this")]


def test_kill_while_idle_loses_nothing(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply(tool("list_directory")), reply("done")))
    chat.run("first words")
    before = chat.get()["messages"]
    daemon.kill()
    later, _ = go_on(home, chat, "after the kill")
    assert later.call("agentd/session/get", {"sessionId": chat.id})["messages"][: len(before)] == before


def test_two_kills_in_a_row_are_recovered_once_each(home: Home) -> None:
    sleep = unique_sleep()
    command = {"command": f"echo ran >> ran.txt; {sleep}"}
    root = home.workspace()
    session_id = ""
    for number in (1, 2):
        daemon = home.start("--allow-full")
        if number == 1:
            session_id = Chat(daemon, root).id
        params = {
            "sessionId": session_id,
            "prompt": "run it",
            "promptId": f"killed-{number}",
            "model": home.script(reply(tool("bash", command, "call-1"))),
            "mode": "full",
        }
        daemon.request("agentd/prompt", params)
        until(lambda: sleepers(sleep), "the command runs")
        daemon.kill()
        until(lambda: not processes_with(sleep), "the tool's processes die with the daemon")
    last = home.start()
    params = {"sessionId": session_id, "prompt": "after two", "model": home.script(reply("fine"))}
    assert last.call("agentd/prompt", params)["text"] == "fine"
    (asked,) = home.model_requests("after two")
    assert_request_is_valid(asked["messages"])
    results = [m for m in asked["messages"] if m["role"] == "tool_result"]
    assert [m["toolCallId"] for m in results] == ["call-1", "call-1~2"]
    assert [m["content"] for m in results] == [[text(UNKNOWN)]] * 2
    assert (root / "ran.txt").read_text() == "ran\nran\n"


def test_a_journal_whose_tail_was_torn_still_opens(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one"), reply("two")))
    chat.run("first words")
    chat.run("second words")
    daemon.kill()
    (journal,) = [p for p in home.data.rglob("*") if p.is_file() and b'"agent_end"' in p.read_bytes()]
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-10])
    later = home.start()
    params = {"sessionId": chat.id, "prompt": "after the tear", "model": home.script(reply("fine"))}
    assert later.call("agentd/prompt", params)["text"] == "fine"
    (asked,) = home.model_requests("after the tear")
    assert_request_is_valid(asked["messages"])
    assert "first words" in json.dumps(asked["messages"])
