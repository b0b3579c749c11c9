"""Whole stories of users of the Neovim plugin, by keys and on a screen, in each Neovim that is supported."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import DEADLINE, ModelServer, Recorded

pytest.importorskip("pynvim")

from editors.nvim_screen import Neovim
from editors.places import Place
from wire.processes import is_alive, until
from wire.scripts import reply, tool

Open = Callable[..., Neovim]

MOMENT = "vim.wait(400)"
"""Longer than what counts as quiet in the test."""


@pytest.fixture(params=["0.10", "0.11", "0.12"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(place: Place) -> Path:
    folder = place.folder / "home" / "work"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def nvim(version: str, place: Place, root: Path) -> Iterator[Open]:
    """Opens Neovims in the folder; the model plays the responses."""
    opened: list[Neovim] = []

    def open_nvim(*files: str) -> Neovim:
        opened.append(Neovim(version, place, root, *files))
        return opened[-1]

    yield open_nvim
    for each in opened:
        each.close()


def plays(place: Place, mode: str, *responses: Any) -> None:
    """Let the model of the next daemon play this."""
    script = place.folder / "script.json"
    script.write_text(json.dumps(responses))
    place.config.write_text(f'model = "scripted/{script}"\nmode = "{mode}"\n')


class Gated(ModelServer):
    """A model that stops in the middle of its first answer until the gate is opened."""

    def __init__(self, *responses: Any) -> None:
        super().__init__(responses)
        self.gate = threading.Event()

    def events(self, response: Mapping[str, Any], request: Recorded) -> Iterator[bytes]:
        for number, event in enumerate(super().events(response, request)):
            if number == 1:
                assert self.gate.wait(DEADLINE)
            yield event


def test_a_prompt_is_typed_and_its_answer_streams(nvim: Open, place: Place) -> None:
    said = "first half and the rest of it"
    with Gated({"content": [{"type": "text", "text": said}], "chunkSize": 10}) as server:
        place.config.write_text(
            f'model = "local/m"\n[providers.local]\napi = "openai-chat"\nbase_url = "{server.base_url}"\n'
        )
        screen = nvim()
        screen.type(":Agentd<CR>")
        screen.shows("prompt: <CR> sends")
        screen.wait("a prompt can be written", lambda: screen.inside.eval("mode()") == "i")
        screen.type("what is it?<C-s>")
        screen.shows("first half")
        assert "rest of it" not in screen.screen
        assert "works" in screen.screen
        screen.resize(70, 20)  # in the middle of it
        screen.wait("it is smaller", lambda: max(map(len, screen.screen.splitlines())) <= 70)
        screen.type("<Esc>q")  # and closed
        screen.hides("first half")
        server.gate.set()
        screen.wait("it ends", screen.is_idle)
        screen.resize(110, 32)
        screen.type(":Agentd<CR>")
        screen.shows("first half and the rest of it")
        screen.shows("idle")


def test_questions_are_answered_by_keys(nvim: Open, place: Place, root: Path) -> None:
    plays(
        place,
        "ask",
        reply(tool("bash", {"command": "touch allowed"})),
        reply(tool("bash", {"command": "touch refused"})),
        reply("I see"),
    )
    screen = nvim()
    screen.type(":Agentd go<CR>")
    screen.shows("1: Allow once")
    assert "touch allowed" in screen.screen
    screen.type("1<CR>")
    screen.wait("it ran", (root / "allowed").exists)
    screen.shows("touch refused")
    screen.shows(": Reject")
    number = next(line for line in screen.screen.splitlines() if ": Reject" in line).split(":")[0].strip()
    screen.type(f"{number}<CR>")
    screen.shows("I see")
    screen.wait_until_idle()
    assert not (root / "refused").exists()


def test_typing_is_never_an_answer(nvim: Open, place: Place, root: Path) -> None:
    """A pause is not its end: in Insert mode and on the command line nothing is asked."""
    (root / "a.txt").write_text("text\n")
    plays(
        place,
        "ask",
        reply(tool("bash", {"command": "touch made"})),
        reply(tool("bash", {"command": "touch more"})),
        reply("I see"),
    )
    screen = nvim("a.txt")
    screen.lua("require('agentd.ask').QUIET_MS = 50; require('agentd.config').options.save = 'never'")
    screen.type(":Agentd go<CR>i")
    screen.shows("touch made")  # in view it is
    screen.lua(MOMENT)
    screen.type("typed <CR>")
    screen.wait("it is in the file", lambda: "typed " in "\n".join(screen.inside.current.buffer[:]))
    assert "1: Allow once" not in screen.screen
    assert not (root / "made").exists()
    screen.type("<Esc>:echo 1")
    screen.wait("it is on the command line", lambda: screen.inside.eval("getcmdline()") == "echo 1")
    screen.lua(MOMENT)
    assert "1: Allow once" not in screen.screen
    screen.type("<Esc>")
    screen.shows("1: Allow once")
    screen.type("1<CR>")
    screen.wait("it ran", (root / "made").exists)
    screen.shows("touch more")
    screen.shows("1: Allow once")
    screen.type("<CR>")  # none: it stays open
    screen.type(":AgentdReject<CR>")
    screen.shows("I see")
    assert not (root / "more").exists()


def test_a_dirty_buffer_in_two_windows_is_edited_and_undone(nvim: Open, place: Place, root: Path) -> None:
    file = root / "a.txt"
    file.write_text("one\ntwo\nthree\n")
    (root / "b.txt").write_text("on disk\n")
    plays(
        place,
        "full",
        reply(tool("read_file", {"file_path": "a.txt"})),
        reply(tool("edit_file", {"file_path": "a.txt", "old_string": "three", "new_string": "THREE"})),
        reply("edited"),
        reply(tool("bash", {"command": "echo changed > b.txt"})),
        reply("all done"),
    )
    screen = nvim("a.txt")
    screen.type(":split b.txt<CR>:wincmd j<CR>:split<CR>")
    screen.type("ggOmine<Esc>G")
    screen.type(":Agentd edit it<CR>")
    screen.shows("edited")
    screen.wait_until_idle()
    buffer = next(each for each in screen.inside.buffers if each.name.endswith("a.txt"))
    assert buffer[:] == ["mine", "one", "two", "THREE"]
    assert file.read_text() == "one\ntwo\nthree\n"
    screen.type("u")
    screen.wait("the edit is undone", lambda: buffer[:] == ["mine", "one", "two", "three"])
    screen.type("u")
    screen.wait("and then what was typed", lambda: buffer[:] == ["one", "two", "three"])
    screen.type(":Agentd change the other<CR>")
    screen.shows("all done")
    screen.shows("changed")
    assert len([w for w in screen.inside.windows if w.buffer == buffer]) == 2


def test_prompts_are_steered_and_queued_and_sessions_forked_and_deleted(nvim: Open, place: Place) -> None:
    plays(
        place,
        "ask",
        reply(tool("bash", {"command": "true"})),
        reply("steered well"),
        reply("and the last"),
    )
    screen = nvim()
    screen.type(":Agentd begin<CR>")
    screen.shows("1: Allow once")
    screen.type("<CR>")  # not yet
    screen.type(":Agentd but carefully<CR>")
    screen.shows("1: Steer")
    screen.type("1<CR>")
    screen.shows("steer: but carefully")
    screen.type(":Agentd and then this<CR>")
    screen.shows("2: Queue")
    screen.type("2<CR>")
    screen.shows("queue: and then this")
    screen.type(":AgentdAccept<CR>")
    screen.wait("both are answered", lambda: "and the last" in screen.chat() and screen.is_idle())
    assert screen.chat().index("but carefully") < screen.chat().index("steered well")
    session = screen.lua("return require('agentd').view().id")
    screen.type(":AgentdSessions<CR>")
    screen.shows("1: begin")
    screen.type("1<CR>")
    screen.shows("2: Fork")
    screen.type("2<CR>")
    forked = "local view = require('agentd').view(); return view.info.forkedFrom and view.id"
    fork = screen.wait("the fork is shown", lambda: screen.lua(forked))
    assert fork != session
    screen.wait("with all of it", lambda: "steered well" in screen.chat())
    screen.type("<Esc>:AgentdSessions<CR>")
    screen.shows("2: ")
    screen.type("2<CR>")
    screen.shows("3: Delete")
    screen.type("3<CR>")
    screen.shows("agentd: deleted")
    left = "local ids = vim.tbl_keys(require('agentd.registry').all()); return #ids"
    screen.wait("one is left", lambda: screen.lua(left) == 1)


def test_a_killed_daemon_and_a_killed_neovim_lose_nothing(nvim: Open, place: Place) -> None:
    plays(place, "ask", reply("half of it", hang=True))
    screen = nvim()
    screen.type(":Agentd the first words<CR>")
    screen.shows("half of it")
    os.kill(screen.daemon, signal.SIGKILL)
    screen.shows("agentd quit")  # Neovim's own message, which may be longer than its line
    screen.type("<CR>")
    screen.shows("agentd ended and is started again")
    screen.wait("it is idle", lambda: "Interrupted" in screen.chat() and screen.is_idle())
    screen.type(":Agentd once more<CR>")
    screen.wait("it works again", lambda: screen.chat().count("half of it") >= 1 and not screen.is_idle())
    screen.wait("it says so", lambda: screen.chat().rstrip().endswith("half of it"))
    daemon = screen.daemon
    screen.kill()
    other = nvim()
    until(lambda: not is_alive(daemon), "its agentd has ended")
    plays(place, "ask", reply("now all of it"))
    other.type(":AgentdSessions<CR>")
    other.shows("1: the first words")
    other.type("1<CR>")
    other.shows("1: Resume")
    other.type("1<CR>")
    other.wait("it is there", lambda: "once more" in other.chat() and "Interrupted" in other.chat())
    other.type("go on<C-s>")
    other.shows("now all of it")


def test_two_neovims_in_one_folder_do_not_get_in_each_others_way(nvim: Open, place: Place) -> None:
    plays(place, "ask", reply("half of it", hang=True))
    one = nvim()
    one.type(":Agentd the first words<CR>")
    one.shows("half of it")
    plays(place, "ask", reply("of the other"))
    two = nvim()
    two.type(":AgentdSessions<CR>")
    two.shows("(open in process")
    two.type("1<CR>")
    two.shows("1: Resume")
    two.type("1<CR>")
    two.shows("session locked by pid")
    two.type(":Agentd my own<CR>")
    two.shows("of the other")
    assert not one.is_idle()
    assert "of the other" not in one.chat()
