"""A Neovim with a screen and a keyboard: the UI that `nvim --embed` draws for, and pynvim to look inside.

Keys go and the screen comes by the UI's own channel, which works also where Neovim waits for an answer to a
question and serves nothing else.
"""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pynvim
from editors.places import DAEMON, HERE, Place, editor

SECONDS = 40.0
PLUGIN = HERE.parents[1] / "editors" / "nvim"
SETUP = (
    "lua require('agentd').setup({{cmd = vim.json.decode([=[{command}]=]), trusted = true}}); "
    "vim.o.swapfile = false; vim.o.more = false"
)


class Blocked(Exception):
    """Neovim waits for a key."""


class Grid:
    """What stands on the screen, as `redraw` tells it."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []
        self._lock = threading.Lock()

    def take(self, batch: list[list[Any]]) -> None:
        """Take the events of one `redraw`."""
        with self._lock:
            for name, *calls in batch:
                for call in calls:
                    handler = getattr(self, f"_{name}", None)
                    if handler is not None:
                        handler(*call)

    @property
    def text(self) -> str:
        """The screen, line by line."""
        with self._lock:
            return "\n".join("".join(row).rstrip() for row in self._rows)

    def _grid_resize(self, _: int, width: int, height: int) -> None:
        self._rows = [[" "] * width for _ in range(height)]

    def _grid_clear(self, _: int) -> None:
        self._rows = [[" "] * len(row) for row in self._rows]

    def _grid_line(self, _: int, row: int, column: int, cells: list[list[Any]], *__: Any) -> None:
        for text, *more in cells:
            for _ in range(more[1] if len(more) > 1 else 1):
                self._rows[row][column] = text
                column += 1

    def _grid_scroll(self, _: int, top: int, bottom: int, left: int, right: int, rows: int, __: int) -> None:
        old = [list(row) for row in self._rows]
        for row in range(top, bottom):
            if top <= row + rows < bottom:
                self._rows[row][left:right] = old[row + rows][left:right]


class Neovim:
    """A Neovim in a folder, with the plugin."""

    def __init__(self, version: str, place: Place, root: Path, *files: str) -> None:
        self.root = root
        self._socket = place.folder / f"nvim-{time.monotonic_ns()}"
        setup = SETUP.format(command=json.dumps(DAEMON))
        options = ["--clean", "--listen", str(self._socket), "--cmd", f"set rtp^={PLUGIN}", "-c", setup]
        self._process = subprocess.Popen(
            [editor(f"nvim-{version}"), "--embed", *options, *files],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=place.environment,
            cwd=root,
        )
        self._grid = Grid()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._send([0, 1, "nvim_ui_attach", [110, 32, {"rgb": True, "ext_linegrid": True}]])
        self._nvim: pynvim.Nvim = self.wait("it listens", self._attached)
        self.wait("it has started", lambda: self.inside.eval("v:vim_did_enter"))

    def _attached(self) -> pynvim.Nvim | None:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            return pynvim.attach("socket", path=str(self._socket))
        return None

    @property
    def inside(self) -> pynvim.Nvim:
        """The inside of it. Raises `Blocked` while it waits for a key and would not answer."""
        if self._nvim.api.get_mode()["blocking"]:
            raise Blocked
        return self._nvim

    def _send(self, message: list[Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(msgpack.packb(message))
        self._process.stdin.flush()

    def _read(self) -> None:
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        assert self._process.stdout
        while data := self._process.stdout.read1(65536):  # type: ignore[attr-defined]
            unpacker.feed(data)
            for message in unpacker:
                if message[0] == 2 and message[1] == "redraw":
                    self._grid.take(message[2])

    @property
    def screen(self) -> str:
        """What the user sees."""
        return self._grid.text

    def type(self, keys: str) -> None:
        """Press keys, in Neovim's notation."""
        self._send([2, "nvim_input", [keys]])

    def resize(self, width: int, height: int) -> None:
        """Make the terminal larger or smaller."""
        self._send([2, "nvim_ui_try_resize", [width, height]])

    def wait(self, what: str, condition: Callable[[], Any]) -> Any:
        """Wait until it holds."""
        end = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(Blocked):
                if value := condition():
                    return value
            assert self._process.poll() is None, f"Neovim has ended while: {what}"
            assert time.monotonic() < end, f"it did not happen: {what}\n{self.screen}"
            time.sleep(0.02)

    def shows(self, text: str) -> None:
        """Wait until it is on the screen."""
        self.wait(f"the screen shows {text}", lambda: text in self.screen)

    def hides(self, text: str) -> None:
        """Wait until it is on the screen no more."""
        self.wait(f"the screen shows no {text}", lambda: text not in self.screen)

    def lua(self, code: str) -> Any:
        """Run Lua inside; not while a question waits for a key."""
        return self.inside.exec_lua(code)

    def chat(self) -> str:
        """All of the chat, also what is not on the screen."""
        lines = "vim.api.nvim_buf_get_lines(require('agentd.chat').buffer(), 0, -1, false)"
        return str(self.lua(f"return table.concat({lines}, '\\n')"))

    def is_idle(self) -> bool:
        """Whether nothing runs in the session that is shown."""
        return bool(self.lua("local view = require('agentd').view(); return view and not view.running"))

    def wait_until_idle(self) -> None:
        """Wait until nothing runs."""
        self.wait("the prompt ends", self.is_idle)

    @property
    def daemon(self) -> int:
        """The process id of its agentd."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return next(
            int(pid) for pid in children if b"\0agentd\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )

    def kill(self) -> None:
        """`kill -9`, and what it leaves behind is over."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._reader.join(SECONDS)
        self._nvim.close()
