"""`agentd run` as a person sees it: a real pseudo-terminal, a real keyboard."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, str(Path(__file__).parent / "agentd_with_fake_daemon.py"), "run"]
DEADLINE = 60.0


class Screen:
    """A terminal with a command in it."""

    def __init__(self, *arguments: str, env: dict[str, str], **options: Any) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        streams = {"stdin": slave, "stdout": slave, "stderr": slave, **options}
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            **streams,
            env={**os.environ, "TERM": "xterm", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0),
        )
        # held while the command itself may not yet have the terminal open, lest it looks as if it had ended
        self._slave = os.dup(slave) if options else None
        os.close(slave)
        self.shown = ""

    def wait_for(self, word: str) -> None:
        """Read on until the terminal was sent `word`."""
        end = time.monotonic() + DEADLINE
        while word not in self.shown:
            assert time.monotonic() < end, f"{word!r} never came; there was {self.shown!r}"
            if not self._read(1):
                pytest.fail(f"the command ended before {word!r}; there was {self.shown!r}")

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: nobody holds the other side any more
            return False
        self.shown += data.decode().replace("\r\n", "\n")
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read to the end. Gives the exit code."""
        self._let_go()
        end = time.monotonic() + DEADLINE
        while self._read(1):
            assert time.monotonic() < end, f"it never ended; there was {self.shown!r}"
        return self.process.wait(DEADLINE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._let_go()
        os.close(self._master)

    def _let_go(self) -> None:
        if self._slave is not None:
            os.close(self._slave)
            self._slave = None


@pytest.fixture
def screens() -> Iterator[list[Screen]]:
    opened: list[Screen] = []
    yield opened
    for screen in opened:
        screen.close()


@pytest.fixture
def terminal(screens: list[Screen], tmp_path: Path) -> Any:
    def start(*arguments: str, env: dict[str, str] | None = None, **options: Any) -> Screen:
        screens.append(Screen(*arguments, "-C", str(tmp_path), env=env or {}, **options))
        return screens[-1]

    return start


def plain(shown: str) -> str:
    """What stays on the screen: colours gone, each line as it was last written."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    return re.sub(r"[^\n]*\r\x1b\[K", "", text)


def test_the_answer_appears_as_it_is_written(terminal: Any) -> None:
    screen = terminal("say:first_ hang")
    screen.wait_for("first ")
    screen.type("\x03")
    assert screen.end() == 130
    assert plain(screen.shown).startswith("first ^C\nCancelling")
    assert "Cancelled." in screen.shown


def test_tools_have_a_live_line_and_then_a_line_of_their_own(terminal: Any) -> None:
    screen = terminal("call:pytest:1 say:done")
    assert screen.end() == 0
    assert "→ Run \\x1b[31mpytest\\x1b[m (0 s)" in screen.shown
    lines = plain(screen.shown).splitlines()
    assert lines[:2] == ["✗ Run \\x1b[31mpytest\\x1b[m (exit code 1, 1.23 s)", "done"]
    assert lines[-1] == "1 turn, 1,200 tokens in, 34 out"


def test_a_wait_has_a_running_clock(terminal: Any) -> None:
    screen = terminal("hang")
    screen.wait_for("thinking (0 s)")
    screen.wait_for("thinking (1 s)")
    screen.type("\x03")
    assert screen.end() == 130


def test_neither_model_nor_tool_can_steer_the_terminal(terminal: Any) -> None:
    screen = terminal("say:\\e]0;evil call:x:0 ask:command")
    screen.wait_for("go to the model")
    screen.type("3\n")
    screen.end()
    ours = re.compile(r"\x1b\[(?:K|m|2m|31m|32m)")
    assert not set("\x1b\x07\x9b") & set(ours.sub("", screen.shown))
    assert "rm -rf \\x1b[8mall" in screen.shown


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("1\n", "[yes]"),
        ("2\n", "[always]"),
        ("3 use trash\n", "[no][use trash]"),
        ("y\n", "[yes]"),
        ("Yes\n", "[yes]"),
        ("n\n", "[no]"),
        ("no use trash\n", "[no][use trash]"),
    ],
)
def test_a_question_is_answered_at_the_keyboard(terminal: Any, typed: str, answer: str) -> None:
    screen = terminal("ask:command")
    screen.wait_for("go to the model")
    assert "in /w:" in screen.shown
    assert "2  Always allow (all)" in screen.shown
    screen.type(typed)
    screen.wait_for(answer)
    assert screen.end() == 0


@pytest.mark.parametrize("typed", ["", "maybe", "0", "4", "-1", "²", "always 1"])
def test_what_is_no_number_of_an_answer_is_asked_again(terminal: Any, typed: str) -> None:
    screen = terminal("ask:command")
    screen.wait_for("go to the model")
    screen.type(f"{typed}\n")
    screen.wait_for("from 1 to 3")
    screen.type("3\n")
    screen.wait_for("[no]")
    assert screen.end() == 0


def test_what_was_typed_before_the_question_is_no_answer(terminal: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    screen = terminal("gate ask:command", env={"FAKE_GATE": str(gate)})
    screen.wait_for("thinking")
    screen.type("1 typed ahead\n")
    screen.wait_for("1 typed ahead")  # the terminal's echo: the line waits to be read
    gate.touch()
    screen.wait_for("go to the model")
    screen.type("3\n")
    screen.wait_for("[no]")
    assert screen.end() == 0


def test_a_change_is_shown_before_it_is_allowed(terminal: Any) -> None:
    screen = terminal("ask:edit")
    screen.wait_for("go to the model")
    assert "    -x\n    +y\n" in screen.shown
    screen.type("1\n")
    screen.wait_for("[yes]")
    assert screen.end() == 0


def test_the_end_of_input_is_no_permission(terminal: Any) -> None:
    screen = terminal("ask:command")
    screen.wait_for("go to the model")
    screen.type("\x04")
    screen.wait_for("[none]")
    assert screen.end() == 0


def test_a_question_goes_to_the_terminal_wherever_the_streams_go(terminal: Any) -> None:
    reading, writing = os.pipe()
    screen = terminal("ask:command", stdout=writing, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writing)
    screen.wait_for("go to the model")
    screen.type("1\n")
    with os.fdopen(reading) as answer:
        assert answer.read() == "[yes]\n"
    assert screen.end() == 0


def test_a_question_that_is_taken_back_leaves_the_terminal(terminal: Any) -> None:
    screen = terminal("retract say:_after")
    screen.wait_for("[-32800] after")
    assert screen.end() == 0


def test_ctrl_c_at_a_question_ends_the_run(terminal: Any) -> None:
    screen = terminal("ask:command")
    screen.wait_for("go to the model")
    screen.type("\x03")
    screen.wait_for("[none]")
    screen.wait_for("Cancelling")
    assert screen.end() == 130


def test_two_sub_agents_that_ask_at_once_are_asked_about_one_after_the_other(
    screens: list[Screen], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real daemon: the second question comes when the first one is answered."""

    def call(name: str, **arguments: Any) -> dict[str, Any]:
        return {"content": [{"type": "tool_call", "name": name, "arguments": arguments}]}

    def text(words: str, **more: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": words}], **more}

    jobs = [{"description": f"write {name}", "prompt": f"Do job {name}."} for name in "ab"]
    parts = [
        {**call("write_file", file_path=f"{name}.txt", content=f"{name}\n"), "when": f"Do job {name}."}
        for name in "ab"
    ]
    ends = [text("The child is done.", when=f"Do job {name}.") for name in "ab"]
    script, project = tmp_path / "script.json", tmp_path / "project"
    script.write_text(json.dumps([call("task", tasks=jobs), *parts, *ends, text("All done.")]))
    (tmp_path / "config.toml").touch()
    project.mkdir()
    monkeypatch.setitem(globals(), "COMMAND", [sys.executable, "-P", "-m", "agentd", "run"])
    env = {
        "AGENTD_CONFIG": str(tmp_path / "config.toml"),
        "AGENTD_DATA": str(tmp_path / "data"),
        "AGENTD_MODEL": f"scripted/{script}",
    }
    screen = Screen("Please.", "-C", str(project), env=env)
    screens.append(screen)
    screen.wait_for("go to the model")
    assert screen.shown.count("go to the model") == 1
    screen.type("y\n")
    end = time.monotonic() + DEADLINE
    while screen.shown.count("go to the model") < 2:
        assert time.monotonic() < end
        screen.wait_for("go to the model")
        screen._read(1)
    screen.type("y\n")
    assert screen.end() == 0
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "b.txt"]
    shown = plain(screen.shown)
    assert shown.count("Sub-agent “write a”: ") == shown.count("Sub-agent “write b”: ") == 1
    assert "All done." in shown
    assert "The child is done." not in shown
    assert "  1 write a: done (2 turns)" in shown
