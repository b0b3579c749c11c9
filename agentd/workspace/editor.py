"""The editor as tools see it: who holds the text of a file, and who may change it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class OpenDocument:
    """A document that is open in the user's editor. `dirty`: its text is not what is on disk."""

    text: str
    version: int
    dirty: bool


class Editor(Protocol):
    """The user's editor, or `Disk` where there is none."""

    async def document(self, path: Path) -> OpenDocument | None:
        """The open document of this file (an absolute, resolved path), or None when it is not open."""
        ...

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose open documents differ from what is on disk."""
        ...


class Disk:
    """No editor: every file is what is on disk."""

    async def document(self, path: Path) -> OpenDocument | None:
        """Nothing is ever open."""
        return None

    async def dirty_paths(self) -> tuple[Path, ...]:
        """Nothing is ever dirty."""
        return ()
