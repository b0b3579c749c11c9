"""The documents of the editor, as LSP tells of them. pygls is used here, and imported when first needed.

Importing lsprotocol costs more than all the rest of agentd together, and the first prompt does not need it.
So document notifications are queued in their order, the import happens in a thread while the loop goes on,
and whoever reads a document first waits until all that was received has been applied.
"""

import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from agentd.workspace.documents import Documents
from agentd.workspace.editor import OpenDocument
from agentd.workspace.paths import WorkspaceError, path_of

log = logging.getLogger(__name__)

NOTIFICATIONS = frozenset(
    {"textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/didSave"}
)


@dataclass(frozen=True)
class _Step:
    """What a notification did to a document; `text` and `version` where it opened or changed."""

    kind: Literal["open", "change", "save", "close"]
    path: Path
    text: str = ""
    version: int = 0


Understand = Callable[[str, Any], _Step | None]


class LanguageServer:
    """Follows the editor's documents; `workspace.editor.Editor` for tools."""

    def __init__(self, position_encoding: Callable[[], str]) -> None:
        """`position_encoding` is asked when the first document comes, after it was agreed."""
        self._position_encoding = position_encoding
        self._documents = Documents()
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
                step = understand(method, params)
            except Exception as error:  # one bad notification must not end the rest
                log.warning("%s is not understood: %s", method, type(error).__name__)
            else:
                await self._take(step)
            self._waiting -= 1
            if not self._waiting:
                self._settled.set()
                self._settled = anyio.Event()

    async def _take(self, step: _Step | None) -> None:
        match step:
            case _Step("open"):
                await self._documents.open(step.path, step.text, step.version)
            case _Step("change"):
                self._documents.change(step.path, step.text, step.version)
            case _Step("save"):
                self._documents.save(step.path)
            case _Step("close"):
                self._documents.close(step.path)

    async def _until_settled(self) -> None:
        while self._waiting:
            await self._settled.wait()

    async def document(self, path: Path) -> OpenDocument | None:
        """The open document of a file."""
        await self._until_settled()
        return await self._documents.read(path)

    async def dirty_paths(self) -> tuple[Path, ...]:
        """The files whose documents differ from what is on disk."""
        await self._until_settled()
        return await self._documents.dirty_paths()


def _load(position_encoding: str) -> Understand:
    """Import pygls and give the function that understands notifications. Slow, for a thread."""
    from lsprotocol import converters, types
    from pygls.workspace import Workspace

    converter = converters.get_converter()
    encoding = types.PositionEncodingKind(position_encoding)
    workspace = Workspace(None, types.TextDocumentSyncKind.Incremental, position_encoding=encoding)

    def step(kind: Literal["open", "change", "save", "close"], uri: str) -> _Step | None:
        path = _path(uri)
        if path is None or kind in ("save", "close"):
            return _Step(kind, path) if path is not None else None
        document = workspace.get_text_document(uri)
        return _Step(kind, path, document.source, document.version or 0)

    def did_open(params: types.DidOpenTextDocumentParams) -> _Step | None:
        workspace.put_text_document(params.text_document)
        return step("open", params.text_document.uri)

    def did_change(params: types.DidChangeTextDocumentParams) -> _Step | None:
        for change in params.content_changes:
            workspace.update_text_document(params.text_document, change)
        return step("change", params.text_document.uri)

    def did_save(params: types.DidSaveTextDocumentParams) -> _Step | None:
        return step("save", params.text_document.uri)

    def did_close(params: types.DidCloseTextDocumentParams) -> _Step | None:
        workspace.remove_text_document(params.text_document.uri)
        return step("close", params.text_document.uri)

    steps: dict[str, tuple[type, Callable[[Any], _Step | None]]] = {
        "textDocument/didOpen": (types.DidOpenTextDocumentParams, did_open),
        "textDocument/didChange": (types.DidChangeTextDocumentParams, did_change),
        "textDocument/didSave": (types.DidSaveTextDocumentParams, did_save),
        "textDocument/didClose": (types.DidCloseTextDocumentParams, did_close),
    }

    def understand(method: str, params: Any) -> _Step | None:
        kind, function = steps[method]
        return function(converter.structure(params, kind))

    return understand


def _path(uri: str) -> Path | None:
    """The file of a document, resolved as tools resolve it; None for one that is no file."""
    try:
        return Path(os.path.realpath(path_of(uri)))
    except WorkspaceError:
        return None
