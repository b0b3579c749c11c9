"""The order of requests for one session: first come, first served."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass
class _Gate:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    waiting: int = 0


class Gates:
    """A gate for each name that somebody is at: who passes one has it alone until done."""

    def __init__(self) -> None:
        self._gates: dict[str, _Gate] = {}

    def __contains__(self, name: str) -> bool:
        """Whether somebody is at this gate."""
        return name in self._gates

    @asynccontextmanager
    async def passing(self, name: str) -> AsyncIterator[None]:
        """Wait for those who came before, and have those who come meanwhile wait."""
        gate = self._gates.setdefault(name, _Gate())
        gate.waiting += 1
        try:
            async with gate.lock:
                yield
        finally:
            gate.waiting -= 1
            if not gate.waiting:
                self._gates.pop(name, None)
