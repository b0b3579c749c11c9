"""Bringing files back to what they were before a session changed them.

All files are looked at first. One that somebody else has changed since is a conflict and stays as it is; the
others are brought back together: what is about to be done is on the disk before it begins, and whoever finds
that later without its end takes back what was done of it.
"""

import logging
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agentd.workspace import files
from agentd.workspace.checkpoints import Change, Checkpoints, FileState, Parts, same_content, state_of
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.write_notes import WriteNotes

log = logging.getLogger(__name__)

CHANGED_SINCE = "It was changed by somebody else since, and stays as it is."
CHANGED_BETWEEN = (
    "Somebody else changed it between changes of this session, which going back would undo as well; it stays "
    "as it is."
)
UNSAVED = "It has unsaved changes in the editor; save or discard them first."
NOT_TAKEN_BACK = (
    "It failed, and not all that it had done could be taken back; that is tried again when the session is "
    "next opened or rewound."
)
NOT_KEPT = "Its content from before is not kept any more."


@dataclass(frozen=True)
class Wanted:
    """A file that is to be as it was `before` a row of changes, of which the last one left `after`.

    `expected` are the states in which it is as the session left it. `is_whole` is false where somebody else
    changed it in between. `made` is how many folders were made for it.
    """

    parts: Parts
    before: FileState | None
    after: FileState | None
    expected: tuple[FileState | None, ...]
    is_whole: bool
    made: int


@dataclass(frozen=True)
class Restoration:
    """What is to be done to one file, from its state `now` to the one it had, or why not."""

    place: Place
    now: Snapshot | None
    to: FileState | None
    made: int = 0
    conflict: str | None = None

    def change(self, rewind_id: str) -> Change:
        """It as a change of a rewind."""
        before = state_of(self.now)
        to = self.to
        if to is not None and to.mode is None and before is not None:
            to = FileState(to.digest, before.mode)
        return Change(rewind_id, self.place.parts, before, to, is_rewind=True, made=self.made)


def wanted(changes: Iterable[Change], prompts: Collection[str]) -> list[Wanted]:
    """The files that these prompts have changed, to be as they were before."""
    rows: dict[Parts, list[Change]] = {}
    for change in changes:
        is_first = not change.is_rewind and change.origin in prompts
        if change.parts in rows or is_first:
            rows.setdefault(change.parts, []).append(change)
    return [_wanted(row) for row in rows.values()]


def undone(changes: Iterable[Change], rewind_id: str) -> list[Wanted]:
    """The files that a rewind has changed, to be as they were before it."""
    rows: dict[Parts, list[Change]] = {}
    for change in changes:
        if change.is_rewind and change.origin == rewind_id:
            rows.setdefault(change.parts, []).append(change)
    return [_wanted(row) for row in rows.values()]


def _wanted(row: Sequence[Change]) -> Wanted:
    is_whole = all(
        # Where a kill prevented a change, the next one begins where that one began.
        same_content(change.before, last.after) or same_content(change.before, last.before)
        for last, change in pairwise(row)
    )
    made = max(change.made for change in row)
    return Wanted(row[0].parts, row[0].before, row[-1].after, (row[-1].after, row[-1].before), is_whole, made)


def plan(
    checkpoints: Checkpoints, root: Path, wants: Iterable[Wanted], dirty: Collection[Path]
) -> list[Restoration]:
    """What has to be done to files, and which stay. Those that are as they should be are left out. Blocks."""
    found = (_plan(checkpoints, root, want, dirty) for want in wants)
    return [each for each in found if each is not None]


def _plan(checkpoints: Checkpoints, root: Path, want: Wanted, dirty: Collection[Path]) -> Restoration | None:
    place = Place(root, want.parts, "/".join(want.parts))
    try:
        snapshot = files.read_if_present(place)
    except WorkspaceError as error:
        return Restoration(place, None, want.before, conflict=f"It cannot be looked at: {error}")
    now, to = state_of(snapshot), _target(want, snapshot)
    if same_content(now, to) and (to is None or now is None or to.mode in (None, now.mode)):
        return None
    conflict = None
    if not any(same_content(now, each) for each in want.expected):
        conflict = CHANGED_SINCE
    elif not want.is_whole:
        conflict = CHANGED_BETWEEN
    elif place.path in dirty:
        conflict = UNSAVED
    elif to is not None and checkpoints.content(to) is None:
        conflict = NOT_KEPT
    return Restoration(place, snapshot, to, want.made, conflict)


def _target(want: Wanted, now: Snapshot | None) -> FileState | None:
    """The state to bring a file back to. Permissions that only the user has changed since stay."""
    before, after = want.before, want.after
    if before is None or now is None:
        return before
    is_ours = after is not None and after.mode is not None and after.mode != before.mode
    return before if is_ours else FileState(before.digest)


def restore(
    checkpoints: Checkpoints, rewind_id: str, steps: Sequence[Restoration], notes: WriteNotes
) -> None:
    """Do it; all of it, or nothing. Blocks.

    What was begun stands on the disk until `Checkpoints.end_rewind`, which is for whoever has told of the
    rewind. Raises WorkspaceError or OSError; then the files are as they were.
    """
    changes = [step.change(rewind_id) for step in steps]
    contents = {
        change.before.digest: step.now.data
        for step, change in zip(steps, changes, strict=True)
        if step.now is not None and change.before is not None
    }
    checkpoints.begin_rewind(changes)
    try:
        checkpoints.record(changes, contents)
        for step, change in zip(steps, changes, strict=True):
            _bring(checkpoints, step.place, change.before, change.after, change.made, notes)
    except BaseException:
        try:
            take_back(checkpoints, steps[0].place.root, changes, notes)
        except (WorkspaceError, OSError) as error:
            raise WorkspaceError("storage", f"{NOT_TAKEN_BACK} ({error})") from error
        raise


def settle(checkpoints: Checkpoints, root: Path, told: Collection[str], notes: WriteNotes) -> None:
    """End a rewind in whose midst a daemon died: take it back, unless it is one of those that were told.

    Blocks. Raises WorkspaceError or OSError; then it is tried again another time.
    """
    changes = checkpoints.open_rewind()
    if not changes:
        return
    if changes[0].origin in told:
        checkpoints.end_rewind()
    else:
        log.warning("a rewind that was cut short is taken back")
        take_back(checkpoints, root, changes, notes)


def take_back(checkpoints: Checkpoints, root: Path, changes: Sequence[Change], notes: WriteNotes) -> None:
    """Bring files back to what they were before a rewind, as far as it has changed them.

    A file that is neither as it was nor as the rewind left it is somebody else's by now, and stays. Raises
    WorkspaceError or OSError when not all could be brought back.
    """
    failure: WorkspaceError | OSError | None = None
    reverse = []
    last = {change.parts: change for change in checkpoints.changes()}
    for change in reversed(changes):
        place = Place(root, change.parts, "/".join(change.parts))
        try:
            _take_back(checkpoints, place, change, notes)
        except (WorkspaceError, OSError) as error:
            log.warning("a file that a rewind has changed could not be brought back: %s", error)
            failure = failure or error
        if last.get(change.parts) == change:
            reverse.append(Change(change.origin, change.parts, change.after, change.before, is_rewind=True))
    if failure is not None:
        raise failure
    if reverse:
        checkpoints.record(reverse, {})
    checkpoints.end_rewind()


def _take_back(checkpoints: Checkpoints, place: Place, change: Change, notes: WriteNotes) -> None:
    now = state_of(files.read_if_present(place))
    if now == change.before:
        return
    if same_content(now, change.after) or same_content(now, change.before):
        _bring(checkpoints, place, now, change.before, change.made, notes)


def _bring(
    checkpoints: Checkpoints,
    place: Place,
    before: FileState | None,
    to: FileState | None,
    made: int,
    notes: WriteNotes,
) -> None:
    """Bring one file from a state to another. Raises WorkspaceError, `stale` where it is not in the first."""
    with files.changing(place):
        now = files.read_if_present(place)
        if not same_content(state_of(now), before):
            raise files.stale(place)
        if to is None:
            if now is not None:
                files.remove(place, now, notes)
                files.remove_folders(place, made)
            return
        if not same_content(before, to):
            data = checkpoints.content(to)
            if data is None:
                raise WorkspaceError("storage", f"'{place.shown}': {NOT_KEPT}")
            files.write(place, data, _made_writable(place, now), notes, to.mode)
        if now is not None and to.mode is not None:
            files.set_mode(place, to.mode)


def _made_writable(place: Place, now: Snapshot | None) -> Snapshot | None:
    """The file, made writable for its owner for as long as this takes."""
    if now is None or now.status.st_mode & 0o222:
        return now
    files.set_mode(place, stat.S_IMODE(now.status.st_mode) | stat.S_IWUSR)
    return files.read_if_present(place)
