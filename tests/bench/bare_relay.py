"""The floor under everything: asyncio alone, which hands the same bytes on and looks into none of them."""

import asyncio
import sys
from collections.abc import AsyncIterator

from relay import relay


class Connection:
    """One HTTP connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes) -> AsyncIterator[bytes]:
        """Send a request and give the payload of each event of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(b"POST / HTTP/1.1\r\nhost: bench\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        await reader.readuntil(b"\r\n\r\n")
        while size := int(await reader.readline(), 16):
            chunk = await reader.readexactly(size + 2)
            payload = chunk[6:-4]
            if payload != b"[DONE]":
                yield payload
        await reader.readline()


def update(payload: bytes) -> bytes | None:
    """The payload as it is, named as an update; none for the end of a message."""
    return b'{"event":{"type":"message_update","update":%b}}' % payload if b'"content"' in payload else None


if __name__ == "__main__":
    asyncio.run(relay(Connection(int(sys.argv[1])).ask, update))
