"""What the model has seen of each file, so that nothing is overwritten unseen."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


def digest(data: bytes) -> str:
    """The identity of a file's content. Times and sizes lie (a same-size write with its time put back)."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class SeenFiles:
    """Per session: resolved path -> digest of the content that the model saw or wrote last."""

    _digests: dict[Path, str] = field(default_factory=dict)

    def note(self, path: Path, seen: str) -> None:
        """The model has seen (or just written) the content that has this `digest`."""
        self._digests[path] = seen

    def learn(self, seen: "SeenFiles") -> None:
        """The model has seen these as well."""
        self._digests |= seen._digests

    def knows(self, path: Path) -> bool:
        """Whether the model has seen the file at all."""
        return path in self._digests

    def forget(self, paths: Iterable[Path]) -> None:
        """These files are not as the model saw them any more: it has to look again before it changes them."""
        for path in paths:
            self._digests.pop(path, None)

    def forget_all(self) -> None:
        """The model does not remember what it saw."""
        self._digests.clear()

    def is_current(self, path: Path, data: bytes) -> bool:
        """Whether `data` is what the model saw."""
        return self._digests.get(path) == digest(data)
