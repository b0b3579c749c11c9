"""The folder in which commands find their own `/tmp`."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from agentd.workspace.left_folders import remove_if_left

_PREFIX = "agentd-sandbox-"
_FRESH_SECONDS = 60.0


class TemporaryFolder:
    """A folder for what commands keep in `/tmp`. A lock on it says that its owner lives."""

    def __init__(self) -> None:
        """Make it, and remove those whose owner was killed. Raises OSError. Blocks."""
        place = Path(os.path.realpath(tempfile.gettempdir()))
        _sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (self.path / ".cache").mkdir()

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._fd)


def _sweep(place: Path) -> None:
    with suppress(OSError):
        for path in place.glob(f"{_PREFIX}*"):
            if not path.is_symlink() and path.stat().st_uid == os.geteuid():
                remove_if_left(path, _FRESH_SECONDS)
