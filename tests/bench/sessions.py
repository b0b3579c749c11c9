"""`python tests/bench/sessions.py`: what keeping sessions costs, each beside a floor of the same run."""

import argparse
import itertools
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
from subject import Command, Subject, notification

from agentd.sessions.journal import Journal
from agentd.sessions.loading import read_state, take_over
from agentd.sessions.replay import ReplayReader
from agentd.sessions.summary import summary_of

RECORD_CHARACTERS = 480
"""Makes a line of about 600 bytes, the size of most records."""

APPENDS = 20_000
SYNCED = 400
TURNS = 10_000 // 4
"""Of a session of 10,000 messages: a prompt, a call, its result, an answer."""
LISTED = 1000
LISTED_BYTES = 10 * 1024 * 1024
TOOL_TURNS = 520
IDLE_SESSIONS = 100
TIME = "2026-01-01T00:00:00.000Z"
INITIALIZE = {
    "processId": None,
    "rootUri": None,
    "capabilities": {},
    "initializationOptions": {"agentd": {"trusted": True}},
}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds of each (5)")
    rounds = parser.parse_args().rounds
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    with tempfile.TemporaryDirectory(prefix="agentd-bench-") as name:
        folder = Path(name)
        for measure in (appends, reopening, listing, turns, idle):
            measure(folder, rounds)
    return 0


def told(what: str, value: float, unit: str, floor: float | None = None) -> None:
    """A line of the report; `floor` is what it stands beside."""
    beside = f"{value / floor:10.2f}x its floor" if floor else ""
    print(f"    {what:<66}{value:12.1f} {unit:<6}{beside}")


def best_of(rounds: int, function: Callable[[], object]) -> float:
    """The median of the seconds that a call takes."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


# --- appends --------------------------------------------------------------------------------------


def appends(folder: Path, rounds: int) -> None:
    """Records per second, without and with a flush for each, beside bare loops of the same bytes."""
    print("appends per second, records of about 600 bytes")
    record = {
        "seq": 1,
        "time": TIME,
        "promptId": "p_1",
        "event": {"type": "x", "text": "x" * RECORD_CHARACTERS},
    }
    path = folder / "appends.jsonl"
    journal = Journal.create(path, {"sessionId": "s"})
    journal.append(record)
    line = path.read_bytes().splitlines(keepends=True)[-1]
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT, 0o600)

    def loop(count: int, step: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(count):
                step()

        return run

    def flushed() -> None:
        os.write(flushed_file, line)
        os.fdatasync(flushed_file)

    async def synced() -> None:
        for _ in range(SYNCED):
            journal.append(record)
            await journal.sync()

    floor = APPENDS / best_of(rounds, loop(APPENDS, lambda: os.write(bare, line)))
    encoded = APPENDS / best_of(rounds, loop(APPENDS, lambda: os.write(bare, json.dumps(record).encode())))
    ours = APPENDS / best_of(rounds, loop(APPENDS, lambda: journal.append(record)))
    told("bare write", floor, "/s")
    told("json.dumps and bare write", encoded, "/s", floor)
    told("journal", ours, "/s", floor)
    os.sync()  # what was written above is nobody's flush
    flushed_file = os.open(folder / "flushed", os.O_WRONLY | os.O_CREAT, 0o600)
    floor = SYNCED / best_of(rounds, loop(SYNCED, flushed))
    told("bare write and fdatasync", floor, "/s")
    told("journal, each one synced", SYNCED / best_of(rounds, lambda: anyio.run(synced)), "/s", floor)
    journal.close()
    for fd in (bare, flushed_file):
        os.close(fd)


# --- reopening ------------------------------------------------------------------------------------


def write_session(folder: Path, session_id: str, turns: int, characters: int) -> Path:
    """A journal as prompts with one tool call each leave it."""
    place = folder / "data" / "sessions" / "0123456789abcdef"
    path = place / f"{session_id}.jsonl"
    journal = Journal.create(path, {"sessionId": session_id})
    session = {
        "sessionId": session_id, "workspaceUri": folder.as_uri(), "title": "Bench", "model": "p/m",
        "mode": "ask", "state": "idle", "createdAt": TIME, "updatedAt": TIME, "messageCount": 0, "seq": 1,
    }  # fmt: skip
    for seq, (prompt_id, event, more) in enumerate(_events(session, turns, "word " * (characters // 5)), 1):
        record = {"seq": seq, "time": TIME, "event": event, **more}
        journal.append(record if prompt_id is None else {**record, "promptId": prompt_id})
    journal.close()
    return path


def _events(session: Any, turns: int, text: str) -> Iterator[tuple[str | None, Any, dict[str, Any]]]:
    yield None, {"type": "session_changed", "session": session}, {}
    for number in range(turns):
        prompt = f"p_{number}"
        for event in _run(number, text):
            stands = {"summary": {**session, "messageCount": 4 * (number + 1)}, "waiting": 0, "todo": ()}
            yield prompt, event, stands if event["type"] == "agent_end" else {}


def _run(number: int, text: str) -> Iterator[dict[str, Any]]:
    def message(role: str, name: str, content: Any, **more: Any) -> Iterator[dict[str, Any]]:
        message_id = f"m_{number}_{name}"
        yield {"type": "message_start", "message": {"role": role, "messageId": message_id}}
        whole = {"role": role, "messageId": message_id, "content": content, "timestamp": TIME, **more}
        yield {"type": "message_end", "message": whole}

    said = [{"type": "text", "text": text}]
    call = {
        "type": "tool_call",
        "id": f"c_{number}",
        "name": "read_file",
        "arguments": {"file_path": "a.txt"},
    }
    model = {"provider": "p", "model": "m"}
    result = {
        "role": "tool_result", "messageId": f"m_{number}_r", "toolCallId": f"c_{number}",
        "toolName": "read_file", "content": said, "isError": False, "timestamp": TIME,
    }  # fmt: skip
    yield {"type": "agent_start", "prompt": {"model": "p/m", "mode": "ask"}}
    yield {"type": "turn_start", "turn": 1}
    yield from message("user", "u", said)
    yield from message("assistant", "a", [call], stopReason="tool_use", **model)
    yield {
        "type": "tool_execution_start", "toolCallId": f"c_{number}", "toolName": "read_file", "arguments": {},
        "title": "Read", "kind": "read", "locations": [],
    }  # fmt: skip
    yield {
        "type": "tool_execution_end", "toolCallId": f"c_{number}", "toolName": "read_file", "result": result,
        "durationMs": 1,
    }  # fmt: skip
    yield {"type": "message_start", "message": {"role": "tool_result", "messageId": f"m_{number}_r"}}
    yield {"type": "message_end", "resultId": f"m_{number}_r"}
    yield {
        "type": "turn_end", "turn": 1, "messageId": f"m_{number}_a", "stopReason": "tool_use",
        "toolResultIds": [f"m_{number}_r"],
    }  # fmt: skip
    yield {"type": "turn_start", "turn": 2}
    yield from message("assistant", "b", said, stopReason="stop", **model)
    yield {
        "type": "turn_end", "turn": 2, "messageId": f"m_{number}_b", "stopReason": "stop", "toolResultIds": []
    }  # fmt: skip
    yield {
        "type": "agent_end", "stopReason": "stop", "messageId": f"m_{number}_b", "messageIds": [], "turns": 2
    }  # fmt: skip


def reopening(folder: Path, rounds: int) -> None:
    """A session of 10,000 messages: into memory, and over the wire."""
    path = write_session(folder, "s_long", TURNS, 800)
    data = path.read_bytes()
    events = data.count(b"\n") - 1
    print(f"a session of 10,000 messages, {len(data) / 1e6:.1f} MB, {events} events")
    floor = best_of(rounds, lambda: [json.loads(line) for line in data.splitlines()]) * 1e3
    told("json.loads of the same bytes", floor, "ms")
    told("read and fold", best_of(rounds, lambda: read_state(path, "s_long")) * 1e3, "ms", floor)
    told("take over", best_of(rounds, lambda: take_over(path, "s_long")[0].close()) * 1e3, "ms", floor)

    def replay() -> None:
        ReplayReader(path, "s_long", events - 2000).read_on()

    told("replay of its last 2000 events", best_of(rounds, replay) * 1e3, "ms", floor)
    with _daemon(folder) as subject:
        wanted = {"sessionId": "s_long"}
        before = subject.resident_mb()
        for what, method, params in (
            ("get of the last 200, closed", "agentd/session/get", wanted),
            ("get of all 10,000, closed", "agentd/session/get", {**wanted, "limit": 10_000}),
            (
                "attach, the first time",
                "agentd/session/attach",
                {**wanted, "afterSeq": events - 2},
            ),
            ("get of the last 200, open", "agentd/session/get", wanted),
            ("get of all 10,000, open", "agentd/session/get", {**wanted, "limit": 10_000}),
        ):
            count = 1 if "first" in what else rounds
            if "first" in what:
                told("resident before the readings", before, "MB")
                told("resident after them", subject.resident_mb(), "MB", before)
            told(what, best_of(count, lambda m=method, p=params: subject.call(m, p)) * 1e3, "ms", floor)  # type: ignore[misc]


def listing(folder: Path, rounds: int) -> None:
    """1,000 sessions of 10 MB: one file under many names, since only its ends are read."""
    path = write_session(folder / "listed", "s_0", LISTED_BYTES // 4800, 800)
    for number in range(1, LISTED):
        os.link(path, path.with_name(f"s_{number}.jsonl"))
    paths = sorted(path.parent.glob("*.jsonl"))
    print(f"a list of {len(paths)} sessions of {path.stat().st_size / 1e6:.1f} MB")

    def ends() -> None:
        for each in paths:
            with each.open("rb") as file:
                json.loads(file.readline())
                file.seek(-700, os.SEEK_END)
                json.loads(file.read().splitlines()[-1])

    floor = best_of(rounds, ends) * 1e3
    told("first and last line of each, parsed", floor, "ms")
    told("list", best_of(rounds, lambda: [summary_of(each) for each in paths]) * 1e3, "ms", floor)


# --- turns and memory -----------------------------------------------------------------------------


def _daemon(folder: Path, **more: str) -> Subject:
    config = folder / "config.toml"
    config.write_text("")
    place = {"AGENTD_DATA": str(folder / "data"), "AGENTD_CONFIG": str(config), **more}
    workspace = Path(tempfile.mkdtemp(prefix="workspace-", dir=folder))
    (workspace / "a.txt").write_text("A line.\n" * 20)
    subject = Subject(Command("agentd", [sys.executable, "-m", "agentd"], place), workspace)
    subject.call("initialize", INITIALIZE)
    subject.write(notification("initialized", {}))
    subject.call("agentd/status", {})
    return subject


def turns(folder: Path, rounds: int) -> None:
    """What a turn with one tool call takes after many others. The floor is the fifth turn."""
    call = {"type": "tool_call", "name": "read_file", "arguments": {"file_path": "a.txt"}}
    script = folder / "turns.json"
    script.write_text(json.dumps([{"content": [call]}] * TOOL_TURNS + [{"content": []}]))
    taken: list[list[float]] = []
    for _ in range(min(rounds, 3)):
        with _daemon(folder, AGENTD_MODEL=f"scripted/{script}") as subject:
            frames = subject.call("agentd/prompt", {"prompt": "go", "maxTurns": TOOL_TURNS + 2})
        starts = [frame.at for frame in frames if b'"type":"turn_start"' in frame.body]
        taken.append([(after - before) / 1e6 for before, after in itertools.pairwise(starts)])

    def around(turn: int, width: int) -> float:
        return statistics.median(each for run in taken for each in run[turn - width : turn + width])

    print("a turn with a tool call, scripted model")
    floor = around(5, 2)
    told("turn 5", floor, "ms")
    told("turn 50", around(50, 5), "ms", floor)
    told("turn 500", around(500, 10), "ms", floor)


def idle(folder: Path, rounds: int) -> None:
    """Memory of sessions in which nothing happens, each after one prompt."""
    script = folder / "idle.json"
    script.write_text(
        json.dumps([{"content": [{"type": "text", "text": "word " * 50}]}] * (IDLE_SESSIONS + 1))
    )
    with _daemon(folder, AGENTD_MODEL=f"scripted/{script}") as subject:
        subject.call("agentd/prompt", {"prompt": "go"})
        before = subject.resident_mb()
        for _ in range(IDLE_SESSIONS):
            subject.call("agentd/session/new", {})
            subject.call("agentd/prompt", {"prompt": "go"})
        after = subject.resident_mb()
    print(f"{IDLE_SESSIONS} idle sessions, each after one prompt")
    told("resident before", before, "MB")
    told("resident after", after, "MB", before)
    told("for each session", (after - before) / IDLE_SESSIONS * 1e3, "KB")


if __name__ == "__main__":
    sys.exit(main())
