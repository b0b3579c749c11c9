"""Frames that came together are told together, also those in front of what is no frame."""

import os
import queue
from collections.abc import Callable
from typing import Any

from agentd.daemon.stdin import read_frames
from agentd.protocol.frames import BrokenFraming, FrameReader, Oversized, encode

DEADLINE = 30


class Loop:
    """Stands for the event loop: what it was called with, step by step."""

    def __init__(self) -> None:
        self.steps: queue.Queue[list[bytes | Oversized | BrokenFraming | None]] = queue.Queue()
        self._told: list[bytes | Oversized | BrokenFraming | None] = []

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        function(*arguments)
        told, self._told = self._told, []
        self.steps.put(told)

    def hear(self, what: bytes | Oversized | BrokenFraming | None) -> None:
        self._told.append(what)


def read(*writes: bytes) -> list[list[bytes | Oversized | BrokenFraming | None]]:
    """The steps that these writes lead to, each write read before the next."""
    loop, (near, far) = Loop(), os.pipe()
    read_frames(near, FrameReader(2**20), loop.call, loop.hear, loop.hear)
    steps = []
    for data in writes:
        os.write(far, data)
        steps.append(loop.steps.get(timeout=DEADLINE))
    os.close(far)
    while steps[-1][-1] is not None and not isinstance(steps[-1][-1], BrokenFraming):
        steps.append(loop.steps.get(timeout=DEADLINE))
    os.close(near)
    return steps


def test_frames_of_one_write_are_one_step_and_of_two_are_two() -> None:
    assert read(encode(b"1") + encode(b"2"), encode(b"3")) == [[b"1", b"2"], [b"3"], [None]]


def test_frames_in_front_of_broken_framing_are_told_before_it() -> None:
    loop_steps = read(encode(b"1") + encode(b"2") + b"Content-Length: x\r\n\r\n")
    assert loop_steps[0] == [b"1", b"2"]
    assert isinstance(loop_steps[1][0], BrokenFraming)
