"""`python tests/bench/run.py`: what agentd adds to a model server's answer, beside floors of the same run."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from file_work import of_agentd, of_bare_python
from measures import MEASURES, Value, cold_start, cold_start_of_acp, warm
from model_server import FILE_TO_READ
from subject import Command

HERE = Path(__file__).parent

Samples = dict[str, dict[str, list[float]]]
"""Measure -> subject -> values."""

AGENTD, PASS, BARE, HTTPX = "agentd", "python -c pass", "bare asyncio relay", "httpx relay"
PLAIN = "bare Python"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", type=int, default=15, help="how many cold starts of each (15)")
    parser.add_argument("--warm", type=int, default=5, help="how many warm rounds of each (5)")
    options = parser.parse_args()
    samples: Samples = defaultdict(lambda: defaultdict(list))
    with _model_server() as port, tempfile.TemporaryDirectory(prefix="agentd-bench-") as folder:
        _measure(Path(folder), port, options.cold, options.warm, samples)
    _print(samples)
    return 0


@contextmanager
def _model_server() -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, HERE / "model_server.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield int(process.stdout.readline())
        process.stdin.close()


def _measure(folder: Path, port: int, cold: int, warm_rounds: int, samples: Samples) -> None:
    """Rounds in which each has its turn, so that a noisy minute is everyone's. The first only warms up."""
    agentd, scripted, acp, relays = _subjects(folder, port)
    for number in range(cold + 1):
        values = [(AGENTD, cold_start(agentd, _workspace(folder)))]
        values += [(AGENTD, cold_start(scripted, _workspace(folder), "scripted_"))]
        values += [(AGENTD, cold_start_of_acp(acp, _workspace(folder)))]
        values += [(relay.name, cold_start(relay, _workspace(folder))) for relay in relays]
        values += [(PASS, _spawn_and_end())]
        _take(values, samples if number else None, f"cold start {number} of {cold}")
    for number in range(warm_rounds):
        values = [(each.name, warm(each, _workspace(folder))) for each in (agentd, *relays)]
        values += [(AGENTD, of_agentd(_workspace(folder))), (PLAIN, of_bare_python(_workspace(folder)))]
        _take(values, samples, f"warm round {number + 1} of {warm_rounds}")


def _subjects(folder: Path, port: int) -> tuple[Command, Command, Command, tuple[Command, ...]]:
    """agentd with the model server, agentd with a script, `agentd acp`, and the relays."""
    config = folder / "config.toml"
    config.write_text(
        'model = "bench/bench"\n[providers.bench]\napi = "openai-chat"\n'
        f'base_url = "http://127.0.0.1:{port}/v1"\n'
    )
    script = folder / "script.json"
    script.write_text(json.dumps([{"content": [{"type": "text", "text": "word " * 15}], "chunkSize": 24}]))
    place = {"AGENTD_DATA": str(folder / "data"), "AGENTD_CONFIG": str(config)}
    command = [sys.executable, "-m", "agentd"]
    return (
        Command(AGENTD, command, place),
        Command(AGENTD, command, {**place, "AGENTD_MODEL": f"scripted/{script}"}),
        Command(AGENTD, [*command, "acp"], place),
        (
            Command(BARE, [sys.executable, str(HERE / "bare_relay.py"), str(port)]),
            Command(HTTPX, [sys.executable, str(HERE / "httpx_relay.py"), str(port)]),
        ),
    )


def _workspace(folder: Path) -> Path:
    workspace = Path(tempfile.mkdtemp(prefix="workspace-", dir=folder))
    (workspace / FILE_TO_READ).write_text("A line of notes.\n" * 20)
    return workspace


def _spawn_and_end() -> Iterator[Value]:
    """What Python itself takes, which is beside every start."""
    start = time.monotonic_ns()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    taken = (time.monotonic_ns() - start) / 1e6
    for name in ("initialize", "first_event", "first_delta"):
        yield name, taken
        yield "scripted_" + name, taken
    for name in ("acp_initialize", "acp_session"):
        yield name, taken


def _take(values: Iterable[tuple[str, Iterable[Value]]], samples: Samples | None, what: str) -> None:
    print(f"\r{what} ...", end="", file=sys.stderr, flush=True)
    for subject, measured in values:
        for name, value in measured:
            if samples is not None:
                samples[name][subject].append(value)


def _print(samples: Samples) -> None:
    """A block for each measure: agentd, and each floor with how many times of it agentd takes."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    print(f"{'':<62}{'min':>9}{'median':>9}{'max':>9}{'agentd is':>12}")
    for name, title in MEASURES.items():
        if not samples[name]:
            continue  # no round of it was wished
        print(title)
        of_agentd = statistics.median(samples[name][AGENTD])
        for subject in (AGENTD, PASS, BARE, HTTPX, PLAIN):
            if values := samples[name].get(subject):
                median = statistics.median(values)
                ratio = f"{of_agentd / median:11.2f}x" if subject != AGENTD else ""
                numbers = "".join(f"{each:9.2f}" for each in (min(values), median, max(values)))
                print(f"    {subject:<58}{numbers}{ratio}")


if __name__ == "__main__":
    sys.exit(main())
