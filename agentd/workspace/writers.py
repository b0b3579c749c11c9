"""Who wrote a file last, of the sessions of this process and of the user, as far as the editor tells.

Several may work in one folder at a time. What one of them edits, or the user saves, while a command of
another runs is no change of that command, and a rewind of that is not to take it back.
"""

import hashlib
import threading
import time
from pathlib import Path

from agentd.workspace.documents import shows
from agentd.workspace.file_states import FileState, same_content

USER = object()
"""Who saves in the editor."""


class Writers:
    """The last writer of each file, and what it left. May be used from any thread."""

    def __init__(self) -> None:
        self._last: dict[Path, tuple[object, FileState | None, int]] = {}
        self._lock = threading.Lock()

    def note(self, path: Path, writer: object, state: FileState | None) -> None:
        """A session, which anything stands for that is its own, is about to leave a file in this state."""
        with self._lock:
            self._last[path] = (writer, state, time.time_ns())

    def note_save(self, path: Path, text: str) -> None:
        """The user has saved a document with this text. Blocks. What is another by now is nobody's."""
        data = shows(path, text)
        if data is not None:
            self.note(path, USER, FileState(hashlib.sha256(data).hexdigest()))

    def saved_by_user(self, path: Path, since: int) -> FileState | None:
        """What the user has saved in a file since a moment of the system's clock (in ns)."""
        with self._lock:
            last = self._last.get(path)
        return last[1] if last is not None and last[0] is USER and last[2] >= since else None

    def is_anothers(self, path: Path, writer: object, state: FileState | None, since: int) -> bool:
        """Whether another session has left the file so, since a moment of the system's clock (in ns)."""
        with self._lock:
            last = self._last.get(path)
        return (
            last is not None and last[0] is not writer and last[2] >= since and same_content(last[1], state)
        )
