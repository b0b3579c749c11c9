"""Making an image what a model server takes: smaller, upright, still, of another type."""

import json
from collections.abc import Collection
from functools import cache
from importlib.util import find_spec

from agentd.workspace.worker_process import run_worker

MAX_BYTES = 20 * 1024 * 1024
"""The largest image that is looked at."""
MAX_PIXELS = 100_000_000
"""The most pixels that are decoded: 400 MB of memory. What has more is taken for a bomb."""
INSTALL = "pip install 'agentd-lsp[images]'"

_SECONDS = 30.0


class NotShrunk(Exception):
    """An image that could not be made smaller; the message says why."""


@cache
def can_shrink() -> bool:
    """Whether Pillow is installed."""
    try:
        return find_spec("PIL") is not None
    except ImportError:
        return False


async def shrunk(data: bytes, *, side: int, size: int, types: Collection[str]) -> tuple[str, bytes]:
    """The image as one of `types`, no side longer than `side` pixels, at most `size` bytes; its type first.

    The work is done in a process of its own, which a cancel kills. Raises `NotShrunk`.
    """
    wishes = {
        "side": side, "size": size, "types": sorted(types), "pixels": MAX_PIXELS, "seconds": _SECONDS,
    }  # fmt: skip
    answer = bytearray()
    request = json.dumps(wishes).encode("ascii") + b"\n" + data
    in_time = await run_worker(
        "agentd.workspace.image_worker", request, answer, seconds=_SECONDS, limit=size + 1024
    )
    if not in_time:
        raise NotShrunk(f"it could not be decoded in {_SECONDS:.0f} seconds")
    head, found, smaller = bytes(answer).partition(b"\n")
    if not found:
        raise NotShrunk("it could not be decoded in the memory that there is for it")
    told = json.loads(head)
    if "error" in told:
        raise NotShrunk(f"it could not be decoded ({told['error']})")
    return told["mimeType"], smaller
