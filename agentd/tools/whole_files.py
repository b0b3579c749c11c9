"""Removing a file and giving it another name: what the two tools have in common.

A file that is open in the editor is removed or renamed there, where the editor does that, so that its undo
and its windows follow; what is unsaved in it is saved first, as before a command. Where the editor does not
do it, or the disk does not show it in time, it is done on the disk. Either way it is kept first, once, so
that a rewind finds one change however it was made.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio.lowlevel
import anyio.to_thread
from anyio import CancelScope

from agentd.protocol.messages import FileChange
from agentd.tools.base import ToolContext
from agentd.tools.diff import file_change
from agentd.tools.keeping import kept
from agentd.tools.targets import (
    check_not_late,
    in_thread,
    is_left_to_editor,
    locate,
    place_of,
    unsaved,
)
from agentd.workspace import files
from agentd.workspace.alone import alone
from agentd.workspace.editor import FileOperation
from agentd.workspace.files import Snapshot
from agentd.workspace.held import as_saved
from agentd.workspace.names import MissingFile, check_new
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.seen import digest
from agentd.workspace.text import BinaryContent, decode
from agentd.workspace.untitled import Untitled, is_untitled


async def named_file(context: ToolContext, given: str, command: str) -> Place:
    """The file that is meant: a plain file on the disk, named by its own name.

    `command` does to a folder what is meant to be done. Raises WorkspaceError.
    """
    place = (await locate(context, given)).place
    if isinstance(place, Untitled):
        reason = f"'{place.shown}' is no file yet. Use edit_file and write_file, or ask the user to close it."
        raise WorkspaceError("not_a_file", reason)
    await in_thread(_check_no_link, context, given)
    if await in_thread(os.path.isdir, place.path):
        reason = f"'{place.shown}' is a folder, and this tool takes one file. Use bash with {command}."
        raise WorkspaceError("not_a_file", reason)
    return place


async def free_place(context: ToolContext, given: str) -> Place:
    """A place where nothing is. Raises WorkspaceError."""
    if is_untitled(given):
        raise WorkspaceError("not_a_file", f"'{shown(given)}' is a name for no file.")
    place = await place_of(context, given)
    check_new(place)
    await in_thread(_check_no_link, context, given)
    await _check_free(context, place)
    return place


def _check_no_link(context: ToolContext, given: str) -> None:
    """Refuse a link: what is done to it would be done to what it leads to. Blocks."""
    if os.path.islink(os.path.normpath(context.root / given)):
        raise WorkspaceError(
            "not_a_file",
            f"'{shown(given)}' is a link, which this tool neither follows nor changes. Use bash for it.",
        )


async def _check_free(context: ToolContext, place: Place) -> None:
    check_not_late(context, place)
    if await in_thread(os.path.isdir, place.path):
        raise WorkspaceError(
            "stale", f"'{place.shown}' is a folder. Give the whole new name, as '{place.shown}/name'."
        )
    document = await context.editor.document(place.path)
    if await in_thread(os.path.lexists, place.path) or (document is not None and document.text):
        raise files.taken(place)


async def content_of(context: ToolContext, place: Place) -> bytes:
    """What the file holds, or would once it is saved. Raises WorkspaceError."""
    document = await unsaved(context, place)
    try:
        data = (await in_thread(files.read, place)).data
    except MissingFile as error:
        if document is None:
            raise
        reason = f"'{place.shown}' is only in the editor so far, so there is no file. Ask the user."
        raise WorkspaceError("not_found", reason) from error
    try:
        return data if document is None else as_saved(decode(data), document).encode()
    except BinaryContent:
        return data


async def save_before(context: ToolContext, place: Place, what: str) -> None:
    """Have what is unsaved in the file saved before it is removed or moved. Raises WorkspaceError."""
    if not await _is_unsaved(context, place):
        return
    wish = f"Save it before it is {what}:"
    failed = dict((await context.editor.save([place.path], wish)).failed)
    if await _is_unsaved(context, place):
        raise _unsaved(place, what, failed.get(place.path, ""))


async def _is_unsaved(context: ToolContext, place: Place) -> bool:
    return context.editor.is_unsaved(place.path) or await unsaved(context, place) is not None


def _unsaved(place: Place, what: str, why: str = "") -> WorkspaceError:
    failure = f" ({why})" if why else ""
    return WorkspaceError(
        "stale",
        f"'{place.shown}' was not {what}: the user's editor has changes of it that are not saved{failure}. "
        "Ask the user to save or discard them.",
    )


async def remove(context: ToolContext, place: Place, approved: bytes, label: str) -> None:
    """Remove the file, which has this content still. Raises WorkspaceError; then it is there."""
    async with _at_once(place):
        snapshot = await _as_approved(context, place, approved, "deleted")
        async with kept(context, place, snapshot, None):
            if not await _in_editor(context, FileOperation("delete", place.path, label)):
                await anyio.to_thread.run_sync(partial(_remove, context, place, snapshot))
    context.seen.forget([place.path])


def _remove(context: ToolContext, place: Place, snapshot: Snapshot) -> None:
    with files.changing(place):
        try:
            files.remove(place, snapshot, context.write_notes)
        except MissingFile:  # the editor was late, or somebody else quicker: it is gone
            return


@asynccontextmanager
async def _at_once(*places: Place) -> AsyncIterator[None]:
    """Do it alone, and whole: a cancel that comes once it has begun waits for it."""
    async with alone(*(place.path for place in places)):
        await anyio.lowlevel.checkpoint_if_cancelled()
        with CancelScope(shield=True):
            yield


async def move(context: ToolContext, place: Place, target: Place, label: str) -> None:
    """Give the file another name. Raises WorkspaceError; then it has its old one."""
    async with _at_once(place, target):
        snapshot = await _as_approved(context, place, None, "moved")
        await _check_free(context, target)
        is_seen = context.seen.is_current(place.path, snapshot.data)
        async with kept(context, target, None, snapshot.data), kept(context, place, snapshot, None):
            await _move(context, place, target, snapshot, label)
        moved = await in_thread(files.read_if_present, target)
        if moved is not None and moved.data != snapshot.data:  # the editor has written it anew
            async with kept(context, target, Snapshot(snapshot.data, moved.status), moved.data):
                pass
    context.seen.forget([place.path])
    if is_seen and moved is not None:
        context.seen.note(target.path, digest(moved.data))


async def _move(context: ToolContext, place: Place, target: Place, snapshot: Snapshot, label: str) -> None:
    operation = FileOperation("rename", place.path, label, target.path)
    made = 0
    try:
        if await _can_be_left_to_editor(context, operation):
            made = await anyio.to_thread.run_sync(files.make_folders, target)  # not all editors do
            if await context.editor.do(operation):
                return
        await anyio.to_thread.run_sync(partial(_move_on_disk, place, target, snapshot))
    except BaseException:
        files.remove_folders(target, made)
        raise


def _move_on_disk(place: Place, target: Place, snapshot: Snapshot) -> None:
    with files.changing(place):
        files.move(place, target, snapshot)


async def _as_approved(context: ToolContext, place: Place, approved: bytes | None, what: str) -> Snapshot:
    """The file, saved and with the content that was approved; None where any is. Raises WorkspaceError."""
    if await unsaved(context, place) is not None:
        raise _unsaved(place, what)
    snapshot = await in_thread(files.read, place)
    if approved is not None and snapshot.data != approved:
        raise files.stale(place)
    return snapshot


async def _can_be_left_to_editor(context: ToolContext, operation: FileOperation) -> bool:
    is_open = await context.editor.document(operation.path) is not None
    return is_open and is_left_to_editor(context, operation.kind)


async def _in_editor(context: ToolContext, operation: FileOperation) -> bool:
    return await _can_be_left_to_editor(context, operation) and await context.editor.do(operation)


def told_change(place: Place, before: bytes | None, after: bytes | None) -> FileChange:
    """What a change of the whole file comes to, also where its text cannot be shown."""
    try:
        return file_change(place, before, after)
    except BinaryContent:
        said = "Binary files differ\n"
    except WorkspaceError:
        said = "The text is left out: it would be too long.\n"
    heads: Sequence[str] = (
        f"--- {'/dev/null' if before is None else f'a/{place.shown}'}\n",
        f"+++ {'/dev/null' if after is None else f'b/{place.shown}'}\n",
    )
    return FileChange(
        uri=place.uri,
        action="created" if before is None else "deleted",
        patch="".join([*heads, said]),
        additions=0,
        deletions=0,
    )
