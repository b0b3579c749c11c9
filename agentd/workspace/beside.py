"""What runs at this moment, of all sessions: beside a command, a name may lead elsewhere the next moment."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class RunningCommands:
    """How many commands run in each workspace folder."""

    def __init__(self) -> None:
        self._roots: Counter[Path] = Counter()

    @contextmanager
    def running(self, root: Path) -> Iterator[None]:
        """One runs for a session of this folder while the block does."""
        self._roots[root] += 1
        try:
            yield
        finally:
            self._roots[root] -= 1
            self._roots += Counter()  # forgets folders in which none runs

    def any_in(self, root: Path) -> bool:
        """Whether one runs in this folder, in one of its folders or in one that it lies in."""
        return any(each.is_relative_to(root) or root.is_relative_to(each) for each in self._roots)
