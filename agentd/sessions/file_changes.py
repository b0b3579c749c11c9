"""What a session's prompts did to files: their diff, and what a file was before."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from agentd.protocol.errors import RpcError
from agentd.protocol.methods import (
    DiffFile,
    SessionDiffResult,
    SessionOriginalParams,
    SessionOriginalResult,
)
from agentd.sessions.diff_steps import steps_of
from agentd.sessions.rewinding import begun, place_of
from agentd.sessions.state import SessionState
from agentd.tools.diff import action_of, file_change
from agentd.workspace import files
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.file_states import Change, FileState, Parts, same_content
from agentd.workspace.paths import OutsideWorkspace, Place, WorkspaceError
from agentd.workspace.text import BinaryContent, decode, visible
from agentd.workspace.untitled import Untitled, place_at

_MOST_PATCH = 16 * 1024 * 1024
"""Characters of a whole diff; the files behind that are named without their patch."""


def diff(
    state: SessionState, checkpoints: Checkpoints, root: Path, prompt_id: str | None
) -> SessionDiffResult:
    """What a prompt, or all of the session, came to in the end. Blocks. Raises `RpcError`."""
    prompts = state.said_in(begun(state, prompt_id)) if prompt_id is not None else None
    patches: list[str] = []
    told: list[DiffFile] = []
    room = _MOST_PATCH
    for parts, row in _net(_changes(checkpoints), prompts).items():
        place = place_at(root, parts)
        patch, file = _file(checkpoints, place, row[0].before, row[-1].after)
        if (steps := steps_of(checkpoints, place, row, room - len(patch))) is not None:
            file = file.model_copy(update={"steps": steps})
            room -= sum(len(step.patch) for step in steps)
        if len(patch) > room:
            patch = f"{_head(file, parts)}The diff of this file is left out: it would be too long.\n"
        room -= len(patch)
        patches.append(patch)
        told.append(file)
    return SessionDiffResult(patch="".join(patches), files=tuple(told))


def original(
    state: SessionState, checkpoints: Checkpoints, root: Path, params: SessionOriginalParams
) -> SessionOriginalResult:
    """A file as it was just before a prompt: as it is now where the session has not changed it since. Blocks.

    Raises `RpcError` promptNotFound, invalidParams, outsideWorkspace, storage, or unsupported for what is no
    text.
    """
    since = state.since(begun(state, params.prompt_id))
    changes = _changes(checkpoints)
    try:
        place = place_of(root, params.uri, {change.parts for change in changes})
        ours = [each for each in changes if each.parts == place.parts and each.origin in since]
        first = _shown([each for each in ours if each.origin == ours[0].origin])[0] if ours else None
        if first is None and isinstance(place, Untitled):
            reason = f"'{place.shown}' is no file: what it holds is in the editor."
            raise RpcError("unsupported", reason)
        if first is None:
            snapshot = files.read_if_present(place)
            return SessionOriginalResult(text=None if snapshot is None else _text(snapshot.data))
    except OutsideWorkspace as error:
        raise RpcError("outsideWorkspace", f"/uri: {error}") from error
    except WorkspaceError as error:
        raise RpcError("invalidParams", f"/uri: {error}") from error
    if first.before is None:
        return SessionOriginalResult(text=None)
    data = checkpoints.content(first.before)
    if data is None:
        raise RpcError("storage", f"What '{place.shown}' was before that prompt is not kept any more.")
    return SessionOriginalResult(text=_text(data))


def _changes(checkpoints: Checkpoints) -> Sequence[Change]:
    try:
        return checkpoints.changes()
    except OSError as error:
        raise RpcError("storage", f"What files were before cannot be read: {error.strerror}.") from error


def _net(changes: Iterable[Change], prompts: Collection[str] | None) -> dict[Parts, list[Change]]:
    """The changes of each file whose state before the first differs from that behind the last."""
    rows: dict[Parts, list[Change]] = {}
    for change in changes:
        if prompts is None or (change.origin in prompts and not change.is_rewind):
            rows.setdefault(change.parts, []).append(change)
    shown = {parts: _shown(row) for parts, row in sorted(rows.items())}
    return {parts: row for parts, row in shown.items() if _came_to_something(row[0].before, row[-1].after)}


def _came_to_something(before: FileState | None, after: FileState | None) -> bool:
    return not same_content(before, after) or _modes(before, after) != ""


def _shown(row: list[Change]) -> list[Change]:
    """Of a file's changes those that its user sees: what a command did below unsaved text is another row."""
    above = [change for change in row if not change.below]
    if not above or same_content(above[0].before, above[-1].after):
        return [change for change in row if not change.in_buffer] or row  # which a rewind may have ended
    return above


def _modes(before: FileState | None, after: FileState | None) -> str:
    """The lines of a patch that tell of other permissions, as git writes them."""
    if before is None or after is None or before.mode is None or after.mode in (None, before.mode):
        return ""
    return f"old mode {_mode(before)}\nnew mode {_mode(after)}\n"


def _mode(state: FileState) -> str:
    return f"{state.mode:o}" if state.is_link else f"100{state.mode or 0:03o}"


def _file(
    checkpoints: Checkpoints, place: Place, before: FileState | None, after: FileState | None
) -> tuple[str, DiffFile]:
    """The patch of one file, and how much that is."""
    file = DiffFile(
        uri=place.uri, action=action_of(before is not None, after is not None), additions=0, deletions=0
    )
    head = ""
    if modes := _modes(before, after):
        head = f"diff --git a/{place.shown} b/{place.shown}\n{modes}"
    if same_content(before, after):
        return head, file
    old = None if before is None else checkpoints.content(before)
    new = None if after is None else checkpoints.content(after)
    if (before is not None and old is None) or (after is not None and new is None):
        return f"{head}{_head(file, place.parts)}The diff of this file is not kept any more.\n", file
    try:
        change = file_change(place, old, new)
    except BinaryContent:
        return f"{head}{_head(file, place.parts)}Binary files differ\n", file
    except WorkspaceError:
        return f"{head}{_head(file, place.parts)}The diff of this file is left out: it is too long.\n", file
    counts = {"additions": change.additions, "deletions": change.deletions}
    return head + change.patch, file.model_copy(update=counts)


def _head(file: DiffFile, parts: Parts) -> str:
    name = visible("/".join(parts).removeprefix("/"))
    old = "/dev/null" if file.action == "created" else f"a/{name}"
    new = "/dev/null" if file.action == "deleted" else f"b/{name}"
    return f"--- {old}\n+++ {new}\n"


def _text(data: bytes) -> str:
    try:
        return visible(decode(data).text)
    except BinaryContent as error:
        raise RpcError("unsupported", "The file is binary, so it has no text.") from error
