"""Keeping what a file was, around a change of it that is made on the event loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio.to_thread
from anyio import CancelScope

from agentd.tools.base import ToolContext
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place


@asynccontextmanager
async def kept(
    context: ToolContext,
    place: Place,
    before: Snapshot | None,
    after: bytes | None,
    *,
    in_buffer: bool = False,
) -> AsyncIterator[None]:
    """The checkpoint of a change, whose own work is done in a thread; see `Checkpoint.changing`."""
    checkpoint = context.checkpoint.changing(place, before, after, in_buffer=in_buffer)
    await anyio.to_thread.run_sync(checkpoint.__enter__)
    try:
        yield
    except BaseException as error:
        with CancelScope(shield=True), suppress(type(error)):  # it raises again what it is given
            await anyio.to_thread.run_sync(checkpoint.__exit__, type(error), error, error.__traceback__)
        raise
    with CancelScope(shield=True):
        await anyio.to_thread.run_sync(checkpoint.__exit__, None, None, None)
