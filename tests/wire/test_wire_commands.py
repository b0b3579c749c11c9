"""Commands against the daemon that runs them: its input, its locale, its folder, its cancel."""

import os
import time

import pytest
from wire.harness import Daemon
from wire.home import Home
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.runs import chat_with, result_texts
from wire.scripts import reply, tool


def test_a_command_reads_nothing_of_the_wire(daemon: Daemon, shared_home: Home) -> None:
    command = (
        "for fd in /proc/$$/fd/*; do readlink $fd; done; cat > stolen.txt; touch begun; "
        "until [ -e go ]; do cat >> stolen.txt; done"
    )
    chat = chat_with(daemon, shared_home, reply(tool("bash", {"command": command})), reply("done"))
    prompt = chat.start()
    until((chat.root / "begun").exists, "the command runs")
    for _ in range(50):
        daemon.call("agentd/status")
    (chat.root / "go").touch()
    assert chat.result(prompt)["text"] == "done"
    assert (chat.root / "stolen.txt").read_bytes() == b""
    (said,) = result_texts(chat.notifications())
    assert said.splitlines()[0] == "/dev/null"
    assert "socket:" not in said


@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONIOENCODING": "cp1252"}, {}], ids=["C", "as it is"])
def test_bytes_that_are_no_text_cost_neither_output_nor_exit_code(home: Home, locale: dict[str, str]) -> None:
    daemon = home.spawn("--allow-full", **locale)
    daemon.initialize()
    command = r"printf 'ok \xff\xfe \x9d end '; printf '\xe2\x82'; sleep 0.1; printf '\xac\n'; exit 3"
    chat = chat_with(daemon, home, reply(tool("bash", {"command": command})), reply("done"))
    chat.run()
    bad = "\N{REPLACEMENT CHARACTER}"
    assert result_texts(chat.notifications()) == [f"ok {bad}{bad} {bad} end €\n[exit code 3]"]


def test_nothing_that_a_cancelled_command_started_acts_later(daemon: Daemon, shared_home: Home) -> None:
    sleep = unique_sleep()
    late = "touch begun; until [ -e go ]; do sleep 0.05; done; echo late > late.txt"
    command = f"{sleep} & ({late}) & setsid bash -c '{late}' & {sleep}"
    chat = chat_with(daemon, shared_home, reply(tool("bash", {"command": command})), reply("never"))
    prompt = chat.start()
    until(lambda: sleepers(sleep) and (chat.root / "begun").exists(), "the command runs")
    assert chat.cancel()["quiescent"] is True
    assert not processes_with(sleep)
    (chat.root / "go").touch()
    assert chat.result(prompt)["stopReason"] == "aborted"
    time.sleep(0.3)  # many times what the loop above would take to see it
    assert not (chat.root / "late.txt").exists()


def test_a_workspace_folder_that_is_renamed_under_a_command_stops_no_other_session(
    daemon: Daemon, shared_home: Home
) -> None:
    command = "touch begun; until [ -e go ]; do sleep 0.02; done; pwd -P"
    calls = [tool("bash", {"command": command}, "call-1"), tool("bash", {"command": "true"}, "call-2")]
    chat = chat_with(daemon, shared_home, reply(*calls), reply("done"))
    other = chat_with(daemon, shared_home, reply(tool("bash", {"command": "echo on"})), reply("fine"))
    prompt = chat.start()
    until((chat.root / "begun").exists, "the command runs")
    moved = chat.root.rename(chat.root.with_name("moved"))
    (moved / "go").touch()
    assert chat.result(prompt)["text"] == "done"
    first, second = result_texts(chat.notifications())
    assert first.startswith(f"{moved}\n[{moved} is outside the workspace")
    assert f"The workspace folder {chat.root} does not exist any more" in second
    assert not chat.root.exists()
    assert other.run()["text"] == "fine"
    assert result_texts(other.notifications()) == ["on"]
    assert os.getcwd() != str(moved)
