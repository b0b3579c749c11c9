"""How commands run: each below a warden of its own (see `warden.py`), so that nothing of it is left alive.

The rules:

- A command ends when its first process does. What that leaves running gets a moment to finish its output,
  then is killed: a command that puts a server in the background returns at once, and the server is gone.
- On timeout and cancel the whole tree gets SIGTERM, half a second later SIGKILL, and only then the call
  returns.
- The output is read as it comes, never waiting for whoever watches it.
- A command inherits the environment and folder it is given, the umask and the limits of this process (that
  of open files as it was before `open_files.py` raised it), and nothing else: no terminal, no signal setting,
  no descriptor but the one it was promised. Its standard input is empty.
- When this process dies, however it dies, the wardens see the end of their sockets and kill their commands.
"""

import errno
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentd.workspace.command import Command, CommandError, CommandResult, Job, encode_job, spawn_error
from agentd.workspace.output import LiveSink
from agentd.workspace.spills import Spill

# Until the keeper is given up when all ends.
FAREWELL_SECONDS = 1.0
# Wardens kept for the next commands.
IDLE_WARDENS = 4

_WARDEN = Path(__file__).with_name("warden.py")


async def _unwatched(text: str, left_out: int) -> None:
    """Nobody watches the output."""


class Processes:
    """Starts commands. An async context manager: at its end everything that still runs is killed.

    The keeper behind it starts with the first command, and anew if it was killed.
    """

    def __init__(self, open_files: int | None = None) -> None:
        """`open_files` is how many a command may have open, where that is not what this process may."""
        self._open_files = open_files
        self._keeper: _Keeper | None = None
        self._idle: list[socket.socket] = []
        self._running: set[Command] = set()
        self._one_ended = anyio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def run(  # noqa: PLR0913 - each says another thing about the command, and most are left out
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout: float | anyio.CancelScope,
        output: LiveSink = _unwatched,
        spill: Spill | None = None,
        aside: int | None = None,
        jail: Mapping[str, Any] | None = None,
    ) -> CommandResult:
        """Run a command to its end. `timeout` is in seconds, or a scope of the caller's with the same effect.

        `argv[0]` is looked up on the PATH of `env` unless it holds a slash. `output` gets the live text, and
        may wait without holding up the command. `spill` gets the output when it is too long to be shown. On
        descriptor `aside` the command may say something beside its output (see `CommandResult`). `jail` is
        that of `sandbox.Jailed`.

        Raises `SpawnError` when it cannot start, `LostCommandError` when its warden was killed, and what
        `output` raises (the command is stopped then). When the call is cancelled or raises, the command is
        gone by the time it does.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()  # what is cancelled already must not begin
        began = anyio.current_time()
        job = Job(argv, cwd, env, aside, jail)
        message = encode_job(job)
        with _refusals_named(argv[0], cwd):
            command = await self._place(job, spill)
        self._running.add(command)
        if not isinstance(timeout, anyio.CancelScope):
            timeout = anyio.CancelScope(deadline=began + timeout)
        try:
            timed_out = await command.run(message, timeout, output)
            return command.result(timed_out, anyio.current_time() - began)
        finally:
            self._running.discard(command)
            self._one_ended.set()
            if warden := command.release():
                self._keep(warden)

    async def shutdown(self, grace: float = 0.3) -> None:
        """Stop all commands: SIGTERM, after `grace` seconds SIGKILL. New ones fail.

        Ends within `grace` and a second or so. Calls of `run` that were waiting raise or return.
        """
        self._closed = True
        with anyio.CancelScope(shield=True):
            for command in self._running:
                command.terminate()
            with anyio.move_on_after(grace):
                while self._running:
                    self._one_ended = anyio.Event()
                    await self._one_ended.wait()
            self._dismiss_idle()
            if self._keeper:
                await self._keeper.close()
                self._keeper = None

    async def _place(self, job: Job, spill: Spill | None) -> Command:
        """A command that has not begun. Raises OSError when there are no resources for one."""
        warden = await self._free_warden(job.argv[0])
        try:
            return Command(warden, job, spill)
        except OSError:
            warden.close()
            raise

    async def _free_warden(self, program: str) -> socket.socket:
        """The socket of a warden that waits for a job."""
        if self._closed:
            raise CommandError(f"Cannot start {program}: the daemon is ending.")
        if self._keeper and not self._keeper.is_alive():
            self._forget_keeper()
        while self._idle:
            warden = self._idle.pop()
            if _is_waiting(warden):
                return warden
            warden.close()
        near, far = socket.socketpair()
        near.setblocking(False)
        with far:
            try:
                await self._fork_warden(far)
            except BaseException:
                near.close()
                raise
        return near

    async def _fork_warden(self, far: socket.socket) -> None:
        if keeper := self._keeper:
            try:
                await keeper.fork_warden(far)
            except ConnectionError:  # it was killed a moment ago
                if self._keeper is keeper:
                    self._forget_keeper()
            else:
                return
        if self._keeper is None:
            self._keeper = _Keeper(self._open_files)
        await self._keeper.fork_warden(far)

    def _forget_keeper(self) -> None:
        """The keeper is dead, and its wardens are ending."""
        self._dismiss_idle()
        if self._keeper:
            self._keeper.bury()
            self._keeper = None

    def _keep(self, warden: socket.socket) -> None:
        if self._closed or len(self._idle) >= IDLE_WARDENS:
            warden.close()
        else:
            self._idle.append(warden)

    def _dismiss_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


class _Keeper:
    """The process that forks wardens. It ends when its socket does."""

    def __init__(self, open_files: int | None) -> None:
        limit = [] if open_files is None else [str(open_files)]
        self._control, far = socket.socketpair()
        try:
            with far:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-E", str(_WARDEN), str(far.fileno()), *limit],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[far.fileno()],
                    env={},  # what is in it can be read in /proc by every command
                    cwd="/",
                    start_new_session=True,  # an interrupt typed at a terminal is the daemon's to deal with
                )
        except BaseException:
            self._control.close()
            raise
        self._control.setblocking(False)

    def is_alive(self) -> bool:
        """Whether it runs, as far as the system has told."""
        return self._process.poll() is None

    async def fork_warden(self, control: socket.socket) -> None:
        """Have a warden forked that holds this socket. Raises ConnectionError when the keeper is dead."""
        while True:
            try:
                socket.send_fds(self._control, [b"+"], [control.fileno()])
            except BlockingIOError:
                await anyio.wait_writable(self._control)
            else:
                return

    async def close(self) -> None:
        """End it, and with it all commands."""
        self._control.close()
        with anyio.move_on_after(FAREWELL_SECONDS):
            await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
        self.bury()

    def bury(self) -> None:
        """Leave nothing of it; the wardens see that it is dead, and end on their own."""
        self._control.close()
        self._process.kill()
        self._process.wait()


def _is_waiting(warden: socket.socket) -> bool:
    """Whether an idle warden lives: it says nothing until it is given a job."""
    try:
        warden.recv(1)
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return False


@contextmanager
def _refusals_named(program: str, cwd: Path) -> Iterator[None]:
    """Give the system's refusals their name."""
    try:
        yield
    except OSError as error:
        raise spawn_error(program, cwd, error.errno or errno.EIO, "fork") from error
