"""Starting ripgrep in a search: no environment, no shell, no longer than the search, and dead with it."""

import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from subprocess import DEVNULL, PIPE, Popen, SubprocessError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def start_ripgrep(
    command: Sequence[str | bytes],
    folder_fd: int,
    deadline: float,
    *,
    memory: int | None = None,
) -> Popen[bytes] | None:
    """The process, which works in the folder; None when it cannot be started.

    `deadline` is on the monotonic clock, `memory` the most bytes of address space that it gets.
    """
    parent = os.getpid()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limits = [each for each in (memory, hard) if each is not None and each != resource.RLIM_INFINITY]
    most = min(limits, default=resource.RLIM_INFINITY)

    def prepare() -> None:
        die_with_parent(parent)
        os.fchdir(folder_fd)
        signal.alarm(max(1, int(deadline - time.monotonic()) + 1))  # outlives exec, should all else fail
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))  # each thread takes address space

    try:
        return Popen(list(command), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env={}, preexec_fn=prepare)
    except (OSError, SubprocessError):
        return None


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process with its parent (Linux; elsewhere an alarm ends it)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that
        os._exit(0)
