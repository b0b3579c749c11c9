"""What a session's changes of files come to: what each was before them, and where the session left it.

A file that is open in the editor may be changed in both places by one prompt: the document by an edit, which
the user has not saved, and the file by a command. Then there are two rows of changes, each of them a chain.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from agentd.workspace.file_states import Change, FileState, Parts, same_content

Where = Literal["either", "buffer", "disk"]
Known = tuple[str, bool] | None
"""The content of a file or of a link; None where there was neither."""


@dataclass(frozen=True)
class Wanted:
    """A file that is to be as it was `before` a row of changes, of which the last one left `after`.

    `expected` are the states in which it is as the session left it. `is_whole` is false where somebody else
    changed it in between. `made` is how many folders were made for it.

    `where` tells which of the two is meant where the session has changed both a file and, with another text,
    its open document.
    """

    parts: Parts
    before: FileState | None
    after: FileState | None
    expected: tuple[FileState | None, ...]
    is_whole: bool
    made: int
    where: Where = "either"
    in_buffer: bool = False
    """Whether one of the changes was made in the editor."""
    known: frozenset[Known] = frozenset()
    """All contents that the changes began or ended with."""

    def knows(self, now: FileState | None) -> bool:
        """Whether it is as the session left it once, or found it."""
        return _key(now) in self.known

    def expects(self, now: FileState | None) -> bool:
        """Whether it is as the session left it."""
        return any(same_content(now, each) for each in self.expected)


def wanted(changes: Iterable[Change], since: Collection[str]) -> list[Wanted]:
    """The files that these prompts and rewinds have changed, to be as they were before."""
    rows: dict[Parts, list[Change]] = {}
    for change in changes:
        if change.parts in rows or change.origin in since:
            rows.setdefault(change.parts, []).append(change)
    return [want for row in rows.values() for want in _wants(row)]


def undone(changes: Iterable[Change], rewind_id: str) -> list[Wanted]:
    """The files that a rewind has changed, to be as they were before it."""
    rows: dict[Parts, list[Change]] = {}
    for change in changes:
        if change.is_rewind and change.origin == rewind_id:
            rows.setdefault(change.parts, []).append(change)
    return [want for row in rows.values() for want in _wants(row)]


def _wants(row: Sequence[Change]) -> Iterator[Wanted]:
    """What the changes of one file come to: of its document and of the file apart, where each is a row."""
    want = _wanted(row)
    kinds: dict[bool, Where] = {True: "buffer", False: "disk"}
    apart = [replace(_wanted(rows), where=kinds[each]) for each in kinds if (rows := _of_kind(row, each))]
    if len(apart) == 1 or not want.is_whole:
        yield want
    elif _is_back_in_editor(row):  # what the file was meanwhile is the user's to save, or to throw away
        yield replace(want, expected=tuple(state for each in row for state in (each.before, each.after)))
    elif want.before is None and _is_chain(row):
        yield want  # what was made goes with its document
    else:
        yield from (replace(each, before=_first_state(row, each.where), is_whole=True) for each in apart)


def _of_kind(row: Sequence[Change], in_buffer: bool) -> list[Change]:
    return [change for change in row if change.in_buffer is in_buffer]


def _is_back_in_editor(row: Sequence[Change]) -> bool:
    """Whether a rewind has brought the document back to what both were before all of this."""
    first, last = row[0].before, row[-1]
    both: tuple[Where, Where] = ("buffer", "disk")
    is_back = last.is_rewind and last.in_buffer and same_content(last.after, first)
    return is_back and all(same_content(_first_state(row, where), first) for where in both)


def _is_chain(row: Sequence[Change]) -> bool:
    """Whether each change begins where the one before ended: the document was saved or loaded in between."""
    return all(
        same_content(change.before, last.after)
        # Where a kill prevented a change, the next one begins where that one began.
        or (same_content(change.before, last.before) and change.in_buffer is last.in_buffer)
        for last, change in pairwise(row)
    )


def _first_state(row: Sequence[Change], where: Where) -> FileState | None:
    """What the document, or the file, held before all of this.

    What a prompt or rewind had left in the one may have been saved, or loaded, into the other before that was
    changed for the first time.
    """
    own = next(number for number, change in enumerate(row) if change.in_buffer is (where == "buffer"))
    change = row[own]
    if change.is_rewind and change.origin == row[0].origin:
        return change.before
    known = {_key(state) for each in row[:own] for state in (each.before, each.after)}
    return row[0].before if _key(change.before) in known else change.before


def _wanted(row: Sequence[Change]) -> Wanted:
    """What a row comes to.

    It is whole where each change began with what the session had found or left, in the document or the file:
    then what goes with it was nobody else's. Where the two differed when the second of them was changed for
    the first time, one of them held what somebody else had made of it. Then each is whole by itself: what was
    saved, or loaded, from one into the other brings that along.
    """
    known: dict[bool, set[Known]] = {}
    is_whole = True
    for change in row:
        before = _key(change.before)
        if change.in_buffer not in known:
            other = known.get(not change.in_buffer, set())
            known[change.in_buffer] = other if before in other else {before}
        own = known[change.in_buffer]
        is_whole = is_whole and before in own
        own.add(_key(change.after))
    first, last = row[0], row[-1]
    return Wanted(
        first.parts,
        first.before,
        last.after,
        expected=(last.after, last.before),
        is_whole=is_whole,
        made=max(change.made for change in row),
        in_buffer=any(change.in_buffer for change in row),
        known=frozenset().union(*known.values()),
    )


def _key(state: FileState | None) -> Known:
    """What two states have in common that are of the same content."""
    return None if state is None else (state.digest, state.is_link)
