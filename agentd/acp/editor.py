"""The client's buffers, as tools see them: `workspace.editor.Editor` over `fs/*`, believed as far as checked.

ACP knows no open documents: a client gives a file's text as its user sees it, and tells nothing when that
changes. So every look is a question, and what it says is held against the disk:

* the same text: the document is clean. It is changed through the client all the same, so that the client's
  own view of it holds the change, where its bytes would come back: UTF-8, one kind of line ends.
* another text than on the disk, and than both had when they were the same last: the user has typed.
* the text that both had then: the disk was changed since, and the client has not looked. The disk is right.

A write is made when reading it back gives the wanted text, whatever the client answers. It is sent once.
Clients differ in the result of a write (`{}` and null): it says nothing. A client that does not answer a
reading is asked no more: files are what they are on the disk then.
"""

import logging
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio import CancelScope

from agentd.acp.abilities import Abilities
from agentd.acp.saving import ask_to_save
from agentd.daemon.door import ClientError, Door
from agentd.protocol.documents import Diagnostic
from agentd.protocol.text import clean_text, visible
from agentd.workspace.diagnostics import Known
from agentd.workspace.editor import (
    Applied,
    BufferEdit,
    ChangedOtherwise,
    EditOutcome,
    FileOperation,
    Finding,
    Focus,
    NotApplied,
    OpenDocument,
    OperationKind,
    Saving,
)
from agentd.workspace.files import MAX_BYTES
from agentd.workspace.paths import uri_of
from agentd.workspace.seen import digest
from agentd.workspace.text import BinaryContent, Text, decode, same_lines
from agentd.workspace.text import visible as visible_text

log = logging.getLogger(__name__)

READ_SECONDS = 5.0
"""How long a client may take to give a file's text."""
EDIT_SECONDS = 2.0
"""How long it may take to write, and again until reading shows it."""
_LOOK_SECONDS = 0.05
"""Between two looks at what came of a write."""
_MOST_REASON = 200
_GUESSED = ("latin-1", "cp1252")
"""Encodings that editors take a file for which is no UTF-8."""


class ClientFiles:
    """The files of one client, whichever session looks at them."""

    def __init__(self, door: Door) -> None:
        self.abilities = Abilities()
        self.door = door
        self.dirty: set[Path] = set()  # files that were seen to differ from the disk
        self.agreed: dict[Path, str] = {}  # what client and disk had when they had the same last
        self.is_silent = False
        self.has_ended = False
        self._waits: set[CancelScope] = set()

    def seen_by(self, session_id: str) -> "SessionFiles":
        """The files as a session sees them: clients want to know which one asks."""
        return SessionFiles(self, session_id)

    def end(self) -> None:
        """The daemon ends: wait for no answer any more."""
        self.has_ended = True
        for scope in self._waits:
            scope.cancel()

    async def ask(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        """The answer to a question. Raises `ClientError`, TimeoutError."""
        if self.has_ended:
            raise ClientError("the daemon is ending")
        with anyio.fail_after(seconds) as scope:
            self._waits.add(scope)
            try:
                return await self.door.ask(method, params)
            finally:
                self._waits.discard(scope)
        raise ClientError("the daemon is ending")


@dataclass
class SessionFiles:
    """The client's files as one session sees them; `workspace.editor.Editor`."""

    files: ClientFiles
    session_id: str
    focus: Focus | None = field(default=None, init=False)

    @property
    def can_edit(self) -> bool:
        """Whether the client takes changes: what cannot be read back cannot be checked."""
        return self._can_read and self.files.abilities.writes

    @property
    def _can_read(self) -> bool:
        return self.files.abilities.reads and not self.files.is_silent

    # --- documents --------------------------------------------------------------------------------

    async def document(self, path: Path) -> OpenDocument | None:
        """The file as the client has it; None where the disk has the word."""
        if not self._can_read or clean_text(str(path)) != str(path):  # JSON cannot name it
            return None
        try:
            disk = await anyio.to_thread.run_sync(_on_disk, path, abandon_on_cancel=True)
        except (OSError, BinaryContent):
            return None
        text = await self._text(path)
        if text is None or (disk is None and not text):
            self.files.dirty.discard(path)
            return None
        if disk is not None and any(same_lines(each, text) for each in _readings(disk)):
            self._agree(path, text)
            is_ours = self.can_edit and _comes_back(disk)
            return OpenDocument(text, 0, False, uri_of(path)) if is_ours else None
        if disk is not None and self.files.agreed.get(path) == _digest(text):
            self.files.dirty.discard(path)
            return None
        self.files.dirty.add(path)
        return OpenDocument(text, 0, True, uri_of(path))

    async def other(self, uri: str) -> OpenDocument | None:
        """ACP knows files only."""
        return None

    async def untitled(self) -> tuple[OpenDocument, ...]:
        """ACP knows files only."""
        return ()

    async def dirty_paths(self) -> tuple[Path, ...]:
        """Of the files that were looked at, those that still differ from the disk: nobody lists all."""
        looked_at = [(path, await self.document(path)) for path in sorted(self.files.dirty)]
        return tuple(path for path, found in looked_at if found is not None and found.dirty)

    def is_unsaved(self, path: Path) -> bool:
        """ACP knows files only."""
        return False

    def _agree(self, path: Path, text: str) -> None:
        self.files.dirty.discard(path)
        self.files.agreed[path] = _digest(text)

    async def _text(self, path: Path) -> str | None:
        """What the client says that a file holds; None where it does not say."""
        params = {"sessionId": self.session_id, "path": str(path)}
        try:
            answer = await self.files.ask("fs/read_text_file", params, READ_SECONDS)
        except ClientError as error:
            log.info("the client does not show a file: %s", error)
            return None
        except TimeoutError:
            log.warning("the client does not answer fs/read_text_file: it is asked no more")
            self.files.is_silent = True
            return None
        content = answer.get("content") if isinstance(answer, dict) else None
        return clean_text(content) if isinstance(content, str) and "\0" not in content else None

    # --- edits ------------------------------------------------------------------------------------

    async def apply(self, edit: BufferEdit) -> EditOutcome:
        """Change a file through the client; see `workspace.editor.Editor`."""
        outcome: EditOutcome = NotApplied("it was not tried")
        # Not left alone when cancelled: a write that comes after its call has ended would surprise.
        with CancelScope(shield=True):
            outcome = await self._apply(edit)
        return outcome

    async def _apply(self, edit: BufferEdit) -> EditOutcome:
        if await self._text(edit.path) != edit.before:
            return NotApplied("it was changed in the editor just now", stale=True)
        params = {"sessionId": self.session_id, "path": str(edit.path), "content": edit.after}
        refusal: str | None = None
        try:
            await self.files.ask("fs/write_text_file", params, EDIT_SECONDS)
        except ClientError as error:
            refusal = f"the editor refused the edit ({_short(str(error))})"
        except TimeoutError:
            refusal = "the editor did not answer"
        now = await self._read_back(edit, patient=refusal is None)
        saved = await self._saved(edit)
        if now is not None and same_lines(now, edit.after):
            if saved:
                self._agree(edit.path, now)
            return Applied(now, now, saved)
        if now == edit.before:
            return NotApplied(refusal or "the editor says that it made the edit, but its text is the same")
        if now is None and saved:
            return Applied(edit.after, edit.after, saved)
        return ChangedOtherwise(now)

    async def _read_back(self, edit: BufferEdit, *, patient: bool) -> str | None:
        """The text once it is another one, or when the time for that is up."""
        now = await self._text(edit.path)
        with anyio.move_on_after(EDIT_SECONDS):
            while patient and now == edit.before and not self.files.has_ended:
                await anyio.sleep(_LOOK_SECONDS)
                now = await self._text(edit.path)
        return now

    async def _saved(self, edit: BufferEdit) -> bool:
        """Whether the file on the disk holds the change."""
        try:
            disk = await anyio.to_thread.run_sync(_on_disk, edit.path)
        except (OSError, BinaryContent):
            return False
        return disk is not None and same_lines(disk.text, edit.after)

    # --- the rest ---------------------------------------------------------------------------------

    def can_do(self, kind: OperationKind) -> bool:
        """ACP makes, renames and removes no files."""
        return False

    async def do(self, operation: FileOperation) -> bool:
        """ACP makes, renames and removes no files."""
        return False

    def may_yet_remove(self, path: Path) -> bool:
        """ACP makes, renames and removes no files."""
        return False

    async def save(self, paths: Sequence[Path], wish: str | None = None) -> Saving:
        """ACP cannot have files saved: the user is asked to, where the client can show a form."""
        if not self.files.abilities.asks_by_form:
            return Saving()
        return await ask_to_save(self.files.door, self.session_id, paths, wish)

    async def diagnostics(self, paths: Sequence[Path] | None = None) -> Known | None:
        """ACP tells none."""
        return None

    async def fresh_diagnostics(self, path: Path, since: Known) -> tuple[Diagnostic, ...] | None:
        """ACP tells none."""
        return None

    def show_findings(self, session_id: str, findings: Sequence[Finding]) -> bool:
        """ACP shows none."""
        return False


def _on_disk(path: Path) -> Text | None:
    """The text of a regular file, None for one that is not there. Blocks.

    Raises OSError, also for what is no file or too large to be looked at, and BinaryContent.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            raise OSError("no file that a client would show")
        return decode(file.read(MAX_BYTES))


def _readings(disk: Text) -> Iterator[str]:
    """What clients may make of these bytes: what is no UTF-8 they guess, or put marks in its place."""
    yield disk.text
    if not disk.is_clean:
        yield visible_text(disk.text)
        for codec in _GUESSED:
            yield disk.encode().decode(codec, "replace")


def _comes_back(disk: Text) -> bool:
    """Whether a client that reads and writes text gives back these bytes."""
    text = disk.text
    returns, mixed = text.count("\r"), text.count("\r\n")
    has_one_end = returns == 0 or (returns == mixed == text.count("\n"))
    return disk.codec == "utf-8" and not disk.mark and disk.is_clean and has_one_end


def _digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))


def _short(reason: str) -> str:
    """What the client says, which is for the model and not to be believed to be short."""
    return " ".join(visible(reason).split())[:_MOST_REASON]
