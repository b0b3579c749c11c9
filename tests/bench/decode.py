"""`python tests/bench/decode.py`: what reading a model's answer costs, for each API, beside a floor.

The answers are recorded ones; where there are none the script says so and ends. Each is fed in the two ways
that networks have: an event at a time, as a server writes while it thinks, and in pieces of 16 KiB, as a
proxy or a fast model sends. The floor splits lines and parses the JSON of each: no reader can do without.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.providers.anthropic_decoder import MessagesDecoder
from agentd.providers.gemini_decoder import GeminiDecoder
from agentd.providers.http_answer import Decoder
from agentd.providers.http_errors import Peer
from agentd.providers.openai_chat_decoder import ChatDecoder
from agentd.providers.openai_responses_decoder import ResponsesDecoder

_BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "streams"
STREAMS = Path(os.environ.get("AGENTD_STREAMS") or _BESIDE_THE_PROJECT)
DECODERS: dict[str, Callable[[Peer], Decoder]] = {
    "openai-chat": ChatDecoder,
    "openai-responses": ResponsesDecoder,
    "anthropic-messages": MessagesDecoder,
    "gemini": GeminiDecoder,
}
PEER = Peer("bench", "model", "http://127.0.0.1/")
PIECE = 16 * 1024


@dataclass(frozen=True)
class Answers:
    """The recorded answers of one API, each as the events that its server sent."""

    streams: Sequence[Sequence[bytes]]

    @property
    def events(self) -> int:
        """How many there are in all."""
        return sum(map(len, self.streams))

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(len(event) for stream in self.streams for event in stream)

    @property
    def pieces(self) -> "Answers":
        """The same bytes in pieces that know nothing of events."""
        bodies = [b"".join(stream) for stream in self.streams]
        return Answers([[b[at : at + PIECE] for at in range(0, len(b), PIECE)] for b in bodies])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how often each is read (15)")
    rounds = parser.parse_args().rounds
    found = {api: _answers(api) for api in DECODERS}
    if not any(answers.streams for answers in found.values()):
        print(f"There are no recorded streams in {STREAMS}: point AGENTD_STREAMS at them.")
        return 0
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, load {load}")
    title = f"CPU time, median of {rounds}"
    print(f"{title:<42}{'µs per event':>14}{'ms per MB':>12}{'of the floor':>14}")
    for api, answers in found.items():
        if not answers.streams:
            print(f"{api}: skipped, as there are no recorded streams in {STREAMS / api}")
            continue
        _measure(api, answers, rounds)
    return 0


def _measure(api: str, answers: Answers, rounds: int) -> None:
    """Rounds in which each has its turn, so that a noisy second is everyone's. The first only warms up."""
    decoder, pieces = DECODERS[api], answers.pieces
    subjects: dict[str, Callable[[], None]] = {
        "floor: split lines, json.loads": lambda: _floor(answers),
        "an event at a time": lambda: _decode(decoder, answers),
        "pieces of 16 KiB": lambda: _decode(decoder, pieces),
    }
    taken: dict[str, list[int]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        for name, run in subjects.items():
            start = time.process_time_ns()
            run()
            if number:
                taken[name].append(time.process_time_ns() - start)
    print(f"{api}: {len(answers.streams)} answers, {answers.events} events, {answers.size / 1e6:.2f} MB")
    floor = statistics.median(taken["floor: split lines, json.loads"])
    for name, times in taken.items():
        median = statistics.median(times)
        per_event, per_megabyte = median / 1e3 / answers.events, median / answers.size
        print(f"    {name:<38}{per_event:14.2f}{per_megabyte:12.2f}{median / floor:13.2f}x")


def _answers(api: str) -> Answers:
    bodies = [path.read_bytes() for path in sorted((STREAMS / api).glob("*.sse"))]
    return Answers([_events(body) for body in bodies])


def _events(body: bytes) -> list[bytes]:
    """The events of a body, each with the blank line at its end."""
    between = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    events = [event + between for event in body.split(between)]
    events[-1] = events[-1].removesuffix(between)
    return [event for event in events if event]


def _floor(answers: Answers) -> None:
    for stream in answers.streams:
        for event in stream:
            for line in event.split(b"\n"):
                if line.startswith(b"data: {"):
                    json.loads(line[6:])


def _decode(make: Callable[[Peer], Decoder], answers: Answers) -> None:
    for stream in answers.streams:
        decoder = make(PEER)
        for piece in stream:
            decoder.feed(piece)
        decoder.close()
        decoder.end()


if __name__ == "__main__":
    sys.exit(main())
