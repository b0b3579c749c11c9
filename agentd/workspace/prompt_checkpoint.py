"""What keeps the files that one prompt changes: an edit's before it is made, a command's around it."""

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agentd.workspace import command_changes
from agentd.workspace.beneath import directory
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.command_changes import Difference, Looks, Picture, TooLarge
from agentd.workspace.file_states import Change, FileState, same_content, state_of
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.untitled import Untitled
from agentd.workspace.writers import Writers

if TYPE_CHECKING:  # most workspaces are small enough without it
    from agentd.workspace.git import Git

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""For the look behind a command that was cancelled or failed to run: nobody waits long for that."""

_BATCH_BYTES = 16 * 1024 * 1024
"""How much git is asked for at once."""


async def _none() -> Collection[Path]:
    return ()


@dataclass(frozen=True)
class PromptCheckpoint:
    """`Checkpoint` of one prompt.

    `tell` is told, in a sentence, where commands cannot be seen. `hidden` is agentd's own
    folder of data, which may lie in a workspace and is none of its files. `looks` is for all commands of the
    prompt. `git` gives contents in workspaces that are too large to be read. `writers` are all sessions'.
    `unsaved` gives the files whose documents hold text that is not saved.
    """

    checkpoints: Checkpoints
    prompt_id: str
    looks: Looks = field(default_factory=Looks)
    tell: Callable[[str], None] = log.warning
    hidden: Path | None = None
    git: "Git | None" = None
    writers: Writers = field(default_factory=Writers)
    unsaved: Callable[[], Awaitable[Collection[Path]]] = _none

    @contextmanager
    def changing(
        self, place: Place, before: Snapshot | None, after: bytes | None, *, in_buffer: bool = False
    ) -> Iterator[None]:
        """See `Checkpoint`. Where the change fails, that is recorded as well."""
        old = state_of(before)
        contents = {old.digest: before.data} if old is not None and before is not None else {}
        new = None
        if after is not None:
            new = FileState(hashlib.sha256(after).hexdigest(), old.mode if old is not None else None)
            contents[new.digest] = after
        made = _missing_folders(place) if before is None else 0
        change = Change(self.prompt_id, place.parts, old, new, made=made, in_buffer=in_buffer)
        try:
            self._begin(change, contents)
        except OSError as error:
            raise not_kept(place, error) from error
        self.writers.note(place.path, self.checkpoints, new)
        try:
            yield
        except BaseException:
            self._end(change, contents, is_made=False)
            raise
        self._end(change, contents, is_made=True)

    def _begin(self, change: Change, contents: Mapping[str, bytes]) -> None:
        """Keep a change that is about to be made; until it is, no look takes it for one of a command."""
        with self.looks.keeping:
            self.looks.making[change.parts] = len(self.checkpoints.changes())
            try:
                self.checkpoints.record([change], contents)
            except OSError:
                del self.looks.making[change.parts]
                raise

    def _end(self, change: Change, contents: Mapping[str, bytes], *, is_made: bool) -> None:
        """It is made, or was not; then what commands did to the file meanwhile is kept as well."""
        with self.looks.keeping:
            self.looks.making.pop(change.parts, None)
            owed = self.looks.owed.pop(change.parts, None)
            if is_made:
                return
            changes, more = [change.reversed], dict(contents)
            if owed is not None and not same_content(owed.now, change.before):
                changes.append(Change(self.prompt_id, change.parts, change.before, owed.now))
                if owed.now is not None and owed.data is not None:
                    more[owed.now.digest] = owed.data
            with suppress(OSError):
                self.checkpoints.record(changes, more)

    @asynccontextmanager
    async def watching(self, root: Path) -> AsyncIterator[None]:
        """See `Checkpoint`. What cannot be looked at, or kept, does not hinder the command."""
        picture = self.looks.beside or await self._look(root)
        try:
            yield
        except BaseException:
            with anyio.move_on_after(LOOK_SECONDS, shield=True):
                await self._keep(picture)
            raise
        await self._keep(picture)

    async def look_beside(self, root: Path, *, begins: bool = False) -> None:
        """See `Checkpoint`."""
        if begins and self.looks.beside is None:
            self.looks.beside = await self._look(root)
        elif not begins:
            await self._keep(self.looks.beside)

    async def _look(self, root: Path) -> Picture | None:
        if self.looks.is_too_large:  # said once, and looked at once
            return None
        try:
            with suppress(TooLarge):
                if not self.looks.needs_git:
                    return await self._pictured(root)
            if await self._has_git():
                self.looks.needs_git = True
                return await self._pictured(root)
        except TooLarge:
            pass
        except OSError as error:
            log.warning("the workspace could not be looked at before a command: %s", error)
            return None
        self.looks.is_too_large = True
        self.tell(command_changes.UNSEEN)
        return None

    async def _pictured(self, root: Path) -> Picture:
        look = partial(command_changes.look, with_git=self.looks.needs_git)
        self.looks.last = await anyio.to_thread.run_sync(
            look, self.checkpoints, root, self.looks, self.hidden, abandon_on_cancel=True
        )
        return self.looks.last

    async def _has_git(self) -> bool:
        from agentd.workspace.git import GitError

        try:
            return self.looks.needs_git or (self.git is not None and await self.git.top() is not None)
        except GitError as error:
            log.info("a large workspace without git: %s", error)
            return False

    async def _keep(self, picture: Picture | None) -> None:
        if picture is None:
            return
        run = partial(anyio.to_thread.run_sync, abandon_on_cancel=True)
        try:
            behind = await run(command_changes.look_behind, self.checkpoints, picture, self.looks)
            if not behind.is_all:
                self.tell(command_changes.TOO_MANY)
            unsaved = frozenset(await self.unsaved()) if behind.found else frozenset()
            found = [
                replace(self._since_saved(picture, each), below=picture.root.joinpath(*each.parts) in unsaved)
                for each in behind.found
                if not self._is_anothers(picture, each)
            ]
            blobs = await self._blobs(found)
            behind = replace(behind, found=found)
            more = (self.looks, blobs, self.prompt_id)
            await run(command_changes.keep_behind, self.checkpoints, picture, behind, *more)
        except OSError as error:
            log.warning("what a command changed could not be kept: %s", error)

    def _is_anothers(self, before: Picture, found: Difference) -> bool:
        path = before.root.joinpath(*found.parts)
        return self.writers.is_anothers(path, self.checkpoints, found.now, before.began)

    def _since_saved(self, before: Picture, found: Difference) -> Difference:
        """What a command did to a file that the user has saved beside it begins with what they saved."""
        saved = self.writers.saved_by_user(before.root.joinpath(*found.parts), before.began)
        return found if saved is None else replace(found, saved=saved)

    async def _blobs(self, found: Iterable[Difference]) -> dict[str, bytes]:
        """The contents that only git has, as far as it gives them."""
        olds = (each.old for each in found)
        wanted = {old.blob: old.status.st_size for old in olds if old is not None and old.blob}
        blobs: dict[str, bytes] = {}
        if self.git is None or not wanted:
            return blobs
        from agentd.workspace.git import GitError

        for ids in _batches(wanted):
            try:
                blobs |= await self.git.blobs(ids, limit=2 * _BATCH_BYTES)
            except GitError as error:
                log.warning("what files were before a command is not known: %s", error)
        return blobs


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    room = _BATCH_BYTES
    for name, size in sizes.items():
        if batch and size > room:
            yield batch
            batch, room = [], _BATCH_BYTES
        batch.append(name)
        room -= size
    if batch:
        yield batch


def not_kept(place: Place, error: OSError) -> WorkspaceError:
    """The refusal of a change that could not be taken back."""
    return WorkspaceError(
        "storage",
        f"'{place.shown}' was not changed, as what it was before could not be kept in agentd's data folder: "
        f"{error.strerror}.",
    )


def _missing_folders(place: Place) -> int:
    """How many of the folders that a place lies in are not there."""
    if isinstance(place, Untitled):
        return 0
    for depth in range(len(place.parts) - 1, 0, -1):
        try:
            with directory(place.root, place.parts[:depth]):
                return len(place.parts) - 1 - depth
        except OSError:
            continue
    return len(place.parts) - 1
