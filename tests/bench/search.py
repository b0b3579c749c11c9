"""`python tests/bench/search.py`: searching a generated tree, beside bare ripgrep in the same run."""

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio

from agentd.workspace import search
from agentd.workspace.ripgrep import Ripgrep, find_ripgrep
from agentd.workspace.search_job import SearchJob

FLOOR, HELPED, OWN = "bare rg", "agentd with ripgrep", "agentd without"
FILES_PER_FOLDER = 100
PATTERNS = {
    "by content, a word, few matches": "needle",
    "by content, a regular expression, few matches": r"\bneedle\s+here$",
    "by content, either of two words, none": "TODO|FIXME",
}
IGNORED = "*.o\n*.log\nbuild/\nnode_modules/\n__pycache__/\n*.pyc\n/dist\n.venv/\n*.swp\n!keep.log\n"

NAMES = {
    "by name, *.py": ("*.py", 1_000_000),
    "by name, *abc*": ("*abc*", 1_000_000),
    "by name, all, the first 60000": ("**", 60_000),
    "by name, all, the first 1000": ("**", 1_000),
}
# What a project of two languages has that took its rules from templates.
HEAVY = (Path(__file__).parent / "many_rules.txt").read_text()

Result = TypeVar("Result")
Times = dict[str, dict[str, list[float]]]
"""What was done -> by whom -> seconds."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000, help="how many files the tree has (20000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each has its turn (5)")
    parser.add_argument(
        "--names", action="store_true", help="only by name, in four trees (--files is not used)"
    )
    options = parser.parse_args()
    ripgrep = find_ripgrep(Path("/nowhere"), os.environ.get("PATH", ""))
    if ripgrep is None:
        print("There is no ripgrep to measure beside: pip install 'agentd-lsp[fast]'")
        return 0
    if options.names:
        for title, make in NAME_TREES.items():
            with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
                make(root := Path(folder).resolve())
                times = anyio.run(_measure_names, root, ripgrep, options.rounds)
            print_times(times, f"{title}, ripgrep {ripgrep.version}")
        return 0
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        root = Path(folder).resolve()
        size = make_tree(root, options.files)
        times = anyio.run(_measure, root, ripgrep, options.rounds)
    print_times(times, f"{options.files} files, {size / 1e6:.0f} MB, ripgrep {ripgrep.version}")
    return 0


def make_names(root: Path, files: int, *, rules: str = IGNORED, below: str = "", ignored: int = 0) -> None:
    """A tree of empty files, folders at most eight deep, every tenth with the rules `below`.

    `ignored` more files are in `node_modules`.
    """
    source = random.Random(1)
    words = ["".join(source.choices("abcdefghij_", k=source.randint(3, 10))) for _ in range(3000)]
    (root / ".gitignore").write_text(rules)
    folders, most = [root], len(root.parts) + 7
    for number in range(files // FILES_PER_FOLDER):
        above = source.choice([folder for folder in folders[-400:] if len(folder.parts) < most] or [root])
        folder = above / f"{source.choice(words)}{number}"
        folder.mkdir()
        folders.append(folder)
        if below and number % 10 == 0:
            (folder / ".gitignore").write_text(below)
        for index in range(FILES_PER_FOLDER):
            extension = source.choice(["py", "ts", "c", "h", "md", "json", "rs", "log"])
            (folder / f"{source.choice(words)}{index}.{extension}").touch()
    for number in range(ignored // FILES_PER_FOLDER):
        folder = root / "node_modules" / f"package{number}"
        folder.mkdir(parents=True)
        for index in range(FILES_PER_FOLDER):
            (folder / f"{index}.js").touch()


def make_tree(root: Path, files: int) -> int:
    """A tree of source files, some ignored, a few with the needle; gives its size in bytes."""
    source = random.Random(1)
    words = ["".join(source.choices("abcdefghij_", k=source.randint(3, 10))) for _ in range(3000)]
    lines = ["    " + " ".join(source.choices(words, k=8)) for _ in range(2000)]
    (root / ".gitignore").write_text(IGNORED)
    size = 0
    folders = [root]
    for number in range(files // FILES_PER_FOLDER):
        folder = source.choice(folders[-50:]) / f"{source.choice(words)}{number}"
        folder.mkdir()
        folders.append(folder)
        for index in range(FILES_PER_FOLDER):
            start = source.randint(0, 1700)
            text = "\n".join(lines[start : start + source.randint(10, 250)])
            needle = "\n  the needle here\n" if source.random() < 0.002 else "\n"
            extension = source.choice(["py", "ts", "c", "h", "md", "json", "rs", "log"])
            size += (folder / f"{source.choice(words)}{index}.{extension}").write_text(text + needle)
    return size


async def _measure(root: Path, ripgrep: Ripgrep, rounds: int) -> Times:
    times: Times = defaultdict(lambda: defaultdict(list))
    for number in range(rounds + 1):  # the first only warms the disk's cache up
        print(f"\rround {number} of {rounds} ...", end="", file=sys.stderr, flush=True)
        kept = times if number else defaultdict(lambda: defaultdict(list))
        await _take(kept["by name"], root, ripgrep, None)
        for title, pattern in PATTERNS.items():
            await _take(kept[title], root, ripgrep, pattern)
    return times


async def _take(kept: dict[str, list[float]], root: Path, ripgrep: Ripgrep, pattern: str | None) -> None:
    """One round of one thing to do. All have to find as many files."""
    job = SearchJob(str(root), (), "*.py" if pattern is None else None, 1_000_000, 600.0, pattern=pattern,
                    max_bytes=10**9)  # fmt: skip
    found = set()
    for name, helper in ((HELPED, ripgrep), (OWN, None)):
        search.find_ripgrep = lambda root, path, helper=helper: helper  # type: ignore[assignment,misc]
        outcome = await _timed(kept[name], lambda: search.run_search(job))
        found.add(len(outcome.found))
    wanted = ["--files", "-g*.py"] if pattern is None else ["-l", "-e", pattern]
    bare = [ripgrep.path, "--no-config", "--hidden", "--no-require-git", *wanted, "."]
    process = await _timed(kept[FLOOR], lambda: anyio.run_process(bare, cwd=root, check=False))
    found.add(len(process.stdout.splitlines()))
    if len(found) != 1:
        raise RuntimeError(f"not all found as many files: {sorted(found)}")


async def _measure_names(root: Path, ripgrep: Ripgrep, rounds: int) -> Times:
    times: Times = defaultdict(lambda: defaultdict(list))
    for number in range(rounds + 1):  # the first only warms the disk's cache up
        kept = times if number else defaultdict(lambda: defaultdict(list))
        for title, (glob, limit) in NAMES.items():
            await _take_names(kept[title], root, ripgrep, glob, limit)
    return times


async def _take_names(
    kept: dict[str, list[float]], root: Path, ripgrep: Ripgrep, glob: str, limit: int
) -> None:
    """One round of one glob. With ripgrep and without the same is found, in the same order."""
    job = SearchJob(str(root), (), glob, limit, 600.0, max_bytes=10**9)
    found = []
    for name, helper in ((HELPED, ripgrep), (OWN, None)):
        search.find_ripgrep = lambda root, path, helper=helper: helper  # type: ignore[assignment,misc]
        outcome = await _timed(kept[name], lambda: search.run_search(job))
        found.append(outcome.found)
    bare = [ripgrep.path, "--no-config", "--hidden", "--no-require-git", "--files", "."]
    await _timed(kept[FLOOR], lambda: anyio.run_process(bare, cwd=root, check=False))
    if found[0] != found[1]:
        raise RuntimeError(f"not the same is found with ripgrep and without: {glob}")


async def _timed(kept: list[float], what: Callable[[], Awaitable[Result]]) -> Result:
    start = time.monotonic()
    result = await what()
    kept.append(time.monotonic() - start)
    return result


def print_times(times: Times, what: str) -> None:
    """A block for each thing that was done."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\rPython {platform.python_version()}, {os.cpu_count()} CPUs, load {load}; {what}")
    print(f"{'seconds':<50}{'min':>9}{'median':>9}{'max':>9}{'of bare rg':>12}")
    for title, by_whom in times.items():
        print(title)
        floor = statistics.median(by_whom[FLOOR])
        for name in (FLOOR, HELPED, OWN):
            if values := by_whom.get(name):
                median = statistics.median(values)
                numbers = "".join(f"{each:9.3f}" for each in (min(values), median, max(values)))
                print(f"    {name:<46}{numbers}" + (f"{median / floor:11.1f}x" if name != FLOOR else ""))


NAME_TREES: dict[str, Callable[[Path], None]] = {
    "20,000 files": lambda root: make_names(root, 20_000),
    "20,000 files, 140 rules and more below": lambda root: make_names(
        root, 20_000, rules=HEAVY, below="*.log\n!keep.log\n/out/\n*.tmp[0-9]\n"
    ),
    "200,000 files": lambda root: make_names(root, 200_000),
    "5,000 files, 100,000 ignored": lambda root: make_names(root, 5_000, ignored=100_000),
}


if __name__ == "__main__":
    sys.exit(main())
