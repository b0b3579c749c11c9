"""Bringing files back in the editor, where they are open: its undo holds it, and the disk is the user's own.

The rules are those of `restoring.py`. A later daemon could not find a buffer again, so nothing is written
down to be taken back then: where the daemon dies in the midst, the editor's undo is the way back.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from agentd.workspace import files
from agentd.workspace.alone import alone
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.editor import Applied, BufferEdit, Editor, FileOperation
from agentd.workspace.file_states import Change, FileState, Parts, same_content, state_of
from agentd.workspace.files import Snapshot
from agentd.workspace.held import Held, held
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.restoring import (
    CHANGED_BETWEEN,
    CHANGED_SINCE,
    NOT_KEPT,
    NOT_OPEN,
    UNSAVED,
    Restoration,
)
from agentd.workspace.text import BinaryContent, decode
from agentd.workspace.untitled import Untitled, place_at
from agentd.workspace.wants import Wanted

log = logging.getLogger(__name__)

_LABEL = "agentd: go back"
_NOTHING = Held(None, None)


@dataclass(frozen=True)
class BufferStep(Restoration):
    """What is to be done to the document of a file; `found` is what it holds, `text` what it is to hold.

    `removes`: it goes with its file, of which it is an unsaved version.
    """

    found: Held = _NOTHING
    text: str = ""
    removes: bool = False

    @property
    def in_buffer(self) -> bool:
        """Whether its text is changed; one that goes with its file is seen to as a file is."""
        return not self.removes


async def apart(editor: Editor, root: Path, wants: Iterable[Wanted]) -> list[Wanted]:
    """What is wanted of each file, of its document or of both.

    Of two for one file both stay if both are there as the session left them. Where the user has saved the
    document since, it is the only one, and where they have closed it the file is.
    """
    found: list[Wanted] = []
    buffers: dict[Parts, Wanted] = {}
    for want in wants:
        if want.where == "buffer":
            buffers[want.parts] = want
        elif want.where == "disk":
            found += await _of_two(editor, place_at(root, want.parts), buffers[want.parts], want)
        elif (
            want.after is None and not want.in_buffer and await _is_dirty(editor, place_at(root, want.parts))
        ):
            found.append(replace(want, where="disk"))  # what is unsaved was never the session's
        else:
            found.append(want)
    return found


async def _is_dirty(editor: Editor, place: Place) -> bool:
    document = await editor.document(place.path)
    return document is not None and document.dirty


async def _of_two(editor: Editor, place: Place, buffer: Wanted, disk: Wanted) -> list[Wanted]:
    on_disk = await _on_disk(place)
    held = await _in_editor(editor, place)
    if held is not None and buffer.expects(state_of(held.snapshot)) and disk.expects(on_disk):
        return [buffer, disk]
    if buffer.knows(on_disk):  # it was saved, perhaps before the document went on to what it is
        return [replace(buffer, where="either", expected=(*buffer.expected, on_disk))]
    if held is not None and held.document is not None and held.document.dirty:
        return [buffer, disk]
    return [replace(disk, where="either")]


def together(steps: Iterable[Restoration]) -> list[Restoration]:
    """The same, where of the two for one file none is done if the other is a conflict."""
    found = list(steps)
    reasons = {step.place.parts: step.conflict for step in found if step.conflict is not None}
    return [replace(step, conflict=reasons.get(step.place.parts)) for step in found]


async def plan_buffers(
    editor: Editor, checkpoints: Checkpoints, root: Path, wants: Iterable[Wanted]
) -> tuple[list[BufferStep], list[Wanted]]:
    """What has to be done in the editor, and the files that are to be seen to on the disk."""
    steps, others = [], []
    for want in wants:
        place = place_at(root, want.parts)
        found = await _in_editor(editor, place)
        if found is None and isinstance(place, Untitled):
            steps.append(BufferStep(place, None, want.before, 0, NOT_OPEN))
        elif (
            want.where == "disk"
            or found is None
            or (want.before is None and found.document is not None and not found.document.dirty)
        ):
            others.append(want)
        else:
            plan = partial(_plan, can_remove=editor.can_do("delete"))
            if (step := await anyio.to_thread.run_sync(plan, checkpoints, place, want, found)) is not None:
                steps.append(step)
            elif found.document is not None and not found.document.dirty:
                others.append(want)  # its permissions may have changed
    return steps, others


async def _in_editor(editor: Editor, place: Place) -> Held | None:
    """What the document of a file holds, None where the file is not open or the disk is right."""
    if not editor.can_edit or await editor.document(place.path) is None:
        return None
    try:
        found = await held(editor, place)
    except WorkspaceError:
        return None
    return found if found.document is not None else None


def _plan(
    checkpoints: Checkpoints, place: Place, want: Wanted, found: Held, *, can_remove: bool
) -> BufferStep | None:
    now, to = state_of(found.snapshot), want.before
    if same_content(now, to):
        return None
    data = b"" if to is None else checkpoints.content(to)
    conflict = None
    if not want.expects(now):
        conflict = CHANGED_SINCE
    elif not want.is_whole:
        conflict = CHANGED_BETWEEN
    elif to is None and want.where != "buffer" and place.path.is_absolute() and place.path.exists():
        if can_remove:
            return BufferStep(place, found.snapshot, None, want.made, found=found, removes=True)
        conflict = UNSAVED
    elif data is None:
        conflict = NOT_KEPT
    text = ""
    if conflict is None and data is not None:
        try:
            text = found.shown(decode(data).text)
        except BinaryContent:
            conflict = CHANGED_SINCE
    state = to and FileState(to.digest)
    return BufferStep(place, found.snapshot, state, 0, conflict, found=found, text=text)


async def remove_in_editor(editor: Editor, steps: Sequence[Restoration], *, is_alone: bool = True) -> None:
    """Have files that a rewind takes away, and that are open, removed in the editor, or renamed back there.

    What it does not do is left for the disk, and where it `is_alone` no more: the editor goes by names, and a
    command beside it could put a link in the place of a folder. Raises WorkspaceError where the disk would
    not do: for an unsaved version of the file.
    """
    came_from = {
        step.to.digest: step.place
        for step in steps
        if step.now is None and step.to is not None and not step.to.is_link and not step.is_beside
    }
    for step in steps:
        if step.is_beside or step.to is not None or await editor.document(step.place.path) is None:
            continue
        state, is_unsaved = state_of(step.now), isinstance(step, BufferStep)
        if not is_alone and not is_unsaved:
            continue
        source = came_from.pop(state.digest, None) if state is not None and not is_unsaved else None
        async with alone(step.place.path, *([source.path] if source is not None else [])):
            if not is_unsaved and not same_content(await _on_disk(step.place), state):
                continue
            done = source is not None and await _renamed(editor, step.place, source)
            if not done and editor.can_do("delete"):
                done = await editor.do(FileOperation("delete", step.place.path, _LABEL))
        if not done and is_unsaved:
            raise WorkspaceError("stale", f"'{step.place.shown}' could not be removed in the editor.")


async def _renamed(editor: Editor, place: Place, source: Place) -> bool:
    if not editor.can_do("rename"):
        return False
    try:
        await anyio.to_thread.run_sync(files.make_folders, source)  # not all editors do
    except OSError:  # which whoever brings it back on the disk will say
        return False
    return await editor.do(FileOperation("rename", place.path, _LABEL, source.path))


async def _on_disk(place: Place) -> FileState | None:
    return state_of(await anyio.to_thread.run_sync(files.read_entry, place, abandon_on_cancel=True))


class Buffers:
    """The documents that one rewind brings back: all of them, or none."""

    def __init__(self, editor: Editor, checkpoints: Checkpoints, rewind_id: str) -> None:
        self._editor = editor
        self._checkpoints = checkpoints
        self._rewind_id = rewind_id
        self._done: list[tuple[BufferStep, str]] = []  # and the text that the editor has since

    async def restore(self, steps: Sequence[BufferStep]) -> None:
        """Do it. Raises WorkspaceError or OSError; then `take_back` is to be called."""
        for step in steps:
            async with alone(step.place.path):
                await self._restore(step)

    async def _restore(self, step: BufferStep) -> None:
        assert step.found.document is not None
        before = step.found.document.text
        change = step.change(self._rewind_id)
        await self._record([change], step.now)
        outcome = await self._editor.apply(BufferEdit(step.place.path, before, step.text, _LABEL))
        if not isinstance(outcome, Applied):
            await self._record([change.reversed])
            raise WorkspaceError("stale", f"'{step.place.shown}' could not be changed in the editor.")
        self._done.append((step, outcome.now))
        really = state_of(Snapshot(step.found.saved(outcome.text), step.now.status)) if step.now else None
        if really is not None and not same_content(really, change.after):
            await self._record([replace(change, before=change.after, after=really)])

    async def take_back(self) -> None:
        """Undo what was done. One that cannot be undone is the user's by now, and stays."""
        for step, text in reversed(self._done):
            assert step.found.document is not None
            edit = BufferEdit(step.place.path, text, step.found.document.text, _LABEL)
            async with alone(step.place.path):
                outcome = await self._editor.apply(edit)
            if isinstance(outcome, Applied):
                try:
                    await self._record([step.change(self._rewind_id).reversed])
                except OSError as error:
                    log.warning("that a rewind was taken back could not be noted: %s", error)
            else:
                log.warning("a document that a rewind has changed could not be brought back")
        self._done.clear()

    async def _record(self, changes: Sequence[Change], now: Snapshot | None = None) -> None:
        contents = {}
        if now is not None and (state := state_of(now)) is not None:
            contents[state.digest] = now.data
        await anyio.to_thread.run_sync(partial(self._checkpoints.record, changes, contents))
