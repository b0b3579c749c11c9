"""The documents that are open in the user's editor: unsaved text counts, not what is on disk.

A document is *dirty* when its text is neither what was last saved nor what is on disk. A clean document whose
file has changed on disk (a command ran, or agentd edited it) is not dirty: until the editor reloads it, the
disk is right.
"""

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from agentd.workspace.editor import OpenDocument
from agentd.workspace.text import BinaryContent, Text, decode

_MAX_COMPARED = 64 * 1024 * 1024
"""A file larger than this is taken to differ from its document rather than read."""


@dataclass(frozen=True)
class _Document:
    text: str
    version: int
    saved: str | None  # the text that was last saved, None where that is not known


class Documents:
    """Open documents by resolved path. One owner feeds it; the rest of the house reads it."""

    def __init__(self) -> None:
        self._documents: dict[Path, _Document] = {}

    async def open(self, path: Path, text: str, version: int) -> None:
        """A document was opened, perhaps with text that was never saved."""
        found = await _on_disk(path)
        self._documents[path] = _Document(text, version, text if _is_shown_as(found, text) else None)

    def change(self, path: Path, text: str, version: int) -> None:
        """A document's text changed."""
        if (document := self._documents.get(path)) is not None:
            self._documents[path] = replace(document, text=text, version=version)

    def save(self, path: Path) -> None:
        """A document was saved."""
        if (document := self._documents.get(path)) is not None:
            self._documents[path] = replace(document, saved=document.text)

    def close(self, path: Path) -> None:
        """A document was closed."""
        self._documents.pop(path, None)

    async def read(self, path: Path) -> OpenDocument | None:
        """The document of a file, and whether it is dirty."""
        document = self._documents.get(path)
        if document is None:
            return None
        dirty = False
        if document.text != document.saved:
            found = await _on_disk(path)
            dirty = found is None or found.text != document.text
        return OpenDocument(document.text, document.version, dirty)

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose documents are dirty."""
        found = [(path, await self.read(path)) for path in tuple(self._documents)]
        return tuple(path for path, document in found if document is not None and document.dirty)


def _is_shown_as(found: Text | None, text: str) -> bool:
    """Whether an editor that has just read this file may show it so.

    Some editors show all line ends alike, and of a file that is no UTF-8 nobody can say what they make of it.
    """
    if found is None:
        return False
    return not found.is_clean or _plain(found.text) == _plain(text)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def _on_disk(path: Path) -> Text | None:
    return await anyio.to_thread.run_sync(_read_text, path, abandon_on_cancel=True)


def _read_text(path: Path) -> Text | None:
    """The text of a file; None where there is no file, or none that is text of a sensible size."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_COMPARED:
            return None
        try:
            return decode(file.read(_MAX_COMPARED + 1))
        except (OSError, BinaryContent):
            return None
