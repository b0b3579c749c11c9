"""Reading and writing descriptors to the end, whatever mode they were left in. Standard library only.

Whoever started the daemon may have set O_NONBLOCK on a pipe: the mode belongs to the open pipe, not to a
process, so it is neither ours to change nor a reason to fail.
"""

import os
import select


def read_some(fd: int, size: int) -> bytes:
    """The next bytes, waiting for them; none at the end, which a connection that was reset is too."""
    while True:
        try:
            return os.read(fd, size)
        except BlockingIOError:
            _wait(fd, select.POLLIN)
        except OSError:
            return b""


def write_all(fd: int, data: bytes) -> None:
    """Write it all, waiting as long as it takes. Raises OSError when nobody reads any more."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            _wait(fd, select.POLLOUT)


def _wait(fd: int, what: int) -> None:
    ready = select.poll()
    ready.register(fd, what)
    ready.poll()
