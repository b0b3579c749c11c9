"""What is measured, each as a function from a process to named values; `MEASURES` says what they mean."""

import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from model_server import DELTA_CHARACTERS, play_text, play_tools
from subject import Command, Frame, LineSubject, Subject, line, notification, request

LATER_PROMPTS = 10
PACED_DELTAS = 200
PACED_INTERVAL_US = 5000
BURST_DELTAS = 5000
TOOL_TURNS = 50

MEASURES = {
    "initialize": "spawn to `initialize` answered, ms",
    "first_event": "spawn to first event of a first prompt, ms",
    "first_delta": "spawn to first delta of a first prompt, ms",
    "start_cpu": "CPU until then, ms",
    "acp_initialize": "spawn to `initialize` answered, `agentd acp`, ms",
    "acp_session": "spawn to first session of `agentd acp`, ms",
    "scripted_initialize": "spawn to `initialize` answered, scripted model, ms",
    "scripted_first_event": "spawn to first event of a first prompt, scripted model, ms",
    "scripted_first_delta": "spawn to first delta of a first prompt, scripted model, ms",
    "scripted_start_cpu": "CPU until then, scripted model, ms",
    "later_delta": "request to first delta of later prompts, ms",
    "delay_p50": "added delay per delta, p50, ms",
    "delay_p99": "added delay per delta, p99, ms",
    "paced_cpu": "CPU per delta, one each 5 ms, us",
    "burst_cpu": f"CPU for a burst of {BURST_DELTAS} deltas, s",
    "burst_delta_cpu": f"CPU per delta of a burst of {BURST_DELTAS}, us",
    "between_turns": f"between tool turns, median of {TOOL_TURNS}, ms",
    "turn_5": "after tool turn 5, ms",
    "turn_50": "after tool turn 50, ms",
    "paced_bytes": f"bytes on stdout per character, deltas of {DELTA_CHARACTERS}, one each 5 ms",
    "burst_bytes": f"bytes on stdout per character, deltas of {DELTA_CHARACTERS}, burst",
    "read_large": "read_file of a 10 MB file, ms",
    "edit_large": "edit_file in a 10 MB file, ms",
    "edit_many": "one of 1,000 edits of a 20 KB file, ms",
    "memory_before": "resident before the first prompt, MB",
    "memory_first": "resident after the first prompt, MB",
    "memory_after": "resident after all prompts, MB",
}

Value = tuple[str, float]

_STAMP = re.compile(rb"@(\d+)@")
_GAP = re.compile(rb"<gap:(\d+)>")
_INITIALIZE = {
    "processId": None,
    "rootUri": None,
    "capabilities": {},
    "initializationOptions": {"agentd": {"trusted": True}},
}


def cold_start(command: Command, cwd: Path, prefix: str = "") -> Iterator[Value]:
    """A client that writes `initialize`, `initialized` and its first prompt at once."""
    with Subject(command, cwd) as subject:
        subject.write(
            request(1, "initialize", _INITIALIZE)
            + notification("initialized", {})
            + request(2, "agentd/prompt", {"prompt": play_text(3)})
        )
        answered = subject.until_answered(1)[-1]
        started = subject.until(lambda frame: b'"type":"agent_start"' in frame.body)[-1]
        said = subject.until(lambda frame: frame.is_update)[-1]
        yield prefix + "start_cpu", subject.cpu_ns() / 1e6
        subject.until_answered(2)
        for name, frame in (("initialize", answered), ("first_event", started), ("first_delta", said)):
            yield prefix + name, (frame.at - subject.spawned) / 1e6


def cold_start_of_acp(command: Command, cwd: Path) -> Iterator[Value]:
    """A client of ACP that writes `initialize` and has a session made at once."""
    with LineSubject(command, cwd) as subject:
        subject.write(
            line(1, "initialize", {"protocolVersion": 1})
            + line(2, "session/new", {"cwd": str(cwd), "mcpServers": []})
        )
        for name, message_id in (("acp_initialize", 1), ("acp_session", 2)):
            yield name, (subject.until_answered(message_id)[-1].at - subject.spawned) / 1e6


def warm(command: Command, cwd: Path) -> Iterator[Value]:
    """Everything that is measured on a process that has started."""
    with Subject(command, cwd) as subject:
        subject.call("initialize", _INITIALIZE)
        subject.write(notification("initialized", {}))
        subject.call("agentd/status", {})  # answered once all is loaded
        yield "memory_before", subject.resident_mb()
        _prompt(subject, play_text(3))
        yield "memory_first", subject.resident_mb()
        yield from _later_prompts(subject)
        yield from _paced(subject)
        yield from _tool_loop(subject)
        yield from _burst(subject)
        yield "memory_after", subject.resident_mb()


def _prompt(subject: Subject, prompt: str) -> list[Frame]:
    return subject.call("agentd/prompt", {"prompt": prompt})


def _new_session(subject: Subject) -> None:
    subject.call("agentd/session/new", {})


def _later_prompts(subject: Subject) -> Iterator[Value]:
    _new_session(subject)
    _prompt(subject, play_text(3))
    for _ in range(LATER_PROMPTS):
        sent = time.monotonic_ns()
        message_id = subject.request("agentd/prompt", {"prompt": play_text(3)})
        said = subject.until(lambda frame: frame.is_update)[-1]
        subject.until_answered(message_id)
        yield "later_delta", (said.at - sent) / 1e6


def _paced(subject: Subject) -> Iterator[Value]:
    _new_session(subject)
    before = subject.cpu_ns()
    frames = _prompt(subject, play_text(PACED_DELTAS, PACED_INTERVAL_US))
    cpu = subject.cpu_ns() - before
    delays = sorted((frame.at - int(stamp)) / 1e6 for frame in _updates(frames) for stamp in _stamps(frame))
    if len(delays) != PACED_DELTAS:
        raise RuntimeError(f"{len(delays)} deltas came instead of {PACED_DELTAS}")
    yield "delay_p50", statistics.median(delays)
    yield "delay_p99", delays[round(0.99 * (len(delays) - 1))]
    yield "paced_cpu", cpu / 1e3 / PACED_DELTAS
    yield "paced_bytes", _bytes_per_character(frames, PACED_DELTAS)


def _tool_loop(subject: Subject) -> Iterator[Value]:
    _new_session(subject)
    frames = _prompt(subject, play_tools(TOOL_TURNS))
    gaps = [int(gap) / 1e6 for frame in _updates(frames) for gap in _GAP.findall(frame.body)]
    if len(gaps) != TOOL_TURNS:
        raise RuntimeError(f"{len(gaps)} tool turns were made instead of {TOOL_TURNS}")
    yield "between_turns", statistics.median(gaps)
    yield "turn_5", gaps[4]
    yield "turn_50", gaps[49]


def _burst(subject: Subject) -> Iterator[Value]:
    _new_session(subject)
    before = subject.cpu_ns()
    frames = _prompt(subject, play_text(BURST_DELTAS))
    cpu = subject.cpu_ns() - before
    yield "burst_cpu", cpu / 1e9
    yield "burst_delta_cpu", cpu / 1e3 / BURST_DELTAS
    yield "burst_bytes", _bytes_per_character(frames, BURST_DELTAS)


def _updates(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.is_update]


def _stamps(frame: Frame) -> list[bytes]:
    return _STAMP.findall(frame.body)


def _bytes_per_character(frames: list[Frame], deltas: int) -> float:
    """Of live updates only: the whole message at its end has every character once more."""
    return sum(len(frame.body) for frame in _updates(frames)) / (deltas * DELTA_CHARACTERS)
