"""`python tests/bench/documents.py`: following a document that the user types in, beside bare Python."""

import argparse
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from agentd.server.language_server import LanguageServer
from agentd.workspace.buffer import Encoding

EDITS = 1000
PATH = Path("/nowhere/large.txt")
LINE = "    the quick brown fox jumps over the lazy dog {:6d}\n"
TEXTS = {"10 MB of ASCII": LINE, "10 MB with characters beyond it": LINE.replace("quick", "quíck 😀")}

Json = dict[str, Any]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds of each (5)")
    parser.add_argument("--megabytes", type=int, default=10, help="how large the document is (10)")
    options = parser.parse_args()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    print(
        f"{EDITS} times `didChange` of one word, median of {options.rounds} rounds, ms of CPU for all of them"
    )
    anyio.run(_warm)
    for name, line in TEXTS.items():
        count = options.megabytes * 1_000_000 // len(line.format(0).encode())
        lines = [line.format(number) for number in range(count)]
        frames = [json.dumps(each) for each in changes(lines)]
        floor = median(options.rounds, lambda lines=lines, frames=frames: bare(lines, frames))
        print(f"    {name:<34}{'bare Python':<20}{floor:9.1f}")
        for encoding in ("utf-16", "utf-8"):
            taken = median(options.rounds, lambda e=encoding, n=lines, f=frames: anyio.run(follow, n, f, e))
            print(f"    {name:<34}{'agentd, ' + encoding:<20}{taken:9.1f}{taken / floor:8.2f}x the floor")
    return 0


def median(rounds: int, once: Callable[[], float]) -> float:
    """The median of what a round takes, in ms."""
    return statistics.median(once() for _ in range(rounds)) * 1000


def changes(lines: Sequence[str]) -> list[Json]:
    """Params of `didChange`, each of one word in some line; the columns are the same in both encodings."""
    source = random.Random(1)
    found = []
    for version in range(1, EDITS + 1):
        spot = source.randrange(len(lines))
        ends = {"start": {"line": spot, "character": 4}, "end": {"line": spot, "character": 7}}
        named = {"uri": PATH.as_uri(), "version": version}
        found.append({"textDocument": named, "contentChanges": [{"range": ends, "text": "one"}]})
    return found


def bare(lines: Sequence[str], frames: Sequence[str]) -> float:
    """What it takes to read the frames and to change lines of a list; seconds of CPU."""
    own = list(lines)
    start = time.process_time()
    for frame in frames:
        (change,) = json.loads(frame)["contentChanges"]
        begin, end = change["range"]["start"], change["range"]["end"]
        line = own[begin["line"]]
        own[begin["line"]] = line[: begin["character"]] + change["text"] + line[end["character"] :]
    "".join(own)
    return time.process_time() - start


async def follow(lines: Sequence[str], frames: Sequence[str], encoding: Encoding) -> float:
    """The same as agentd does it, from the parsed frame to the text that a tool reads; seconds of CPU."""
    server = LanguageServer(lambda: encoding)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        item = {"uri": PATH.as_uri(), "languageId": "text", "version": 0, "text": "".join(lines)}
        server.take("textDocument/didOpen", {"textDocument": item})
        await server.document(PATH)
        start = time.process_time()
        for frame in frames:
            server.take("textDocument/didChange", json.loads(frame))
        document = await server.document(PATH)
        taken = time.process_time() - start
        assert document is not None
        assert document.version == EDITS
        tasks.cancel_scope.cancel()
    return taken


async def _warm() -> None:
    """Import what is imported with the first document."""
    await follow(["    the\n"] * 2, [json.dumps(changes(["    the\n"])[-1])], "utf-16")


if __name__ == "__main__":
    raise SystemExit(main())
