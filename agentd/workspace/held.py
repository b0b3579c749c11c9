"""What a file holds right now, and who holds it: the disk, or the editor's buffer of an open document."""

import os
import stat
from dataclasses import dataclass

import anyio.to_thread

from agentd.workspace import files
from agentd.workspace.editor import Editor, OpenDocument
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.seen import SeenFiles
from agentd.workspace.text import BinaryContent, Text, decode, same_lines, visible
from agentd.workspace.untitled import Untitled, not_open

_NEW_FILE = stat.S_IFREG | 0o644


@dataclass(frozen=True)
class Held:
    """The content of a file that is to be changed.

    `document` is the open document in which to change it, None where the file itself is written. `snapshot`
    is what a checkpoint keeps: the file, or the buffer as it would be saved; None where there is neither.
    `data` is what is compared and shown.
    """

    snapshot: Snapshot | None
    text: Text | None
    document: OpenDocument | None = None

    @property
    def data(self) -> bytes | None:
        """The content in bytes, that of a buffer as it would be saved."""
        if self.document is not None and self.text is not None:
            return self.text.encode()
        return self.snapshot.data if self.snapshot is not None else None

    @property
    def _hides_returns(self) -> bool:
        """Whether the file's lines end at CR LF and its document shows them as LF (Vim does, and Emacs)."""
        if self.document is None or self.text is None:
            return False
        return "\r" in self.text.text and "\r" not in self.document.text

    def shown(self, text: str) -> str:
        """Text of the file as its document shows it."""
        return text.replace("\r\n", "\n") if self._hides_returns else text

    def saved(self, text: str) -> bytes:
        """Text of the document as it would be saved."""
        ends = text.replace("\n", "\r\n") if self._hides_returns else text
        return (self.text or Text("")).with_text(ends).encode()

    def is_seen(self, place: Place, seen: SeenFiles) -> bool:
        """Whether the model saw this very content, or a file that the buffer shows with other line ends."""
        return any(
            data is not None and seen.is_current(place.path, data)
            for data in (self.data, self.snapshot.data if self.snapshot is not None else None)
        )


async def held(editor: Editor, place: Place) -> Held:
    """What a file holds. Raises WorkspaceError: binary, unreadable, unsaved in an editor that edits none."""
    document = await editor.document(place.path)
    if isinstance(place, Untitled):
        return _untitled(place, document, can_edit=editor.can_edit)
    if document is not None and document.dirty and not editor.can_edit:
        raise WorkspaceError("stale", f"Save or close {shown(place.given)} first.")
    if document is None or not editor.can_edit:
        return await anyio.to_thread.run_sync(on_disk, place, abandon_on_cancel=True)
    return await anyio.to_thread.run_sync(_in_editor, place, document, abandon_on_cancel=True)


def on_disk(place: Place) -> Held:
    """What the file on disk holds. Blocks; raises as `held`."""
    snapshot = files.read_if_present(place)
    return Held(snapshot, None if snapshot is None else _text(place, snapshot.data))


def _untitled(place: Untitled, document: OpenDocument | None, *, can_edit: bool) -> Held:
    """What a document holds that is no file yet."""
    if document is None:
        raise not_open(place.uri, ())
    if not can_edit:
        raise WorkspaceError(
            "denied", f"'{place.shown}' is only in the editor, which lets nobody else change its documents."
        )
    _check_whole(place, document)
    text = as_saved(None, document)
    return Held(_unwritten(text) if document.text.strip() else None, text, document)


def _check_whole(place: Place, document: OpenDocument) -> None:
    if visible(document.text) != document.text:
        raise WorkspaceError(
            "encoding",
            f"'{place.shown}' holds half of a character in the editor and cannot be changed. Ask the user.",
        )


def _in_editor(place: Place, document: OpenDocument) -> Held:
    _check_whole(place, document)
    disk = on_disk(place)
    text = as_saved(disk.text, document)
    if document.dirty:
        if disk.snapshot is None:
            # A new buffer with nothing in it is no file yet.
            return Held(_unwritten(text) if document.text.strip() else None, text, document)
        return Held(Snapshot(text.encode(), disk.snapshot.status), text, document)
    if disk.text is None or not disk.text.is_clean or not same_lines(disk.text.text, text.text):
        # Until the editor reloads, the disk is right; and what is no UTF-8 the editor would save otherwise.
        return disk
    return Held(disk.snapshot, text, document)


def as_saved(on_disk: Text | None, document: OpenDocument) -> Text:
    """The text of a document, written as its file is, with all its lines ending at CR LF where those do."""
    text, old = visible(document.text), on_disk.text if on_disk is not None else ""
    has_returns = "\r\n" in old and old.count("\n") == old.count("\r\n")
    if has_returns and "\r" not in text:
        text = text.replace("\n", "\r\n")
    return (on_disk or Text("")).with_text(text)


def _unwritten(text: Text) -> Snapshot:
    """A buffer that has no file, as a new file would be."""
    return Snapshot(text.encode(), os.stat_result((_NEW_FILE, *(0,) * 9)))


def _text(place: Place, data: bytes) -> Text:
    try:
        return decode(data)
    except BinaryContent as error:
        raise WorkspaceError(
            "binary", f"'{place.shown}' is a binary file, which these tools do not change. Use bash for it."
        ) from error


def check_changeable(place: Place, found: Held, seen: SeenFiles) -> None:
    """Refuse what the model has not seen in this form, or what is read-only. Raises WorkspaceError."""
    if found.snapshot is None:
        return
    if not seen.knows(place.path):
        raise WorkspaceError(
            "unseen",
            f"'{place.shown}' exists and was not read in this session. Read it with read_file first, then "
            "change it.",
        )
    if not found.is_seen(place, seen):
        raise files.stale(place)
    files.check_writable(place, found.snapshot.status)
