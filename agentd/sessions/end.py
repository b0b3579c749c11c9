"""The end of something that others wait for, heard by all of them before anything else happens."""

import anyio
import anyio.lowlevel


class End:
    """An event that knows who is owed it."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._listeners = 0  # who hears of it and has not gone on yet

    def set(self) -> None:
        """It has come."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether it has come."""
        return self._event.is_set()

    async def wait(self) -> None:
        """Wait for it, to come after all who `hear` it."""
        await self._event.wait()

    async def hear(self) -> None:
        """Wait for it, to go on before anything else happens."""
        self._listeners += 1
        try:
            await self._event.wait()
        finally:
            self._listeners -= 1

    async def until_heard(self) -> None:
        """Wait until all who hear it have gone on: nothing of a next run may come before them."""
        while self._listeners:
            await anyio.lowlevel.checkpoint()
