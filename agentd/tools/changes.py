"""Changing one file: prepared against what the model has seen, applied to that same content only.

Between preparing and running lies the user's answer, which may take minutes. So the content is looked at
again when the change runs, under the file's lock; what the user approved is what is written, or nothing.
A file that is open in the editor is changed there (`buffers.py`), every other one on the disk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio.to_thread
from anyio import CancelScope

from agentd.protocol.messages import EditDetails, EditSubject, FileChange
from agentd.tools.base import Action, ToolContext, ToolResult
from agentd.tools.buffers import BufferChange, change_buffer
from agentd.tools.checks import EditChecks
from agentd.tools.diff import file_change
from agentd.tools.keeping import kept
from agentd.tools.targets import check_not_late, holds_secrets, in_thread, is_left_to_editor
from agentd.tools.whole_files import save_before
from agentd.workspace import files
from agentd.workspace.alone import alone
from agentd.workspace.editor import FileOperation
from agentd.workspace.guarded import REPOSITORIES, is_git_folder
from agentd.workspace.held import Held, check_changeable, held, on_disk
from agentd.workspace.names import folded
from agentd.workspace.own_program import is_of_program
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.seen import SeenFiles, digest
from agentd.workspace.text import Text, lines_of
from agentd.workspace.untitled import Untitled

_ATTEMPTS = 3
"""To find a file at rest: nothing was changed by those that failed."""


@dataclass(frozen=True)
class Revision:
    """New text for a file, and how that is told: `Edited x (1 replacement, +2 -1).`"""

    text: str
    verb: str
    detail: str | None = None


Revise = Callable[[Text | None], Revision]
"""The new text from the present one (None: there is no file). Raises WorkspaceError."""


@dataclass(frozen=True)
class _Prepared:
    before: Held
    after: bytes
    revision: Revision
    change: FileChange


async def prepare_change(
    context: ToolContext, place: Place, revise: Revise, checks: EditChecks, *, rebase: bool
) -> Action:
    """The action that revises a file. Raises WorkspaceError when it cannot be done.

    `checks` say what the change did to what is wrong in the file. `rebase`: when the file differs by then
    only through changes that this session made itself, revise the newer text instead of refusing.
    """
    before = await held(context.editor, place)
    prepared = await in_thread(_prepare, place, revise, before, context.seen)
    change = _PreparedChange(context, place, revise, checks, rebase, prepared)
    guarded = await in_thread(is_guarded, place)
    subject = EditSubject(uri=place.uri, patch=prepared.change.patch)
    return Action(change.run, subject, secret=holds_secrets(place) or guarded)


@dataclass(frozen=True)
class _PreparedChange:
    """A change that was prepared, and is made once it is allowed."""

    context: ToolContext
    place: Place
    revise: Revise
    checks: EditChecks
    rebase: bool
    prepared: _Prepared

    async def run(self) -> ToolResult:
        """Make it."""
        try:
            return await self._make()
        except WorkspaceError as error:
            return ToolResult.error(str(error))

    async def _make(self) -> ToolResult:
        context, place = self.context, self.place
        if context.editor.is_unsaved(place.path):
            await save_before(context, place, "changed")
        for _ in range(_ATTEMPTS):
            before = await self.checks.before(context, place, await held(context.editor, place))
            now = await held(context.editor, place)  # which the look before may have taken a while for
            check_not_late(context, place)
            if now.document is None:
                done, told = await self._on_disk(now), None
            else:
                done = await in_thread(self._fitted, now)
                if done.after == now.data:
                    return _unchanged(place)
                wanted = BufferChange(now, now.document, done.revision.text, _told(place, done))
                told = await change_buffer(context, place, wanted)
                if told is None:
                    continue
                if told.is_error:
                    return told
            if done.after == done.before.data:
                return _unchanged(place)
            said = told.said if told else _told(place, done)
            context.made(ToolResult.text(said, _details(done)))  # whatever becomes of the look behind it
            more = await self.checks.after(context, place, before, done.after)
            return ToolResult.text(said + more, _details(done))
        raise files.stale(place)

    async def _on_disk(self, now: Held) -> _Prepared:
        context, place = self.context, self.place
        if now.snapshot is None and is_left_to_editor(context, "create"):
            return await _create(context, place, self._fitted)
        # Not left alone when cancelled: a write that goes on after its call has ended would surprise.
        return await anyio.to_thread.run_sync(partial(_write, place, self._fitted, context))

    def _fitted(self, now: Held) -> _Prepared:
        """The change as it fits to what the file holds by now. Raises WorkspaceError `stale`. Blocks."""
        prepared, place, seen = self.prepared, self.place, self.context.seen
        if now.data == prepared.before.data:
            return _Prepared(now, prepared.after, prepared.revision, prepared.change)
        if not self.rebase or now.snapshot is None or not now.is_seen(place, seen):
            raise files.stale(place)
        return _prepare(place, self.revise, now, seen)


def _prepare(place: Place, revise: Revise, before: Held, seen: SeenFiles) -> _Prepared:
    check_changeable(place, before, seen)
    revision = revise(before.text if before.snapshot is not None else None)
    after = (before.text or Text("")).with_text(revision.text).encode()
    data = before.data if before.snapshot is not None else None
    return _Prepared(before, after, revision, file_change(place, data, after))


def _write(place: Place, fitted: Callable[[Held], _Prepared], context: ToolContext) -> _Prepared:
    with files.changing(place):
        now = on_disk(place)
        done = fitted(now)
        if done.after != now.data:
            with context.checkpoint.changing(place, now.snapshot, done.after):
                files.write(place, done.after, now.snapshot, context.write_notes)
        context.seen.note(place.path, digest(done.after))
    return done


async def _create(context: ToolContext, place: Place, fitted: Callable[[Held], _Prepared]) -> _Prepared:
    """Have the editor make the file, empty, and fill it on the disk, where commands see it at once."""
    async with alone(place.path):
        done = await in_thread(lambda: fitted(on_disk(place)))
        label = f"agentd: {_told(place, done).rstrip('.')}"
        async with kept(context, place, done.before.snapshot, done.after):
            # Not left alone when cancelled, which would leave an empty file.
            with CancelScope(shield=True):
                if done.before.snapshot is None:
                    await anyio.to_thread.run_sync(files.make_folders, place)  # not all editors do
                    await context.editor.do(FileOperation("create", place.path, label))
                await anyio.to_thread.run_sync(partial(_fill, place, done, context))
        context.seen.note(place.path, digest(done.after))
    return done


def _fill(place: Place, done: _Prepared, context: ToolContext) -> None:
    """Write a file that the editor has perhaps made. One that it made goes again where that fails. Blocks."""
    with files.changing(place):
        empty = files.read_if_present(place)
        if empty is not None and empty.data:
            raise files.stale(place)
        try:
            files.write(place, done.after, empty, context.write_notes)
        except WorkspaceError:
            if empty is not None:
                files.remove(place, empty)
            raise


def _unchanged(place: Place) -> ToolResult:
    return ToolResult.text(f"'{place.shown}' already has this content. Nothing was written.")


def _details(done: _Prepared) -> EditDetails:
    return EditDetails(files=(done.change,))


def _told(place: Place, done: _Prepared) -> str:
    verb, detail = done.revision.verb, done.revision.detail
    if done.before.snapshot is None:
        count = len(lines_of(done.revision.text))
        verb, detail = "Created", f"{count} line{'' if count == 1 else 's'}"
    counts = f"+{done.change.additions} -{done.change.deletions}"
    return f"{verb} {place.shown} ({f'{detail}, {counts}' if detail else counts})."


def is_guarded(place: Place) -> bool:
    """Whether a change is asked about as that of a secret is. Blocks.

    Repositories' hooks and settings run as commands, ours say how we work, and our own program is what asks.
    """
    guarded = {*REPOSITORIES, ".agentd"}
    if any(folded(part) in guarded for part in place.names):
        return True
    if isinstance(place, Untitled):
        return False
    if is_of_program(place.path):
        return True
    return any(is_git_folder(place.root.joinpath(*place.parts[:end])) for end in range(len(place.parts)))
