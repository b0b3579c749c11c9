"""Every way a daemon may end: its exit code, idle and with a tool running, and what the next daemon finds."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from wire.chat import Chat
from wire.harness import OPTIONS, Daemon, Json, initialize_params, notification, request
from wire.home import Home
from wire.processes import processes_with, sleepers, unique_sleep, until
from wire.scripts import reply, tool

End = Callable[[Daemon], None]


def shut_down(daemon: Daemon) -> None:
    daemon.send(request("bye", "shutdown"), notification("exit"))


def exit_alone(daemon: Daemon) -> None:
    daemon.notify("exit")


def end_input(daemon: Daemon) -> None:
    daemon.close_stdin()


def terminate(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGTERM)


def interrupt(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGINT)


def hang_up(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGHUP)


def drop_connection(daemon: Daemon) -> None:
    """All that comes with a lost SSH connection, the pipes first."""
    daemon.process.send_signal(signal.SIGSTOP)
    daemon.close_stdout()
    daemon.process.send_signal(signal.SIGHUP)
    daemon.process.send_signal(signal.SIGCONT)


def close_output(daemon: Daemon) -> None:
    daemon.close_stdout()


def break_framing(daemon: Daemon) -> None:
    daemon.write(b"Content-Length: abc\r\n\r\n")


ENDS: dict[str, tuple[End, int]] = {
    "shutdown-exit": (shut_down, 0),
    "exit-alone": (exit_alone, 1),
    "end-of-input": (end_input, 0),
    "sigterm": (terminate, 143),
    "sigint": (interrupt, 130),
    "sighup": (hang_up, 129),
    "closed-stdout": (close_output, 1),
    "broken-framing": (break_framing, 2),
}


@pytest.fixture
def editor() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the editor that started the daemon."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    with contextlib.suppress(OSError):
        process.kill()
    process.wait()
    assert process.stdin
    process.stdin.close()


def kill_and_reap(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


# --- idle ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("end", "code"), ENDS.values(), ids=ENDS)
def test_an_idle_daemon_ends_with_its_exit_code(home: Home, end: End, code: int) -> None:
    daemon = home.start()
    assert daemon.serves()
    end(daemon)
    assert daemon.exit_code() == code


def test_an_idle_daemon_ends_when_the_editor_process_dies(
    home: Home, editor: "subprocess.Popen[bytes]"
) -> None:
    daemon = home.start(process_id=editor.pid)
    assert daemon.serves()
    kill_and_reap(editor)
    assert daemon.exit_code() == 0


def test_a_process_id_that_is_dead_from_the_start_ends_the_daemon(
    home: Home, editor: "subprocess.Popen[bytes]"
) -> None:
    kill_and_reap(editor)
    daemon = home.spawn()
    daemon.send(request(1, "initialize", initialize_params(process_id=editor.pid)))
    assert daemon.exit_code() == 0


def test_the_daemon_lives_as_long_as_the_editor_process(home: Home) -> None:
    daemon = home.start(process_id=os.getpid())
    assert daemon.serves()
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.process.wait(1.5)  # it would have looked by now
    assert daemon.serves()


@pytest.mark.parametrize(
    ("end", "code"),
    [(end_input, 0), (exit_alone, 1), (terminate, 143), (interrupt, 130)],
    ids=["end-of-input", "exit", "sigterm", "sigint"],
)
def test_a_daemon_that_was_told_nothing_ends_with_its_exit_code(home: Home, end: End, code: int) -> None:
    daemon = home.spawn()
    if end in (terminate, interrupt):
        # The process must have come as far as our own code: it answers, then it is sent the signal.
        assert daemon.refused("agentd/status")["code"] == -32002
    end(daemon)
    assert daemon.exit_code() == code


def test_end_of_input_inside_a_frame_is_an_end_of_input(home: Home) -> None:
    daemon = home.start()
    daemon.write(b"Content-Length: 100\r\n\r\n{")
    daemon.close_stdin()
    assert daemon.exit_code() == 0


def test_exit_right_behind_initialize_ends_the_daemon(home: Home) -> None:
    daemon = home.spawn()
    daemon.send(request(1, "initialize", initialize_params()), notification("exit"))
    assert daemon.exit_code() == 1
    assert "result" in daemon.response(1)


# --- with a tool running -------------------------------------------------------------------------------


class Running:
    """A daemon whose only prompt is in the middle of a command."""

    def __init__(self, home: Home, process_id: int | None = None) -> None:
        self.home = home
        self.sleep = unique_sleep()
        command = f"echo ran >> ran.txt; {self.sleep} & setsid {self.sleep} & {self.sleep}"
        self.root = home.workspace()
        self.daemon = home.start("--allow-full", process_id=process_id)
        model = home.script(reply("I run it", tool("bash", {"command": command}, "call-1")), reply("never"))
        self.chat = Chat(self.daemon, self.root, model=model, mode="full")
        self.prompt = self.chat.start("run it", promptId="interrupted-1")
        until(lambda: len(sleepers(self.sleep)) >= 3, "the command and its children run")

    def assert_interrupted(self) -> None:
        """Nothing is left alive, and the next daemon goes on from a run that ended as interrupted."""
        until(lambda: not processes_with(self.sleep), "no process of the command is left", 3)
        assert b'"interrupted"' in self.home.journal(), "agent_end is journaled before the daemon ends"
        daemon = self.home.start("--allow-full")
        listed = daemon.call("agentd/session/list")["sessions"]
        assert [session["sessionId"] for session in listed] == [self.chat.id]
        assert listed[0]["state"] == "idle"
        got = daemon.call("agentd/session/get", {"sessionId": self.chat.id})
        roles = [message["role"] for message in got["messages"]]
        assert roles == ["user", "assistant", "tool_result", "assistant"]
        assert got["messages"][2]["toolCallId"] == "call-1"
        again = {"sessionId": self.chat.id, "prompt": "run it", "promptId": "interrupted-1"}
        result = daemon.call("agentd/prompt", again)
        assert result["stopReason"] == "interrupted"
        following: Json = {
            "sessionId": self.chat.id,
            "prompt": "go on",
            "promptId": "next-1",
            "model": self.home.script(reply("here again")),
        }
        assert daemon.call("agentd/prompt", following)["text"] == "here again"
        assert (self.root / "ran.txt").read_text() == "ran\n"


@pytest.mark.parametrize(("end", "code"), ENDS.values(), ids=ENDS)
def test_an_end_with_a_tool_running_leaves_no_process_and_a_whole_session(
    home: Home, end: End, code: int
) -> None:
    running = Running(home)
    end(running.daemon)
    assert running.daemon.exit_code() == code
    running.assert_interrupted()


def test_a_dropped_connection_with_a_tool_running_leaves_no_process_and_a_whole_session(home: Home) -> None:
    running = Running(home)
    drop_connection(running.daemon)
    assert running.daemon.exit_code() in (1, 129), "whichever it sees first"
    running.assert_interrupted()


def test_the_death_of_the_editor_with_a_tool_running_leaves_no_process_and_a_whole_session(
    home: Home, editor: "subprocess.Popen[bytes]"
) -> None:
    running = Running(home, process_id=editor.pid)
    kill_and_reap(editor)
    assert running.daemon.exit_code() == 0
    running.assert_interrupted()


@pytest.mark.parametrize("end", [shut_down, exit_alone, end_input, terminate], ids=lambda end: end.__name__)
def test_a_running_prompt_is_answered_before_the_daemon_ends(home: Home, end: End) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("so far", hang=True)))
    prompt = chat.start()
    chat.event("message_update")
    end(daemon)
    daemon.exit_code()
    result = chat.result(prompt)
    assert (result["stopReason"], result["text"]) == ("interrupted", "so far")
    ended = chat.event("agent_end")
    assert ended["stopReason"] == "interrupted"
    if end is shut_down:
        assert daemon.response("bye")["result"] is None


def test_end_of_input_answers_every_request_that_was_read(home: Home) -> None:
    daemon = home.start()
    ids = list(range(1, 60))
    daemon.send(*(request(request_id, "agentd/session/list") for request_id in ids))
    daemon.close_stdin()
    assert daemon.exit_code() == 0
    answers = [message["id"] for message in daemon.messages if "method" not in message]
    assert sorted(answers)[: len(ids)] == ids


def test_a_tool_that_ignores_sigterm_does_not_hold_the_daemon_back(home: Home) -> None:
    sleep = unique_sleep()
    command = f"trap '' TERM INT HUP; {sleep} & while :; do wait; done"
    daemon = home.start("--allow-full")
    model = home.script(reply(tool("bash", {"command": command}, "call-1")))
    chat = Chat(daemon, home.workspace(), model=model, mode="full")
    chat.start()
    until(lambda: sleepers(sleep), "the command runs")
    terminate(daemon)
    assert daemon.exit_code() == 143
    until(lambda: not processes_with(sleep), "no process of the command is left", 3)


def test_a_client_that_never_reads_and_closes_stdin_gets_rid_of_the_daemon(home: Home) -> None:
    daemon = home.start(options=OPTIONS)
    chat = Chat(daemon, home.workspace(), model=home.script(reply("x" * 2_000_000, chunkSize=1000)))
    daemon.stop_reading()
    chat.start()
    daemon.close_stdin()
    daemon.process.wait(8)
    daemon.read_on()


@pytest.mark.parametrize("end", [terminate, end_input], ids=lambda end: end.__name__)
def test_many_running_sessions_end_as_fast_as_one(home: Home, end: End) -> None:
    sleep = unique_sleep()
    daemon = home.start("--allow-full")
    prompts = []
    for _ in range(12):
        model = home.script(reply(tool("bash", {"command": f"{sleep} & {sleep}"}, "call-1")))
        chat = Chat(daemon, home.workspace(), model=model, mode="full")
        prompts.append((chat, chat.start()))
    until(lambda: len(sleepers(sleep)) >= 24, "all commands run")
    end(daemon)
    assert daemon.exit_code() == (143 if end is terminate else 0)
    until(lambda: not processes_with(sleep), "no process of the commands is left", 3)
    for chat, prompt in prompts:
        assert chat.result(prompt)["stopReason"] == "interrupted"


def test_an_end_with_an_open_question_takes_it_back(home: Home) -> None:
    daemon = home.start()
    model = home.script(reply(tool("bash", {"command": "echo ran > ran.txt"}, "call-1")))
    chat = Chat(daemon, home.workspace(), model=model)
    prompt = chat.start()
    daemon.asked("agentd/permission/request")
    end_input(daemon)
    assert daemon.exit_code() == 0
    assert chat.result(prompt)["stopReason"] == "interrupted"
    assert chat.event("permission_resolved")["outcome"] == "cancelled"
    assert not (chat.root / "ran.txt").exists()


# --- the first moments ------------------------------------------------------------------------------------


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_first_frame_ends_the_daemon_in_silence(
    home: Home, number: signal.Signals
) -> None:
    daemon = home.spawn()
    until(lambda: catches(daemon.pid, signal.SIGTERM), "it waits for the first frame")
    daemon.process.send_signal(number)
    assert (daemon.exit_code(), daemon.errors) == (128 + number, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_rest_is_imported_ends_the_daemon_in_silence(
    home: Home, number: signal.Signals
) -> None:
    daemon = home.spawn()
    daemon.call("initialize", initialize_params())  # answered before anything else is imported
    daemon.process.send_signal(number)
    assert (daemon.exit_code(), daemon.errors) == (128 + number, b"")


# --- stderr ------------------------------------------------------------------------------------------------


def test_a_client_that_does_not_read_stderr_does_not_stop_the_daemon(home: Home) -> None:
    daemon = home.spawn(deaf=True)
    daemon.initialize()
    bad = [notification("textDocument/didOpen", {"textDocument": "x" * 200})] * 500
    for _ in range(6):
        daemon.send(*bad)
    assert daemon.serves()
    daemon.call("shutdown")
    daemon.notify("exit")
    assert daemon.exit_code() == 0


@pytest.mark.parametrize("both", [False, True], ids=["stderr", "stderr-then-stdout"])
def test_a_closed_stderr_harms_nobody(home: Home, both: bool) -> None:
    daemon = home.spawn(deaf=True)
    daemon.initialize()
    assert daemon.process.stderr
    daemon.process.stderr.close()
    daemon.send(*[notification("textDocument/didOpen", {"textDocument": "x"})] * 50)
    assert daemon.serves()
    if both:
        daemon.close_stdout()
        assert daemon.exit_code() == 1
    else:
        daemon.call("shutdown")
        daemon.notify("exit")
        assert daemon.exit_code() == 0
