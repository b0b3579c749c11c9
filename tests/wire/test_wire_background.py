"""Commands in the background and long output, over the wire: how long they live, and what is left of them."""

import os
import re
import signal
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json, request
from wire.home import Home
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.questions import ASK, option, question
from wire.runs import assert_takes_the_next_prompt, chat_with, result_texts
from wire.scripts import reply, tool
from workspace.sandboxes import need


def in_background(sleep: str, call_id: str = "call-1") -> Json:
    """A call that starts a server; it runs away as far as it can."""
    command = f"trap '' TERM; setsid -f {sleep}; {sleep}; {sleep}"
    return tool("bash", {"command": command, "run_in_background": True}, call_id)


def started(daemon: Daemon, home: Home, sleep: str, mode: str = "full") -> Chat:
    """A session in which a background command runs and no prompt does."""
    chat = chat_with(daemon, home, reply(in_background(sleep)), reply("it runs"), mode=mode)
    assert chat.run()["text"] == "it runs"
    until(lambda: len(sleepers(sleep)) == 2, "it runs")
    return chat


def spills(home: Home) -> list[Path]:
    return sorted(path for path in (home.data / "output").rglob("*") if path.is_file())


def test_it_outlives_its_prompt_and_the_next_one_reads_and_stops_it(
    daemon: Daemon, shared_home: Home
) -> None:
    sleep = unique_sleep()
    chat = started(daemon, shared_home, sleep)
    calls = [tool("bash_output", {"id": "bg_1"}, "call-2"), tool("bash_kill", {"id": "bg_1"}, "call-3")]
    chat.run("stop it", model=shared_home.script(reply(*calls), reply("stopped")))
    texts = result_texts(chat.notifications())
    assert texts[1:] == ["(no new output)\n[bg_1 is running]", "(no new output)\n[bg_1 was stopped]"]
    assert not processes_with(sleep)


def test_a_cancel_leaves_it_alone_and_is_quiescent(daemon: Daemon, shared_home: Home) -> None:
    sleep, other = unique_sleep(), unique_sleep()
    calls = [in_background(sleep), tool("bash", {"command": other}, "call-2")]
    chat = chat_with(daemon, shared_home, reply(*calls), reply("never"))
    prompt = chat.start()
    until(lambda: sleepers(other), "the second command runs")
    answer = chat.cancel()
    assert (answer["state"], answer["quiescent"]) == ("cancelled", True)
    assert [(each["id"], sleep in each["command"]) for each in answer["background"]] == [("bg_1", True)]
    assert chat.result(prompt)["stopReason"] == "aborted"
    assert not processes_with(other)
    assert len(sleepers(sleep)) == 2
    assert_takes_the_next_prompt(chat, shared_home, "after the cancel")
    daemon.call("agentd/session/close", {"sessionId": chat.id})
    assert not processes_with(sleep), "it is gone when the close is answered"


def test_a_cancel_lists_what_goes_on_also_where_no_prompt_runs_and_nothing_that_has_ended(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = started(daemon, shared_home, unique_sleep())
    idle = chat.cancel()
    assert (idle["state"], [each["id"] for each in idle["background"]]) == ("notRunning", ["bg_1"])
    kill = tool("bash_kill", {"id": "bg_1"}, "call-2")
    chat.run("stop it", model=shared_home.script(reply(kill), reply("stopped")))
    assert "background" not in chat.cancel()


def test_closing_a_session_stops_its_own_and_no_others(daemon: Daemon, shared_home: Home) -> None:
    first, second = unique_sleep(), unique_sleep()
    one, other = started(daemon, shared_home, first), started(daemon, shared_home, second)
    daemon.call("agentd/session/close", {"sessionId": one.id})
    assert not processes_with(first)
    assert len(sleepers(second)) == 2
    look = tool("bash_output", {"id": "bg_1"}, "call-9")
    one.run("look", model=shared_home.script(reply(look), reply("gone")))
    assert 'There is no background command "bg_1".' in result_texts(one.notifications())[-1]
    daemon.call("agentd/session/close", {"sessionId": other.id})
    assert not processes_with(second)


@pytest.mark.parametrize("end", ["kill", "terminate", "end of input", "shutdown"])
@pytest.mark.parametrize("mode", ["full", "auto"])
def test_it_ends_with_the_daemon_however_that_ends(home: Home, mode: str, end: str) -> None:
    if mode == "auto":
        need("bubblewrap")
    daemon = home.start("--allow-full")
    sleep = unique_sleep()
    started(daemon, home, sleep, mode)
    match end:
        case "kill":
            daemon.kill()
        case "terminate":
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.exit_code() == 143
        case "end of input":
            daemon.close_stdin()
            assert daemon.exit_code() == 0
        case "shutdown":
            daemon.call("shutdown")
            assert not processes_with(sleep), "the answer says that nothing runs any more"
            daemon.notify("exit")
            assert daemon.exit_code() == 0
    until(lambda: not processes_with(sleep), "nothing of it is left")


def test_long_output_goes_with_the_session_and_what_a_killed_daemon_left_at_the_next_start(
    home: Home,
) -> None:
    daemon = home.start("--allow-full")
    long = reply(tool("bash", {"command": "seq 100000"}, "call-1"))
    closed, ended, killed = [chat_with(daemon, home, long, reply("done")) for _ in range(3)]
    for chat in (closed, ended, killed):
        chat.run()
    details = [chat.event("tool_execution_end")["result"]["details"] for chat in (closed, ended, killed)]
    assert sorted(entry["spillUri"] for entry in details) == [path.as_uri() for path in spills(home)]
    daemon.call("agentd/session/close", {"sessionId": closed.id})
    assert len(spills(home)) == 2
    other = home.start("--allow-full")
    other.call("agentd/status")
    other.call("shutdown")
    other.notify("exit")
    assert other.exit_code() == 0
    assert len(spills(home)) == 2, "another daemon's start and end leave alone what is in use"
    daemon.kill()
    assert len(spills(home)) == 2
    last = home.start("--allow-full")
    until(lambda: not spills(home), "what the killed daemon left is swept")
    chat = chat_with(last, home, long, reply("done"))
    chat.run()
    assert len(spills(home)) == 1
    last.close_stdin()
    assert last.exit_code() == 0
    assert list((home.data / "output").iterdir()) == []


def test_the_model_reads_long_output_and_nothing_beside_it(daemon: Daemon, shared_home: Home) -> None:
    chat = chat_with(
        daemon, shared_home, reply(tool("bash", {"command": "seq 100000"}, "call-1")), reply("done")
    )
    chat.run()
    (text,) = result_texts(chat.notifications())
    (path,) = re.findall(r"\[all of the output: (\S+) ", text)
    paths = (path, path + "x", str(shared_home.config))
    read = [tool("read_file", {"file_path": each, "offset": 70_000, "limit": 1}) for each in paths]
    write = tool("write_file", {"file_path": path, "content": "x"}, "call-9")
    chat.run("read it", model=shared_home.script(reply(*read, write), reply("done")), mode="plan")
    first, *others = result_texts(chat.notifications())[1:]
    assert "70001 | 70001" in first, "also in plan mode: it is reading"
    assert ["outside" in other or "only reads" in other for other in others] == [True] * 3
    chat.run("write it", model=shared_home.script(reply(write), reply("done")))
    assert "is outside the working directory" in result_texts(chat.notifications())[-1]


def test_a_reopened_session_starts_in_the_workspace_folder_and_says_so(home: Home) -> None:
    daemon = home.start("--allow-full")
    there = reply(tool("bash", {"command": "mkdir sub; cd sub; pwd"}, "call-1"))
    chat = chat_with(daemon, home, there, reply("there"))
    chat.run()
    assert result_texts(chat.notifications()) == [f"{chat.root}/sub\n[working directory: sub]"]
    daemon.kill()
    chat.daemon = home.start("--allow-full")
    chat.run("again", model=home.script(reply(tool("bash", {"command": "pwd"}, "call-2")), reply("x")))
    assert result_texts(chat.notifications()) == [f"{chat.root}\n[working directory: the workspace folder]"]


def test_the_question_names_the_folder_that_the_command_will_run_in(
    daemon: Daemon, shared_home: Home
) -> None:
    chat = chat_with(
        daemon, shared_home, reply(tool("bash", {"command": "mkdir sub; cd sub"}, "call-1")), reply("there")
    )
    chat.run()
    prompt = chat.start(
        "make",
        mode="ask",
        model=shared_home.script(reply(tool("bash", {"command": "pwd"}, "call-2")), reply("x")),
    )
    asked = question(chat, ASK)
    assert asked["params"]["subject"] == {"type": "command", "command": "pwd", "cwd": f"{chat.root}/sub"}
    assert asked["params"]["title"] == "pwd (in sub)"
    daemon.answer(asked, {"optionId": option(asked, "allow_once")})
    chat.result(prompt)
    assert result_texts(chat.notifications())[-1] == f"{chat.root}/sub\n[working directory: sub]"


# --- suspended, reloaded, hung up -----------------------------------------------------------------------


def test_a_daemon_that_was_suspended_goes_on(home: Home) -> None:
    """A laptop's lid: what ran in time goes on, what ran out of it meanwhile ends cleanly."""
    daemon = home.start("--allow-full")
    sleep = unique_sleep()
    calls = [
        tool("bash", {"command": "touch begun; until [ -e go ]; do sleep 0.02; done; echo on"}, "call-1"),
        tool("bash", {"command": f"touch late; {sleep}", "timeout_ms": 2500}, "call-2"),
    ]
    chat = chat_with(daemon, home, reply(calls[0]), reply(calls[1]), reply("done"))
    prompt = chat.start()
    for begun, release in (("begun", True), ("late", False)):
        until(lambda name=begun: (chat.root / name).exists(), "the command runs")
        os.kill(daemon.pid, signal.SIGSTOP)
        if release:
            (chat.root / "go").touch()
        else:
            until(lambda: not_younger_than(chat.root / "late", 2.7), "its time is up")
        os.kill(daemon.pid, signal.SIGCONT)
    assert chat.result(prompt)["text"] == "done"
    assert result_texts(chat.notifications()) == [
        "on",
        "(no output)\n[timed out after 2.5 s and was stopped]",
    ]
    assert not processes_with(sleep)


def not_younger_than(path: Path, seconds: float) -> bool:
    probe = path.with_name("now")
    probe.touch()
    return probe.stat().st_mtime - path.stat().st_mtime >= seconds


@pytest.mark.parametrize("count", [6, pytest.param(20, marks=pytest.mark.nightly)])
def test_a_storm_of_window_reloads_leaves_nothing(home: Home, count: int) -> None:
    """So many windows come and go at once, each in the middle of a command and with one beside it."""
    sleep = unique_sleep()
    model = home.script(
        reply(in_background(sleep), tool("bash", {"command": sleep}, "call-2")), reply("never")
    )
    root = home.workspace()
    daemons = [home.spawn("--allow-full") for _ in range(count)]
    for daemon in daemons:
        options = {"trusted": True, "model": model, "mode": "full"}
        params: Json = {"capabilities": {}, "processId": None, "rootUri": root.as_uri()}
        daemon.send(
            request(1, "initialize", {**params, "initializationOptions": {"agentd": options}}),
            {"jsonrpc": "2.0", "method": "initialized", "params": {}},
            request(2, "agentd/prompt", {"prompt": "run", "model": model, "mode": "full"}),
        )
    until(lambda: len(sleepers(sleep)) >= 3 * len(daemons), "all of them run", 60)
    for number, daemon in enumerate(daemons):
        if number % 2:
            daemon.process.kill()
        else:
            daemon.close_stdin()
    for number, daemon in enumerate(daemons):
        assert daemon.exit_code(20) == (-signal.SIGKILL if number % 2 else 0)
    until(lambda: not processes_with(sleep), "nothing is left", 10)
    later = home.start("--allow-full")
    listed = later.call("agentd/session/list")["sessions"]
    assert len(listed) == len(daemons)
    assert not any("lockedBy" in session for session in listed)


@pytest.mark.parametrize("end", ["close", "delete"])
def test_a_sandboxed_one_ends_with_its_session(daemon: Daemon, shared_home: Home, end: str) -> None:
    need("bubblewrap")
    sleep = unique_sleep()
    chat = started(daemon, shared_home, sleep, "auto")
    daemon.call(f"agentd/session/{end}", {"sessionId": chat.id})
    assert not processes_with(sleep), "it is gone when the answer comes"


def test_a_sandboxed_one_that_was_started_in_trust_is_stopped_by_the_model_without_it(home: Home) -> None:
    """Trust that is gone closes what comes, and not the way to end what runs."""
    need("bubblewrap")
    daemon = home.start()
    sleep = unique_sleep()
    chat = started(daemon, home, sleep, "auto")
    daemon.notify("agentd/trust/didChange", {"trusted": False})
    calls = [
        tool("bash", {"command": "echo ran > ran"}, "call-2"),
        tool("bash_kill", {"id": "bg_1"}, "call-3"),
    ]
    since = len(daemon.messages)
    model = home.script(*map(reply, calls), reply("stopped"))
    prompt = chat.start("stop it", model=model)
    asked = daemon.asked(ASK, since)
    daemon.answer(asked, {"optionId": option(asked, "reject_once")})
    chat.result(prompt)
    assert not processes_with(sleep)
    assert not (chat.root / "ran").exists()
