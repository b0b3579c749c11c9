"""A quick model server in a process of its own, so that its CPU time is nobody else's.

It speaks OpenAI's streamed chat completions over raw asyncio streams. What it plays stands in the prompt
(`play_text`, `play_tools`); the last such word in the request counts. Whatever a client needs for measuring
stands in the text of the deltas, which every relay hands through:

* `@<ns>@`: the monotonic clock right before the delta was written to the socket;
* `<gap:ns>`: how long the client took from the end of the response before to this request.

On Linux the monotonic clock is one for all processes (clock_gettime(2)), so both ends can be compared.
"""

import asyncio
import json
import re
import sys
import time

DELTA_CHARACTERS = 24
FILE_TO_READ = "notes.txt"

_PLAY = re.compile(rb"play:(text|tools):(\d+):(\d+)")
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def play_text(deltas: int, interval_us: int = 0) -> str:
    """The prompt for so many deltas of `DELTA_CHARACTERS` each, that many microseconds apart."""
    return f"play:text:{deltas}:{interval_us}"


def play_tools(turns: int) -> str:
    """The prompt for so many turns that each read `FILE_TO_READ`, and one that answers."""
    return f"play:tools:{turns}:0"


class _Exchange:
    """One connection, request after request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ended_at = 0

    async def serve(self) -> None:
        try:
            while True:
                await self._answer(await self._request(), time.monotonic_ns())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has left
        finally:
            self._writer.close()

    async def _request(self) -> bytes:
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: *(\d+)", head)
        return await self._reader.readexactly(int(length[1])) if length else b""

    async def _answer(self, body: bytes, arrived: int) -> None:
        kind, count, interval = list(_PLAY.finditer(body))[-1].groups()
        self._writer.write(_HEAD)
        if kind == b"text":
            await self._play_text(int(count), int(interval) / 1e6)
        else:
            turn = body.count(b'"role":"tool"', body.rindex(b"play:tools"))
            self._play_tool_turn(turn, int(count), arrived - self._ended_at)
        self._writer.write(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await self._writer.drain()
        self._ended_at = time.monotonic_ns()

    async def _play_text(self, deltas: int, interval: float) -> None:
        for _ in range(deltas):
            if interval:
                await asyncio.sleep(interval)
            text = f"@{time.monotonic_ns()}@".ljust(DELTA_CHARACTERS, "x")
            self._writer.write(_event({"content": text}))
            await self._writer.drain()
        self._writer.write(_event({}, "stop"))

    def _play_tool_turn(self, turn: int, turns: int, gap: int) -> None:
        said = f"<gap:{gap}>" if turn else "Let me see."
        self._writer.write(_event({"content": said}))
        if turn == turns:
            self._writer.write(_event({}, "stop"))
            return
        arguments = json.dumps({"file_path": FILE_TO_READ})
        call = {"index": 0, "id": f"call_{turn}", "type": "function"}
        call["function"] = {"name": "read_file", "arguments": arguments}
        self._writer.write(_event({"tool_calls": [call]}))
        self._writer.write(_event({}, "tool_calls"))


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "model": "bench", "choices": [choice]}
    return _chunk(b"data: %b\n\n" % json.dumps(chunk, separators=(",", ":")).encode())


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _main() -> None:
    """Serve until stdin ends; say the port on stdout first."""
    server = await asyncio.start_server(lambda r, w: _Exchange(r, w).serve(), "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
