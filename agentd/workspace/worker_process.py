"""Work in a process of its own, for what nothing inside a Python process can stop: a match, a parser.

The module named has a `main` that reads a request from stdin and writes its answer to stdout. It gets nothing
of the environment, is killed with all that it started when the time is up or the answer no longer wanted, and
is to end itself soon after (SIGALRM) should nobody be left to kill it.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import Process

_KILL_SECONDS = 2
_START = (
    "import sys; from importlib import import_module; sys.path[:] = sys.argv[2:]; "
    "import_module(sys.argv[1]).main()"
)


async def run_worker(module: str, request: bytes, answer: bytearray, *, seconds: float, limit: int) -> bool:
    """Let the module's `main` work on the request and append its output to `answer`. False: out of time.

    Cancelling kills it at once. More than `limit` bytes of output end it too.
    """
    with anyio.move_on_after(seconds) as patience:
        await _work(module, request, answer, limit)
    return not patience.cancelled_caught


async def _work(module: str, request: bytes, answer: bytearray, limit: int) -> None:
    process = await anyio.open_process(
        command(module), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", env=environment(),
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            await process.stdin.send(request)
            await process.stdin.aclose()
        except anyio.BrokenResourceError:
            return  # it died at the start; the missing answer says so
        async for chunk in process.stdout:
            answer += chunk
            if len(answer) > limit:
                return
        # Its output has ended, so it will. asyncio must learn of it before anything else asks.
        await process.wait()
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(_KILL_SECONDS):
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it ended by itself just now
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await process.aclose()


def command(module: str) -> list[str]:
    """How to start it. It imports from where the daemon does, never from the working directory.

    That may be an untrusted workspace.
    """
    package = str(Path(__file__).resolve().parents[2])
    places = [package, *(entry for entry in sys.path if os.path.isabs(entry))]
    return [sys.executable, "-I", "-S", "-W", "ignore", "-c", _START, module, *places]


def environment() -> dict[str, str]:
    """Nothing but what some Python builds need to find their library."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
