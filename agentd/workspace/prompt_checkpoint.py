"""What keeps the files that one prompt changes: an edit's before it is made, a command's around it."""

import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from agentd.workspace import command_changes
from agentd.workspace.beneath import directory
from agentd.workspace.checkpoints import Change, Checkpoints, FileState, state_of
from agentd.workspace.command_changes import Looks, Picture, TooLarge
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place, WorkspaceError

log = logging.getLogger(__name__)

_T = TypeVar("_T")

LOOK_SECONDS = 1.0
"""For the look behind a command that was cancelled or failed to run: nobody waits long for that."""


@dataclass(frozen=True)
class PromptCheckpoint:
    """`Checkpoint` of one prompt.

    `tell` is told, in a sentence, where commands cannot be seen. `hidden` is agentd's own folder of data,
    which may lie in a workspace and is none of its files. `looks` is for all commands of the prompt.
    """

    checkpoints: Checkpoints
    prompt_id: str
    looks: Looks = field(default_factory=Looks)
    tell: Callable[[str], None] = log.warning
    hidden: Path | None = None

    @contextmanager
    def changing(self, place: Place, before: Snapshot | None, after: bytes) -> Iterator[None]:
        """See `Checkpoint`. Where the change fails, that is recorded as well."""
        with self.looks.stillness, self._recorded(place, before, after):
            yield

    @contextmanager
    def _recorded(self, place: Place, before: Snapshot | None, after: bytes) -> Iterator[None]:
        old, digest = state_of(before), hashlib.sha256(after).hexdigest()
        new = FileState(digest, old.mode if old is not None else None)
        made = _missing_folders(place) if before is None else 0
        change = Change(self.prompt_id, place.parts, old, new, made=made)
        contents = {digest: after, **({old.digest: before.data} if old is not None and before else {})}
        try:
            self.checkpoints.record([change], contents)
        except OSError as error:
            raise not_kept(place, error) from error
        try:
            yield
        except BaseException:
            with suppress(OSError):
                self.checkpoints.record([Change(self.prompt_id, place.parts, new, old)], contents)
            raise

    @asynccontextmanager
    async def watching(self, root: Path) -> AsyncIterator[None]:
        """See `Checkpoint`. What cannot be looked at, or kept, does not hinder the command."""
        picture = await self._look(root)
        try:
            yield
        except BaseException:
            with anyio.move_on_after(LOOK_SECONDS, shield=True):
                await self._keep(picture)
            raise
        await self._keep(picture)

    async def _look(self, root: Path) -> Picture | None:
        if self.looks.is_too_large:  # said once, and looked at once
            return None
        try:
            self.looks.last = await anyio.to_thread.run_sync(
                self._still, command_changes.look, root, self.looks, self.hidden, abandon_on_cancel=True
            )
            return self.looks.last
        except TooLarge:
            self.looks.is_too_large = True
            self.tell(command_changes.UNSEEN)
        except OSError as error:
            log.warning("the workspace could not be looked at before a command: %s", error)
        return None

    def _still(self, look: Callable[..., _T], *args: object) -> _T:
        """Look at the workspace while no tool of the prompt changes it. Blocks."""
        with self.looks.stillness:
            return look(self.checkpoints, *args)

    async def _keep(self, picture: Picture | None) -> None:
        if picture is None:
            return
        try:
            await anyio.to_thread.run_sync(
                self._still, command_changes.keep, picture, self.prompt_id, abandon_on_cancel=True
            )
        except OSError as error:
            log.warning("what a command changed could not be kept: %s", error)


def not_kept(place: Place, error: OSError) -> WorkspaceError:
    """The refusal of a change that could not be taken back."""
    return WorkspaceError(
        "storage",
        f"'{place.shown}' was not changed, as what it was before could not be kept in agentd's data folder: "
        f"{error.strerror}.",
    )


def _missing_folders(place: Place) -> int:
    """How many of the folders that a place lies in are not there."""
    for depth in range(len(place.parts) - 1, 0, -1):
        try:
            with directory(place.root, place.parts[:depth]):
                return len(place.parts) - 1 - depth
        except OSError:
            continue
    return len(place.parts) - 1
