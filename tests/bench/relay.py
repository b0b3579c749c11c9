"""What the two relays share: the smallest thing that can stand where the daemon stands.

It reads frames, answers every request, and hands on what the model server says, one update per delta. A turn
that calls a tool reads the file and asks again. There is no journal, no permission, no order of events, no
cancel and no error that is not a crash: this is the floor that a daemon with all of that is measured against.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from model_server import FILE_TO_READ

Ask = Callable[[bytes], AsyncIterator[bytes]]
"""From the body of a request to the payloads of the answer's events."""


async def relay(ask: Ask, update: Callable[[bytes], bytes | None]) -> None:
    """Serve stdin until its end. `update` makes the JSON of an update of a payload; None for no update."""
    frames = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(frames), sys.stdin
    )
    messages: list[dict[str, Any]] = []
    while head := await frames.readline():
        await frames.readline()
        message = json.loads(await frames.readexactly(int(head.split(b":")[1])))
        if message["method"] == "agentd/session/new":
            messages = []
        elif message["method"] == "agentd/prompt":
            _send(b'{"jsonrpc":"2.0","method":"agentd/event","params":{"event":{"type":"agent_start"}}}')
            messages.append({"role": "user", "content": message["params"]["prompt"]})
            while await _turn(ask, update, messages):
                pass
        if "id" in message:
            _send(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % message["id"])


async def _turn(ask: Ask, update: Callable[[bytes], bytes | None], messages: list[dict[str, Any]]) -> bool:
    """One response of the model; True where a tool was called and the model is to be asked again."""
    body = {"model": "bench", "stream": True, "messages": messages}
    calls: list[dict[str, Any]] = []
    async for payload in ask(json.dumps(body, separators=(",", ":")).encode()):
        if b'"delta":{"tool_calls"' in payload:
            calls += json.loads(payload)["choices"][0]["delta"]["tool_calls"]
        elif (event := update(payload)) is not None:
            _send(b'{"jsonrpc":"2.0","method":"agentd/event","params":%b}' % event)
    if calls:
        messages.append({"role": "assistant", "tool_calls": calls})
        messages += map(_tool_result, calls)
    return bool(calls)


def _tool_result(call: dict[str, Any]) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call["id"], "content": Path(FILE_TO_READ).read_text()}


def _send(body: bytes) -> None:
    os.write(1, b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
