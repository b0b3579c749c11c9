"""A wake-up call for whoever waits for something to change."""

import anyio


class Pulse:
    """Counts changes and wakes those who wait for the next one. The count doubles as a clock."""

    def __init__(self) -> None:
        self.count = 0
        self._next = anyio.Event()

    def beat(self) -> int:
        """Something changed. Gives the number of this change, from 1."""
        self.count += 1
        beaten, self._next = self._next, anyio.Event()
        beaten.set()
        return self.count

    async def wait(self) -> None:
        """Wait for the next change."""
        await self._next.wait()
