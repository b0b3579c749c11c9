"""`python tests/bench/actions.py`: how long the editor's menu and commands take while a run streams.

The same requests while nothing runs, and to a process that only answers, are the floors of the same run.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from subject import Command, Subject, notification, request

WORDS = 1_000_000
"""Of the streamed answer, each a delta of its own; the run is stopped when all was asked."""
STREAMS = {"as fast as they come": 0, "one each millisecond": 1}
"""How deltas follow each other, with the pause in ms."""
TEXT = "def one():\n    return 1  # agentd: make it two\n\n\n" * 200
HELLO = {
    "processId": None,
    "rootUri": None,
    "capabilities": {"textDocument": {"codeAction": {"codeActionLiteralSupport": {}}}},
    "initializationOptions": {"agentd": {"trusted": True}},
}

Json = dict[str, Any]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500, help="how many of each kind in a round (500)")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds of each (3)")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.echo:
        return echo()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    taken: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        for number in range(options.rounds):
            place = Path(folder) / str(number)
            place.mkdir()
            for subject, kind, values in measured(place, options.requests):
                taken.setdefault(kind, {}).setdefault(subject, []).extend(values)
    show(taken)
    return 0


def measured(folder: Path, count: int) -> Iterator[tuple[str, str, list[float]]]:
    """`(subject, kind of request, ms of each)` of one round."""
    bare = Command("echo", [sys.executable, __file__, "--echo"])
    with Subject(bare, folder) as subject:
        for kind, values in asked(subject, folder, count).items():
            yield "a process that only answers", kind, values
    place = {"AGENTD_DATA": str(folder / "data"), "AGENTD_CONFIG": str(folder / "config.toml")}
    (folder / "config.toml").write_text("")
    with Subject(Command("agentd", [sys.executable, "-m", "agentd"], place), folder) as subject:
        opened(subject, folder)
        for kind, values in asked(subject, folder, count).items():
            yield "agentd, nothing runs", kind, values
        for name, pause in STREAMS.items():
            streams(subject, folder, pause)
            for kind, values in asked(subject, folder, count).items():
                yield f"agentd, deltas {name}", kind, values
            stopped(subject)


def opened(subject: Subject, folder: Path) -> None:
    """Begin, with a document open."""
    subject.call("initialize", HELLO)
    subject.write(notification("initialized", {}))
    uri = (folder / "a.py").as_uri()
    item = {"uri": uri, "languageId": "python", "version": 0, "text": TEXT}
    subject.write(notification("textDocument/didOpen", {"textDocument": item}))
    subject.call("textDocument/codeAction", menu(uri))  # which imports what documents need
    subject.call("workspace/executeCommand", {"command": "agentd.newSession", "arguments": []})


def streams(subject: Subject, folder: Path, pause: int) -> None:
    """Have a run stream for as long as it takes."""
    script = folder / f"script-{pause}.json"
    text = {"type": "text", "text": "word " * WORDS}
    script.write_text(json.dumps([{"content": [text], "chunkSize": 5, "delayMs": pause}]))
    params = {"prompt": "Say much.", "model": f"scripted/{script}"}
    subject.write(request(1_000_000 + pause, "agentd/prompt", params))
    subject.until(lambda frame: frame.is_update)


def stopped(subject: Subject) -> None:
    """End the run. Raises `RuntimeError` where it had ended before: then nothing was measured beside it."""
    (*_, answer) = subject.call("workspace/executeCommand", {"command": "agentd.cancel", "arguments": []})
    if not json.loads(answer.body)["result"]["sessionIds"]:
        raise RuntimeError("the run ended before all was asked: ask for less")


def asked(subject: Subject, folder: Path, count: int) -> dict[str, list[float]]:
    """The requests, one after the other, and the ms until each is answered."""
    uri = (folder / "a.py").as_uri()
    kinds = {
        "textDocument/codeAction": ("textDocument/codeAction", menu(uri)),
        "workspace/executeCommand (agentd.showDiff)": (
            "workspace/executeCommand",
            {"command": "agentd.showDiff", "arguments": []},
        ),
    }
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _, (kind, (method, params)) in zip(range(count * len(kinds)), cycle(kinds.items()), strict=False):
        start = time.monotonic_ns()
        (*_, answer) = subject.call(method, params)
        taken[kind].append((answer.at - start) / 1e6)
    return taken


def menu(uri: str) -> Json:
    """What an editor asks for its menu."""
    start, end = {"line": 1, "character": 0}, {"line": 2, "character": 0}
    where = {"start": start, "end": end}
    return {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": []}}


def show(taken: dict[str, dict[str, list[float]]]) -> None:
    """p50 and p99, and how many times the floor of one that runs beside nothing."""
    print(f"{'ms from the writing of a request to the reading of its answer':<62}{'p50':>9}{'p99':>9}")
    for kind, subjects in taken.items():
        print(kind)
        idle = percentiles(subjects["agentd, nothing runs"])
        for name, values in subjects.items():
            p50, p99 = percentiles(values)
            ratio = f"{p50 / idle[0]:8.2f}x{p99 / idle[1]:8.2f}x nothing runs" if "deltas" in name else ""
            print(f"    {name:<58}{p50:9.2f}{p99:9.2f}{ratio}")


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """p50 and p99."""
    return statistics.median(values), statistics.quantiles(values, n=100)[98]


def echo() -> int:
    """Answer each frame with nothing: what pipes, processes and frames take by themselves."""
    while line := sys.stdin.buffer.readline():
        length = int(line.split(b":")[1])
        sys.stdin.buffer.readline()
        message = json.loads(sys.stdin.buffer.read(length))
        body = json.dumps(
            {"jsonrpc": "2.0", "id": message["id"], "result": []}, separators=(",", ":")
        ).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
