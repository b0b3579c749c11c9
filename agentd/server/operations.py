"""Files that the editor makes, renames and removes: LSP's resource operations, each proven by the disk.

What the editor answers proves no more here than it does for edits. An operation is asked for once, alone in
its `WorkspaceEdit`, and in such a form that one which comes late does no harm: nothing is ever written over.
What is looked at is the disk, after each answer and each word of a document, and at the end of the time.
"""

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentd.daemon.door import ClientError, Door
from agentd.server.language_server import LanguageServer
from agentd.workspace.editor import FileOperation, OperationKind
from agentd.workspace.paths import uri_of

log = logging.getLogger(__name__)

OPERATION_SECONDS = 2.0
"""How long an editor may take for an operation."""
LATE_SECONDS = 60.0
"""How long an editor that has not answered may still do it; one that hangs for longer its user ends."""
_FOLLOW_SECONDS = 0.5
"""For its answer to what is seen to be done, and its word that the document is gone with the file."""


class FileOperations:
    """Asks the editor for operations. `capability` gives one of the client's under `workspace`."""

    def __init__(self, door: Door, documents: LanguageServer, capability: Callable[..., Any]) -> None:
        self._door = door
        self._documents = documents
        self._capability = capability
        self.creates = True
        """False for an editor whose creating cannot be trusted, whatever it announces."""
        self._asked: list[_Asked] = []
        self._late: dict[Path, float] = {}  # until when a file may be removed that the editor left unanswered
        self._is_mute = False
        self._has_ended = False

    def can_do(self, kind: OperationKind) -> bool:
        """Whether the client announces such operations, and has not left one unanswered."""
        if self._is_mute or self._has_ended or (kind == "create" and not self.creates):
            return False
        kinds = self._capability("workspaceEdit", "resourceOperations")
        return (
            self._capability("applyEdit") is True
            and self._capability("workspaceEdit", "documentChanges") is True
            and isinstance(kinds, list)
            and kind in kinds
        )

    async def do(self, operation: FileOperation) -> bool:
        """Have it done. False where the disk does not show it within `OPERATION_SECONDS`."""
        document = await self._documents.document(operation.path)
        params = self._params(operation, document.uri if document is not None else uri_of(operation.path))
        asked = _Asked()
        done = False
        self._asked.append(asked)
        try:
            with self._documents.watched(asked.tell):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._send, asked, params)
                    with anyio.move_on_after(OPERATION_SECONDS):
                        done = await self._until_done(asked, operation)
                    if done:
                        with anyio.move_on_after(_FOLLOW_SECONDS):
                            await self._until_settled(asked, operation.path if document else None)
                    tasks.cancel_scope.cancel()
        finally:
            self._asked.remove(asked)
        # It is not given the time for each file of a prompt when it does not answer at all.
        self._is_mute = not done and not asked.has_answered
        if self._is_mute and operation.kind != "create":
            self._late[operation.path] = anyio.current_time() + LATE_SECONDS
        return done or await anyio.to_thread.run_sync(_is_done, operation)

    def may_yet_remove(self, path: Path) -> bool:
        """Whether the editor was asked to remove or rename this file, and may do it late.

        `ignoreIfNotExists` makes that harmless as long as nothing new has its name.
        """
        now = anyio.current_time()
        self._late = {each: until for each, until in self._late.items() if until > now}
        return path in self._late

    def end(self) -> None:
        """The daemon ends: wait for nothing any more."""
        self._has_ended = True
        for asked in self._asked:
            asked.has_refused = True
            asked.tell()

    async def _until_done(self, asked: "_Asked", operation: FileOperation) -> bool:
        while True:
            news = asked.news
            if await anyio.to_thread.run_sync(_is_done, operation):
                return True
            if asked.has_refused:
                return False
            await news.wait()

    async def _until_settled(self, asked: "_Asked", path: Path | None) -> None:
        """Until the answer is there, and the document of the file, where it was open, is not."""
        while not asked.has_answered or (path is not None and self._documents.text(path) is not None):
            await asked.news.wait()

    async def _send(self, asked: "_Asked", params: dict[str, Any]) -> None:
        try:
            answer = await self._door.ask("workspace/applyEdit", params)
            asked.has_refused = not (isinstance(answer, dict) and answer.get("applied") is True)
        except ClientError as error:
            log.info("the editor did no operation of files: %s", error)
            asked.has_refused = True
        asked.has_answered = True
        asked.tell()

    def _params(self, operation: FileOperation, uri: str) -> dict[str, Any]:
        change: dict[str, Any] = {"kind": operation.kind, "uri": uri}
        if operation.kind == "rename":
            assert operation.target is not None
            named = {"oldUri": uri, "newUri": uri_of(operation.target)}
            options = {"overwrite": False, "ignoreIfExists": False}
            change = {"kind": "rename", **named, "options": options}
        elif operation.kind == "create":
            change["options"] = {"overwrite": False, "ignoreIfExists": True}
        else:
            change["options"] = {"recursive": False, "ignoreIfNotExists": True}
        whole: dict[str, Any] = {"documentChanges": [change]}
        if isinstance(self._capability("workspaceEdit", "changeAnnotationSupport"), dict):
            change["annotationId"] = "agentd"
            label = {"label": operation.label, "needsConfirmation": False}
            whole["changeAnnotations"] = {"agentd": label}
        return {"label": operation.label, "edit": whole}


class _Asked:
    """An operation that the editor was asked for, and what is heard of it."""

    def __init__(self) -> None:
        self.news = anyio.Event()
        self.has_answered = False
        self.has_refused = False

    def tell(self) -> None:
        """Something has happened after which it may be done."""
        self.news.set()
        self.news = anyio.Event()


def _is_done(operation: FileOperation) -> bool:
    """Whether the disk shows it. Blocks."""
    if operation.kind == "create":
        return _is_file(operation.path)
    if os.path.lexists(operation.path):
        return False
    return operation.target is None or _is_file(operation.target)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
