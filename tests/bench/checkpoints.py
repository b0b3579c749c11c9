"""`python tests/bench/checkpoints.py`: what the looks around a command take, beside what git takes to look.

Two workspaces: one that is read before a command, and a repository that is too large for that. Floors: a bare
walk that asks for the state of every file, and `git status`.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from agentd.config.sandbox_settings import SandboxSettings
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.command_changes import Looks
from agentd.workspace.git import Git
from agentd.workspace.process import Processes
from agentd.workspace.prompt_checkpoint import PromptCheckpoint
from agentd.workspace.sandbox import Sandbox

SMALL, LARGE = 2_000, 50_000
_PER_FOLDER = 100

Times = dict[str, list[float]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(f"{'files':>8}  {'what':<28} {'median ms':>10}")
    for count in (SMALL, LARGE):
        with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
            root = Path(os.path.realpath(folder)) / "work"
            _fill(root, count)
            for what, times in anyio.run(_measured, root, rounds).items():
                print(f"{count:>8}  {what:<28} {statistics.median(times):>10.1f}")


def _fill(root: Path, count: int) -> None:
    for number in range(count):
        path = root / f"d{number // _PER_FOLDER}" / f"{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line {number}\n" * 100)
    author = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
    for line in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run(["git", *author, *line], cwd=root, check=True)
    time.sleep(1)  # files that are as young as the index are read, by git too
    subprocess.run(["git", "update-index", "--refresh", "-q"], cwd=root, check=True)


async def _measured(root: Path, rounds: int) -> dict[str, list[float]]:
    times: Times = {name: [] for name in ("bare walk", "git status", "before a command", "behind a command")}
    async with Processes() as processes:
        sandbox = Sandbox(processes, SandboxSettings(), (), None)
        git = Git(root, processes, sandbox)
        checkpoints = Checkpoints(root.with_name("kept"))
        for number in range(rounds):
            with _timed(times["bare walk"]):
                _walk(root)
            with _timed(times["git status"]):
                await anyio.run_process(["git", "status", "--porcelain"], cwd=root)
            checkpoint = PromptCheckpoint(checkpoints, f"p{number}", Looks(), print, git=git)
            start = time.perf_counter()
            async with checkpoint.watching(root):
                times["before a command"].append((time.perf_counter() - start) * 1000)
                (root / "d0" / f"{number}.py").write_text("changed\n")
                start = time.perf_counter()
            times["behind a command"].append((time.perf_counter() - start) * 1000)
        sandbox.close()
    return times


@contextmanager
def _timed(times: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times.append((time.perf_counter() - start) * 1000)


def _walk(root: Path) -> None:
    for folder, _, names in os.walk(root):
        for name in names:
            os.lstat(os.path.join(folder, name))


if __name__ == "__main__":
    main()
