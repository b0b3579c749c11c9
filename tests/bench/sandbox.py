"""`python tests/bench/sandbox.py`: what a sandbox adds to the start of a command, beside a bare start.

A command here is `sh -c :`, run as the bash tool does: under the warden, to the end of its last process.
`enclosing` is what comes before it: the search of the workspace, a folder of so many files, for repositories
and secrets.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import anyio

from agentd.config.sandbox_settings import SandboxSettings, Wanted
from agentd.workspace.enclosure import Enclosure, Jailed
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

COMMAND = ["/bin/sh", "-c", ":"]
BARE = "bare"
BACKENDS: tuple[Wanted, ...] = ("bubblewrap", "landlock")


async def main(rounds: int, files: int) -> None:
    """Measure in turns, so that a noisy minute is everyone's, and print."""
    samples: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        root = Path(folder)
        fill(root, files)
        async with Processes() as processes:
            boxes = {name: Sandbox(processes, SandboxSettings(backend=name)) for name in BACKENDS}
            working = {name: box for name, box in boxes.items() if (await box.status()).works}
            for name in boxes.keys() - working.keys():
                print(f"{name}: {(await boxes[name].status()).reason}")
            for number in range(rounds + 1):
                taken = {BARE: await spawn(processes, root, None)}
                for name, box in working.items():
                    start = time.monotonic()
                    enclosure = await box.enclose(root)
                    taken[f"{name}, enclosing"] = (time.monotonic() - start) * 1000
                    taken[name] = await spawn(processes, root, enclosure)
                for name, value in taken.items():
                    if number:  # the first only warms up
                        samples[name].append(value)
            for box in boxes.values():
                box.close()
    show(samples)


def fill(root: Path, files: int) -> None:
    """A workspace of so many files, a hundred in each folder."""
    for number in range(files):
        folder = root / f"folder{number // 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}").touch()


async def spawn(processes: Processes, root: Path, enclosure: Enclosure | None) -> float:
    """Milliseconds from the call to the end of all the command started."""
    environment = {"PATH": os.defpath}
    start = time.monotonic()
    jailed = enclosure.wrap(COMMAND, root, environment) if enclosure else Jailed(COMMAND, environment)
    result = await processes.run(jailed.argv, cwd=root, env=jailed.env, timeout=30, jail=jailed.jail)
    taken = time.monotonic() - start
    assert result.exit_code == 0, result
    return taken * 1000


def show(samples: dict[str, list[float]]) -> None:
    """Each with how many times the bare start's median its median is."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    print(f"{'ms':<24}{'min':>9}{'median':>9}{'max':>9}{'to bare':>11}")
    bare = statistics.median(samples[BARE])
    for name, values in samples.items():
        median = statistics.median(values)
        numbers = "".join(f"{each:9.2f}" for each in (min(values), median, max(values)))
        print(f"{name:<24}{numbers}{median / bare:10.2f}x")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--files", type=int, default=2000)
    options = parser.parse_args()
    sys.exit(anyio.run(main, options.rounds, options.files))
