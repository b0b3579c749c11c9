"""`python tests/bench/spawn.py`: what a command costs from start to result, beside bare `subprocess`."""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from agentd.workspace.environment import command_environment
from agentd.workspace.process import Processes
from agentd.workspace.shell import shell_call

COMMAND = "true"
FOLDER = Path("/")
FLOOR = "subprocess"

Way = Callable[[], Awaitable[object]]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="how many commands of each way (200)")
    anyio.run(_measure, parser.parse_args().rounds)
    return 0


def ways(processes: Processes) -> dict[str, Way]:
    """Every way to run the command, by its name in the table. What wraps the command is one more entry."""
    environment = command_environment(os.environ)
    call = shell_call(COMMAND, environment)
    bare = ["bash", "-c", COMMAND]

    async def floor() -> None:
        subprocess.run(  # noqa: ASYNC221 - nothing else is on this loop
            bare, env=environment, cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )

    async def warden() -> None:
        await processes.run(bare, cwd=FOLDER, env=environment, timeout=60)

    async def tool() -> None:
        await processes.run(call.argv, cwd=FOLDER, env=call.env, timeout=60, aside=call.aside)

    async def four() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(warden)

    return {
        FLOOR: floor,
        "under a warden": warden,
        "the same, telling its directory (the bash tool)": tool,
        "four at once, under wardens": four,
    }


async def _measure(rounds: int) -> None:
    async with Processes() as processes:
        samples: dict[str, list[float]] = {name: [] for name in ways(processes)}
        first = await _timed(ways(processes)["under a warden"])
        for number in range(rounds + 1):  # each has its turn, so that a noisy minute is everyone's
            for name, way in ways(processes).items():
                taken = await _timed(way)
                if number:  # the first round only warms up
                    samples[name].append(taken)
    _print(samples, first)


async def _timed(way: Way) -> float:
    start = time.monotonic_ns()
    await way()
    return (time.monotonic_ns() - start) / 1e6


def _print(samples: dict[str, list[float]], first: float) -> None:
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    print(f"bash -c {COMMAND}, start to result, ms")
    print(f"{'':<54}{'min':>9}{'median':>9}{'max':>9}{'of the floor':>14}")
    floor = statistics.median(samples[FLOOR])
    for name, values in samples.items():
        median = statistics.median(values)
        numbers = "".join(f"{each:9.2f}" for each in (min(values), median, max(values)))
        print(f"    {name:<50}{numbers}{median / floor:13.2f}x")
    print(f"    {'the first command of a daemon, under a warden':<50}{first:9.2f}")


if __name__ == "__main__":
    sys.exit(main())
