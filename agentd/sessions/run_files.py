"""The files that a run changes: kept as they were before, and told in the end."""

import os
from collections.abc import Callable, Collection, Sequence

import anyio
import anyio.to_thread

from agentd.protocol.events import ChangedFile, FilesChanged
from agentd.sessions.ground import Ground
from agentd.sessions.recovery import changed_files
from agentd.workspace.checkpoints import Checkpoint
from agentd.workspace.command_changes import Looks
from agentd.workspace.paths import path_of
from agentd.workspace.prompt_checkpoint import PromptCheckpoint
from agentd.workspace.untitled import is_untitled

LOOK_SECONDS = 0.5
"""For a look at the files that a run has changed; on a disk that hangs, what the edits told stands."""


class RunFiles:
    """What one run does to files. `said` gives the prompt that was said last, to which changes belong."""

    def __init__(self, ground: Ground, said: Callable[[], str], tell: Callable[[str], None]) -> None:
        """`tell` is told where the changes of commands cannot be seen."""
        self._ground = ground
        self._said = said
        self._tell = tell
        self._looks = Looks()

    def checkpoint(self) -> Checkpoint:
        """What keeps files as they are before the prompt changes them; a child works for its parent's."""
        if (parent := self._ground.family.parent) is not None:
            return parent.checkpoint()
        house = self._ground.house
        return PromptCheckpoint(
            self._ground.checkpoints,
            self._said(),
            self._looks,
            self._tell,
            hidden=house.spills.parent if house.spills is not None else None,
            git=house.git(self._ground.root) if house.git is not None else None,
            writers=house.writers,
            unsaved=house.editor.dirty_paths,
        )

    async def begin(self) -> None:
        """Look at the workspace where something in the background may change it beside the run."""
        if self._ground.shell.background.running:
            await self.checkpoint().look_beside(self._ground.root, begins=True)

    async def changed(self) -> FilesChanged | None:
        """What the run comes to, now that it ends; None where it has changed nothing."""
        with anyio.move_on_after(LOOK_SECONDS, shield=True):
            await self.checkpoint().look_beside(self._ground.root)
        run = self._ground.log.state.run
        if run is None or not run.changed:
            return None
        files = changed_files(run).files
        with anyio.move_on_after(LOOK_SECONDS):
            on_disk = [file.uri for file in files if not await self._is_open(file.uri)]
            files = await anyio.to_thread.run_sync(_in_the_end, files, on_disk, abandon_on_cancel=True)
        return FilesChanged(files=files) if files else None

    async def _is_open(self, uri: str) -> bool:
        """Whether a file is open in the editor, where it is whether or not it is on the disk."""
        if is_untitled(uri):
            return True
        return await self._ground.house.editor.document(path_of(uri)) is not None


def _in_the_end(files: Sequence[ChangedFile], on_disk: Collection[str]) -> tuple[ChangedFile, ...]:
    """What edits came to, seen from the end: a command may have removed what they made or changed."""
    gone = {uri for uri in on_disk if not os.path.lexists(path_of(uri))}
    return tuple(
        file.model_copy(update={"action": "deleted"}) if file.uri in gone else file
        for file in files
        if not (file.uri in gone and file.action == "created")
    )
