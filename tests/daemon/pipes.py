"""A real pipe with a client at its other end that reads, or does not."""

import os
import threading
from collections.abc import Callable
from typing import Any

import anyio
from pydantic_core import from_json

from agentd.daemon.outbox import Outbox
from agentd.protocol.frames import FrameReader, Oversized

MAX_BODY = 64 * 1024 * 1024


class Client:
    """The reading end. Nothing is read before `read_all`, or `read` is asked for."""

    def __init__(self) -> None:
        self._fd, self.write_end = os.pipe()
        self._frames = FrameReader(MAX_BODY)
        self._thread: threading.Thread | None = None
        self.bytes = 0
        self.messages: list[Any] = []

    @property
    def reads_nothing(self) -> bool:
        """Whether nobody reads yet."""
        return self._thread is None

    def read_all(self) -> None:
        """From now on everything is read, in a thread, until the end."""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while data := os.read(self._fd, 65536):
            self.bytes += len(data)
            for body in self._frames.feed(data):
                assert not isinstance(body, Oversized)
                self.messages.append(from_json(body))

    def leave(self) -> None:
        """Close the reading end."""
        os.close(self._fd)
        self._fd = -1

    def close(self) -> None:
        os.close(self.write_end)
        if self._thread is not None:
            self._thread.join(10)
        if self._fd >= 0:
            os.close(self._fd)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait for what the reading thread does."""
        with anyio.fail_after(10):
            while not condition():  # noqa: ASYNC110 - a thread changes it, not a task
                await anyio.sleep(0.002)


END = b'{"jsonrpc":"2.0","method":"test/end"}'


async def all_sent(client: Client, box: Outbox) -> list[Any]:
    """Everything that was sent, once all of it has been read."""
    if client.reads_nothing:
        client.read_all()
    box.send(END)
    await client.until(lambda: client.messages and client.messages[-1].get("method") == "test/end")
    await box.close(10)
    return client.messages[:-1]


class Sent:
    """What an outbox is told in place of a pipe: bodies in order, and responses that stay unwritten."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.unwritten: list[Callable[[], None]] = []

    def send(self, body: bytes) -> None:
        self.bodies.append(from_json(body))

    def respond(self, body: bytes, written: Callable[[], None]) -> None:
        self.bodies.append(from_json(body))
        self.unwritten.append(written)

    def publish(self, notification: Any) -> None:
        self.bodies.append(notification)


def outbox(client: Client, lost: list[bool] | None = None) -> Outbox:
    return Outbox(client.write_end, lambda: lost.append(True) if lost is not None else None)
