"""Bringing files back to what they were before a session changed them.

All files are looked at first. One that somebody else has changed since is a conflict and stays as it is; the
others are brought back together: what is about to be done is on the disk before it begins, and whoever finds
that later without its end takes back what was done of it.

Files that were made go first, with their folders, since what was there before may have stood in their place.
"""

import logging
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentd.workspace import files
from agentd.workspace.beneath import directory
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.file_states import Change, FileState, Parts, same_content, state_of
from agentd.workspace.files import Snapshot
from agentd.workspace.paths import Place, WorkspaceError, shown
from agentd.workspace.room import clear_room, room_for
from agentd.workspace.wants import Wanted
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
NOT_OPEN = "It is no file, and not open in the editor any more."
NOT_KEPT = "Its content from before is not kept."
IN_THE_WAY = "'{}' stands in its place, and stays as it is."

_OTHERS = ("stale", "not_a_file", "outside")
"""How a file refuses that is somebody else's by now: that is no failure of ours."""


@dataclass(frozen=True)
class Restoration:
    """What is to be done to one file, from its state `now` to the one it had, or why not.

    `made` is how many of its folders go with it, or come with it. `is_beside`: its open document has another
    text, and is another matter.
    """

    place: Place
    now: Snapshot | None
    to: FileState | None
    made: int = 0
    conflict: str | None = None
    is_beside: bool = False

    @property
    def in_buffer(self) -> bool:
        """Whether it is done in the editor, and nothing on the disk is to follow."""
        return False

    def change(self, rewind_id: str) -> Change:
        """It as a change of a rewind."""
        before = state_of(self.now)
        to = self.to
        if to is not None and to.mode is None and before is not None:
            to = replace(to, mode=before.mode)
        change = Change(rewind_id, self.place.parts, before, to, is_rewind=True, made=self.made)
        return replace(change, in_buffer=self.in_buffer, below=self.is_beside)


def plan(
    checkpoints: Checkpoints, root: Path, wants: Iterable[Wanted], dirty: Collection[Path]
) -> list[Restoration]:
    """What has to be done to files, and which stay. Those that are as they should be are left out. Blocks.

    Raises WorkspaceError where the workspace folder cannot be opened.
    """
    planned = (_plan(checkpoints, root, want, dirty) for want in wants)
    found = [each for each in planned if each is not None]
    gone = {each.place.parts for each in found if each.to is None and each.conflict is None}
    try:
        with directory(root, ()) as root_fd:
            return [_with_room(root_fd, each, gone) for each in found]
    except OSError as error:
        reason = f"the workspace folder cannot be opened: {error.strerror}."
        raise WorkspaceError("storage", reason) from error


def _plan(checkpoints: Checkpoints, root: Path, want: Wanted, dirty: Collection[Path]) -> Restoration | None:
    place = Place(root, want.parts, "/".join(want.parts))
    try:
        snapshot = files.read_entry(place)
    except WorkspaceError as error:
        return Restoration(place, None, want.before, conflict=f"It cannot be looked at: {error}")
    now, to = state_of(snapshot), _target(want, snapshot)
    if same_content(now, to) and (to is None or now is None or to.mode in (None, now.mode)):
        return None
    conflict = None
    if not want.expects(now):
        conflict = CHANGED_SINCE
    elif not want.is_whole:
        conflict = CHANGED_BETWEEN
    elif place.path in dirty and want.where != "disk":
        conflict = UNSAVED
    elif to is not None and not same_content(now, to) and checkpoints.content(to) is None:
        conflict = NOT_KEPT
    return Restoration(place, snapshot, to, want.made, conflict, want.where == "disk")


def _target(want: Wanted, now: Snapshot | None) -> FileState | None:
    """The state to bring a file back to. Permissions that only the user has changed since stay."""
    before, after = want.before, want.after
    if before is None or now is None or before.is_link or stat.S_ISLNK(now.status.st_mode):
        return before
    is_ours = after is not None and after.mode is not None and after.mode != before.mode
    return before if is_ours else replace(before, mode=None)


def _with_room(root_fd: int, step: Restoration, gone: Collection[Parts]) -> Restoration:
    """The same, in the knowledge of what stands where the file is to come back once `gone` are gone."""
    if step.conflict is not None or step.to is None or step.now is not None:
        return step
    missing, obstacle = room_for(root_fd, step.place.parts, gone)
    if obstacle is None:
        return replace(step, made=missing)
    return replace(step, conflict=IN_THE_WAY.format(shown("/".join(obstacle))))


def begin(checkpoints: Checkpoints, rewind_id: str, steps: Sequence[Restoration]) -> None:
    """Have on the disk what is going to be done, so that whoever finds it without its end takes it back.

    It stands there until `Checkpoints.end_rewind`, which is for whoever has told of the rewind. Blocks.
    Raises OSError; then nothing is begun.
    """
    changes = [step.change(rewind_id) for step in steps]
    contents = {
        change.before.digest: step.now.data
        for step, change in zip(steps, changes, strict=True)
        if step.now is not None and change.before is not None
    }
    checkpoints.begin_rewind(changes)
    try:
        checkpoints.record(changes, contents, is_owed=True)
    except OSError:
        checkpoints.end_rewind()
        raise


def restore(
    checkpoints: Checkpoints, rewind_id: str, steps: Sequence[Restoration], notes: WriteNotes
) -> None:
    """Do it; all of it, or nothing. Blocks. Raises as `begin` and `finish`."""
    begin(checkpoints, rewind_id, steps)
    finish(checkpoints, rewind_id, steps, notes)


def finish(checkpoints: Checkpoints, rewind_id: str, steps: Sequence[Restoration], notes: WriteNotes) -> None:
    """Do what was begun; all of it, or nothing. What the editor has done of it by then is done. Blocks.

    Raises WorkspaceError or OSError; then the files are as they were.
    """
    steps = [*(s for s in steps if s.to is None), *(s for s in steps if s.to is not None)]
    changes = [step.change(rewind_id) for step in steps]
    root = steps[0].place.root
    try:
        removals = [change for change in changes if change.after is None]
        renames = _renames(changes)
        renamed = {removal.parts for removal, _ in renames}
        for change in removals:
            if change.parts not in renamed:
                _bring(checkpoints, root, change.parts, change.before, None, notes)
        _remove_folders(root, (change for change in removals if change.parts not in renamed))
        _rename_back(root, renames)
        for change in removals:
            _bring(checkpoints, root, change.parts, change.before, None, notes)
        _remove_folders(root, removals)
        for change in changes[len(removals) :]:
            if change.before is None:
                clear_room(root, change.parts)
            _bring(checkpoints, root, change.parts, change.before, change.after, notes)
    except BaseException:
        try:
            take_back(checkpoints, root, changes, notes)
        except (WorkspaceError, OSError) as error:
            raise WorkspaceError("storage", f"{NOT_TAKEN_BACK} ({error})") from error
        raise


def _renames(changes: Sequence[Change]) -> list[tuple[Change, Change]]:
    """Files that go and files that come back under another name with the same content, in pairs."""
    free: dict[str, list[Change]] = {}
    for change in changes:
        if change.after is None and change.before is not None and not change.before.is_link:
            free.setdefault(change.before.digest, []).append(change)
    pairs = []
    for change in changes:
        comes = change.after if change.before is None else None
        if comes is not None and not comes.is_link and (sources := free.get(comes.digest)):
            pairs.append((sources.pop(0), change))
    return pairs


def _rename_back(root: Path, pairs: Iterable[tuple[Change, Change]]) -> None:
    """Give files their old names, so that all comes back that is no content: owner, attributes, hard links.

    Where that cannot be done, whoever goes on removes the one and makes the other.
    """
    for removal, target in pairs:
        place, old = (Place(root, each.parts, "/".join(each.parts)) for each in (removal, target))
        try:
            with files.changing(place):
                now = files.read_entry(place)
                if now is None or target.after is None or not same_content(state_of(now), removal.before):
                    continue
                if not _is_another(now, target.after):  # under its other names it stays what it is
                    clear_room(root, target.parts)
                    files.move(place, old, now)
        except (WorkspaceError, OSError) as error:
            log.info("a file could not be renamed back: %s", error)


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
    created = [change for change in changes if change.before is None]
    others = [change for change in changes if change.before is not None]
    _rename_back(root, _renames([change.reversed for change in changes]))
    failures = [_take_back(checkpoints, root, change, notes) for change in created]
    _remove_folders(root, created)
    failures += [_take_back(checkpoints, root, change, notes) for change in others]
    last = {change.parts: change for change in checkpoints.changes()}
    for failure in failures:
        if failure is not None:
            raise failure
    if reverse := [change.reversed for change in changes if last.get(change.parts) == change]:
        checkpoints.record(reverse, {})
    checkpoints.end_rewind()


def _take_back(
    checkpoints: Checkpoints, root: Path, change: Change, notes: WriteNotes
) -> WorkspaceError | OSError | None:
    """Bring one file back; gives why it could not be."""
    try:
        now = state_of(files.read_entry(Place(root, change.parts, "/".join(change.parts))))
        if now != change.before and (same_content(now, change.after) or same_content(now, change.before)):
            _bring(checkpoints, root, change.parts, now, change.before, notes)
    except (WorkspaceError, OSError) as error:
        log.warning("a file that a rewind has changed could not be brought back: %s", error)
        is_anothers = isinstance(error, WorkspaceError) and error.kind in _OTHERS
        return None if is_anothers else error
    return None


def _remove_folders(root: Path, removed: Iterable[Change]) -> None:
    """Remove the folders that were made for files which are gone, as far as they are empty."""
    for change in sorted(removed, key=lambda change: len(change.parts), reverse=True):
        files.remove_folders(Place(root, change.parts, "/".join(change.parts)), change.made)


def _bring(
    checkpoints: Checkpoints,
    root: Path,
    parts: Parts,
    before: FileState | None,
    to: FileState | None,
    notes: WriteNotes,
) -> None:
    """Bring one file from a state to another. Raises WorkspaceError, `stale` where it is not in the first.

    A file with two names is brought back under both by the first.
    """
    place = Place(root, parts, "/".join(parts))
    with files.changing(place):
        now = files.read_entry(place)
        state = state_of(now)
        if not same_content(state, to):
            if not same_content(state, before):
                raise files.stale(place)
            _replace(checkpoints, place, now, to, notes)
        if to is not None and to.mode is not None and not to.is_link and now is not None:
            files.set_mode(place, to.mode)


def _replace(
    checkpoints: Checkpoints, place: Place, now: Snapshot | None, to: FileState | None, notes: WriteNotes
) -> None:
    """Have a file, a link or nothing in the place of another."""
    data = checkpoints.content(to) if to is not None else b""
    if data is None:
        raise WorkspaceError("storage", f"'{place.shown}': {NOT_KEPT}")
    mode = to.mode if to is not None else None
    if now is not None and (to is None or _is_another(now, to)):
        files.remove(place, now, notes)
        mode = (
            stat.S_IMODE(now.status.st_mode)
            if mode is None and not stat.S_ISLNK(now.status.st_mode)
            else mode
        )
        now = None
    if to is None:
        return
    if to.is_link:
        files.write_link(place, data)
    else:
        files.write(place, data, _made_writable(place, now), notes, mode)


def _is_another(now: Snapshot, to: FileState) -> bool:
    """Whether a file is not to be written to, but to make room for another one.

    A file with several names is written to only where it had that content itself: under its other names it
    may be what it should be.
    """
    if to.is_link or stat.S_ISLNK(now.status.st_mode):
        return True
    return now.status.st_nlink > 1 and now.status.st_ino != to.inode


def _made_writable(place: Place, now: Snapshot | None) -> Snapshot | None:
    """The file, made writable for its owner for as long as this takes."""
    if now is None or now.status.st_mode & 0o222:
        return now
    files.set_mode(place, stat.S_IMODE(now.status.st_mode) | stat.S_IWUSR)
    return files.read_entry(place)
