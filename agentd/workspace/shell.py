"""What one command of a session leaves for the next: where it stood, what runs beside it, long output.

Each command is a shell of its own. That `cd` lasts all the same is told, not guessed: at its end the shell
writes its directory to a descriptor that nothing else uses. A shell that was killed, ran out of time, became
another program (`exec`) or has a trap of its own for its end says nothing, and the directory stays as it was.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import anyio

from agentd.workspace.background import Background
from agentd.workspace.beside import RunningCommands
from agentd.workspace.command import CommandResult
from agentd.workspace.paths import shown
from agentd.workspace.spills import Spills

_ASIDE = 198
"""The descriptor on which bash tells its directory: far from those that scripts open and bash itself uses."""
_ASIDE_OF_SH = 9
"""The same for `sh`, of which some take one digit only. A script may have made another of it."""

CLOSE_SECONDS = 4.0
"""Until background commands that do not end are left to the daemon's own end."""

_AT_EXIT = Path(__file__).with_name("at_exit.sh")
_AT_EXIT_OF_SH = (
    f"trap '{{ [ ! -p /dev/fd/{_ASIDE_OF_SH} ] || command pwd -P || echo -; }} "
    f"2>/dev/null >&{_ASIDE_OF_SH}' EXIT; "
)
_GONE = b"-\n"


@dataclass(frozen=True)
class ShellCall:
    """How a command line is run. `aside` is the descriptor on which the shell tells its directory."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    aside: int


def shell_call(command: str, environment: Mapping[str, str]) -> ShellCall:
    """`bash -c`, or `sh -c` where there is no bash, so that it tells where it ends.

    Bash is told how by a file that it reads first, which leaves the command line as it is.
    """
    bash = shutil.which("bash", path=environment.get("PATH"))
    if bash is None:
        return ShellCall(("sh", "-c", _AT_EXIT_OF_SH + command), environment, _ASIDE_OF_SH)
    return ShellCall((bash, "-c", command), {**environment, "BASH_ENV": str(_AT_EXIT)}, _ASIDE)


class WorkingDirectory:
    """Where the session's next command starts: a folder of the workspace, at first the workspace folder.

    `is_news`: the model may believe something else, since its session was opened anew.
    """

    def __init__(self, is_news: bool = False) -> None:
        self._below: tuple[str, ...] = ()
        self._is_news = is_news

    def path(self, root: Path) -> Path:
        """The folder, whether it is there or not."""
        return root.joinpath(*self._below)

    def look(self, root: Path) -> tuple[Path, str | None]:
        """The folder, and a word on it where it is gone and the workspace folder takes its place. Blocks."""
        path = self.path(root)
        if not self._below or (os.path.realpath(path) == str(path) and path.is_dir()):
            return path, None
        gone, self._below = shown("/".join(self._below)), ()
        return root, f"[the working directory {gone} is gone: the command ran in the workspace folder]"

    def follow(self, root: Path, start: Path, result: CommandResult) -> list[str]:
        """Go where a command that began in `start` ended; what the model must know of it. Blocks."""
        was = self._below
        notes = self._go(root, start, result)
        if notes or self._below or was or self._is_news:
            notes.append(f"[working directory: {self.name or 'the workspace folder'}]")
        self._is_news = False
        return notes

    @property
    def name(self) -> str:
        """The path from the workspace folder, fit to be read; empty for that folder itself."""
        return shown("/".join(self._below))

    def _go(self, root: Path, start: Path, result: CommandResult) -> list[str]:
        told = result.aside
        if result.timed_out or result.signal or not told.endswith(b"\n"):
            return []
        end = Path(os.fsdecode(told[:-1]))
        if told == _GONE or not end.is_dir():
            self._below = ()
            return ["[the folder that the command ended in is gone]"]
        real = Path(os.path.realpath(end))
        if not real.is_relative_to(root):
            return [f"[{shown(str(end))} is outside the workspace: the next command does not start there]"]
        if real != start:  # a call that stays where it began does not undo the move of another
            self._below = real.relative_to(root).parts
        return []


def _nobody(*args: object) -> None:
    raise RuntimeError("nothing can run in the background here")


class Shell:
    """The state of a session's commands. To be closed with the session."""

    def __init__(
        self,
        start_soon: Callable[..., object] = _nobody,
        spills: Path | None = None,
        *,
        root: Path = Path("/"),
        commands: RunningCommands | None = None,
        is_reopened: bool = False,
    ) -> None:
        """`start_soon` runs tasks that outlive a prompt. `spills` is the folder for long output.

        `root` is the workspace folder, and `commands` are those of all sessions.
        """
        self.directory = WorkingDirectory(is_news=is_reopened)
        self._commands = commands or RunningCommands()
        self._root = root
        self.background = Background(start_soon, self.running)
        self.spills = Spills(spills)

    def running(self) -> AbstractContextManager[None]:
        """One of the session's commands runs while the block does."""
        return self._commands.running(self._root)

    @property
    def is_alone(self) -> bool:
        """Whether no command runs that could move the workspace's folders, be it of another session."""
        return not self.background.running and not self._commands.any_in(self._root)

    async def close(self) -> None:
        """Stop what runs in the background, and remove the files."""
        with anyio.move_on_after(CLOSE_SECONDS):
            await self.background.close()
            await self.spills.close()
