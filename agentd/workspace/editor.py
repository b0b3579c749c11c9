"""The editor as tools see it: who holds the text of a file, and who may change it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agentd.protocol.documents import Diagnostic
from agentd.workspace.diagnostics import Known


@dataclass(frozen=True)
class OpenDocument:
    """A document that is open in the user's editor. `dirty`: its text is not what is on disk.

    `uri` is the editor's own spelling of its name.
    """

    text: str
    version: int
    dirty: bool
    uri: str = ""


@dataclass(frozen=True)
class BufferEdit:
    """Other text for the open document of a file, which has the text `before`. `label` tells the user why."""

    path: Path
    before: str
    after: str
    label: str


@dataclass(frozen=True)
class Applied:
    """The document had this text once the edit was made, and has the text `now` (the user may type on).

    It differs from the wanted one at most in line ends and in the last one, which editors see to. `saved`:
    the editor has written it to the disk as well.
    """

    text: str
    now: str
    saved: bool = False


@dataclass(frozen=True)
class NotApplied:
    """The document is as it was, and the reason. `stale`: it was not as it should be, so nothing was sent."""

    reason: str
    stale: bool = False


@dataclass(frozen=True)
class ChangedOtherwise:
    """Something else came of it: the user typed meanwhile. `now` is None where the document was closed."""

    now: str | None


EditOutcome = Applied | NotApplied | ChangedOtherwise

OperationKind = Literal["create", "rename", "delete"]


@dataclass(frozen=True)
class FileOperation:
    """A file that is to be made empty, renamed to `target` or removed. `label` tells the user why."""

    kind: OperationKind
    path: Path
    label: str
    target: Path | None = None


@dataclass(frozen=True)
class Saving:
    """What came of a wish to save. `cancelled`: the user wants nothing to go on.

    `failed` are files that could not be saved, each with the reason.
    """

    cancelled: bool = False
    failed: tuple[tuple[Path, str], ...] = ()


@dataclass(frozen=True)
class Focus:
    """Where the user looks: a document, and of its lines (from 0) those selected and those to be seen.

    `path` is None for a document that is no file. Each pair of lines is the first and the last. Where nothing
    is selected, `cursor` is the line that it would begin in.
    """

    uri: str
    path: Path | None
    selected: tuple[int, int] | None = None
    visible: tuple[int, int] | None = None
    cursor: int | None = None


@dataclass(frozen=True)
class Finding:
    """What a review says of some lines of a file, `first` to `last`, counted from 0.

    `uri` is the editor's spelling of the file's name. `indent` is how many characters the first line is
    indented by, and `last_line` the text of the last one, without its end. `severity` is LSP's: 1 error to
    4 hint.
    """

    uri: str
    path: Path
    first: int
    last: int
    message: str
    severity: int
    indent: int = 0
    last_line: str = ""


class Editor(Protocol):
    """The user's editor, or `Disk` where there is none."""

    @property
    def focus(self) -> Focus | None:
        """Where the user looks, as far as the editor tells."""
        ...

    @property
    def can_edit(self) -> bool:
        """Whether open documents can be changed in the editor."""
        ...

    async def document(self, path: Path) -> OpenDocument | None:
        """The open document of this file (an absolute, resolved path), or None when it is not open.

        One that is no file yet is found by the path of its `Untitled`.
        """
        ...

    async def other(self, uri: str) -> OpenDocument | None:
        """The open document of a URI that names no file of this machine, such as `untitled:Untitled-1`."""
        ...

    async def untitled(self) -> tuple[OpenDocument, ...]:
        """The open documents that are no files yet (`workspace.untitled`), by their names."""
        ...

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose open documents differ from what is on disk, notebooks and the like too."""
        ...

    def is_unsaved(self, path: Path) -> bool:
        """Whether the file is open as something else than text, such as a notebook, and not saved."""
        ...

    async def apply(self, edit: BufferEdit) -> EditOutcome:
        """Change an open document, as one step of the editor's undo.

        Takes seconds at most, whatever the editor does, and a cancellation waits for it. It is never tried
        again. Whoever calls holds `alone` for the file.
        """
        ...

    def can_do(self, kind: OperationKind) -> bool:
        """Whether the editor makes, renames or removes files, so that its undo and its windows follow."""
        ...

    async def do(self, operation: FileOperation) -> bool:
        """Have the editor do it; False where the disk does not show it, within seconds.

        Raises WorkspaceError where something took the place of a folder meanwhile, so that it may have done
        it elsewhere.

        A cancellation waits for it. What the file holds then is for the caller to look at, who holds
        `alone` for it.
        """
        ...

    def may_yet_remove(self, path: Path) -> bool:
        """Whether the editor was asked to remove the file or to rename it, and may do so late."""
        ...

    async def diagnostics(self, paths: Sequence[Path] | None = None) -> Known | None:
        """What is known to be wrong in these files, or in all; None where the editor never tells."""
        ...

    async def fresh_diagnostics(self, path: Path, since: Known) -> tuple[Diagnostic, ...] | None:
        """The diagnostics of a file's present text, open or not; None where they do not come in 1.5 s.

        `since` is what was known before its text changed.
        """
        ...

    async def save(self, paths: Sequence[Path], wish: str | None = None) -> Saving:
        """Have the documents of these files saved, asking the user where the editor cannot do it alone.

        `wish` is how the question begins where it is not for a command, which could also run without that.
        """
        ...

    def show_findings(self, session_id: str, findings: Sequence[Finding]) -> bool:
        """Show these in place of all that the session has shown; False where the editor shows none."""
        ...


class Disk:
    """No editor: every file is what is on disk."""

    can_edit = False
    focus = None

    async def document(self, path: Path) -> OpenDocument | None:
        """Nothing is ever open."""
        return None

    async def other(self, uri: str) -> OpenDocument | None:
        """Nothing is ever open."""
        return None

    async def untitled(self) -> tuple[OpenDocument, ...]:
        """Nothing is ever open."""
        return ()

    async def dirty_paths(self) -> tuple[Path, ...]:
        """Nothing is ever dirty."""
        return ()

    def is_unsaved(self, path: Path) -> bool:
        """Nothing is ever open."""
        return False

    async def apply(self, edit: BufferEdit) -> EditOutcome:
        """There is no document to change."""
        return NotApplied("it is not open in an editor")

    def can_do(self, kind: OperationKind) -> bool:
        """There is nobody to do it."""
        return False

    async def do(self, operation: FileOperation) -> bool:
        """There is nobody to do it."""
        return False

    def may_yet_remove(self, path: Path) -> bool:
        """Nobody was asked."""
        return False

    async def diagnostics(self, paths: Sequence[Path] | None = None) -> Known | None:
        """Nothing is known."""
        return None

    async def fresh_diagnostics(self, path: Path, since: Known) -> tuple[Diagnostic, ...] | None:
        """Nothing is known."""
        return None

    async def save(self, paths: Sequence[Path], wish: str | None = None) -> Saving:
        """There is nothing to save."""
        return Saving()

    def show_findings(self, session_id: str, findings: Sequence[Finding]) -> bool:
        """There is nobody to see them."""
        return False
