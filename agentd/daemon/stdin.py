"""Reading stdin in a thread of its own: the event loop is told of frames, and never waits for them."""

import logging
import threading
from collections.abc import Callable

from agentd.daemon.descriptors import read_some
from agentd.daemon.start import Reader
from agentd.protocol.frames import BrokenFraming, Oversized

log = logging.getLogger(__name__)

_READ_BYTES = 256 * 1024


def read_frames(
    fd: int,
    reader: Reader,
    call: Callable[..., object],
    on_frame: Callable[[bytes | Oversized], None],
    on_end: Callable[[BrokenFraming | None], None],
) -> None:
    """Start reading. `call` is the loop's `call_soon_threadsafe`; both callbacks run on the loop.

    Frames that came together are told in one step of the loop, so that a cancel which was there when its
    prompt was read is known before anything of the prompt happens.

    `on_end` is called once, with what is wrong with the stream where that ended it. The thread is a daemon
    thread: a read that never returns cannot keep the process.
    """

    def take(frames: list[bytes | Oversized]) -> None:
        for frame in frames:
            on_frame(frame)

    def run() -> None:
        broken: BrokenFraming | None = None
        try:
            while data := read_some(fd, _READ_BYTES):
                frames: list[bytes | Oversized] = []
                try:
                    frames.extend(reader.feed(data))
                finally:
                    if frames:
                        call(take, frames)
        except BrokenFraming as error:
            broken = error
        except RuntimeError:  # the loop has ended
            return
        try:
            call(on_end, broken)
        except RuntimeError:
            log.debug("the loop has ended before stdin")

    threading.Thread(target=run, name="stdin", daemon=True).start()
