"""Unified diffs between the bytes of two versions of a file.

Lines end at `\\n` alone, as for git and patch, so that a change of line ends or of the byte order mark is
seen. What is compared is exact; what is shown has U+FFFD where bytes are not valid. The work stays
near-linear for large files: equal ends are cut off first, before anything is split into lines, then lines
that occur once in both versions anchor the rest (patience diff).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentd.protocol.messages import FileAction, FileChange
from agentd.workspace.paths import Place, WorkspaceError
from agentd.workspace.text import decode, visible

_CONTEXT = 3
_SMALL = 250_000  # pairs of lines that difflib compares without delay
_MAX_PATCH = 4 * 1024 * 1024  # characters; more cannot be shown for approval, nor sent at once

Block = tuple[int, int, int, int]
"""Lines `[a, b)` of the old version became lines `[c, d)` of the new one."""


def file_change(place: Place, before: bytes | None, after: bytes | None) -> FileChange:
    """What a change does to a file; `before` is None for a new one, `after` for one that is removed.

    Both must be text (`workspace.text.decode`). Raises WorkspaceError `too_large` for a patch nobody could
    review.
    """
    middle = _middle(_text(before or b""), _text(after or b""))
    old, new = _lines(middle.old), _lines(middle.new)
    blocks = list(changed_blocks(old, new))
    name = place.shown
    head = [
        "--- /dev/null\n" if before is None else f"--- a/{name}\n",
        "+++ /dev/null\n" if after is None else f"+++ b/{name}\n",
    ]
    is_shown = blocks or before is None or after is None
    patch = "".join([*head, *_hunks(old, new, blocks, middle.skipped)]) if is_shown else ""
    if len(patch) > _MAX_PATCH:
        raise WorkspaceError(
            "too_large",
            f"The change to '{name}' is too large to be shown for approval ({len(patch):,} characters). "
            "Make it in smaller parts.",
        )
    return FileChange(
        uri=place.uri,
        action=action_of(before is not None, after is not None),
        patch=visible(patch),
        additions=sum(d - c for _, _, c, d in blocks),
        deletions=sum(b - a for a, b, _, _ in blocks),
    )


def action_of(was: bool, is_there: bool) -> FileAction:
    """What a change comes to, from whether there was a file and whether there is one now."""
    if not was:
        return "created"
    return "changed" if is_there else "deleted"


def _text(data: bytes) -> str:
    decoded = decode(data)
    return ("\ufeff" if decoded.mark else "") + decoded.text


@dataclass(frozen=True)
class _Middle:
    """Whole lines of both versions with all that differs and its context, after so many `skipped` lines."""

    skipped: int
    old: str
    new: str


def _middle(old: str, new: str) -> _Middle:
    start = first = old.rfind("\n", 0, _equal_length(old, new)) + 1
    tail = _equal_length(old[first:], new[first:], backwards=True)
    for _ in range(_CONTEXT):
        start = old.rfind("\n", 0, max(start - 1, 0)) + 1
    end = len(old) - tail
    for _ in range(_CONTEXT + 1):  # the rest of a line that is equal in part, then the context
        end = old.find("\n", end) + 1 or len(old)
    return _Middle(old.count("\n", 0, start), old[start:end], new[start : len(new) - (len(old) - end)])


def _equal_length(old: str, new: str, *, backwards: bool = False) -> int:
    """How many characters at the start (or the end) are the same, by comparing large parts at once."""
    same, beyond = 0, min(len(old), len(new)) + 1
    while beyond - same > 1:
        middle = (same + beyond) // 2
        if backwards:
            equal = old[len(old) - middle : len(old) - same] == new[len(new) - middle : len(new) - same]
        else:
            equal = old[same:middle] == new[same:middle]
        same, beyond = (middle, beyond) if equal else (same, middle)
    return same


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def changed_blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """The differing blocks in order, with at least one equal line between two of them."""
    start: Block | None = None
    for block in _differences(old, new):
        if start is not None and start[1] == block[0] and start[3] == block[2]:
            start = (start[0], block[1], start[2], block[3])
            continue
        if start is not None:
            yield start
        start = block
    if start is not None:
        yield start


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    pending = [(0, len(old), 0, len(new))]
    while pending:  # a stack, since anchors may nest deeper than Python's own
        a, b, c, d = _without_equal_ends(old, new, pending.pop())
        if a == b or c == d:
            if (a, c) != (b, d):
                yield a, b, c, d
            continue
        if (b - a) * (d - c) <= _SMALL:
            yield from _small_differences(old, new, (a, b, c, d))
            continue
        anchors = _anchors(old, new, (a, b, c, d))
        if not anchors:
            yield a, b, c, d
            continue
        edges = [(a - 1, c - 1), *anchors, (b, d)]
        gaps = [(i + 1, k, j + 1, m) for (i, j), (k, m) in pairwise(edges)]
        pending.extend(reversed(gaps))


def _without_equal_ends(old: Sequence[str], new: Sequence[str], block: Block) -> Block:
    a, b, c, d = block
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _small_differences(old: Sequence[str], new: Sequence[str], block: Block) -> Iterator[Block]:
    from difflib import SequenceMatcher  # not for a daemon that only starts

    a, b, c, d = block
    for tag, i, j, k, m in SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_opcodes():
        if tag != "equal":
            yield a + i, a + j, c + k, c + m


def _anchors(old: Sequence[str], new: Sequence[str], block: Block) -> list[tuple[int, int]]:
    """Lines that occur once on each side, in the longest run that is in the same order on both."""
    a, b, c, d = block
    once_old = {line for line, count in Counter(old[a:b]).items() if count == 1}
    once_new = {line for line, count in Counter(new[c:d]).items() if count == 1}
    where = {line: index for index, line in enumerate(new[c:d], c) if line in once_new}
    pairs = [
        (index, where[line]) for index, line in enumerate(old[a:b], a) if line in once_old and line in where
    ]
    tops: list[int] = []  # the smallest new index that ends an increasing run of each length
    ends: list[int] = []  # which pair that is
    previous: list[int] = []
    for number, (_, position) in enumerate(pairs):
        length = bisect_left(tops, position)
        previous.append(ends[length - 1] if length else -1)
        tops[length : length + 1] = [position]
        ends[length : length + 1] = [number]
    run: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        run.append(pairs[number])
        number = previous[number]
    return run[::-1]


def _hunks(old: Sequence[str], new: Sequence[str], blocks: Sequence[Block], skipped: int) -> Iterator[str]:
    group: list[Block] = []
    for block in blocks:
        if group and block[0] - group[-1][1] > 2 * _CONTEXT:
            yield from _hunk(old, new, group, skipped)
            group = []
        group.append(block)
    if group:
        yield from _hunk(old, new, group, skipped)


def _hunk(old: Sequence[str], new: Sequence[str], group: Sequence[Block], skipped: int) -> Iterator[str]:
    lead = min(_CONTEXT, group[0][0])
    tail = min(_CONTEXT, len(old) - group[-1][1])
    a, b, c, d = group[0][0] - lead, group[-1][1] + tail, group[0][2] - lead, group[-1][3] + tail
    spans = (_span(start + skipped, end + skipped) for start, end in ((a, b), (c, d)))
    yield "@@ -{} +{} @@\n".format(*spans)
    position = a
    for i, j, k, m in group:
        yield from _marked(" ", old[position:i])
        yield from _marked("-", old[i:j])
        yield from _marked("+", new[k:m])
        position = j
    yield from _marked(" ", old[position:b])


def _span(start: int, end: int) -> str:
    """Lines as a hunk's head counts them: from 1; an empty span by the line before it; no count of 1."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + 1 if end > start else start},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
