"""How many files the daemon may have open, and what it starts.

Each open session holds a descriptor, and systems let a process have few of them by default: 256 on macOS,
1024 on Linux. A process may raise that for itself, up to what the administrator has set. Commands get what
the daemon was started with: some close every number up to the limit one by one, others cannot wait for
larger ones.
"""

import logging
import resource
from contextlib import suppress

_log = logging.getLogger(__name__)

ENOUGH = 8192


def allow_enough() -> int | None:
    """Let this process have enough files open; give the limit from before, where that was another."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return None
    with suppress(ValueError, OSError):  # there are systems with a limit that they do not tell
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return soft
    _log.info("the limit of open files stays at %d", soft)
    return None
