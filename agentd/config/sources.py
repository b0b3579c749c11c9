"""Where time and ids come from: passed in, so that a run can be repeated to the letter under test."""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _new_id(prefix: str) -> str:
    """Sortable by time to the millisecond, unguessable after it."""
    return f"{prefix}_{time.time_ns() // 1_000_000:011x}{secrets.token_hex(6)}"


@dataclass(frozen=True)
class Sources:
    """`now`: the wall clock as the wire writes it; `monotonic`: seconds; `new_id`: a new id with a prefix.

    `jitter`: a number from 0 to 1 that differs each time.
    """

    now: Callable[[], str] = _now
    monotonic: Callable[[], float] = time.monotonic
    new_id: Callable[[str], str] = _new_id
    jitter: Callable[[], float] = random.random
