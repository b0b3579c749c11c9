"""What `boot.py` hands to the server. Standard library only, as boot is."""

from dataclasses import dataclass, field

from agentd.config.secrets import Secrets
from agentd.protocol.frames import BrokenFraming, FrameReader, Oversized


@dataclass
class Start:
    """What was done before the server took over.

    `frames` were read and wait to be handled; `reader` may hold the beginning of another one. `answered` says
    that the first frame is an `initialize` that has its answer. `broken` ends the daemon once `frames` are
    handled, `ended` says that stdin is at its end. `recording` is the descriptor of the empty file that the
    exchanges with model servers are written to.
    """

    fd_in: int
    fd_out: int
    reader: FrameReader
    secrets: Secrets
    allow_full: bool = False
    client_process: int | None = None
    recording: int | None = None
    frames: list[bytes | Oversized] = field(default_factory=list)
    answered: bool = False
    broken: BrokenFraming | None = None
    ended: bool = False
