"""Commands that run beside a session's prompts: servers and watchers.

They live until they end by themselves, are stopped, or the session or the daemon ends; the end of a prompt is
nothing to them, nor its cancel. Each runs as every command does (`process.py`), so nothing of it is left.
"""

import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from agentd.workspace.command import CommandError, CommandResult
from agentd.workspace.enclosure import Enclosure, Jailed
from agentd.workspace.output import ShownText
from agentd.workspace.process import Processes
from agentd.workspace.spills import Spill

log = logging.getLogger(__name__)

MOST_RUNNING = 8
MOST_ENDED = 32
"""How many that have ended are kept until their end was told; the oldest go."""


@dataclass(frozen=True)
class News:
    """Output since the last look. `truncated`: too long to be shown whole."""

    text: str
    truncated: bool


@dataclass(eq=False)
class BackgroundCommand:
    """One of them. When it has `ended`, either `result` or `failure`, in words, says how.

    `enclosure` is the sandbox that it runs in, where it runs in one.
    """

    id: str
    command: str
    spill: Spill | None
    limit: anyio.CancelScope
    enclosure: Enclosure | None = None
    is_stopped: bool = False
    is_known_to_end: bool = False
    result: CommandResult | None = None
    failure: str | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    _shown: ShownText = field(default_factory=ShownText)
    _has_news: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def wait(self) -> None:
        """Wait until there is output to be read, or the end."""
        while not self._has_news and not self.ended.is_set():
            await self._changed.wait()

    def take(self) -> News:
        """The output since the last time."""
        self._has_news = False
        return News(*self._shown.take())

    async def stop(self) -> None:
        """End it: SIGTERM, half a second later SIGKILL, and nothing of it is left."""
        self.is_stopped = not self.ended.is_set()
        self.limit.cancel()
        await self.ended.wait()

    async def show(self, text: str, left_out: int) -> None:
        """Take more output."""
        self._shown.feed(text if not left_out else f"{text}\n[{left_out} characters are missing here]\n")
        self._has_news = True
        self._wake()

    def end(self) -> None:
        """It is over."""
        self.ended.set()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Background:
    """The commands of one session that run in the background."""

    def __init__(
        self,
        start_soon: Callable[..., object],
        running: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """`running` gives a context in which one of them runs."""
        self._start_soon = start_soon
        self._running = running
        self._commands: dict[str, BackgroundCommand] = {}
        self._count = 0
        self._closed = False

    @property
    def running(self) -> tuple[BackgroundCommand, ...]:
        """Those that have not ended."""
        return tuple(each for each in self._commands.values() if not each.ended.is_set())

    def start(
        self,
        processes: Processes,
        jailed: Jailed,
        *,
        command: str,
        cwd: Path,
        timeout: float = math.inf,
        spill: Spill | None = None,
        enclosure: Enclosure | None = None,
    ) -> BackgroundCommand:
        """Start one. `command` is what the user calls it, `timeout` is in seconds, `enclosure` where it runs.

        Raises `CommandError` where too many run. One that cannot start has ended with a failure.
        """
        if self._closed:
            raise CommandError("The session is being closed.")
        if len(self.running) >= MOST_RUNNING:
            raise CommandError(
                f"{MOST_RUNNING} commands run in the background already: {', '.join(self._names())}. "
                "Stop one with bash_kill first."
            )
        self._count += 1
        limit = anyio.CancelScope(deadline=anyio.current_time() + timeout)
        started = BackgroundCommand(f"bg_{self._count}", command, spill, limit, enclosure)
        self._commands[started.id] = started
        self._forget_oldest()
        self._start_soon(self._run, started, processes, jailed, cwd)
        return started

    async def _run(
        self,
        started: BackgroundCommand,
        processes: Processes,
        jailed: Jailed,
        cwd: Path,
    ) -> None:
        try:
            with self._running():
                started.result = await processes.run(
                    jailed.argv,
                    cwd=cwd,
                    env=jailed.env,
                    timeout=started.limit,
                    output=started.show,
                    spill=started.spill,
                    jail=jailed.jail,
                )
        except CommandError as error:
            started.failure = str(error)
        except Exception:
            log.exception("the background command %s", started.id)
            started.failure = "agentd failed while it ran this. Its log says more."
        finally:
            started.end()

    def get(self, command_id: str) -> BackgroundCommand:
        """The one of that id. Raises `CommandError` for one that is not known (any more)."""
        command = self._commands.get(command_id)
        if command is None:
            names = ", ".join(self._names()) or "none"
            raise CommandError(
                f'There is no background command "{command_id}". Its end was told before, or it ended with '
                f"an earlier session or daemon. Running: {names}."
            )
        return command

    def newly_ended(self) -> list[str]:
        """The ids of those that have ended since the last time."""
        ended = [each for each in self._commands.values() if each.ended.is_set() and not each.is_known_to_end]
        for command in ended:
            command.is_known_to_end = True
        return [command.id for command in ended]

    def forget(self, command: BackgroundCommand) -> None:
        """Its end was told."""
        self._commands.pop(command.id, None)

    async def close(self) -> None:
        """Stop all of them, and start no more."""
        self._closed = True
        async with anyio.create_task_group() as tasks:
            for command in self.running:
                tasks.start_soon(command.stop)
        self._commands.clear()

    def _names(self) -> list[str]:
        return [each.id for each in self.running]

    def _forget_oldest(self) -> None:
        ended = [each for each in self._commands.values() if each.ended.is_set()]
        for command in ended[: max(0, len(ended) - MOST_ENDED)]:
            self.forget(command)
