"""Vim with vim-lsp in a terminal, configured as `editors/README.md` says.

vim-lsp comes from no registry: `AGENTD_VIM_LSP` names a folder that holds it.
"""

import json
import os
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from editors.places import DAEMON, HERE, Place
from editors.terminal import KEY_SECONDS, Terminal
from wire.scripts import reply, tool

README = HERE.parents[1] / "editors" / "README.md"
SHOUT = {"file_path": "a.txt", "old_string": "three", "new_string": "THREE"}
TEXT = "# agentd: shout\ntwo\nthree\n"
READ = reply(tool("read_file", {"file_path": "a.txt"}))
MAKE = reply(tool("bash", {"command": "touch made"}))


def plugin() -> Path:
    """Where vim-lsp is; skips the test where it, Vim or tmux is not."""
    named = os.environ.get("AGENTD_VIM_LSP")
    if not named or not (Path(named) / "plugin" / "lsp.vim").exists():
        pytest.skip("vim-lsp is not here; AGENTD_VIM_LSP names the folder that holds it")
    for program in ("vim", "tmux"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here")
    return Path(named)


class Vim(Terminal):
    """A Vim with one file open."""

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
        (found,) = re.findall(r"^```vim\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
        settings = place.folder / "vimrc"
        settings.write_text(f"set nocompatible hidden\nset runtimepath^={plugin()}\n{found}")
        self._log = place.folder / "lsp.log"
        self.requests = place.folder / "requests.jsonl"
        self.data = place.folder / "data"
        environment = {
            **place.environment,
            "AGENTD_SCRIPT_REQUESTS": str(self.requests),
            "PATH": f"{command.parent}:{place.environment['PATH']}",
        }
        log = f"let g:lsp_log_file = '{self._log}'"
        vim = ["vim", "-u", str(settings), "-i", "NONE", "-n", "--cmd", log, "a.txt"]
        super().__init__(place.folder / "tmux", self.root, vim, environment)

    def plays(self, *responses: Any) -> None:
        """What the model answers from the next start of the daemon on."""
        self._script.write_text(json.dumps(responses))

    def sends(self, what: str) -> None:
        """Wait until vim-lsp has sent this."""
        self.wait(f"it sends {what}", lambda: self._log.exists() and what in self._log.read_text())

    def keys(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.press(key)
            time.sleep(KEY_SECONDS)

    def command(self, line: str) -> None:
        """Type a command of Vim's command line."""
        self.keys("Escape")
        self.type(line)
        self.keys("Enter")

    def menu(self, title: str) -> None:
        """Choose a code action by its title."""
        self.command(":LspCodeAction")
        item = f"] [agentd] {title}"
        self.shows(item)
        (number,) = re.findall(rf"(\d){re.escape(item)}", self.screen)
        self.keys(number)

    def answer(self, choice: int) -> None:
        """Answer a question once it is on the screen with all its answers."""
        self.shows("Type number and <Enter>")
        self.keys(str(choice), "Enter")

    def said(self, text: str) -> None:
        """Wait until Vim has said this, and perhaps something else since."""
        told = self.root.parent / "messages"

        def is_said() -> bool:
            self.command(f":redir! > {told} | silent messages | redir END")
            return told.exists() and text in told.read_text()

        self.wait(f"Vim says {text}", is_said)

    def typed(self, text: str) -> None:
        """Write a line above the last one."""
        self.keys("G", "O")
        self.type(text)
        self.keys("Escape", "g", "g")


@pytest.fixture
def vim(place: Place) -> Iterator[Callable[..., Vim]]:
    opened: list[Vim] = []

    def open_vim(text: str, mode: str, *responses: Any) -> Vim:
        opened.append(Vim(place, text, mode, *responses))
        opened[-1].sends('"textDocument/didOpen"')
        return opened[-1]

    yield open_vim
    for each in opened:
        each.close()


def made(root: Path) -> bool:
    return (root / "made").exists()


def last_asked(screen: Vim) -> str:
    """The newest request to the model."""
    return screen.requests.read_text().splitlines()[-1]


def test_a_prompt_by_a_command_is_answered_by_a_message_and_whole_in_the_preview(
    vim: Callable[..., Vim],
) -> None:
    screen = vim("one\n", "ask", reply("It is 42.\nAs ever."))
    screen.command(":AgentdPrompt what is it")
    screen.said("agentd: info: It is 42. …")
    assert "As ever." not in screen.screen
    screen.command(":AgentdAnswer")
    screen.shows("As ever.")


def test_a_comment_is_asked_by_the_menu_and_its_question_allowed(vim: Callable[..., Vim]) -> None:
    screen = vim("# agentd: make it\n", "ask", MAKE, reply("done"))
    screen.menu("agentd: make it")
    screen.shows("touch made")
    assert not made(screen.root)
    screen.answer(1)
    screen.said("info: done")
    assert made(screen.root)


def test_any_other_answer_is_a_no(vim: Callable[..., Vim]) -> None:
    screen = vim("# agentd: make it\n", "ask", MAKE, reply("I see"))
    screen.menu("agentd: make it")
    screen.answer(3)
    screen.said("info: I see")
    assert not made(screen.root)


def test_an_edit_lands_in_the_unsaved_buffer_and_is_undone_alone(vim: Callable[..., Vim]) -> None:
    screen = vim(TEXT, "edit", READ, reply(tool("edit_file", SHOUT)), reply("It is done."))
    screen.typed("typed")
    screen.menu("agentd: shout")
    screen.shows("THREE")
    screen.said("It is done.")
    assert "Edited a.txt" in last_asked(screen)
    assert screen.file.read_text() == TEXT
    screen.keys("u")
    screen.shows("three")
    assert "typed" in screen.screen


def test_an_edit_of_a_buffer_that_is_not_shown_is_known_and_built_on(vim: Callable[..., Vim]) -> None:
    """vim-lsp does not tell of such an edit before the user goes there."""
    again = {"file_path": "a.txt", "old_string": "THREE", "new_string": "four"}
    edits = [reply(tool("edit_file", each)) for each in (SHOUT, again)]
    screen = vim(TEXT, "edit", READ, *edits, reply("It is done."))
    screen.typed("typed 😀")
    screen.command(":edit b.txt")
    screen.command(":AgentdPrompt shout")
    screen.said("It is done.")
    assert last_asked(screen).count("Edited a.txt") >= 2
    screen.command(":buffer a.txt")
    screen.shows("four")
    assert "typed 😀" in screen.screen
    screen.command(":write")
    assert screen.file.read_text() == "# agentd: shout\ntwo\ntyped 😀\nfour\n"


def test_an_edit_for_an_older_text_is_refused_though_it_was_not_told_of_yet(
    vim: Callable[..., Vim],
) -> None:
    screen = vim(
        TEXT,
        "full",
        READ,
        reply(tool("bash", {"command": "cat gate"})),
        reply(tool("edit_file", SHOUT)),
        reply("I read again"),
    )
    gate = screen.root / "gate"
    os.mkfifo(gate)
    screen.menu("agentd: shout")
    screen.shows("cat gate")
    screen.keys("G", "O")
    screen.type("typed")  # and the user is still typing
    screen.shows("typed")
    gate.write_text("open")
    screen.said("I read again")
    assert "THREE" not in screen.screen
    assert "three" in screen.screen


def test_what_it_does_is_shown_while_it_does_it_and_is_cancelled(vim: Callable[..., Vim]) -> None:
    screen = vim("# agentd: look\n", "full", reply(tool("bash", {"command": "sleep 60"})), reply("x"))
    screen.menu("agentd: look")
    screen.shows("agentd: sleep 60")
    screen.command(":AgentdCancel")
    (journal,) = screen.data.rglob("*.jsonl")
    screen.wait("it is cancelled", lambda: '"aborted"' in journal.read_text())
    screen.wait("its progress is gone", lambda: "agentd: sleep" not in screen.screen)


def test_what_the_model_writes_grows_in_the_status_line(vim: Callable[..., Vim]) -> None:
    screen = vim("# agentd: go on\n", "ask", reply("A list\non and on", hang=True))
    screen.menu("agentd: go on")
    screen.shows("agentd: on and on")


def test_a_finding_is_a_diagnostic_and_fixed_from_the_menu(vim: Callable[..., Vim]) -> None:
    finding = {"file_path": "a.txt", "line": 1, "severity": "error", "message": "wrong sign"}
    screen = vim(
        "# agentd: review it\n",
        "ask",
        reply(tool("report_findings", {"findings": [finding]})),
        reply("I fix it", hang=True),
    )
    screen.menu("agentd: review it")
    screen.sends("wrong sign")
    screen.command(":LspCodeAction")
    screen.shows("agentd: fix: wrong sign")


def test_the_session_goes_on_after_the_daemon_was_killed_in_the_middle(vim: Callable[..., Vim]) -> None:
    screen = vim("# agentd: go on\n", "ask", reply("on and on", hang=True))
    screen.menu("agentd: go on")
    screen.wait("the model is asked", screen.requests.exists)
    screen.plays(reply("now all of it"))
    os.kill(screen.daemon, signal.SIGKILL)
    screen.sends("s:on_exit")
    screen.command(":AgentdPrompt and the rest")
    screen.said("now all of it")
    assert "go on" in last_asked(screen)
    assert "and the rest" in last_asked(screen)


def test_a_command_that_would_miss_unsaved_text_is_told_so(vim: Callable[..., Vim]) -> None:
    screen = vim(TEXT, "full", reply(tool("bash", {"command": "cat a.txt"})), reply("I see"))
    screen.typed("typed")
    screen.command(":AgentdPrompt look")
    screen.shows("Save 1 file")
    screen.answer(2)
    screen.said("info: I see")
    assert "a.txt" in last_asked(screen)
    assert "unsaved" in last_asked(screen)
