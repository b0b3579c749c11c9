"""When the daemon ends: `exit`, end of stdin, a signal, a closed stdout, the death of its editor."""

import asyncio
import logging
import os
import select
import signal
import time
from collections.abc import Callable

import anyio

log = logging.getLogger(__name__)

_PARENT_POLL_SECONDS = 1.0  # where the system cannot tell us of a death


class Lifetime:
    """Knows why the daemon ends, and the exit code for it. The first reason counts."""

    def __init__(self, start_soon: Callable[..., object]) -> None:
        self.code = 0
        self.ended = anyio.Event()
        self._start_soon = start_soon
        self._began = time.monotonic()

    @property
    def uptime_ms(self) -> int:
        """Milliseconds since the daemon began to serve."""
        return round((time.monotonic() - self._began) * 1000)

    def end(self, code: int, why: str) -> None:
        """End the daemon with this exit code."""
        if not self.ended.is_set():
            log.info("ending: %s", why)
            self.code = code
            self.ended.set()

    async def watch_signals(self) -> None:
        """SIGTERM and SIGINT end the daemon in good order; so does the terminal's hang-up."""
        watched = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        with anyio.open_signal_receiver(*watched) as signals:
            async for number in signals:
                self.end(128 + number, number.name)

    def watch_stdout(self, fd: int) -> None:
        """A client that closes its end of stdout is gone, also while there is nothing to write."""
        if not hasattr(select, "epoll"):
            return  # the next write finds out
        hang_up = select.epoll()
        try:
            hang_up.register(fd, 0)  # errors and hang-ups are always reported
        except PermissionError:  # a plain file: nobody can close it
            hang_up.close()
            return
        loop = asyncio.get_running_loop()

        def lost() -> None:
            loop.remove_reader(hang_up.fileno())
            self.end(1, "stdout is closed")

        loop.add_reader(hang_up.fileno(), lost)

    def follow_parent(self, pid: int) -> None:
        """End with the process that `initialize` named."""
        try:
            fd = os.pidfd_open(pid)
        except AttributeError:  # no Linux
            self._start_soon(self._poll_parent, pid)
            return
        except ProcessLookupError:
            self.end(0, f"process {pid} is dead")
            return
        except OSError as error:
            log.warning("process %d cannot be watched: %s", pid, error.strerror)
            self._start_soon(self._poll_parent, pid)
            return
        loop = asyncio.get_running_loop()

        def dead() -> None:
            loop.remove_reader(fd)
            self.end(0, f"process {pid} has died")

        loop.add_reader(fd, dead)

    async def _poll_parent(self, pid: int) -> None:
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                self.end(0, f"process {pid} has died")
                return
            except PermissionError:
                log.debug("process %d lives and is somebody else's", pid)
            await anyio.sleep(_PARENT_POLL_SECONDS)
