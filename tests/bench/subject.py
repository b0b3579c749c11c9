"""One process under measurement, seen from the client: frames with the time of their reading, CPU, memory."""

import contextlib
import json
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

HANG_SECONDS = 60.0

_HEADER = re.compile(rb"Content-Length: (\d+)\r\n\r\n")
_CPUCLOCK_SCHED = 2


@dataclass(frozen=True)
class Command:
    """How to start something that can be measured."""

    name: str
    arguments: Sequence[str]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """A frame and the time (ns, monotonic clock) at which its last byte was read."""

    at: int
    body: bytes

    @property
    def is_update(self) -> bool:
        return b'"type":"message_update"' in self.body


class Subject:
    """A running process. As a context manager it is ended at the end."""

    def __init__(self, command: Command, cwd: Path) -> None:
        self._stderr = cwd / "stderr.txt"
        with self._stderr.open("wb") as stderr:
            self.spawned = time.monotonic_ns()
            self._process = subprocess.Popen(
                command.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=cwd,
                env=os.environ | command.environment,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._buffer = bytearray()
        self._read: list[Frame] = []
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    # --- the wire ---------------------------------------------------------------------------------

    def request(self, method: str, params: Any) -> int:
        """Send a request; give its id."""
        self._last_id += 1
        self.write(request(self._last_id, method, params))
        return self._last_id

    def write(self, data: bytes) -> None:
        """Write frames. None of them is larger than a pipe."""
        os.write(self._in, data)

    def until_answered(self, message_id: int) -> list[Frame]:
        """All frames up to the answer to a request, in order. Raises `RuntimeError` for an error."""
        mark = b'"id":%d,' % message_id
        frames = self.until(lambda frame: mark in frame.body[:32])
        if b'"error":' in frames[-1].body[:48]:
            raise RuntimeError(f"the request was refused: {frames[-1].body[:500].decode()}")
        return frames

    def until(self, is_last: Callable[[Frame], bool]) -> list[Frame]:
        """All frames up to one, in order."""
        seen: list[Frame] = []
        while True:
            while self._read:
                seen.append(self._read.pop(0))
                if is_last(seen[-1]):
                    return seen
            self._receive()

    def call(self, method: str, params: Any) -> list[Frame]:
        """Send a request; give the frames up to its answer."""
        return self.until_answered(self.request(method, params))

    def _receive(self) -> None:
        """Read what there is, waiting for something. The clock is read before anything else is done."""
        if not self._poll.poll(HANG_SECONDS * 1000):
            raise RuntimeError(f"nothing was said for {HANG_SECONDS:g} s; {self._complaint()}")
        data = os.read(self._out, 1 << 16)
        now = time.monotonic_ns()
        if not data:
            raise RuntimeError(f"stdout ended; {self._complaint()}")
        self._buffer += data
        self._cut(now)

    def _cut(self, now: int) -> None:
        """Take the messages out of what was read."""
        start = 0
        while (header := _HEADER.match(self._buffer, start)) is not None:
            end = header.end() + int(header[1])
            if len(self._buffer) < end:
                break
            self._read.append(Frame(now, bytes(self._buffer[header.end() : end])))
            start = end
        del self._buffer[:start]

    def _complaint(self) -> str:
        return f"stderr: {self._stderr.read_text(errors='replace')[-2000:] or 'empty'}"

    # --- what it costs ----------------------------------------------------------------------------

    def cpu_ns(self) -> int:
        """CPU time of the process and all its threads, the ended ones too, in nanoseconds.

        The clock of clock_getcpuclockid(3), whose number Linux makes of the process id. /proc/<pid>/stat
        tells the same, in steps of 10 ms.
        """
        return time.clock_gettime_ns((~self._process.pid << 3) | _CPUCLOCK_SCHED)

    def resident_mb(self) -> float:
        """Resident memory in MB (10^6 bytes)."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class LineSubject(Subject):
    """A process that speaks a line for each message."""

    def _cut(self, now: int) -> None:
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._read += [Frame(now, line) for line in lines]
        self._buffer = bytearray(rest)


def line(message_id: int, method: str, params: Any) -> bytes:
    """The line of a request."""
    return (
        json.dumps({"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}).encode() + b"\n"
    )


def request(message_id: int, method: str, params: Any) -> bytes:
    """The frame of a request."""
    return _frame({"jsonrpc": "2.0", "id": message_id, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    """The frame of a notification."""
    return _frame({"jsonrpc": "2.0", "method": method, "params": params})


def _frame(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
