"""The documents that are open in the user's editor: unsaved text counts, not what is on disk.

A document is *dirty* when its text is neither what was last saved nor what is on disk. A clean document whose
file has changed on disk (a command ran, or agentd edited it) is not dirty: until the editor reloads it, the
disk is right. No editor tells of a reload, so one that has been changed and holds again what was saved is
clean only where the disk holds that, too: the file may have been reloaded, and that undone. What is no file
(`untitled:` and the like) is kept by its URI and is always dirty.

Of an editor that tells of an edit long after it made it, the text is *believed* meanwhile: it counts as the
document's, while what the editor tells next still builds on what it told last.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from agentd.workspace.buffer import Buffer
from agentd.workspace.editor import OpenDocument
from agentd.workspace.text import BinaryContent, Text, decode, same_lines
from agentd.workspace.untitled import is_untitled

_MAX_COMPARED = 64 * 1024 * 1024
"""A file larger than this is taken to differ from its document rather than read."""


@dataclass
class _Document:
    uri: str
    path: Path | None
    buffer: Buffer
    version: int
    saved: str | None  # the text that was last saved, None where that is not known
    is_moved: bool = False  # whether it was changed since its text was known to be that of the file
    believed: str | None = None  # what it holds by now, though that was not told yet

    @property
    def text(self) -> str:
        return self.buffer.text if self.believed is None else self.believed


class Documents:
    """Open documents by URI and by resolved path. One owner feeds it; the rest of the house reads it.

    A file may be open twice, by the names of two links. Then the one that was opened or changed last counts.
    """

    def __init__(self) -> None:
        self._documents: dict[str, _Document] = {}  # the one that counts of a file comes last
        self._watchers: list[Callable[[], None]] = []

    # --- what the editor tells --------------------------------------------------------------------

    async def open(self, uri: str, path: Path | None, buffer: Buffer, version: int) -> None:
        """A document was opened, perhaps with text that was never saved. The buffer is its owner's."""
        saved = None
        if path is not None:
            found = await _on_disk(path)
            saved = buffer.text if _is_shown_as(found, buffer.text) else None
        self._put(_Document(uri, path, buffer, version, saved))

    def change(self, uri: str, version: int) -> None:
        """The buffer of a document has changed."""
        if (document := self._documents.get(uri)) is not None:
            document.version, document.believed, document.is_moved = version, None, True
            self._put(document)

    def believe(self, path: Path, text: str) -> None:
        """The document of a file holds this text by now, whatever was told of it last."""
        if (document := self._of(path)) is not None:
            document.believed, document.is_moved = text, True
            self._tell()

    def save(self, uri: str) -> tuple[Path, str] | None:
        """A document was saved; gives its file and text, where it is one of a file."""
        if (document := self._documents.get(uri)) is None:
            return None
        document.saved, document.is_moved = document.text, False
        self._tell()
        return None if document.path is None else (document.path, document.text)

    def close(self, uri: str) -> None:
        """A document was closed."""
        if self._documents.pop(uri, None) is not None:
            self._tell()

    def _put(self, document: _Document) -> None:
        self._documents.pop(document.uri, None)
        self._documents[document.uri] = document
        self._tell()

    def _tell(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()

    # --- what the house reads ---------------------------------------------------------------------

    @contextmanager
    def watched(self, watcher: Callable[[], None]) -> Iterator[None]:
        """A context in which a function is called after each change, also between those of one message."""
        self._watchers.append(watcher)
        try:
            yield
        finally:
            self._watchers.remove(watcher)

    def text(self, path: Path) -> str | None:
        """The text of a document as it is now; of one that is no file by the path `Untitled` gives it."""
        document = self._of(path)
        return document.text if document is not None else None

    async def read(self, path: Path) -> OpenDocument | None:
        """The document of a file, and whether it is dirty. One that is no file is found as by `text`."""
        document = self._of(path)
        if document is None:
            return None
        if document.path is None:
            return self.other(document.uri)
        text, version = document.text, document.version
        if text == document.saved and not document.is_moved:
            return OpenDocument(text, version, False, document.uri)
        found = await _on_disk(path)
        if text == document.saved:
            dirty = not _is_shown_as(found, text)
        else:
            dirty = found is None or found.text != text
        if not dirty and text == document.text:  # which may have changed meanwhile
            document.saved, document.is_moved = text, False
        return OpenDocument(text, version, dirty, document.uri)

    def other(self, uri: str) -> OpenDocument | None:
        """A document that is no file."""
        document = self._documents.get(uri)
        if document is None or document.path is not None:
            return None
        return OpenDocument(document.text, document.version, True, uri)

    def untitled(self) -> tuple[OpenDocument, ...]:
        """The documents that are to become files, but are none yet, by their names."""
        uris = sorted(uri for uri, each in self._documents.items() if each.path is None and is_untitled(uri))
        return tuple(document for uri in uris if (document := self.other(uri)) is not None)

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose documents are dirty."""
        paths = dict.fromkeys(each.path for each in self._documents.values() if each.path is not None)
        found = [(path, await self.read(path)) for path in paths]
        return tuple(path for path, document in found if document is not None and document.dirty)

    def _of(self, path: Path) -> _Document | None:
        if path.is_absolute():
            return next((each for each in reversed(self._documents.values()) if each.path == path), None)
        others = (each for each in self._documents.values() if each.path is None)
        return next((each for each in others if Path(each.uri) == path), None)


def _is_shown_as(found: Text | None, text: str) -> bool:
    """Whether an editor that has just read this file may show it so.

    Some editors show all line ends alike, and of a file that is no UTF-8 nobody can say what they make of it.
    """
    return found is not None and (not found.is_clean or same_lines(found.text, text))


async def _on_disk(path: Path) -> Text | None:
    return await anyio.to_thread.run_sync(_read_text, path, abandon_on_cancel=True)


def shows(path: Path, text: str) -> bytes | None:
    """What the file holds, where a document of this text may have been saved as that. Blocks."""
    data = _read(path)
    try:
        found = decode(data) if data is not None else None
    except BinaryContent:
        return None
    return data if found is not None and same_lines(found.text, text) else None


def _read_text(path: Path) -> Text | None:
    """The text of a file; None where there is no file, or none that is text of a sensible size."""
    data = _read(path)
    try:
        return decode(data) if data is not None else None
    except BinaryContent:
        return None


def _read(path: Path) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)  # before it is made a file, which a folder in its place cannot be
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_COMPARED:
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(_MAX_COMPARED + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
