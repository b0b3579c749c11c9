"""What `boot.py` hands to the face that serves. Standard library only, as boot is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from agentd.config.secrets import Secrets
from agentd.protocol.frames import BrokenFraming, Oversized


class Reader(Protocol):
    """Cuts a byte stream into the bodies of messages."""

    def feed(self, data: bytes) -> Iterator[bytes | Oversized]:
        """Take more bytes and give each body that is whole now. Raises `BrokenFraming`."""
        ...


@dataclass
class Start:
    """What was done before the face took over.

    `frames` were read and wait to be handled; `reader` may hold the beginning of another one. `answered` says
    that the first frame is an `initialize` that has its answer. `broken` ends the daemon once `frames` are
    handled, `ended` says that stdin is at its end. `recording` is the descriptor of the empty file that the
    exchanges with model servers are written to.
    """

    fd_in: int
    fd_out: int
    reader: Reader
    secrets: Secrets
    allow_full: bool = False
    client_process: int | None = None
    recording: int | None = None
    frames: list[bytes | Oversized] = field(default_factory=list)
    answered: bool = False
    broken: BrokenFraming | None = None
    ended: bool = False
