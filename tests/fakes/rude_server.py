"""A server that says bytes, HTTP or not, and ends its connections as badly as connections end.

with RudeServer(Plan(head() + body, end="reset")) as server:
    ...  # the client sends a request; it gets these bytes and a reset
    assert server.requests[0].startswith(b"POST ")
"""

import contextlib
import re
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Literal, Self

DEADLINE = 10.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER for 0 s: closing sends RST and drops what is unsent


@dataclass(frozen=True)
class Plan:
    """What each connection gets once its request is there.

    After the bytes the connection is closed, reset, or left open until the server ends. With `held` that
    waits for `RudeServer.release`, as a reset may overtake bytes that the client has not read yet.
    """

    says: bytes = b""
    end: Literal["close", "reset", "stay"] = "close"
    held: bool = False


def head(status: str = "200 OK", *lines: str, content_type: str = "text/event-stream") -> bytes:
    """The head of an answer whose body ends with its connection."""
    return "\r\n".join((f"HTTP/1.1 {status}", f"content-type: {content_type}", *lines, "", "")).encode()


class RudeServer:
    """The server, at `host`, which may be any address of 127.0.0.0/8."""

    def __init__(self, plan: Plan, host: str = "127.0.0.1") -> None:
        self.requests: list[bytes] = []
        self._plan = plan
        self._host = host
        self._listener = socket.create_server((host, 0))
        self._closing = threading.Event()
        self._released = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.connections = 0
        self._ended = threading.Semaphore(0)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._released.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join(DEADLINE)

    @property
    def address(self) -> str:
        """Its scheme, host and port."""
        return f"http://{self._host}:{self._listener.getsockname()[1]}"

    def release(self) -> None:
        """Let the connections end that are held."""
        self._released.set()

    def wait_for_an_end(self) -> None:
        """Wait until one more connection has ended from this side."""
        assert self._ended.acquire(timeout=DEADLINE), "no connection has ended"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(DEADLINE)
        with connection, contextlib.suppress(OSError):  # the client may leave at any time
            self._play(connection)
        self._ended.release()

    def _play(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        if not request:
            return
        self.requests.append(request)
        connection.sendall(self._plan.says)
        if self._plan.held:
            self._released.wait(DEADLINE)
        if self._plan.end == "stay":
            self._closing.wait(DEADLINE)
        elif self._plan.end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 16)
        if not more:
            return b""
        data += more
    length = re.search(rb"content-length: *(\d+)", data, re.IGNORECASE)
    missing = int(length[1]) - len(data.partition(b"\r\n\r\n")[2]) if length else 0
    while missing > 0:
        more = connection.recv(missing)
        if not more:
            break
        data, missing = data + more, missing - len(more)
    return data
