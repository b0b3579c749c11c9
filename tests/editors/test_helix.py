"""Helix, which knows no plugins, in a terminal: all by LSP's own means."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from editors.places import DAEMON, Place, editor
from editors.terminal import KEY_SECONDS, Terminal
from wire.scripts import reply, tool

REVERSE = "\x1b[7m"
"""What the terminal is told before the selected line of a list."""

LANGUAGES = """
[language-server.agentd]
command = {command}
args = {arguments}
[[language]]
name = "plain"
scope = "text.plain"
file-types = ["txt"]
roots = []
language-servers = ["agentd"]
"""


class Helix(Terminal):
    """A Helix with one file open, on a screen that can be read."""

    def __init__(self, place: Place, text: str, mode: str, *responses: Any) -> None:
        self.root = place.folder / "home"
        self.file = self.root / "a.txt"
        self.file.write_text(text)
        script = place.folder / "script.json"
        script.write_text(json.dumps(responses))
        place.config.write_text(f'model = "scripted/{script}"\nmode = "{mode}"\ntrusted = ["{self.root}"]\n')
        settings = place.folder / "CONFIG" / "helix" / "languages.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(LANGUAGES.format(command=json.dumps(DAEMON[0]), arguments=json.dumps(DAEMON[1:])))
        self.data = place.folder / "data"
        self.requests = place.folder / "requests.jsonl"
        self._script = script
        (settings.parent / "config.toml").write_text("[editor.lsp]\ndisplay-progress-messages = true\n")
        environment = {**place.environment, "AGENTD_SCRIPT_REQUESTS": str(self.requests)}
        super().__init__(place.folder / "tmux", self.root, [editor("helix"), "a.txt"], environment)

    def offered(self, title: str) -> None:
        """Open the menu of code actions, once the daemon serves and offers one of this title."""

        def is_offered() -> bool:
            self.press("Escape")
            time.sleep(KEY_SECONDS)
            self.press("Space", "a")
            end = time.monotonic() + 1
            while time.monotonic() < end:
                if any(title in line and "# agentd" not in line for line in self.screen.splitlines()):
                    return True
                time.sleep(0.05)
            return False

        self.wait(f"the menu offers {title}", is_offered)

    def menu(self, title: str) -> None:
        """Choose a code action by its title."""
        self.offered(title)
        self.select(title)

    def answer(self, title: str) -> None:
        """Answer a question once it is on the screen with all its answers."""
        self.shows("Reject")
        self.select(title)

    def select(self, title: str) -> None:
        """Go down in the list on the screen to this title, and choose it."""

        def is_selected() -> bool:
            lines = self.tmux("capture-pane", "-p", "-e").splitlines()
            if any(title in line and REVERSE in line and "# agentd" not in line for line in lines):
                return True
            self.press("Down")
            time.sleep(KEY_SECONDS)
            return False

        self.wait(f"{title} is selected", is_selected)

        def is_chosen() -> bool:
            self.press("Enter")
            time.sleep(KEY_SECONDS)
            return not any(title in line and "# agentd" not in line for line in self.screen.splitlines())

        self.wait(f"{title} is chosen", is_chosen)

    def command(self, line: str) -> None:
        """Type a command of Helix's command line."""
        self.press("Escape")
        time.sleep(KEY_SECONDS)
        self.type(line)
        time.sleep(KEY_SECONDS)
        self.press("Enter")

    def plays(self, *responses: Any) -> None:
        """What the model answers from the next start of the daemon on."""
        self._script.write_text(json.dumps(responses))


@pytest.fixture
def helix(place: Place) -> Iterator[Callable[..., Helix]]:
    opened: list[Helix] = []

    def open_helix(text: str, mode: str, *responses: Any) -> Helix:
        opened.append(Helix(place, text, mode, *responses))
        opened[-1].shows(text.splitlines()[-1])
        return opened[-1]

    yield open_helix
    for each in opened:
        each.close()


def gate_in(screen: Helix) -> Path:
    """What `cat gate` waits for: it goes on once this is written to."""
    gate = screen.root / "gate"
    os.mkfifo(gate)
    return gate


def made(root: Path) -> bool:
    return (root / "made").exists()


def test_a_comment_is_asked_by_the_menu_and_answered_on_the_screen(helix: Callable[..., Helix]) -> None:
    screen = helix("# agentd: explain this\nlast\n", "ask", reply("It is a list."))
    screen.menu("agentd: explain this")
    screen.shows("It is a list.")


def test_a_question_is_put_and_its_answer_obeyed(helix: Callable[..., Helix]) -> None:
    screen = helix(
        "# agentd: make it\n", "ask", reply(tool("bash", {"command": "touch made"})), reply("done")
    )
    screen.menu("agentd: make it")
    screen.shows("Reject")
    assert "touch made" in screen.screen
    assert not made(screen.root)
    screen.answer("Allow once")
    screen.wait("the command ran", lambda: made(screen.root))


def test_a_rejected_command_does_not_run(helix: Callable[..., Helix]) -> None:
    screen = helix(
        "# agentd: make it\n", "ask", reply(tool("bash", {"command": "touch made"})), reply("I see")
    )
    screen.menu("agentd: make it")
    screen.answer("Reject")
    screen.shows("I see")
    assert not made(screen.root)


def test_an_edit_lands_in_the_unsaved_buffer_and_is_undone_alone(helix: Callable[..., Helix]) -> None:
    edit = {"file_path": "a.txt", "old_string": "three", "new_string": "THREE"}
    responses = [
        reply(tool("read_file", {"file_path": "a.txt"})),
        reply(tool("edit_file", edit)),
        reply("x", hang=True),
    ]
    screen = helix("# agentd: shout\ntwo\nthree\n", "edit", *responses)
    screen.press("g", "e", "O", "typed", "Escape")
    time.sleep(KEY_SECONDS)
    screen.press("g", "g")
    screen.menu("agentd: shout")
    screen.shows("THREE")
    assert screen.file.read_text() == "# agentd: shout\ntwo\nthree\n"
    screen.press("u")
    screen.shows("three")
    assert "typed" in screen.screen


def test_an_edit_for_an_older_text_is_refused(helix: Callable[..., Helix]) -> None:
    edit = {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}
    screen = helix(
        "# agentd: shout\ntwo\nthree\n",
        "full",
        reply(tool("read_file", {"file_path": "a.txt"})),
        reply(tool("bash", {"command": "cat gate"})),
        reply(tool("edit_file", edit)),
        reply("I read again"),
    )
    gate = gate_in(screen)
    screen.menu("agentd: shout")
    screen.shows("cat gate")
    screen.press("Escape")
    time.sleep(KEY_SECONDS)
    screen.press("g", "e", "O", "typed", "Escape")
    screen.shows("typed")
    gate.write_text("open")
    screen.shows("I read again")
    screen.command(":buffer-previous")
    screen.shows("typed")
    assert "TWO" not in screen.screen
    assert "two" in screen.screen
    assert screen.file.read_text() == "# agentd: shout\ntwo\nthree\n"


def test_what_it_does_is_shown_while_it_does_it(helix: Callable[..., Helix]) -> None:
    screen = helix(
        "# agentd: look\n", "full", reply(tool("bash", {"command": "cat gate"})), reply("It is open.")
    )
    gate = gate_in(screen)
    screen.menu("agentd: look")
    screen.shows("cat gate")
    assert "It is open." not in screen.screen
    gate.write_text("open")
    screen.shows("It is open.")


def test_the_session_goes_on_after_the_daemon_was_killed_in_the_middle(helix: Callable[..., Helix]) -> None:
    screen = helix("# agentd: go on\n", "ask", reply("on and on", hang=True))
    screen.menu("agentd: go on")
    screen.wait("the model is asked", screen.requests.exists)
    screen.plays(reply("now all of it"))
    os.kill(screen.daemon, signal.SIGKILL)
    screen.command(":lsp-restart")
    screen.offered("agentd: go on")
    screen.command(':lsp-workspace-command agentd.prompt "and the rest"')
    screen.shows("now all of it")
    asked = screen.requests.read_text().splitlines()[-1]
    assert "go on" in asked
    assert "and the rest" in asked


def test_a_running_prompt_is_cancelled_from_the_menu(helix: Callable[..., Helix]) -> None:
    screen = helix("# agentd: go on\n", "ask", reply("on and on", hang=True))
    screen.menu("agentd: go on")
    screen.shows("on and on")  # as far as it is written
    screen.menu("agentd: cancel the running prompt")
    (journal,) = screen.data.rglob("*.jsonl")
    screen.wait("it is cancelled", lambda: '"aborted"' in journal.read_text())


def test_a_prompt_is_sent_by_a_command(helix: Callable[..., Helix]) -> None:
    screen = helix("one\n", "ask", reply("It is 42."))
    screen.offered("agentd: explain this file")
    screen.command(':lsp-workspace-command agentd.prompt "what is it"')
    screen.shows("It is 42.")


def test_a_finding_stands_at_its_line_and_is_fixed_from_the_menu(helix: Callable[..., Helix]) -> None:
    finding = {"file_path": "a.txt", "line": 1, "severity": "error", "message": "wrong sign"}
    screen = helix(
        "# agentd: review it\n",
        "ask",
        reply(tool("report_findings", {"findings": [finding]})),
        reply("x", hang=True),
    )
    screen.menu("agentd: review it")
    screen.shows("wrong sign")
    screen.offered("agentd: fix: wrong sign")
