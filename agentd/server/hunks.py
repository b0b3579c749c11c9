"""What has to be changed in a text, and nowhere else: so a cursor, a fold or a mark of the editor stays."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from agentd.tools.diff import changed_blocks
from agentd.workspace.buffer import Encoding, Spots
from agentd.workspace.text import lines_with_ends


def hunks(before: str, after: str, *, whole_lines: bool = False) -> Iterator[tuple[int, int, str]]:
    """`(start, end, new)` by index in `before`, in order, that make `after` of it.

    None begins or ends between `\\r` and `\\n`, for which LSP has no position.
    """
    old, new = lines_with_ends(before), lines_with_ends(after)
    starts = [0, *accumulate(map(len, old))]
    for first, last, from_new, to_new in changed_blocks(old, new):
        hunk = starts[first], starts[last], "".join(new[from_new:to_new])
        yield hunk if whole_lines else _trimmed(before, *hunk)


def text_edits(
    before: str, after: str, encoding: Encoding, *, whole_lines: bool = False
) -> list[dict[str, Any]]:
    """The same as the `TextEdit`s of LSP."""
    spots = Spots(before, encoding)
    return [
        {
            "range": {"start": spots.at(start)._asdict(), "end": spots.at(end)._asdict()},
            "newText": new,
        }
        for start, end, new in hunks(before, after, whole_lines=whole_lines)
    ]


def _trimmed(text: str, start: int, end: int, new: str) -> tuple[int, int, str]:
    """Without the characters that are equal at both ends."""
    most = min(end - start, len(new))
    head = _equal(text[start:end], new, most)
    tail = _equal(text[start:end][::-1], new[::-1], most - head)
    begin, finish = start + head, end - tail
    if _is_inside_line_end(text, begin):
        begin, head = begin - 1, head - 1
    if _is_inside_line_end(text, finish):
        finish, tail = finish + 1, tail - 1
    return begin, finish, new[head : len(new) - tail]


def _equal(one: str, other: str, most: int) -> int:
    for index in range(most):
        if one[index] != other[index]:
            return index
    return most


def _is_inside_line_end(text: str, index: int) -> bool:
    return text[index - 1 : index + 1] == "\r\n" if index else False
