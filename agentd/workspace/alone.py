"""One change of a file in the editor at a time: what is kept of each begins where the one before ended.

This is the only lock of open documents. The disk has its own (`files.changing`), which is held inside.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from weakref import WeakValueDictionary

import anyio

_locks: WeakValueDictionary[Path, anyio.Lock] = WeakValueDictionary()


@asynccontextmanager
async def alone(*paths: Path) -> AsyncIterator[None]:
    """Change the documents of these files while nobody else does. Who holds it may not ask for it again."""
    async with AsyncExitStack() as held:
        for path in sorted(set(paths)):  # in one order, so that no two wait for each other
            lock = _locks.get(path)
            if lock is None:
                lock = _locks[path] = anyio.Lock()
            await held.enter_async_context(lock)
        yield
