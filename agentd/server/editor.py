"""The client's editor, as tools see it: `workspace.editor.Editor` over LSP.

What an editor answers to `workspace/applyEdit` proves nothing: Neovim says true of an edit that it skipped,
and checks none while a document has version 0; Eglot answers a stale edit with an error; others answer
before they have done it, or never. So what counts is the text that the editor tells of (`didChange`).
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio import CancelScope

from agentd.daemon.door import ClientError, Door
from agentd.protocol.capabilities import position_encoding
from agentd.protocol.documents import Diagnostic, DocumentSaveParams, FocusParams, UnsavedParams
from agentd.protocol.messages import Range
from agentd.protocol.methods import ClientOptions
from agentd.protocol.text import one_line, visible
from agentd.server.client_profile import Quirks
from agentd.server.diagnostics import EditorDiagnostics
from agentd.server.findings import ShownFindings
from agentd.server.hunks import text_edits
from agentd.server.language_server import LanguageServer, file_of, key_of
from agentd.server.operations import FileOperations
from agentd.server.pending_edit import EDIT_SECONDS, MOST_REASON, PendingEdit, refusal
from agentd.workspace.buffer import Encoding
from agentd.workspace.diagnostics import Known
from agentd.workspace.editor import (
    BufferEdit,
    EditOutcome,
    FileOperation,
    Finding,
    Focus,
    NotApplied,
    OpenDocument,
    OperationKind,
    Saving,
)
from agentd.workspace.paths import shown, uri_of

log = logging.getLogger(__name__)

STILL_SECONDS = 10.0
"""And how long more for an editor that tells of it once the user does not type any more."""
_ANSWER_SECONDS = 0.5
"""For the answer to an edit that is seen to be made: it is on its way, and cancelling it would be odd."""
SAVE_SECONDS = 30.0
"""How long an editor may take to save: a formatter may run, but nobody is asked."""
_TELL_SECONDS = 2.0
"""For an editor to tell of what was typed, where it has to be asked for that."""
_TOLD_SECONDS = 1.0
"""For the word that a document was saved, where the answer overtook it."""
_MOST_NAMES = 10

_NO_QUIRKS = Quirks()

SAVED, RUN_ANYWAY, CANCEL = "Saved, go on", "Run anyway", "Cancel"


@dataclass
class ClientEditor:
    """The editor at the other end of the door, as it describes itself in `initialize`.

    `told` is what it tells of diagnostics, `findings` those of ours that it shows.
    """

    documents: LanguageServer
    door: Door
    position_encoding: Encoding = "utf-16"
    capabilities: dict[str, Any] = field(default_factory=dict)
    options: ClientOptions | None = None
    told: EditorDiagnostics = field(init=False)
    findings: ShownFindings = field(init=False)
    operations: FileOperations = field(init=False)
    focus: Focus | None = None
    quirks: Quirks = _NO_QUIRKS
    _unsaved: dict[Path, str] = field(default_factory=dict)  # and by which name the client knows it
    _waiting: list[Callable[[], None]] = field(default_factory=list)
    _pending: list[PendingEdit] = field(default_factory=list)
    _has_ended: bool = False

    def __post_init__(self) -> None:
        self.told = EditorDiagnostics(self.door, self.documents)
        self.findings = ShownFindings(self.door)
        self.operations = FileOperations(self.door, self.documents, self._capability)

    def open(
        self, capabilities: dict[str, Any], options: ClientOptions | None, quirks: Quirks = _NO_QUIRKS
    ) -> None:
        """Take what `initialize` says."""
        self.capabilities, self.quirks = capabilities, quirks
        self.operations.creates = not quirks.empties_created
        self.options = self.told.options = options
        self.position_encoding = position_encoding(capabilities)

    def look(self, params: FocusParams) -> None:
        """`agentd/focus`: the user looks there now."""
        self.focus = None
        if params.uri is not None:
            focus = Focus(params.uri, file_of(params.uri), visible=_lines(params.visible))
            if params.selection is not None and params.selection.start == params.selection.end:
                self.focus = replace(focus, cursor=params.selection.start.line)
            else:
                self.focus = replace(focus, selected=_lines(params.selection))

    # --- documents --------------------------------------------------------------------------------

    async def document(self, path: Path) -> OpenDocument | None:
        """The open document of a file."""
        return await self.documents.document(path)

    async def other(self, uri: str) -> OpenDocument | None:
        """The open document of a URI that is no file."""
        return await self.documents.other(uri)

    async def untitled(self) -> tuple[OpenDocument, ...]:
        """The open documents that are no files yet."""
        return await self.documents.untitled()

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose documents differ from what is on disk, notebooks and the like too."""
        return tuple(dict.fromkeys((*await self.documents.dirty_paths(), *sorted(self._unsaved))))

    def is_unsaved(self, path: Path) -> bool:
        """Whether the file is open as something else than text, and not saved."""
        return path in self._unsaved

    def note_unsaved(self, params: UnsavedParams) -> None:
        """`agentd/document/unsaved`: these take the place of those from before."""
        self._unsaved = {path: uri for uri in params.uris if (path := key_of(uri)) is not None}
        for tell in self._waiting:
            tell()

    # --- edits ------------------------------------------------------------------------------------

    @property
    def can_edit(self) -> bool:
        """Whether the client takes `workspace/applyEdit`."""
        return self._capability("applyEdit") is True

    async def apply(self, edit: BufferEdit) -> EditOutcome:
        """Change an open document; see `workspace.editor.Editor`."""
        outcome: EditOutcome = NotApplied("it was not tried")
        if self.quirks.tells_late:
            await self._have_it_tell(edit.label)
        # Not left alone when cancelled: an edit that comes after its call has ended would surprise.
        with CancelScope(shield=True):
            outcome = await self._apply(edit)
        return outcome

    async def _apply(self, edit: BufferEdit) -> EditOutcome:
        document = await self.documents.document(edit.path)
        if document is None:
            return NotApplied("it was closed in the editor just now", stale=True)
        if document.text != edit.before:
            return NotApplied("it was changed in the editor just now", stale=True)
        # In a thread, as it takes a moment for a large document.
        params = await anyio.to_thread.run_sync(self._workspace_edit, edit, document)
        if self.documents.text(edit.path) != edit.before:
            return NotApplied("it was changed in the editor just now", stale=True)
        if self._has_ended:
            return NotApplied("the daemon is ending")
        # Watched from here on only: what was typed and undone before is nothing that it tells of this edit.
        pending = PendingEdit(edit, self.documents.text)
        self._pending.append(pending)
        try:
            with self.documents.watched(pending.look):
                return await self._outcome(pending, params)
        finally:
            self._pending.remove(pending)

    async def _outcome(self, pending: PendingEdit, params: dict[str, Any]) -> EditOutcome:
        """Ask for an edit, and wait until it is known what came of it, or for as long as that may take."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send, pending, params)
            with anyio.move_on_after(EDIT_SECONDS):
                await pending.decided.wait()
                with anyio.move_on_after(_ANSWER_SECONDS):
                    await pending.answered.wait()
            tasks.cancel_scope.cancel()
        if not self.quirks.tells_when_still or not pending.is_silent:
            return pending.outcome(EDIT_SECONDS)
        with anyio.move_on_after(STILL_SECONDS):
            await pending.told.wait()
            await self.documents.settled()
        return pending.outcome(EDIT_SECONDS + STILL_SECONDS)

    def can_do(self, kind: OperationKind) -> bool:
        """Whether the client takes such operations on files."""
        return self.operations.can_do(kind)

    async def do(self, operation: FileOperation) -> bool:
        """Have a file made, renamed or removed; see `workspace.editor.Editor`."""
        done = False
        with CancelScope(shield=True):
            done = await self.operations.do(operation)
        return done

    def may_yet_remove(self, path: Path) -> bool:
        """Whether the editor was asked to remove the file, and may do so late."""
        return self.operations.may_yet_remove(path)

    def end(self) -> None:
        """The daemon ends: wait for no edit any more."""
        self._has_ended = True
        self.operations.end()
        for pending in self._pending:
            pending.give_up()

    async def _have_it_tell(self, label: str) -> None:
        """Have an editor that tells late of what was typed tell it now."""
        params = {"type": 3, "message": one_line(label)}  # MessageType.Info
        with anyio.move_on_after(_TELL_SECONDS):
            try:
                await self.door.ask("window/showMessageRequest", params)
            except ClientError as error:
                log.info("the editor does not answer a message: %s", error)

    async def _send(self, pending: PendingEdit, params: dict[str, Any]) -> None:
        try:
            answer = await self.door.ask("workspace/applyEdit", params)
        except ClientError as error:
            pending.take_answer(refusal(str(error)))
            return
        if isinstance(answer, dict) and answer.get("applied") is True:
            if self.quirks.tells_late:
                await self.documents.believe(pending.edit.path, pending.edit.before, pending.edit.after)
            pending.take_answer(None)
            return
        reason = answer.get("failureReason") if isinstance(answer, dict) else None
        pending.take_answer(refusal(reason if isinstance(reason, str) else ""))

    def _workspace_edit(self, edit: BufferEdit, document: OpenDocument) -> dict[str, Any]:
        whole_lines = self.quirks.counts_characters
        edits = text_edits(edit.before, edit.after, self.position_encoding, whole_lines=whole_lines)
        if self._capability("workspaceEdit", "documentChanges") is not True:
            return {"label": edit.label, "edit": {"changes": {document.uri: edits}}}
        whole: dict[str, Any] = {}
        if isinstance(self._capability("workspaceEdit", "changeAnnotationSupport"), dict):
            edits = [{**each, "annotationId": "agentd"} for each in edits]
            whole["changeAnnotations"] = {"agentd": {"label": edit.label, "needsConfirmation": False}}
        named = {"uri": document.uri, "version": document.version}
        whole["documentChanges"] = [{"textDocument": named, "edits": edits}]
        return {"label": edit.label, "edit": whole}

    def _capability(self, *names: str) -> Any:
        found: Any = self.capabilities.get("workspace")
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    # --- diagnostics ------------------------------------------------------------------------------

    async def diagnostics(self, paths: Sequence[Path] | None = None) -> Known | None:
        """What is known to be wrong in these files, or in all."""
        return await self.told.known(paths)

    async def fresh_diagnostics(self, path: Path, since: Known) -> tuple[Diagnostic, ...] | None:
        """The diagnostics of a document's present text."""
        return await self.told.fresh(path, since)

    def show_findings(self, session_id: str, findings: Sequence[Finding]) -> bool:
        """Show findings as diagnostics, where the client shows any."""
        document = self.capabilities.get("textDocument")
        takes = isinstance(document, dict) and isinstance(document.get("publishDiagnostics"), dict)
        if takes and not self._has_ended:
            self.findings.show(session_id, findings, self.position_encoding)
        return takes

    # --- saving -----------------------------------------------------------------------------------

    async def save(self, paths: Sequence[Path], wish: str | None = None) -> Saving:
        """Have documents saved; see `workspace.editor.Editor`."""
        uris = [await self._name_of(path) for path in paths]
        if self.options is None or not self.options.save:
            return await self._ask_to_save(paths, wish)
        failed: dict[str, str] = {}
        params = DocumentSaveParams(uris=tuple(uris))
        try:
            with anyio.move_on_after(SAVE_SECONDS) as scope:
                failed = _failed(await self.door.ask("agentd/document/save", params))
                scope.deadline = anyio.current_time() + _TOLD_SECONDS
                await self._until_saved(
                    [path for path, uri in zip(paths, uris, strict=True) if uri not in failed]
                )
        except ClientError as error:
            log.warning("the editor did not save: %s", error)
        by_uri = dict(zip(uris, paths, strict=True))
        return Saving(failed=tuple((by_uri[uri], why) for uri, why in failed.items() if uri in by_uri))

    async def _name_of(self, path: Path) -> str:
        """The URI by which the client knows a file: it may have opened it by a link."""
        document = await self.document(path)
        return document.uri if document is not None else self._unsaved.get(path) or uri_of(path)

    async def _ask_to_save(self, paths: Sequence[Path], wish: str | None) -> Saving:
        """Ask the user; that all are saved is an answer, too."""
        names = "\n".join(shown(str(path)) for path in paths[:_MOST_NAMES])
        more = f"\nand {len(paths) - _MOST_NAMES} more" if len(paths) > _MOST_NAMES else ""
        files, them = ("1 file", "it") if len(paths) == 1 else (f"{len(paths)} files", "them")
        titles = (SAVED, RUN_ANYWAY, CANCEL) if wish is None else (SAVED, CANCEL)
        params = {
            "type": 3,  # MessageType.Info
            "message": f"{wish or f'Save {files} so that the command sees {them}:'}\n{names}{more}",
            "actions": [{"title": title} for title in titles],
        }
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                try:
                    answers.append(await self.door.ask("window/showMessageRequest", params))
                except ClientError as error:
                    log.warning("no answer to the question to save: %s", error)
                tasks.cancel_scope.cancel()

            tasks.start_soon(ask)
            await self._until_saved(paths)
            tasks.cancel_scope.cancel()
        title = answers[0].get("title") if answers and isinstance(answers[0], dict) else None
        return Saving(cancelled=title == CANCEL)

    async def _until_saved(self, paths: Sequence[Path]) -> None:
        """Wait until none of these documents is dirty."""
        news = anyio.Event()

        def tell() -> None:
            news.set()

        self._waiting.append(tell)
        try:
            with self.documents.watched(tell):
                while set(paths) & set(await self.dirty_paths()):
                    await news.wait()
                    news = anyio.Event()
        finally:
            self._waiting.remove(tell)


def _lines(chosen: Range | None) -> tuple[int, int] | None:
    """The first and the last line of a range; one that ends before a line's first character leaves it out."""
    if chosen is None:
        return None
    start, end = chosen.start, chosen.end
    return start.line, max(start.line, end.line - (end.character == 0 and end.line > start.line))


def _failed(answer: Any) -> dict[str, str]:
    """The files that an answer to `agentd/document/save` says were not saved, and why."""
    failed = answer.get("failed") if isinstance(answer, dict) else None
    return {
        each["uri"]: " ".join(visible(str(each.get("reason") or "")).split())[:MOST_REASON]
        for each in (failed if isinstance(failed, list) else ())
        if isinstance(each, dict) and isinstance(each.get("uri"), str)
    }
