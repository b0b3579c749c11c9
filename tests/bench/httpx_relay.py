"""The floor for Python with httpx: a relay that parses each delta and says it in its own words."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

import httpx
from relay import relay


async def serve(port: int) -> None:
    """Relay between stdin and the model server at `port`."""
    async with httpx.AsyncClient(verify=False, timeout=None) as client:

        async def ask(body: bytes) -> AsyncIterator[bytes]:
            async with client.stream("POST", f"http://127.0.0.1:{port}/", content=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        yield line[6:].encode()

        await relay(ask, update)


def update(payload: bytes) -> bytes | None:
    """The text of a delta as an update; none where it has no text."""
    text = json.loads(payload)["choices"][0]["delta"].get("content")
    if not text:
        return None
    event = {"type": "message_update", "update": {"delta": text}}
    return json.dumps({"event": event}, separators=(",", ":")).encode()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
