"""One command from its start to the end of the last process it left: the daemon's side of `warden.py`."""

import errno
import json
import os
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from agentd.workspace.output import LiveFeed, LiveSink, OutputCapture
from agentd.workspace.spills import Spill

# How long what a command left running may go on, so that a `tee` behind it can finish.
LINGER_SECONDS = 0.2
# From SIGTERM to SIGKILL on timeout and cancel.
GRACE_SECONDS = 0.5
# From SIGKILL until the warden is given up: a little more than the warden's own patience.
KILL_SECONDS = 2.3

_TERMINATE = b"t"
_READ_BYTES = 64 * 1024
_ASIDE_BYTES = 8 * 1024


class CommandError(Exception):
    """A command did not run, or nobody knows how it ended."""


class SpawnError(CommandError):
    """A command could not be started; nothing ran. `errno` is the system's reason."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.errno = number


class LostCommandError(CommandError):
    """The process that stood over the command was killed. The command was stopped; what it did is unknown."""

    def __init__(self) -> None:
        super().__init__(
            "The process that watches over the command was killed, so the command was stopped. "
            "Find out how far it got before running it again."
        )


@dataclass(frozen=True)
class CommandResult:
    """How a command ended.

    `exit_code` is None and `signal` a name such as `SIGTERM` where a signal ended it; both are None where
    even SIGKILL did not end it in time. `duration` is in seconds. `text` is its output made fit for the model
    (see `output.py`), `truncated` whether that leaves something out of the `total_bytes` it printed, and
    `printed` the end of it in colour where it has colours. `aside` is what it said beside its output, at most
    8 KB.
    `leftovers`: it left processes running, which were killed. `survivors` counts processes that could not be
    killed, such as those of another user.
    """

    exit_code: int | None
    signal: str | None
    duration: float
    text: str
    truncated: bool
    total_bytes: int
    timed_out: bool
    leftovers: bool
    survivors: int
    aside: bytes = b""
    printed: str | None = None


@dataclass(frozen=True)
class Job:
    """What to run, and where.

    `aside` is the number of a descriptor on which it may say something aside; `jail` is that of
    `sandbox.Jailed`.
    """

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    aside: int | None = None
    jail: Mapping[str, Any] | None = None


class Command:
    """One command, as its warden tells of it."""

    def __init__(self, warden: socket.socket, job: Job, spill: Spill | None = None) -> None:
        """Takes over the socket of a warden that waits. Raises OSError when there is no pipe to be had.

        `spill` gets the output when it is too long to be shown.
        """
        self._output, write_end = os.pipe()
        self._write_ends = [write_end]
        self._aside = -1
        if job.aside is not None:
            try:
                self._aside, write_end = os.pipe()
            except OSError:
                self._close_ends()
                raise
            self._write_ends.append(write_end)
            os.set_blocking(self._aside, False)
        os.set_blocking(self._output, False)
        self._warden = warden
        self._program = job.argv[0]
        self._cwd = job.cwd
        self._spill = spill
        self._said_aside = b""
        self._capture = OutputCapture()
        self._live = LiveFeed()
        self._output_ended = anyio.Event()
        self._unread = b""
        self._has_job = self._has_orders = False
        self._status: int | None = None
        self._failure: SpawnError | None = None
        self._gone = self._warden_left = self._lost = self._leftovers = False
        self._survivors = 0

    async def run(self, job: bytes, limit: anyio.CancelScope, output: LiveSink) -> bool:
        """See it through to its end, and to the end of all it started. Whether `limit` ended it."""
        reading = anyio.CancelScope(shield=True)  # a command that cleans up after SIGTERM may print a lot
        watcher_failed: list[Exception] = []
        async with anyio.create_task_group() as tasks:

            async def forward() -> None:
                try:
                    await self._live.forward(output)
                except Exception as error:
                    watcher_failed.append(error)
                    tasks.cancel_scope.cancel()

            tasks.start_soon(self._read_output, reading)
            tasks.start_soon(forward)
            try:
                timed_out = await self._live_and_die(job, limit)
            finally:
                reading.cancel()
                self._live.feed(self._capture.finish())
                self._live.close()
        if watcher_failed:
            raise watcher_failed[0]
        await self._keep_overflow()  # the last line, which no line end followed
        return timed_out

    def result(self, timed_out: bool, duration: float) -> CommandResult:
        """How it ended. Raises `SpawnError` or `LostCommandError` where it did not run to its end."""
        if self._failure:
            raise self._failure
        if self._lost or (self._status is None and not timed_out):
            raise LostCommandError
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        return CommandResult(
            exit_code=code if code is not None and code >= 0 else None,
            signal=_signal_name(-code) if code is not None and code < 0 else None,
            duration=duration,
            text=self._capture.text,
            truncated=self._capture.truncated,
            total_bytes=self._capture.total_bytes,
            timed_out=timed_out,
            leftovers=self._leftovers,
            survivors=self._survivors,
            aside=self._said_aside,
            printed=self._capture.printed,
        )

    def terminate(self) -> None:
        """Ask all its processes to end (SIGTERM)."""
        if self._has_job and not self._gone:
            self._has_orders = True
            with suppress(ConnectionError, BlockingIOError):  # it is over, or has been asked many times
                self._warden.send(_TERMINATE)

    def release(self) -> socket.socket | None:
        """Let go of it. Gives back the warden where it is free for another command."""
        self._close_ends()
        if self._gone and not (self._has_orders or self._lost or self._warden_left):
            return self._warden
        self._warden.close()  # it kills what is left, and ends
        return None

    def _close_ends(self) -> None:
        self._close_write_ends()
        os.close(self._output)
        if self._aside >= 0:
            os.close(self._aside)

    def _close_write_ends(self) -> None:
        while self._write_ends:
            os.close(self._write_ends.pop())

    async def _live_and_die(self, job: bytes, limit: anyio.CancelScope) -> bool:
        try:
            with limit:
                await self._send(job)
                while self._status is None and not self._gone:
                    await self._hear()
                self._hear_aside()
            if not limit.cancelled_caught:
                with anyio.move_on_after(LINGER_SECONDS):
                    await self._output_ended.wait()
                    await self._wait_until_gone()
        finally:
            with anyio.CancelScope(shield=True):
                await self._stop(grace=GRACE_SECONDS if self._status is None else 0)
        return limit.cancelled_caught

    async def _stop(self, grace: float) -> None:
        """Nothing of it lives after this."""
        had_ended = self._status is not None
        if grace and not self._gone:
            self.terminate()
            with anyio.move_on_after(grace):
                await self._wait_until_gone()
        if not self._gone:
            self._has_orders = True
            with suppress(OSError):  # ENOTCONN: the warden went in this moment
                self._warden.shutdown(socket.SHUT_WR)  # the order to kill
            with anyio.move_on_after(KILL_SECONDS):
                await self._wait_until_gone()
        self._leftovers = self._leftovers and had_ended
        with anyio.move_on_after(LINGER_SECONDS):
            await self._output_ended.wait()

    async def _wait_until_gone(self) -> None:
        while not self._gone:
            await self._hear()

    async def _send(self, job: bytes) -> None:
        """Give the warden its job, and with the first byte the pipes that the command writes to."""
        left = memoryview(job)
        while left:
            try:
                if not self._write_ends:
                    left = left[self._warden.send(left) :]
                else:
                    left = left[socket.send_fds(self._warden, [left], self._write_ends) :]
                    self._close_write_ends()
            except BlockingIOError:
                await anyio.wait_writable(self._warden)
            except ConnectionError:
                self._close_write_ends()
                return  # the warden was killed: its end of file tells
        self._has_job = True

    async def _hear(self) -> None:
        """Take in what the warden has to say next."""
        await anyio.wait_readable(self._warden)
        try:
            data = self._warden.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        self._warden_left = not data
        self._gone = self._gone or not data
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._note(*line.decode().split())

    def _note(self, word: str, *rest: str) -> None:
        """One line from the warden; `warden.py` lists them."""
        if word == "exit":
            self._status = int(rest[0])
        elif word == "failed":
            self._gone = True
            self._failure = spawn_error(self._program, self._cwd, int(rest[1]), rest[0])
        elif word == "lost":
            self._lost = True
        elif word == "done":
            self._gone = True
            self._leftovers, self._survivors = rest[0] != "0", int(rest[1])
            self._warden_left = self._warden_left or self._survivors > 0

    async def _read_output(self, scope: anyio.CancelScope) -> None:
        """Read until all who could write are gone."""
        with scope:
            while True:
                await anyio.wait_readable(self._output)
                try:
                    data = os.read(self._output, _READ_BYTES)
                except BlockingIOError:
                    continue
                if not data:
                    break
                self._live.feed(self._capture.feed(data))
                await self._keep_overflow()
            self._output_ended.set()

    async def _keep_overflow(self) -> None:
        overflow = self._capture.take_overflow()
        if self._spill:
            await self._spill.write(overflow)

    def _hear_aside(self) -> None:
        """What the first process said before it ended; there is no end of file while others hold the pipe."""
        if self._aside >= 0:
            with suppress(BlockingIOError):
                self._said_aside = os.read(self._aside, _ASIDE_BYTES)


def encode_job(job: Job) -> bytes:
    """The message that tells a warden what to run. Raises `SpawnError` when nothing can run it."""
    name = job.argv[0]
    program = name if "/" in name else shutil.which(name, path=job.env.get("PATH", os.defpath))
    if program is None:
        raise spawn_error(name, job.cwd, errno.ENOENT, "exec")
    try:
        message = {
            "program": _wire(program),
            "argv": [_wire(argument) for argument in job.argv],
            "cwd": _wire(str(job.cwd)),
            "env": {_wire(variable): _wire(value) for variable, value in job.env.items()},
            "aside": job.aside,
            "jail": job.jail,
        }
    except UnicodeEncodeError as error:
        refusal = f"Cannot start {name}: {error.object[error.start : error.end]!a} is no character."
        raise SpawnError(refusal, errno.EILSEQ) from error
    text = json.dumps(message).encode()
    return len(text).to_bytes(4, "big") + text


def _wire(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


_WAYS_OUT = {
    errno.E2BIG: "Write the long part to a file, and use that.",
    errno.EMFILE: "Wait until other work has ended, then run it again.",
    errno.ENFILE: "Wait until other work has ended, then run it again.",
    errno.EAGAIN: "Wait until other processes have ended, then run it again.",
    errno.ENOMEM: "Wait until memory is free again, then run it again.",
}


def spawn_error(program: str, cwd: Path, number: int, step: str) -> SpawnError:
    """The refusal with this errno in words. `step` is where it came: `fork`, `cwd`, `jail` or `exec`."""
    reason = os.strerror(number)
    if step == "cwd":
        return SpawnError(f"Cannot start {program}: the folder {cwd} cannot be entered: {reason}.", number)
    if step == "jail":
        return SpawnError(f"Cannot start {program}: the sandbox cannot be set up: {reason}.", number)
    if number == errno.ENOENT:
        return SpawnError(f"Cannot start {program}: no such program, or none on the PATH.", number)
    way_out = _WAYS_OUT.get(number)
    return SpawnError(f"Cannot start {program}: {reason}." + (f" {way_out}" if way_out else ""), number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name of its own
        return f"SIG{number}"
