"""The client code of LSP for Sublime Text, configured as `editors/README.md` says.

It runs on a stand-in for the editor's API (`sublime/`); Sublime Text itself is not run. LSP comes from no
registry: `AGENTD_SUBLIME_LSP` names a folder in which its package is `LSP`.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from editors.places import DAEMON, HERE, Place
from wire.scripts import reply, tool

SECONDS = 20.0
SHOUT = {"file_path": "a.txt", "old_string": "three", "new_string": "THREE"}
TEXT = "# agentd: shout\ntwo\n😀 three\n"
READ = reply(tool("read_file", {"file_path": "a.txt"}))
MAKE = reply(tool("bash", {"command": "touch made"}))
DONE = reply("It is done.")


def package() -> Path:
    """Where LSP is; skips the test where it is not."""
    named = os.environ.get("AGENTD_SUBLIME_LSP")
    if not named or not (Path(named) / "LSP" / "plugin" / "core" / "sessions.py").exists():
        pytest.skip("LSP for Sublime Text is not here; AGENTD_SUBLIME_LSP names the folder that holds it")
    return Path(named)


def configuration() -> tuple[str, list[Any]]:
    """The settings and the key bindings of `editors/README.md`."""
    readme = (HERE.parents[1] / "editors" / "README.md").read_text()
    section = readme.partition("## Sublime Text")[2].partition("\n## ")[0]
    settings, keys = re.findall(r"^```json\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return settings, json.loads(keys)


class Sublime:
    """The stand-in with LSP, a workspace and one file open."""

    def __init__(self, place: Place, text: str, mode: str, *responses: Any) -> None:
        self.root = place.folder / "home"
        self.file = self.root / "a.txt"
        self.file.write_text(text)
        self._script = place.folder / "script.json"
        self.plays(*responses)
        model = f'model = "scripted/{self._script}"\nmode = "{mode}"\ntrusted = ["{self.root}"]\n'
        place.config.write_text(model)
        command = place.folder / "bin" / "agentd"
        command.parent.mkdir()
        command.write_text(f"#!/bin/sh\nexec {shlex.join(DAEMON)}\n")
        command.chmod(0o755)
        self.requests = place.folder / "requests.jsonl"
        self.data = place.folder / "data"
        environment = {
            **place.environment,
            "AGENTD_SCRIPT_REQUESTS": str(self.requests),
            "PATH": f"{command.parent}:{place.environment['PATH']}",
        }
        settings, self.keys = configuration()
        program = [sys.executable, str(HERE / "sublime" / "editor.py")]
        self._log = (place.folder / "console").open("w")
        self._process = subprocess.Popen(
            [*program, str(package()), str(self.root), settings, str(self.file)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.wait("LSP has its session", lambda: self.screen["served"])

    def plays(self, *responses: Any) -> None:
        """What the model answers from the next start of the daemon on."""
        self._script.write_text(json.dumps(responses))

    def do(self, name: str, *arguments: Any) -> Any:
        """What a user does, by a function of `sublime/editor.py`; gives its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    @property
    def screen(self) -> dict[str, Any]:
        """All that is on the screen."""
        shown: dict[str, Any] = self.do("see")
        return shown

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until it is so; fails with what the screen and the console show."""
        end = time.monotonic() + SECONDS
        while not condition():
            console = Path(self._log.name).read_text()
            assert time.monotonic() < end, f"it did not happen: {what}\n{self.screen}\n{console}"
            time.sleep(0.05)

    def shows(self, text: str) -> None:
        """Wait until the screen shows a text."""
        self.wait(f"the screen shows {text}", lambda: text in json.dumps(self.screen, ensure_ascii=False))

    def said(self, text: str) -> None:
        """Wait until the status bar has said this, and perhaps something else since."""
        self.wait(f"the status bar says {text}", lambda: any(text in each for each in self.screen["said"]))

    def key(self, keys: str) -> None:
        """Press keys that the configuration binds."""
        self.do("press", next(each for each in self.keys if each["keys"] == [keys]))

    def menu(self, title: str, at: int = 0) -> None:
        """Choose of the code actions at a place by title."""
        self.do("select", at, at)
        self.offered(title)
        self.do("choose", title)

    def offered(self, title: str) -> None:
        """Open the code actions at the caret, once they have one of this title."""

        def is_offered() -> bool:
            self.do("palette", "lsp_code_actions")
            end = time.monotonic() + 1
            while time.monotonic() < end:
                panel = self.screen["panel"] or ()
                if any(title in each for each in panel):
                    return True
                time.sleep(0.05)
            return False

        self.wait(f"the menu offers {title}", is_offered)

    def answer(self, title: str) -> None:
        """Click an answer of the question in the popup."""
        self.wait(f"a popup has {title}", lambda: title in (self.screen["popup"] or ""))
        (href,) = re.findall(rf"<a href='(\d+)'>{title}</a>", self.screen["popup"])
        self.do("click", href)

    def typed(self, text: str) -> None:
        """Write a line above the last one, and leave it unsaved."""
        end = self.screen["text"].rstrip("\n").rfind("\n") + 1
        self.do("select", end, end)
        self.do("write", f"{text}\n")

    @property
    def daemon(self) -> int | None:
        """The process id of the agentd that LSP started, where one runs."""
        threads = Path(f"/proc/{self._process.pid}/task").iterdir()
        children = [int(each) for task in threads for each in (task / "children").read_text().split()]
        return children[0] if children else None

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._log.close()


@pytest.fixture
def sublime(place: Place) -> Iterator[Callable[..., Sublime]]:
    package()
    opened: list[Sublime] = []

    def open_sublime(text: str, mode: str, *responses: Any) -> Sublime:
        opened.append(Sublime(place, text, mode, *responses))
        return opened[-1]

    yield open_sublime
    for each in opened:
        each.close()


def made(root: Path) -> bool:
    return (root / "made").exists()


def last_asked(screen: Sublime) -> str:
    """The newest request to the model."""
    return screen.requests.read_text().splitlines()[-1]


def test_a_selection_is_asked_by_the_key_and_answered_by_a_message_and_a_document(
    sublime: Callable[..., Sublime],
) -> None:
    screen = sublime("what is it\nelse\n", "ask", reply("It is 42.\nAs ever."))
    screen.do("select", 0, 10)
    screen.key("ctrl+alt+a")
    screen.said("agentd: It is 42.")
    screen.wait("the answer is open", lambda: "As ever." in (screen.screen["text"] or ""))
    assert screen.screen["file"].endswith(".md")
    assert "what is it" in last_asked(screen)


def test_a_second_answer_is_told_of_and_stands_in_the_tab_of_the_first(
    sublime: Callable[..., Sublime],
) -> None:
    screen = sublime("what is it\n", "ask", reply("first\nanswer"), reply("second\n" * 100))
    for answer in ("first", "agentd has answered at length: "):
        screen.do("visit", str(screen.file))
        screen.do("select", 0, 10)
        screen.key("ctrl+alt+a")
        screen.said(f"agentd: {answer}")
        if answer == "first":
            screen.wait("the answer is open", lambda: screen.screen["file"].endswith(".md"))
            shown = screen.screen["file"]
    assert screen.screen["file"] == str(screen.file)
    screen.do("look_again")
    screen.do("visit", shown)
    assert "second\nsecond\n" in screen.screen["text"]


def test_the_transcript_that_is_asked_for_comes_to_the_front(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("what is it\n", "ask", reply("first"))
    screen.do("select", 0, 10)
    screen.key("ctrl+alt+a")
    screen.wait("the answer is open", lambda: screen.screen["file"].endswith(".md"))
    screen.do("visit", str(screen.file))
    show = {"session_name": "agentd", "command_name": "agentd.showTranscript"}
    screen.do("press", {"command": "lsp_execute", "args": show})
    screen.wait("the transcript is in front", lambda: screen.screen["file"].endswith(".md"))


def test_a_key_without_a_selection_is_told_what_it_lacks(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("what is it\n", "ask")
    screen.key("ctrl+alt+a")
    screen.said("command agentd.prompt failed: /arguments/0: must be the text of the prompt")


def test_a_question_to_save_is_answered_by_saving(sublime: Callable[..., Sublime]) -> None:
    screen = sublime(TEXT, "full", reply(tool("bash", {"command": "cat a.txt"})), reply("I see"))
    screen.typed("typed")
    screen.menu("agentd: shout")
    screen.shows("Save 1 file")
    screen.do("save")
    screen.said("I see")
    assert "# agentd: shout\\ntwo\\ntyped" in last_asked(screen)
    screen.do("visit", str(screen.file))
    screen.do("escape")  # what LSP then answers is too late, and harms nothing
    screen.menu("agentd: explain this file")
    screen.said("agentd: ")


def test_a_comment_is_asked_by_the_menu_and_its_question_allowed(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("# agentd: make it\n", "ask", MAKE, reply("done"))
    screen.menu("agentd: make it")
    screen.shows("touch made")
    assert not made(screen.root)
    screen.answer("Allow once")
    screen.said("done")
    assert made(screen.root)


def test_a_rejected_command_is_not_run(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("# agentd: make it\n", "ask", MAKE, reply("I see"))
    screen.menu("agentd: make it")
    screen.answer("Reject")
    screen.said("I see")
    assert not made(screen.root)


@pytest.mark.parametrize("how", [("escape",), ("write", "x"), ("select", 0, 1)])
def test_a_question_whose_popup_is_gone_is_answered_no(
    sublime: Callable[..., Sublime], how: tuple[Any, ...]
) -> None:
    screen = sublime("# agentd: make it\n", "ask", MAKE, reply("I see"))
    screen.menu("agentd: make it", at=3)
    screen.wait("it is asked", lambda: "touch made" in (screen.screen["popup"] or ""))
    screen.do(*how)
    screen.said("I see")
    assert not made(screen.root)


def test_the_annotation_at_a_comment_asks_it(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("one\n# agentd: make it\n", "full", MAKE, reply("done"))
    screen.do("select", 4, 4)
    screen.wait("it is offered", lambda: "agentd:&nbsp;make&nbsp;it" in str(screen.screen["annotations"]))
    screen.do("click_annotation", "code-actions:")
    screen.said("done")
    assert made(screen.root)


def test_an_edit_lands_in_the_unsaved_buffer_and_is_undone_alone(sublime: Callable[..., Sublime]) -> None:
    screen = sublime(TEXT, "edit", READ, reply(tool("edit_file", SHOUT)), DONE)
    screen.typed("typed")
    screen.menu("agentd: shout")
    screen.said("It is done.")
    assert "Edited a.txt" in last_asked(screen)
    assert screen.file.read_text() == TEXT
    screen.do("visit", str(screen.file))
    shown = screen.screen
    assert shown["text"] == "# agentd: shout\ntwo\ntyped\n😀 THREE\n"
    assert "a.txt" in shown["undo"][-1]
    screen.do("undo")
    assert screen.screen["text"] == "# agentd: shout\ntwo\ntyped\n😀 three\n"


def test_an_edit_for_an_older_text_is_refused_though_it_was_not_told_of_yet(
    sublime: Callable[..., Sublime],
) -> None:
    wait = reply(tool("bash", {"command": "cat gate"}))
    screen = sublime(TEXT, "full", READ, wait, reply(tool("edit_file", SHOUT)), reply("I read again"))
    gate = screen.root / "gate"
    os.mkfifo(gate)
    screen.menu("agentd: shout")
    screen.shows("cat gate")
    gate.write_text("open")
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        screen.do("write", "x")
        time.sleep(0.1)  # the pace of a user's keys: what is tested is what comes between two of them
    screen.said("I read again")
    assert "was changed by the user at the same moment" in last_asked(screen)
    screen.do("visit", str(screen.file))
    assert screen.screen["text"].endswith("# agentd: shout\ntwo\n😀 three\n")


def test_an_edit_is_known_to_be_made_though_the_user_types_on(sublime: Callable[..., Sublime]) -> None:
    """LSP tells of nothing while keys come within 300 ms of one another."""
    wait = reply(tool("bash", {"command": "cat gate"}))
    screen = sublime(TEXT, "full", READ, wait, reply(tool("edit_file", SHOUT)), DONE)
    gate = screen.root / "gate"
    os.mkfifo(gate)
    screen.menu("agentd: shout")
    screen.shows("cat gate")
    gate.write_text("open")
    screen.wait("the edit is made", lambda: "THREE" in screen.screen["text"])
    end = time.monotonic() + 3  # longer than agentd waits for an editor that is not known to be silent
    while time.monotonic() < end:
        screen.do("write", "x")
        time.sleep(0.1)  # the pace of a user's keys, within the 300 ms
    screen.said("It is done.")
    assert "Edited a.txt" in last_asked(screen)


def test_what_it_does_is_shown_while_it_does_it_and_is_cancelled(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("# agentd: look\n", "full", reply(tool("bash", {"command": "sleep 60"})), reply("x"))
    screen.menu("agentd: look")
    screen.shows("agentd: sleep 60")
    screen.key("ctrl+alt+c")
    (journal,) = screen.data.rglob("*.jsonl")
    screen.wait("it is cancelled", lambda: '"aborted"' in journal.read_text())
    screen.wait("its progress is gone", lambda: "sleep 60" not in json.dumps(screen.screen["status"]))


def test_what_the_model_writes_grows_in_the_status_bar(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("# agentd: go on\n", "ask", reply("A list\non and on", hang=True))
    screen.menu("agentd: go on")
    screen.shows("agentd: on and on")


def test_a_finding_is_a_diagnostic_and_fixed_from_the_menu(sublime: Callable[..., Sublime]) -> None:
    finding = {"file_path": "a.txt", "line": 1, "severity": "error", "message": "wrong sign"}
    found = reply(tool("report_findings", {"findings": [finding]}))
    screen = sublime("# agentd: review it\n", "ask", found, reply("I fix it", hang=True))
    screen.menu("agentd: review it")
    screen.wait("it is underlined", lambda: "lspagentdds1_underline" in screen.screen["regions"])
    assert screen.screen["regions"]["lspagentdds1_underline"] == [[0, 19]]
    screen.do("select", 1, 1)
    screen.shows("wrong sign")
    screen.offered("agentd: fix: wrong sign")


def test_the_session_goes_on_after_the_daemon_was_killed_in_the_middle(
    sublime: Callable[..., Sublime],
) -> None:
    """LSP starts a server that crashed anew by itself, four times in three minutes."""
    screen = sublime("# agentd: go on\nand the rest\n", "ask", reply("on and on", hang=True))
    screen.menu("agentd: go on")
    screen.wait("the model is asked", screen.requests.exists)
    screen.plays(reply("now all of it"))
    killed = screen.daemon
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    screen.wait("LSP has started it anew", lambda: screen.daemon not in (None, killed))
    screen.wait("LSP has its session", lambda: screen.screen["served"])
    screen.do("select", 16, 28)
    screen.key("ctrl+alt+a")
    screen.said("now all of it")
    assert "go on" in last_asked(screen)
    assert "and the rest" in last_asked(screen)


def test_a_command_that_would_miss_unsaved_text_is_told_so(sublime: Callable[..., Sublime]) -> None:
    screen = sublime(TEXT, "full", reply(tool("bash", {"command": "cat a.txt"})), reply("I see"))
    screen.typed("typed")
    screen.menu("agentd: shout")
    screen.shows("Save 1 file")
    screen.answer("Run anyway")
    screen.said("I see")
    assert "unsaved" in last_asked(screen)


def test_agentd_ends_with_the_last_file_that_is_open(sublime: Callable[..., Sublime]) -> None:
    screen = sublime("one\n", "ask")
    screen.do("close")
    screen.wait("it has ended", lambda: screen.daemon is None)
