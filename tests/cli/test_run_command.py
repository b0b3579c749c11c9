"""`agentd run` as a script sees it: real processes, no terminal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, str(Path(__file__).parent / "agentd_with_fake_daemon.py")]
DEADLINE = 60


def start(*arguments: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Start it without a controlling terminal, so that nobody can be asked."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )


def run(*arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = start("run", *arguments, env=env, stdin=subprocess.PIPE)
    out, err = process.communicate(stdin, timeout=DEADLINE)
    return process.returncode, out.decode(), err.decode()


def test_the_answer_and_nothing_else_is_on_stdout(tmp_path: Path) -> None:
    code, out, err = run("say:Hello_ call:pytest:1 edit:a.py say:world", "-C", str(tmp_path))
    assert (code, out) == (0, "Hello world\n")
    assert err.splitlines() == [
        "→ Run \\x1b[31mpytest\\x1b[m",
        "✗ Run \\x1b[31mpytest\\x1b[m (exit code 1, 1.23 s)",
        "→ Edit a.py",
        "✓ Edit a.py (+3 -1, 1.23 s)",
    ]


def test_the_answer_of_a_model_reaches_a_pipe_as_it_is(tmp_path: Path) -> None:
    assert run("say:\\e[31mred", "-C", str(tmp_path))[1] == "\x1b[31mred\n"


def test_a_locale_without_such_characters_is_no_obstacle(tmp_path: Path) -> None:
    code, out, err = run("say:é call:x:0", "-C", str(tmp_path), env={"PYTHONIOENCODING": "ascii"})
    assert (code, out) == (0, "\\xe9\n")
    assert err.startswith("> Run")


def test_the_prompt_can_come_from_stdin(tmp_path: Path) -> None:
    assert run("-", "-C", str(tmp_path), stdin=b"say:from_stdin\n")[:2] == (0, "from stdin\n")


def test_bytes_that_are_no_text_do_not_stop_a_prompt(tmp_path: Path) -> None:
    process = subprocess.run(
        [*map(os.fsencode, COMMAND), b"run", b"say:\xff\xfe", b"-C", os.fsencode(tmp_path)],
        capture_output=True,
        timeout=DEADLINE,
        check=True,
    )
    assert process.stdout.decode() == "\ufffd\ufffd\n"


def test_json_lines_are_events_and_then_the_result(tmp_path: Path) -> None:
    code, out, err = run("--json", "unknown say:a call:x:0", "-C", str(tmp_path))
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [line["event"]["type"] for line in lines[:-1]] == [
        "session_changed", "agent_start", "turn_start", "message_start", "weather_changed", "message_update",
        "tool_execution_start", "tool_execution_update", "tool_execution_end", "message_end", "turn_end",
        "agent_end",
    ]  # fmt: skip
    assert lines[4]["event"] == {"type": "weather_changed", "sky": "blue"}
    assert (lines[-1]["type"], lines[-1]["text"], lines[-1]["stopReason"]) == ("result", "a", "stop")


def test_json_of_a_run_that_never_began_is_an_error(tmp_path: Path) -> None:
    code, out, err = run("--json", "refuse:noModel", "-C", str(tmp_path))
    last = json.loads(out.splitlines()[-1])
    assert code == 1
    assert (last["type"], last["error"]["data"]["kind"]) == ("error", "noModel")
    assert err == "agentd: It cannot begin. Do it otherwise.\n"


@pytest.mark.parametrize(
    ("reason", "code", "word"),
    [
        ("stop", 0, ""),
        ("length", 0, "output limit"),
        ("refusal", 1, "The model refused.\n"),
        ("error", 1, "The key was refused."),
        ("interrupted", 1, "daemon stopped"),
        ("max_turns", 3, "--max-turns"),
        ("aborted", 130, "Cancelled"),
    ],
)
def test_exit_codes_tell_how_the_run_ended(tmp_path: Path, reason: str, code: int, word: str) -> None:
    assert (result := run(f"say:so_far stop:{reason}", "-C", str(tmp_path)))[0] == code
    assert result[1] == "so far\n"
    assert word in result[2]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["  "],
        ["a", "-C", "/no/such/folder"],
        ["a", "--mode", "wild"],
        ["a", "--max-turns", "0"],
        ["a", "--max-turns", "many"],
        ["a", "b"],
        ["-"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_sentence(arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "agentd run: error:" in err
    assert "Traceback" not in err


def test_options_reach_the_daemon(tmp_path: Path) -> None:
    log = tmp_path / "log"
    arguments = ["say:a", "-C", str(tmp_path), "-m", "p/m", "--mode", "edit", "--max-turns", "7", "--trust"]
    assert run(*arguments, env={"FAKE_LOG": str(log)})[0] == 0
    messages = {m.get("method"): m for m in map(json.loads, log.read_text().splitlines())}
    said = messages["initialize"]["params"]["initializationOptions"]["agentd"]
    assert (said["model"], said["trusted"], said["permission"]) == ("p/m", True, True)
    params = messages["agentd/prompt"]["params"]
    assert (params["mode"], params["maxTurns"]) == ("edit", 7)


@pytest.mark.parametrize(
    ("kind", "options", "way_out"),
    [
        ("edit", [], "--mode edit --trust would"),
        ("edit", ["--trust"], "--mode edit would"),
        ("edit", ["--trust", "--mode", "edit"], "--mode full --allow-full would"),
        ("command", [], "--mode full --allow-full --trust would"),
        ("fetch", ["--trust"], "--mode full --allow-full would"),
        ("command", ["--mode", "full", "--allow-full"], "allow it; --allow-full --trust would"),
    ],
)
def test_without_a_terminal_a_question_is_refused_with_the_way_out(
    tmp_path: Path, kind: str, options: list[str], way_out: str
) -> None:
    code, out, err = run(f"ask:{kind}", "-C", str(tmp_path), *options)
    assert code == 0
    assert out.startswith("[no][The user cannot be asked")
    assert "Refused: Run rm." in err
    assert way_out.removeprefix("allow it; ") in err


def lines_until(stream: Any, word: str) -> None:
    """Read until a line has this word."""
    for line in stream:
        if word in line.decode():
            return
    pytest.fail(f"the output ended without {word!r}")


def test_ctrl_c_cancels_and_waits_for_the_result(tmp_path: Path) -> None:
    process = start("run", "--json", "say:a hang", "-C", str(tmp_path))
    lines_until(process.stdout, "message_update")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE)
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == 130
    assert (last["type"], last["stopReason"]) == ("result", "aborted")
    assert b"Cancelling" in err
    assert b"Traceback" not in err


def test_sigterm_cancels_too(tmp_path: Path) -> None:
    process = start("run", "--json", "say:a hang", "-C", str(tmp_path))
    lines_until(process.stdout, "message_update")
    process.terminate()
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 143


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    process = start("run", "say:a call:x:0 mute hang", "-C", str(tmp_path), env={"FAKE_STUBBORN": "1"})
    lines_until(process.stderr, "✓")
    process.send_signal(signal.SIGINT)
    lines_until(process.stderr, "Cancelling")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert b"Traceback" not in err


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path, options: list[str]) -> None:
    reading, writing = os.pipe()
    process = start("run", *options, "call:x:0 flood:3000", "-C", str(tmp_path), stdout=writing)
    os.close(writing)
    os.close(reading)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 141
    assert b"Traceback" not in err
    assert b"BrokenPipe" not in err


def test_a_reader_that_is_slow_gets_everything(tmp_path: Path) -> None:
    process = start("run", "--json", "flood:3000", "-C", str(tmp_path))
    assert process.stdout is not None
    count = sum(1 for _ in process.stdout)
    assert process.wait(DEADLINE) == 0
    assert count == 3000 + 8
    process.communicate()


def test_closed_stderr_is_no_obstacle(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start("run", "call:x:0 say:a", "-C", str(tmp_path), stderr=writing)
    os.close(writing)
    assert process.communicate(timeout=DEADLINE)[0] == b"a\n"
    assert process.returncode == 0


def test_a_daemon_that_dies_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    code, out, err = run("say:a die:5", "-C", str(tmp_path))
    assert (code, out) == (1, "")
    assert "exit code 5" in err
    assert "says goodbye" in err


def test_help_names_every_exit_code_and_mode() -> None:
    code, out, _ = run("--help")
    assert code == 0
    for word in ("130", "plan", "max-turns", "--allow-full"):
        assert word in out
