"""Files that the editor makes, renames and removes: LSP's resource operations, each proven by the disk.

What the editor answers proves no more here than it does for edits. An operation is asked for once, alone in
its `WorkspaceEdit`, and in such a form that one which comes late does no harm: nothing is ever written over.
What is looked at is the disk, after each answer and each word of a document, and at the end of the time.
"""

import logging
import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from agentd.daemon.door import ClientError, Door
from agentd.server.language_server import LanguageServer
from agentd.workspace.beneath import directory
from agentd.workspace.editor import FileOperation, OperationKind
from agentd.workspace.paths import WorkspaceError, shown, uri_of

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
        """Have it done. False where the disk does not show it within `OPERATION_SECONDS`.

        Raises WorkspaceError where a folder had its name taken by another one meanwhile.
        """
        spots = [each for each in (operation.path, operation.target) if each is not None]
        async with AsyncExitStack() as held:
            try:
                places = [await held.enter_async_context(_opened(each)) for each in spots]
            except OSError:
                return False  # nothing is left to an editor that would go another way than we looked
            if await self._do(operation, places):
                return True
            if await anyio.to_thread.run_sync(_are_elsewhere, places):
                raise WorkspaceError("stale", _led_astray(operation))
        return False

    async def _do(self, operation: FileOperation, places: Sequence["_Spot"]) -> bool:
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
                        done = await self._until_done(asked, operation, places)
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
        return done or await anyio.to_thread.run_sync(_is_done, operation, places)

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

    async def _until_done(self, asked: "_Asked", operation: FileOperation, places: Sequence["_Spot"]) -> bool:
        while True:
            news = asked.news
            if await anyio.to_thread.run_sync(_is_done, operation, places):
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


@dataclass(frozen=True)
class _Spot:
    """A name in a folder that is held open, and stays that folder whatever its own name leads to."""

    path: Path
    folder: int

    @property
    def mode(self) -> int | None:
        """Of what has the name; None where nothing has. Blocks."""
        try:
            return os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        except OSError:
            return None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the folder's name leads to another one by now, or nowhere. Blocks."""
        try:
            return not os.path.samestat(os.stat(self.path.parent), os.fstat(self.folder))
        except OSError:
            return True


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[_Spot]:
    """Hold the folder of a file, no link on the way. Raises OSError."""
    held = directory(Path(path.anchor), path.parts[1:-1])
    folder = await anyio.to_thread.run_sync(held.__enter__)
    try:
        yield _Spot(path, folder)
    finally:
        held.__exit__(None, None, None)


def _is_done(operation: FileOperation, places: Sequence[_Spot]) -> bool:
    """Whether the disk shows it, in the very folders that were meant. Blocks."""
    source, target = places[0].mode, places[-1].mode
    if operation.kind != "create" and source is not None:
        return False
    return operation.kind == "delete" or (target is not None and stat.S_ISREG(target))


def _are_elsewhere(places: Sequence[_Spot]) -> bool:
    return any(each.is_elsewhere for each in places)


def _led_astray(operation: FileOperation) -> str:
    what = {"create": "created", "rename": "moved", "delete": "deleted"}[operation.kind]
    names = " and ".join(
        f"'{shown(str(each.parent))}'" for each in (operation.path, operation.target) if each is not None
    )
    return (
        f"'{shown(operation.path.name)}' was not {what}: while the user's editor was asked to, something "
        f"else took the place of a folder. The editor goes by names: look at what it did in {names}, and "
        "tell the user."
    )
