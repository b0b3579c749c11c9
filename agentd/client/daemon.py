"""The daemon as a child process: started, listened to, ended."""

import os
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import Signals

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

DEFAULT_COMMAND = (sys.executable, "-P", "-m", "agentd")
"""This interpreter's agentd. Without `-P` a folder `agentd` in the working directory would be run instead."""

TAIL_LINES = 20
MAX_LINE_BYTES = 8 * 1024
LEAVE_SECONDS = 3.0
"""A daemon that was told to exit is gone within 2 s (protocol, guarantee 9)."""


class Daemon:
    """A running daemon, in a process group of its own: a Ctrl-C in the terminal is ours to act on.

    `log` gets each line of its stderr, without the line end.
    """

    def __init__(self, process: Process, log: Callable[[str], None] | None) -> None:
        self._process = process
        self._log = log
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)

    @classmethod
    async def start(
        cls,
        command: Sequence[str] | None,
        *,
        folder: Path | None,
        env: Mapping[str, str] | None,
        log: Callable[[str], None] | None,
    ) -> "Daemon":
        """Start `command` (None: `DEFAULT_COMMAND`) in `folder` with the environment `env` (None: ours).

        Raises `OSError` where it cannot be run.
        """
        process = await anyio.open_process(
            list(command or DEFAULT_COMMAND),
            cwd=folder,
            env=dict(os.environ if env is None else env),
            start_new_session=True,
        )
        return cls(process, log)

    @property
    def stdin(self) -> ByteSendStream:
        """Where its requests go in."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> ByteReceiveStream:
        """Where its answers come out."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def drain_stderr(self) -> None:
        """Read its stderr to the end; a daemon whose stderr nobody reads would stop in mid-sentence."""
        assert self._process.stderr is not None
        line = bytearray()
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for data in self._process.stderr:
                *whole, rest = (bytes(line) + data).split(b"\n")
                for text in whole:
                    self._logged(text)
                line = bytearray(rest[-MAX_LINE_BYTES:])
        if line:
            self._logged(bytes(line))

    def _logged(self, line: bytes) -> None:
        text = line[-MAX_LINE_BYTES:].decode(errors="replace").rstrip("\r")
        self._tail.append(text)
        if self._log is not None:
            self._log(text)

    async def wait(self) -> int:
        """Wait for its end. Gives the exit code, negative for a signal."""
        return await self._process.wait()

    def epitaph(self) -> str:
        """How it ended and what it last said, for an error message."""
        code = self._process.returncode
        if code is None:
            how = "closed its output but still runs"
        elif code < 0:
            names = {int(known): known.name for known in Signals}
            how = f"was ended by {names.get(-code, f'signal {-code}')}"
        else:
            how = f"ended with exit code {code}"
        last_words = "\n".join(f"  {line}" for line in self._tail)
        return f"agentd {how}." + (f" Its last words:\n{last_words}" if last_words else "")

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal, None while it runs."""
        return self._process.returncode

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of its stderr."""
        return tuple(self._tail)

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> None:
        """Wait until it is gone; help with SIGTERM, then SIGKILL, where it does not go by itself."""
        with anyio.move_on_after(LEAVE_SECONDS):
            await self.wait()
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            with anyio.move_on_after(LEAVE_SECONDS):
                await self.wait()
        if self.exit_code is None:
            self.kill()
            await self.wait()
