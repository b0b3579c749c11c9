"""Replacing text by literal text.

A line end in `old` or `new` stands for the file's own (`\\r\\n`, `\\n` or a lone `\\r`), since the model is
shown lines without their ends. Lines that `old` and `new` begin or end with in common keep their bytes.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat

from agentd.tools.mismatch import why_not_found
from agentd.workspace.paths import WorkspaceError
from agentd.workspace.text import lines_split, lines_with_ends

_FIND_LINE_END = re.compile(r"\r\n|(?<!\r)\n|\r(?!\n)")  # never half of a \r\n
_FIND_LONG_END = re.compile(r"\r\n")
_BARE_END = re.compile(r"(?<!\r)\n")
_LONE_END = re.compile(r"\r(?!\n)")
_ANY_END = re.compile(r"\r\n|\n")

_MAX_LISTED = 100  # line numbers named in a refusal
_MAX_COUNTED = 10_000  # matches counted for a refusal

Span = tuple[int, int]


@dataclass(frozen=True)
class Replaced:
    """The new text, and how many places changed."""

    text: str
    count: int


def replace(text: str, old: str, new: str, *, every: bool, name: str) -> Replaced:
    """Replace the one place where `old` stands, or every one. `new` is literal whatever it holds.

    Raises WorkspaceError `no_match` when there is none, or several and not `every`; places that overlap
    count. `name` is the file in the message.
    """
    # With a \r in it that is in the file, the model knows this line end, so it means the new one too.
    whole = not old.startswith("\n") and not old.endswith("\r")  # else it may begin or end in a \r\n
    exact = ("\r" in old and whole and old in text) or ("\r" not in old and "\r" not in text)
    found = _literal_spans(text, old, overlapping=not every) if exact else _spans(text, old, not every)
    spans = list(found if every else islice(found, _MAX_COUNTED))
    if not spans:
        raise WorkspaceError("no_match", why_not_found(text, old, name))
    if len(spans) > 1 and not every:
        raise WorkspaceError("no_match", _ambiguous(text, spans, name))
    return Replaced("".join(_pieces(text, spans, old, new, exact)), len(spans))


def _pieces(text: str, spans: Iterable[Span], old: str, new: str, exact: bool) -> Iterator[str]:
    position = 0
    for start, end in spans:
        yield text[position:start]
        yield new if exact else _fitted(text, (start, end), old, new)
        position = end
    yield text[position:]


def _literal_spans(text: str, old: str, *, overlapping: bool) -> Iterator[Span]:
    start = text.find(old)
    while start >= 0:
        yield start, start + len(old)
        start = text.find(old, start + (1 if overlapping else len(old)))


def _spans(text: str, old: str, overlapping: bool) -> Iterator[Span]:
    """The same where a line end of `old` stands for any, but never for half of a \\r\\n."""
    # Found where all ends are one character; each \r\n before a place then stands for one more.
    longer = [match.start() - number for number, match in enumerate(_FIND_LONG_END.finditer(text))]
    plain, wanted = "\n".join(lines_split(text)), "\n".join(lines_split(old))
    for start, end in _literal_spans(plain, wanted, overlapping=overlapping):
        yield start + bisect_left(longer, start), end + bisect_left(longer, end)


def _fitted(text: str, span: Span, old: str, new: str) -> str:
    """`new` with the line ends of its place, and the file's own bytes for lines that both strings share."""
    present = lines_with_ends(text[span[0] : span[1]])
    old_lines, new_lines = lines_with_ends(old), lines_with_ends(new)
    shortest = min(len(old_lines), len(new_lines))
    head = 0
    while head < shortest and old_lines[head] == new_lines[head]:
        head += 1
    tail = 0
    while tail < shortest - head and old_lines[-1 - tail] == new_lines[-1 - tail]:
        tail += 1
    first, last = "".join(present[:head]), "".join(present[len(present) - tail :])
    gone = (span[0] + len(first), span[1] - len(last))
    middle = "".join(new_lines[head : len(new_lines) - tail])
    ends = _FIND_LINE_END if _LONE_END.search(old) else _ANY_END if "\r\n" in old else _BARE_END
    if ends.search(middle):
        # Line by line the ends that were there, then more of the kind that is used there.
        supply = chain(_FIND_LINE_END.findall(text, *gone), repeat(_line_end_at(text, gone)))
        middle = ends.sub(lambda _: next(supply), middle)
    return first + middle + last


def _line_end_at(text: str, span: Span) -> str:
    """The line end in the span, else after it, else before it. A lone \\r only where nothing else is used."""
    match = _FIND_LINE_END.search(text, *span) or _FIND_LINE_END.search(text, span[1])
    if match and (match[0] != "\r" or "\n" not in text):
        return match[0]
    last = text.rfind("\n", 0, span[0])
    if last < 0:
        last = text.find("\n", span[0])
    if last >= 0:
        return "\r\n" if last and text[last - 1] == "\r" else "\n"
    return "\r" if "\r" in text else "\n"


def _ambiguous(text: str, spans: Sequence[Span], name: str) -> str:
    numbers: list[str] = []
    line, position = 1, 0
    for start, _ in spans[:_MAX_LISTED]:
        line += len(_FIND_LINE_END.findall(text, position, start))
        numbers.append(str(line))
        position = start
    left, open_end = len(spans) - _MAX_LISTED, "+" if len(spans) >= _MAX_COUNTED else ""
    more = f" and {left:,}{open_end} more" if left > 0 else ""
    return (
        f"old_string occurs {len(spans):,}{open_end} times in '{name}', at lines {', '.join(numbers)}{more}. "
        "Nothing was changed. Add lines around it so that it occurs once, or set replace_all to change every "
        "one."
    )
