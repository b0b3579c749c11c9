"""An editor in a terminal whose screen can be read: tmux, with the keys of a user."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 20.0
KEY_SECONDS = 0.3
"""Keys are typed no faster: what comes at once behind an Escape is, for a terminal, one key with Alt."""

WIDTH, HEIGHT = 110, 30


class Terminal:
    """One program in a terminal of `WIDTH` by `HEIGHT`."""

    def __init__(self, socket: Path, folder: Path, command: list[str], environment: dict[str, str]) -> None:
        self._socket = socket
        self._folder = folder
        size = ("-x", str(WIDTH), "-y", str(HEIGHT))
        self.tmux("new-session", "-d", *size, *command, env=environment)

    def tmux(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        """Run a command of tmux; gives what it prints."""
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *arguments]
        ran = subprocess.run(command, env=env, cwd=self._folder, check=True, capture_output=True, text=True)
        return ran.stdout

    @property
    def screen(self) -> str:
        """What the screen shows."""
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names of them."""
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-l", text)

    def wait(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until it is so; fails with what the screen shows."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"it did not happen: {what}\n{self.screen}"
            time.sleep(0.05)

    def shows(self, text: str) -> None:
        """Wait until the screen shows a text."""
        self.wait(f"the screen shows {text}", lambda: text in self.screen)

    @property
    def daemon(self) -> int:
        """The process id of the agentd that the program started."""
        (first,) = self.tmux("list-panes", "-F", "#{pane_pid}").split()
        below = [int(first)]
        for pid in below:
            below += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return next(pid for pid in below if b"\0agentd\0" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def close(self) -> None:
        """End it."""
        self.tmux("kill-server")
