"""A daemon from its first moment to its last: started, and ended in good order, whatever face it has."""

import asyncio
import contextvars
import functools
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread

from agentd.daemon.core import Core, Ground
from agentd.daemon.door import Door
from agentd.daemon.lifetime import Lifetime
from agentd.daemon.log import set_up_log
from agentd.daemon.outbox import Outbox
from agentd.daemon.start import Start
from agentd.daemon.stdin import read_frames
from agentd.protocol.errors import RpcError
from agentd.protocol.frames import BrokenFraming, Oversized, encode
from agentd.workspace.open_files import allow_enough
from agentd.workspace.process import Processes

log = logging.getLogger(__name__)

CLOSE_SECONDS = 1.2
"""How long runs may take to close when the daemon ends. With the last writes this stays under two seconds."""
ANSWER_SECONDS = 0.2
DRAIN_SECONDS = 0.3
TOOLS_GRACE_SECONDS = 0.3
SWEEP_SECONDS = 0.2


@dataclass(frozen=True)
class Parts:
    """A face that is put together. `on_end` lets go of whatever waits for the client."""

    door: Door
    core: Core
    on_end: Callable[[], None]


Assemble = Callable[[Ground], Parts]


def serve(start: Start, assemble: Assemble, frame: Callable[[bytes], bytes] = encode) -> int:
    """Serve one client until it, or a signal, ends that. Gives the exit code.

    `frame` makes of a message's body what goes over the wire.
    """
    log_handler = set_up_log(start.secrets, os.environ.get("AGENTD_LOG", "WARNING"))
    try:
        return anyio.run(_serve, start, assemble, frame)
    except Exception:
        log.exception("the daemon failed")
        return 1
    finally:
        log_handler.flush()


async def _serve(start: Start, assemble: Assemble, frame: Callable[[bytes], bytes]) -> int:
    async with anyio.create_task_group() as tasks, Processes(allow_enough()) as processes:
        lifetime = Lifetime(tasks.start_soon)
        outbox = Outbox(start.fd_out, lambda: lifetime.end(1, "stdout is closed"), frame)
        parts = assemble(Ground(start, tasks, processes, lifetime, outbox))
        tasks.start_soon(lifetime.watch_signals)
        lifetime.watch_stdout(start.fd_out)
        if start.client_process is not None:
            lifetime.follow_parent(start.client_process)
        _take_over(start, parts.door, lifetime)
        await lifetime.ended.wait()
        with anyio.CancelScope(shield=True):
            await _close(parts, processes)
            await outbox.close(DRAIN_SECONDS)
        tasks.cancel_scope.cancel()
    return lifetime.code


def _take_over(start: Start, door: Door, lifetime: Lifetime) -> None:
    """Handle the frames that were read before us, then read on."""

    def on_frame(frame: bytes | Oversized, answered: bool = False) -> None:
        door.receive(frame, answered=answered)

    def on_end(broken: BrokenFraming | None) -> None:
        if broken is None:
            lifetime.end(0, "stdin is at its end")
            return
        log.error("stdin is no sequence of frames any more: %s", broken)
        door.refuse(RpcError("parse", f"Broken framing: {broken}. The daemon ends."))
        lifetime.end(2, "broken framing")

    for number, frame in enumerate(start.frames):
        on_frame(frame, answered=start.answered and number == 0)
    if start.broken is not None or start.ended:
        on_end(start.broken)
        return
    call = asyncio.get_running_loop().call_soon_threadsafe
    call_here = functools.partial(call, context=contextvars.copy_context())  # where anyio finds its backend
    read_frames(start.fd_in, start.reader, call_here, on_frame, on_end)


async def _close(parts: Parts, processes: Processes) -> None:
    """End what runs, its tools first, and answer who waits."""
    parts.on_end()
    with anyio.move_on_after(CLOSE_SECONDS):
        async with anyio.create_task_group() as closing:
            closing.start_soon(parts.core.sessions.close_all, "interrupted")
            closing.start_soon(processes.shutdown, TOOLS_GRACE_SECONDS)
    await parts.door.answer_all(ANSWER_SECONDS)
    with anyio.move_on_after(DRAIN_SECONDS):
        await parts.core.engines.aclose()
    with anyio.move_on_after(SWEEP_SECONDS):  # what is left then is swept by a later daemon
        await anyio.to_thread.run_sync(parts.core.sandbox.close, abandon_on_cancel=True)
