"""How commands run: each below a warden of its own (see `warden.py`), so that nothing of it can be left alive.

The rules:

- A command ends when its first process does. What that leaves running gets a moment to finish its output, then
  is killed: a command that puts a server in the background returns at once, and the server is gone.
- On timeout and cancel the whole tree gets SIGTERM, half a second later SIGKILL, and only then the call returns.
- The output is read as it comes, never waiting for whoever watches it.
- A command inherits the environment and folder it is given, the umask and the limits of this process, and
  nothing else: no descriptor, no terminal, no signal setting. Its standard input is empty.
- When this process dies, however it dies, the wardens see the end of their sockets and kill their commands.
"""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from agentd.workspace.output import LiveOutput, LiveSink, OutputCapture

# How long what a command left running may go on, so that a `tee` behind it can finish.
LINGER_SECONDS = 0.2
# From SIGTERM to SIGKILL on timeout and cancel.
GRACE_SECONDS = 0.5
# From SIGKILL until the warden is given up: a little more than the warden's own patience.
KILL_SECONDS = 4.0
# Until the keeper is given up when all ends.
FAREWELL_SECONDS = 1.0

_TERMINATE = b"t"
_READ_BYTES = 64 * 1024
_WARDEN = Path(__file__).with_name("warden.py")


async def _unwatched(text: str, gap: int) -> None:
    """Nobody watches the output."""


class Processes:
    """Starts commands. An async context manager: at its end everything that still runs is killed.

    The one helper process behind it, the keeper, starts with the first command, and anew if it was killed.
    """

    def __init__(self) -> None:
        self._keeper: _Keeper | None = None
        self._running: set[_Command] = set()
        self._one_ended = anyio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
        output: LiveSink = _unwatched,
    ) -> CommandResult:
        """Run a command to its end. `timeout` is in seconds.

        `argv[0]` is looked up on the PATH of `env` unless it holds a slash. `output` gets the live text, and
        may wait without holding up the command.

        Raises `SpawnError` when it cannot start, `LostCommandError` when its warden was killed, and what
        `output` raises (the command is stopped then). When the call is cancelled or raises, the command is
        gone by the time it does.
        """
        began = anyio.current_time()
        job = _job(argv, cwd, env)
        with _spawning(argv[0], cwd):
            command = await self._start(argv[0], cwd)
        self._running.add(command)
        try:
            timed_out = await command.run(job, timeout, output)
            return command.result(timed_out, anyio.current_time() - began)
        finally:
            command.close()
            self._running.discard(command)
            self._one_ended.set()

    async def shutdown(self, grace: float = 0.3) -> None:
        """Stop all commands: SIGTERM, after `grace` seconds SIGKILL. Ends in bounded time; new commands fail."""
        self._closed = True
        with anyio.CancelScope(shield=True):
            for command in self._running:
                command.terminate()
            with anyio.move_on_after(grace):
                while self._running:
                    self._one_ended = anyio.Event()
                    await self._one_ended.wait()
            if self._keeper:
                await self._keeper.close()
                self._keeper = None

    async def _start(self, program: str, cwd: Path) -> "_Command":
        """A warden that waits for its job. Raises OSError when there are no resources for one."""
        if self._closed:
            raise CommandError(f"Cannot start {program}: the daemon is ending.")
        with ExitStack() as ours, ExitStack() as theirs:
            near, far = socket.socketpair()
            ours.callback(near.close)
            theirs.callback(far.close)
            read_end, write_end = os.pipe()
            ours.callback(os.close, read_end)
            theirs.callback(os.close, write_end)
            near.setblocking(False)
            os.set_blocking(read_end, False)
            for attempt in ("first", "last"):
                try:
                    await self._living_keeper().fork_warden(far, write_end)
                    break
                except ConnectionError:  # it was killed a moment ago
                    if attempt == "last":
                        raise
            ours.pop_all()
        return _Command(near, read_end, program, cwd)

    def _living_keeper(self) -> "_Keeper":
        if self._keeper and not self._keeper.is_alive():
            self._keeper.control.close()
            self._keeper = None
        if self._keeper is None:
            self._keeper = _Keeper()
        return self._keeper


class _Keeper:
    """The process that forks wardens. It ends when its socket does."""

    def __init__(self) -> None:
        self.control, far = socket.socketpair()
        try:
            with far:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-E", str(_WARDEN), str(far.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[far.fileno()],
                    env={},  # what is in it can be read in /proc by every command
                    cwd="/",
                    start_new_session=True,  # an interrupt typed at a terminal is the daemon's to deal with
                )
        except BaseException:
            self.control.close()
            raise
        self.control.setblocking(False)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def fork_warden(self, control: socket.socket, output: int) -> None:
        """Hand these over to a new warden. Raises OSError, as ConnectionError when the keeper is dead."""
        while True:
            try:
                socket.send_fds(self.control, [b"+"], [control.fileno(), output])
            except BlockingIOError:
                await anyio.wait_writable(self.control)
            else:
                return

    async def close(self) -> None:
        """End it, and with it all commands."""
        self.control.close()
        with anyio.move_on_after(FAREWELL_SECONDS) as patience:
            await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
        if patience.cancelled_caught:
            self._process.kill()  # the wardens see that, and end on their own
            self._process.wait()


@contextmanager
def _spawning(program: str, cwd: Path) -> Iterator[None]:
    """Give the system's refusals their name."""
    try:
        yield
    except OSError as error:
        raise spawn_error(program, cwd, error.errno or errno.EIO, "fork") from error
