"""The documents of the editor, as LSP tells of them. pygls is used here, and imported when first needed.

Importing lsprotocol costs more than all the rest of agentd together, and the first prompt does not need it.
So document notifications are queued in their order, the import happens in a thread while the loop goes on,
and whoever reads a document first waits until all that was received has been applied.
"""

import logging
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import anyio
import anyio.to_thread

from agentd.workspace.buffer import Buffer, Encoding, Spot
from agentd.workspace.documents import Documents
from agentd.workspace.editor import OpenDocument
from agentd.workspace.paths import WorkspaceError, path_of
from agentd.workspace.untitled import is_untitled

log = logging.getLogger(__name__)

NOTIFICATIONS = frozenset(
    {"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave"}
)


@dataclass(frozen=True)
class _Opened:
    """A document that was opened; its buffer changes in place from then on."""

    uri: str
    path: Path | None
    buffer: Buffer
    version: int


@dataclass(frozen=True)
class _Step:
    """What a notification did to a document that is open; `version` where it changed."""

    kind: Literal["change", "save", "close"]
    uri: str
    version: int = 0


Understand = Callable[[str, Any], Iterator[_Opened | _Step]]


class LanguageServer:
    """Follows the editor's documents."""

    def __init__(self, position_encoding: Callable[[], Encoding]) -> None:
        """`position_encoding` is asked when the first document comes, after it was agreed."""
        self._position_encoding = position_encoding
        self._documents = Documents()
        self.on_save: Callable[[Path, str], None] | None = None
        """Called in a thread with the file and the text of a document that was saved."""
        self._send, self._receive = anyio.create_memory_object_stream[tuple[str, Any]](math.inf)
        self._waiting = 0
        self._settled = anyio.Event()

    def take(self, method: str, params: Any) -> bool:
        """Queue a notification; False for one that is none of documents."""
        if method not in NOTIFICATIONS:
            return False
        self._waiting += 1
        self._send.send_nowait((method, params))
        return True

    async def run(self) -> None:
        """Apply notifications in order, for ever."""
        understand: Understand | None = None
        async for method, params in self._receive:
            if understand is None:
                understand = await anyio.to_thread.run_sync(_load, self._position_encoding())
            try:
                for step in understand(method, params):
                    await self._take(step)
            except Exception as error:  # one bad notification must not end the rest
                log.warning("%s is not understood: %s", method, type(error).__name__)
            self._waiting -= 1
            if not self._waiting:
                self._settled.set()
                self._settled = anyio.Event()

    async def _take(self, step: _Opened | _Step) -> None:
        match step:
            case _Opened():
                await self._documents.open(step.uri, step.path, step.buffer, step.version)
            case _Step("change"):
                self._documents.change(step.uri, step.version)
            case _Step("save"):
                saved = self._documents.save(step.uri)
                if saved is not None and self.on_save is not None:
                    await anyio.to_thread.run_sync(self.on_save, *saved)
            case _Step("close"):
                self._documents.close(step.uri)

    async def settled(self) -> None:
        """Wait until all that was received has been applied."""
        while self._waiting:
            await self._settled.wait()

    async def document(self, path: Path) -> OpenDocument | None:
        """The open document of a file."""
        await self.settled()
        return await self._documents.read(path)

    async def other(self, uri: str) -> OpenDocument | None:
        """The open document of a URI that is no file."""
        await self.settled()
        return self._documents.other(uri)

    async def untitled(self) -> tuple[OpenDocument, ...]:
        """The open documents that are no files yet."""
        await self.settled()
        return self._documents.untitled()

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose documents differ from what is on disk."""
        await self.settled()
        return await self._documents.dirty_paths()

    async def believe(self, path: Path, before: str, after: str) -> None:
        """The editor says that it made an edit: that counts, unless it tells of another text."""
        await self.settled()
        if self._documents.text(path) == before:
            self._documents.believe(path, after)

    def text(self, path: Path) -> str | None:
        """The text of a file's document as far as it was heard of, without a wait."""
        return self._documents.text(path)

    def watched(self, watcher: Callable[[], None]) -> AbstractContextManager[None]:
        """A context in which a function is called after each change of a document."""
        return self._documents.watched(watcher)


def _load(position_encoding: Encoding) -> Understand:
    """Import pygls and give the function that understands notifications. Slow, for a thread."""
    from lsprotocol import converters, types
    from pygls.workspace import TextDocument, Workspace

    class Document(TextDocument):
        """A document whose text is a buffer: pygls goes through all of it at every change."""

        buffer: Buffer

        @property
        def source(self) -> str:
            return self.buffer.text

        def apply_change(self, change: types.TextDocumentContentChangeEvent) -> None:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                spots = Spot(start.line, start.character), Spot(end.line, end.character)
                self.buffer.replace(*spots, change.text)
            else:
                self.buffer.replace_all(change.text)

    class Documented(Workspace):
        """pygls's documents, made ours."""

        def _create_text_document(
            self,
            doc_uri: str,
            source: str | None = None,
            version: int | None = None,
            language_id: str | None = None,
        ) -> Document:
            document = Document(doc_uri, None, version, language_id)
            document.buffer = Buffer(source or "", position_encoding)
            return document

    converter = converters.get_converter()
    workspace = Documented(None, types.TextDocumentSyncKind.Incremental)

    def did_open(params: types.DidOpenTextDocumentParams) -> Iterator[_Opened | _Step]:
        item = params.text_document
        workspace.put_text_document(item)
        document = workspace.text_documents[unquote(item.uri)]
        assert isinstance(document, Document)
        yield _Opened(item.uri, file_of(item.uri), document.buffer, item.version)

    def did_change(params: types.DidChangeTextDocumentParams) -> Iterator[_Opened | _Step]:
        for change in params.content_changes:
            workspace.update_text_document(params.text_document, change)
            yield _Step("change", params.text_document.uri, params.text_document.version)
        if not params.content_changes:  # the text is the same again, but its version is another
            yield _Step("change", params.text_document.uri, params.text_document.version)

    def did_save(params: types.DidSaveTextDocumentParams) -> Iterator[_Opened | _Step]:
        yield _Step("save", params.text_document.uri)

    def did_close(params: types.DidCloseTextDocumentParams) -> Iterator[_Opened | _Step]:
        workspace.remove_text_document(params.text_document.uri)
        yield _Step("close", params.text_document.uri)

    steps: dict[str, tuple[type, Callable[[Any], Iterator[_Opened | _Step]]]] = {
        "textDocument/didOpen": (types.DidOpenTextDocumentParams, did_open),
        "textDocument/didChange": (types.DidChangeTextDocumentParams, did_change),
        "textDocument/didSave": (types.DidSaveTextDocumentParams, did_save),
        "textDocument/didClose": (types.DidCloseTextDocumentParams, did_close),
    }

    def understand(method: str, params: Any) -> Iterator[_Opened | _Step]:
        kind, function = steps[method]
        return function(converter.structure(params, kind))

    return understand


def key_of(uri: str) -> Path | None:
    """What a document goes by: its file, or for one that is none yet the path of its `Untitled`."""
    return Path(uri) if is_untitled(uri) else file_of(uri)


def file_of(uri: str) -> Path | None:
    """The file of a document, resolved as tools resolve it; None for one that is no file."""
    try:
        return Path(os.path.realpath(path_of(uri)))
    except (WorkspaceError, ValueError):  # the latter for what no name can hold
        return None
