"""A workspace of 200,000 files: the daemon goes on meanwhile, and memory stays small."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.to_thread
import pytest
from search_trees import RIPGREP, job, search_with
from wire.processes import children_of, until

from agentd.workspace import worker_process
from agentd.workspace.ripgrep import Ripgrep

FILES = 200_000
PER_FOLDER = 200
MAX_MEMORY_KB = 150 * 1024
SECONDS = 600.0  # for a busy machine
PING_SECONDS = 2.0  # far more than a loop that is never blocked takes on a busy machine

BACKENDS = [
    pytest.param(None, id="own code"),
    pytest.param(RIPGREP, id="ripgrep", marks=pytest.mark.skipif(RIPGREP is None, reason="no ripgrep")),
]


@pytest.fixture(scope="module")
def large() -> Iterator[Path]:
    with TemporaryDirectory(prefix="agentd-large-") as folder:
        root = Path(folder).resolve()
        (root / ".gitignore").write_text("*.o\n/build/\n")
        for number in range(FILES // PER_FOLDER):
            below = root / f"part{number % 30}" / f"folder{number}"
            below.mkdir(parents=True)
            (below / "0.txt").write_text(f"file {number}\n")
            for other in range(1, PER_FOLDER):  # the same file by many names: as much to search, less to make
                os.link(below / "0.txt", below / f"{other}.txt")
        (root / "part7" / "last.txt").write_text("needle\n")
        yield root


@pytest.mark.parametrize("ripgrep", BACKENDS)
async def test_the_loop_answers_while_a_large_tree_is_searched(large: Path, ripgrep: Ripgrep | None) -> None:
    worst = 0.0

    async def ping() -> None:
        nonlocal worst
        while True:
            before = anyio.current_time()
            await anyio.sleep(0.01)
            worst = max(worst, anyio.current_time() - before)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ping)
        by_content = await search_with(ripgrep, job(large, "needle", seconds=SECONDS))
        by_name = await search_with(ripgrep, job(large, glob="last.*", seconds=SECONDS))
        tasks.cancel_scope.cancel()
    assert [each["file"] for each in by_content.found] == ["part7/last.txt"]
    assert by_content.end.files == FILES + 2
    assert by_name.found == [{"file": "part7/last.txt"}]
    assert worst < PING_SECONDS


@pytest.mark.parametrize("ripgrep", BACKENDS)
@pytest.mark.parametrize("pattern", [None, "needle", "."])
def test_a_search_of_a_large_tree_stays_small(
    large: Path, ripgrep: Ripgrep | None, pattern: str | None
) -> None:
    wanted = replace(job(large, pattern, limit=FILES, seconds=SECONDS), ripgrep=ripgrep and ripgrep.path)
    command = worker_process.command("agentd.workspace.search_worker")
    measured = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MEASURED, *command],
        input=json.dumps(asdict(wanted)).encode(), capture_output=True, check=True,
    )  # fmt: skip
    end, kilobytes = json.loads(measured.stdout)
    assert end["end"]["files"] > 0
    assert kilobytes < MAX_MEMORY_KB


# Between, since a process is told to have been as large as the one that it was forked from.
_MEASURED = """
import json, os, resource, subprocess, sys
job = json.load(sys.stdin) | {"asked_by": os.getpid()}
done = subprocess.run(sys.argv[1:], input=json.dumps(job).encode(), stdout=subprocess.PIPE, check=True)
end = json.loads(done.stdout.splitlines()[-1])
print(json.dumps([end, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""


@pytest.mark.parametrize("ripgrep", BACKENDS)
async def test_a_search_that_has_no_time_left_tells_so(large: Path, ripgrep: Ripgrep | None) -> None:
    outcome = await search_with(ripgrep, job(large, "needle", seconds=0.2))
    assert outcome.end.cut == "time"
    assert not outcome.stuck


@pytest.mark.parametrize("ripgrep", BACKENDS)
@pytest.mark.parametrize("pattern", [None, "needle"])
async def test_a_search_that_is_cancelled_at_any_time_leaves_no_process(
    large: Path, ripgrep: Ripgrep | None, pattern: str | None
) -> None:
    chance, before = random.Random(7), set(children_of(os.getpid()))
    glob = None if pattern else "last.*"

    def are_gone() -> bool:
        return set(children_of(os.getpid())) <= before

    for _ in range(6):
        with anyio.move_on_after(chance.random() * 0.5):
            await search_with(ripgrep, job(large, pattern, glob=glob, seconds=SECONDS))
        await anyio.to_thread.run_sync(until, are_gone, "the worker and its ripgrep are gone")
