"""Changing one file: prepared against what the model has seen, applied to that same content only.

Between preparing and running lies the user's answer, which may take minutes. So the content is looked at
again when the change runs, under the file's lock; what the user approved is what is written, or nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from agentd.protocol.messages import EditDetails, EditSubject, FileChange
from agentd.tools.base import Action, ToolContext, ToolResult
from agentd.tools.diff import file_change
from agentd.tools.targets import holds_secrets, in_thread, unsaved
from agentd.workspace import files
from agentd.workspace.files import Snapshot
from agentd.workspace.guarded import REPOSITORIES, is_git_folder
from agentd.workspace.names import folded
from agentd.workspace.own_program import is_of_program
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.seen import SeenFiles, digest
from agentd.workspace.text import BinaryContent, Text, decode, lines_of


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
    before: Snapshot | None
    after: bytes
    revision: Revision
    change: FileChange


async def prepare_change(context: ToolContext, place: Place, revise: Revise, *, rebase: bool) -> Action:
    """The action that revises a file. Raises WorkspaceError when it cannot be done.

    `rebase`: when the file differs by then only through changes that this session made itself, revise the
    newer text instead of refusing.
    """
    await _refuse_unsaved(context, place)
    prepared = await in_thread(_prepare, place, revise, context.seen)
    apply = partial(_apply, place, revise, prepared, context, rebase)

    async def run() -> ToolResult:
        try:
            await _refuse_unsaved(context, place)
            # Not left alone when cancelled: a write that goes on after its call has ended would surprise.
            done = await anyio.to_thread.run_sync(apply)
        except WorkspaceError as error:
            return ToolResult.error(str(error))
        if done.after == _content(done.before):
            return ToolResult.text(f"'{place.shown}' already has this content. Nothing was written.")
        return ToolResult.text(_told(place, done), EditDetails(files=(done.change,)))

    guarded = await in_thread(_is_guarded, place)
    subject = EditSubject(uri=place.uri, patch=prepared.change.patch)
    return Action(run, subject, secret=holds_secrets(place) or guarded)


async def _refuse_unsaved(context: ToolContext, place: Place) -> None:
    if await unsaved(context, place) is not None:
        raise WorkspaceError("stale", f"Save or close {shown(place.given)} first.")


def _prepare(place: Place, revise: Revise, seen: SeenFiles) -> _Prepared:
    before = files.read_if_present(place)
    old = None if before is None else _present_text(place, before, seen)
    revision = revise(old)
    after = (old or Text("")).with_text(revision.text).encode()
    data = None if before is None else before.data
    return _Prepared(before, after, revision, file_change(place, data, after))


def _present_text(place: Place, before: Snapshot, seen: SeenFiles) -> Text:
    """The text to change, when it is one that may be changed."""
    try:
        text = decode(before.data)
    except BinaryContent as error:
        raise WorkspaceError(
            "binary", f"'{place.shown}' is a binary file, which these tools do not change. Use bash for it."
        ) from error
    if not seen.knows(place.path):
        raise WorkspaceError(
            "unseen",
            f"'{place.shown}' exists and was not read in this session. Read it with read_file first, then "
            "change it.",
        )
    if not seen.is_current(place.path, before.data):
        raise files.stale(place)
    files.check_writable(place, before.status)
    return text


def _apply(
    place: Place, revise: Revise, prepared: _Prepared, context: ToolContext, rebase: bool
) -> _Prepared:
    seen = context.seen
    with files.changing(place):
        now = files.read_if_present(place)
        if _content(now) != _content(prepared.before):
            if not rebase or now is None or not seen.is_current(place.path, now.data):
                raise files.stale(place)
            prepared = _prepare(place, revise, seen)
            now = prepared.before
        if prepared.after != _content(now):
            with context.checkpoint.changing(place, now, prepared.after):
                files.write(place, prepared.after, now, context.write_notes)
        seen.note(place.path, digest(prepared.after))
    return prepared


def _content(snapshot: Snapshot | None) -> bytes | None:
    return None if snapshot is None else snapshot.data


def _told(place: Place, done: _Prepared) -> str:
    verb, detail = done.revision.verb, done.revision.detail
    if done.before is None:
        count = len(lines_of(done.revision.text))
        verb, detail = "Created", f"{count} line{'' if count == 1 else 's'}"
    counts = f"+{done.change.additions} -{done.change.deletions}"
    return f"{verb} {place.shown} ({f'{detail}, {counts}' if detail else counts})."


def _is_guarded(place: Place) -> bool:
    """Whether a change is asked about as that of a secret is. Blocks.

    Repositories' hooks and settings run as commands, ours say how we work, and our own program is what asks.
    """
    guarded = {*REPOSITORIES, ".agentd"}
    if any(folded(part) in guarded for part in place.parts) or is_of_program(place.path):
        return True
    return any(is_git_folder(place.root.joinpath(*place.parts[:end])) for end in range(len(place.parts)))
