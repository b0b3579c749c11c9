"""Where the journals of all sessions lie, and what a list tells of them without opening any.

One file per session, `<workspace>/<sessionId>.jsonl`, where `<workspace>` is a digest of the folder's path.
"""

import hashlib
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from agentd.protocol.errors import RpcError
from agentd.protocol.messages import Session as SessionInfo
from agentd.protocol.methods import Problem
from agentd.sessions.journal import JournalError, holder, is_left
from agentd.sessions.loading import not_found, read_state
from agentd.sessions.summary import summary_of

log = logging.getLogger(__name__)


@dataclass
class Shelved:
    """Sessions as a list shows them, and by their ids what is wrong with those that cannot be listed."""

    infos: list[SessionInfo] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)


class Shelf:
    """The folder of all journals. What it does waits for the disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, root: Path, session_id: str) -> Path:
        """Where the journal of a session of this workspace folder lies, or would."""
        digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        return self.folder / digest / f"{session_id}.jsonl"

    def find(self, session_id: str) -> Path:
        """The journal of a session in whichever workspace. The id is an `Id`: it cannot leave the folder.

        Raises `RpcError` sessionNotFound or storage.
        """
        for folder in self._folders():
            path = folder / f"{session_id}.jsonl"
            if path.is_file():
                return path
        raise not_found(session_id)

    def infos(self, root: Path | None, but: Collection[str]) -> Shelved:
        """The sessions of one workspace folder, or of all, but for these. Raises `RpcError` storage."""
        shelved = Shelved()
        for folder in [self.path(root, "x").parent] if root is not None else self._folders():
            for path in sorted(folder.glob("*.jsonl")):
                if path.stem not in but:
                    self._take(path, shelved)
        return shelved

    def left(self, root: Path) -> str | None:
        """The newest session of this folder that a killed process left open; never a sub-agent's."""
        notes = self.path(root, "x").parent.glob("*.jsonl.pid")
        paths = [path for note in notes if (path := note.with_suffix("")).is_file() and is_left(path)]
        for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True):
            shelved = Shelved()
            self._take(path, shelved)
            if any(info.parent is None for info in shelved.infos):
                return path.stem
        return None

    def _take(self, path: Path, shelved: Shelved) -> None:
        """Add a session. Where the ends of its journal are damaged all of it is read."""
        try:
            shelved.infos.append(summary_of(path) or _read(path))
        except (RpcError, JournalError, OSError) as error:
            log.warning("a session that cannot be listed: %s", error)
            if not isinstance(error, RpcError) or error.kind != "sessionNotFound":
                message = f"Session {path.stem} cannot be listed: {error}"
                shelved.problems[path.stem] = Problem(severity="warning", message=message)

    def _folders(self) -> list[Path]:
        try:
            return sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        except OSError as error:
            raise RpcError(
                "storage",
                f"The folder of all sessions cannot be read: {error.strerror}.",
                hint="Make agentd's data folder readable, or name another one in AGENTD_DATA.",
            ) from error


def _read(path: Path) -> SessionInfo:
    """A session as all of its journal tells it. Raises as `read_state`."""
    pid = holder(path)
    info = read_state(path, path.stem)[0].info(alive=pid is not None)
    return info.model_copy(update={"locked_by": pid})
