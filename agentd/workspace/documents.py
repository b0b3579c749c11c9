"""The documents that are open in the user's editor: their text is what counts, not what is on disk."""

from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from agentd.workspace.editor import OpenDocument
from agentd.workspace.text import BinaryContent, decode

_MAX_COMPARED = 64 * 1024 * 1024
"""A file larger than this is taken to differ from its buffer rather than read."""


@dataclass(frozen=True)
class _Buffer:
    text: str
    version: int


class Documents:
    """Open documents by resolved path. One owner feeds it; the rest of the house reads it."""

    def __init__(self) -> None:
        self._buffers: dict[Path, _Buffer] = {}

    def put(self, path: Path, text: str, version: int) -> None:
        """A document was opened, or its text changed."""
        self._buffers[path] = _Buffer(text, version)

    def remove(self, path: Path) -> None:
        """A document was closed."""
        self._buffers.pop(path, None)

    async def read(self, path: Path) -> OpenDocument | None:
        """The document of a file, and whether it differs from what is on disk."""
        buffer = self._buffers.get(path)
        if buffer is None:
            return None
        dirty = await anyio.to_thread.run_sync(_differs, path, buffer.text)
        return OpenDocument(buffer.text, buffer.version, dirty)

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose documents differ from what is on disk."""
        found = [(path, await self.read(path)) for path in tuple(self._buffers)]
        return tuple(path for path, document in found if document is not None and document.dirty)


def _differs(path: Path, text: str) -> bool:
    try:
        if path.stat().st_size > _MAX_COMPARED:
            return True
        return decode(path.read_bytes()).text != text
    except (OSError, BinaryContent):
        return True  # not there, not to be read, or no text: the buffer is all there is
