"""Takes a picture of the Neovim plugin into `nvim.svg`: a real Neovim in a terminal, on a scripted model.

    pip install rich && python .assets/capture_nvim.py PATH-TO-NVIM

Needs tmux. `tests/editors/fetch nvim-0.11` prints the path of a Neovim.
"""

import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

TARGET = Path(__file__).with_name("nvim.svg")
PLUGIN = Path(__file__).resolve().parent.parent / "editors" / "nvim"
COLUMNS, LINES = 124, 34
SECONDS = 20.0

CODE = '''"""Greets people."""


def greeting(name: str) -> str:
    return "Hello, " + name


def farewell(name):
    return "Bye, " + name


if __name__ == "__main__":
    print(greeting("world"))
'''

SCRIPT = [
    {"content": [{"type": "text", "text": "I look at the file and at who calls it."},
                 {"type": "tool_call", "name": "read_file", "arguments": {"file_path": "greet.py"}},
                 {"type": "tool_call", "name": "todo_write", "arguments": {"items": [
                     {"id": "1", "text": "Add the missing types", "status": "in_progress"},
                     {"id": "2", "text": "Run the file", "status": "pending"}]}}]},
    {"content": [{"type": "tool_call", "name": "edit_file", "arguments": {
        "file_path": "greet.py",
        "old_string": "def farewell(name):", "new_string": "def farewell(name: str) -> str:"}}]},
    {"content": [{"type": "tool_call", "name": "bash", "arguments": {"command": "python3 greet.py"}}]},
    {"content": [{"type": "text", "text": "never reached"}]},
]  # fmt: skip


def tmux(socket: Path, *arguments: str) -> str:
    """Run tmux on a server of its own; gives what it prints."""
    command = ["tmux", "-S", str(socket), "-f", "/dev/null", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wait(what: str, condition: Callable[[], bool]) -> None:
    """Wait for a condition. Raises SystemExit after `SECONDS`."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"it did not happen: {what}")
        time.sleep(0.1)


def capture(nvim: str, home: Path) -> str:
    """The screen with its colours, at the moment when the command is asked about."""
    project = home / "project"
    project.mkdir()
    (project / "greet.py").write_text(CODE)
    script, config = home / "script.json", home / "config.toml"
    script.write_text(json.dumps(SCRIPT))
    config.write_text(f'model = "scripted/{script}"\nmode = "edit"\ntrusted = ["{project}"]\n')
    daemon = json.dumps([sys.executable, "-m", "agentd", "--stdio"])
    options = f"{{ cmd = vim.json.decode([==[{daemon}]==]), trusted = true, chat = {{ width = 0.5 }} }}"
    init = home / "init.lua"
    init.write_text(
        f'vim.opt.rtp:prepend("{PLUGIN}")\nrequire("agentd").setup({options})\nvim.o.termguicolors = true\n'
    )
    environment = {
        "HOME": str(home),
        "AGENTD_CONFIG": str(config),
        "AGENTD_DATA": str(home / "data"),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        **{f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "DATA", "CONFIG", "CACHE")},
    }
    variables = " ".join(f"{name}='{value}'" for name, value in environment.items())
    socket = home / "tmux"
    start = f"cd {project} && env {variables} {nvim} -u {init} greet.py"
    tmux(socket, "-u", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), start)
    try:
        wait("Neovim starts", lambda: "Greets people" in tmux(socket, "capture-pane", "-p"))
        tmux(socket, "send-keys", ":Agentd Add the missing types, then run it", "Enter")
        wait("the question", lambda: "Type number" in tmux(socket, "capture-pane", "-p"))
        time.sleep(0.5)  # the last lines are drawn
        return tmux(socket, "capture-pane", "-p", "-e")
    finally:
        tmux(socket, "kill-server")


def main() -> None:
    """Take the picture."""
    home = Path(tempfile.gettempdir(), "demo")  # it is seen in the picture
    home.mkdir()
    try:
        screen = capture(sys.argv[1], home)
    finally:
        shutil.rmtree(home)
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(screen.rstrip("\n")), no_wrap=True)
    TARGET.write_text(console.export_svg(title="Neovim with agentd", theme=MONOKAI))


if __name__ == "__main__":
    main()
