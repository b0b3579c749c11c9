"""Ordered, bounded output. One place writes to stdout, and it never blocks the event loop.

* Order is the order of the calls. What is sent in one step of the loop leaves together at its end.
* A small write to a client that keeps up is done on the spot; all else is left to a thread, which writes as
  fast as the client reads. So a fast client sees no thread switch and a stalled one holds up nothing.
* Live updates of one block that still wait, next to each other, become one. A response closes them all: what
  a reading tells must not be told again behind it.
* `room` is where runs wait for a slow client: above `HIGH` bytes until there are fewer than `LOW`.
* Responses never wait. A client that leaves `MAX_RESPONSE_BYTES` of them unread is given up.
"""

import asyncio
import contextvars
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import anyio

from agentd.daemon.descriptors import write_all
from agentd.protocol.frames import encode

log = logging.getLogger(__name__)

HIGH = 512 * 1024
LOW = 128 * 1024
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_ON_THE_SPOT = select.PIPE_BUF
"""A pipe that polls as writable takes this much at once without blocking (POSIX)."""


class Update(Protocol):
    """A live message that may grow while it waits: later ones of its kind go into it."""

    @property
    def size(self) -> int:
        """About how many bytes it will be."""
        ...

    def takes(self, later: "Update") -> bool:
        """Take up what comes right behind it; False where that does not go on from it."""
        ...

    def body(self) -> bytes:
        """The message, once it leaves."""
        ...


@dataclass(frozen=True)
class _Frame:
    """A frame that waits to be sent; `written` is called once it is out, or lost."""

    data: bytes
    written: Callable[[], None] | None = None


class Outbox:
    """The way out to one client. All methods but the writing thread's belong to the event loop."""

    def __init__(
        self, fd: int, on_lost: Callable[[], None], frame: Callable[[bytes], bytes] = encode
    ) -> None:
        """`on_lost` is called on the loop, once, when nobody can be written to any more.

        `frame` makes of a message's body what goes over the wire.
        """
        self._fd = fd
        self._frame = frame
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()  # anyio finds in it that this is asyncio
        self._writable = select.poll()
        self._writable.register(fd, select.POLLOUT)
        self._queue: list[_Frame | Update] = []
        self._open_updates: dict[str, Update] = {}  # session -> its last item in the queue, if an update
        self._queued = 0  # bytes in the queue
        self._writing = 0  # bytes that the thread has taken
        self._taken: list[_Frame] = []  # responses among them
        self._response_bytes = 0  # of responses that are not out yet
        self._flush_is_due = False
        self._has_room = anyio.Event()
        self._has_room.set()
        self._progress = anyio.Event()
        self._work: deque[bytes] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._lost = False
        self._thread = threading.Thread(target=self._write_all, name="stdout", daemon=True)
        self._thread.start()

    # --- sending ----------------------------------------------------------------------------------

    def send(self, body: bytes) -> None:
        """Queue a message that is neither a response nor an event."""
        self._put(_Frame(self._frame(body)))

    def respond(self, body: bytes, written: Callable[[], None]) -> None:
        """Queue a response; `written` is called once it is out, or lost."""
        frame = _Frame(self._frame(body), written)
        self._open_updates.clear()
        self._response_bytes += len(frame.data)
        if self._response_bytes > MAX_RESPONSE_BYTES:
            log.error("the client leaves more than %d bytes of responses unread", MAX_RESPONSE_BYTES)
            self._lose()
        self._put(frame)

    def tell(self, session_id: str, body: bytes) -> None:
        """Queue what happened in a session; live updates that wait are whole with it."""
        self._open_updates.pop(session_id, None)
        self._put(_Frame(self._frame(body)))

    def tell_live(self, session_id: str, update: Update) -> None:
        """Queue a live update of a session, inside the one that waits where it goes on from that."""
        waiting, before = self._open_updates.get(session_id), 0
        if waiting is not None:
            before = waiting.size
            if waiting.takes(update):
                self._grew(waiting.size - before)
                return
        self._open_updates[session_id] = update
        self._queue.append(update)
        self._grew(update.size)

    async def room(self) -> None:
        """Wait until the client has caught up. Cancellable."""
        await self._has_room.wait()

    @property
    def is_open(self) -> bool:
        """Whether `room` would not wait."""
        return self._has_room.is_set()

    def _put(self, frame: _Frame) -> None:
        self._queue.append(frame)
        self._grew(len(frame.data))

    def _grew(self, size: int) -> None:
        if self._lost:
            self._drop()
            return
        self._queued += size
        if self._queued + self._writing > HIGH and self._has_room.is_set():
            self._has_room = anyio.Event()
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush, context=self._context)

    # --- writing ----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Hand all that waits to the client or, where that might block, to the thread."""
        self._flush_is_due = False
        if self._writing or not self._queue or self._lost:
            return  # the thread is at work and asks for more when it is done
        data = b"".join(
            item.data if isinstance(item, _Frame) else self._frame(item.body()) for item in self._queue
        )
        self._taken = [item for item in self._queue if isinstance(item, _Frame) and item.written is not None]
        self._queue, self._queued = [], 0
        self._open_updates.clear()
        if len(data) <= _ON_THE_SPOT and self._writable.poll(0) == [(self._fd, select.POLLOUT)]:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                log.debug("stdout polled as writable and was not")
            except OSError:
                self._lose()
                return
        if data:
            self._writing = len(data)
            with self._wake:
                self._work.append(data)
                self._wake.notify()
        else:
            self._written()

    def _write_all(self) -> None:
        """The thread: write what it is given, in order, until the end."""
        while True:
            with self._wake:
                while not self._work and not self._closing:
                    self._wake.wait()
                if not self._work:
                    return
                data = self._work.popleft()
            try:
                write_all(self._fd, data)
            except OSError:
                self._call(self._lose)
                return
            self._call(self._thread_is_done)

    def _thread_is_done(self) -> None:
        self._writing = 0
        self._written()
        self._flush()

    def _written(self) -> None:
        """All that had left the queue is out."""
        for frame in self._taken:
            self._response_bytes -= len(frame.data)
            if frame.written is not None:
                frame.written()
        self._taken = []
        if self._queued + self._writing < LOW:
            self._has_room.set()
        self._progress.set()

    def _lose(self) -> None:
        """Nobody can be written to any more: whoever waits for that is let go."""
        if not self._lost:
            self._lost = True
            self._writing = 0
            self._drop()
            self._on_lost()

    def _drop(self) -> None:
        self._taken += [item for item in self._queue if isinstance(item, _Frame)]
        self._queue, self._queued = [], 0
        self._open_updates.clear()
        self._written()

    def _call(self, function: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(function, context=self._context)
        except RuntimeError:
            log.debug("the loop has ended before the last write")

    async def close(self, seconds: float) -> None:
        """Write what waits, but no longer than that: a client may never read again."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(seconds):
            while (self._queue or self._writing) and not self._lost:
                self._progress = anyio.Event()
                await self._progress.wait()
        with self._wake:
            self._closing = True
            self._wake.notify()
