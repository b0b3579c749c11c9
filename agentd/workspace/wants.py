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
    if len(apart) == 1 or (want.is_whole and want.before is None):  # what was made goes with its document
        yield want
    elif want.is_whole and _is_back_in_editor(row):
        yield want  # what the file was meanwhile lies below an unsaved document, and is the user's to save
    elif want.is_whole and not row[0].is_rewind:  # it was saved, or loaded anew, in between
        yield from (replace(each, before=want.before, is_whole=True) for each in apart)
    elif all(each.is_whole for each in apart):
        yield from (_from_the_first(row, each) for each in apart)
    else:
        yield want


def _is_back_in_editor(row: Sequence[Change]) -> bool:
    """Whether a rewind has brought the document back to what the file was before all of this."""
    first, last = row[0], row[-1]
    return last.is_rewind and last.in_buffer and same_content(last.after, first.before)


def _from_the_first(row: Sequence[Change], want: Wanted) -> Wanted:
    """The same, where one of the two was first changed by a rewind: it began as the other did.

    A rewind finds what prompts have left, saved or loaded anew, and that is not what was there before them.
    """
    own = _of_kind(row, want.where == "buffer")
    return replace(want, before=row[0].before) if own[0].is_rewind and not row[0].is_rewind else want


def _of_kind(row: Sequence[Change], in_buffer: bool) -> list[Change]:
    return [change for change in row if change.in_buffer is in_buffer]


def _is_one_step_back(one: Change, other: Change) -> bool:
    """Whether one rewind has brought both the document and the file to the same content."""
    is_one = one.is_rewind and other.is_rewind and one.origin == other.origin
    return is_one and one.in_buffer is not other.in_buffer and same_content(one.after, other.after)


def _wanted(row: Sequence[Change]) -> Wanted:
    is_whole = all(
        # Where a kill prevented a change, the next one begins where that one began.
        same_content(change.before, last.after)
        or (same_content(change.before, last.before) and change.in_buffer is last.in_buffer)
        or _is_one_step_back(last, change)
        for last, change in pairwise(row)
    )
    first, last = row[0], row[-1]
    return Wanted(
        first.parts,
        first.before,
        last.after,
        expected=(last.after, last.before),
        is_whole=is_whole,
        made=max(change.made for change in row),
        in_buffer=any(change.in_buffer for change in row),
    )
