"""Replacing text by literal text, and saying why it could not be done.

A line end in `old` or `new` stands for the file's own (`\\r\\n`, `\\n` or a lone `\\r`), since the model is
shown lines without their ends. Lines that `old` and `new` begin or end with in common keep their bytes.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from agentd.workspace.paths import WorkspaceError
from agentd.workspace.text import lines_with_ends, visible

_LINE_END = r"(?:\r\n|(?<!\r)\n|\r(?!\n))"  # never half of a \r\n
_FIND_LINE_END = re.compile(_LINE_END)
_BARE_END = re.compile(r"(?<!\r)\n")
_ANY_END = re.compile(r"\r\n|\n")

_MAX_LISTED = 20  # line numbers named in a refusal
_MAX_COUNTED = 10_000  # matches counted for a refusal
_MAX_REGION = 20  # lines of the nearest region that are shown
_MAX_SCANNED = 5_000  # lines compared one by one with difflib
_MAX_COMPARED = 400  # characters of a line that is compared so
_SIMILAR = 0.5

_QUOTES = str.maketrans("‘’‚‛“”„‟«»`´", "''''\"\"\"\"\"\"''")
_DASHES = str.maketrans("‐‑‒–—−", "------")

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
    exact = "\r" in old and old in text  # the model knows this line end, so it means the new one too
    pattern = re.compile(re.escape(old) if exact else _LINE_END.join(map(re.escape, lines_split(old))))
    spans = [match.span() for match in pattern.finditer(text)] if every else _overlapping(pattern, text)
    if not spans:
        raise WorkspaceError("no_match", _not_found(text, old, name))
    if len(spans) > 1 and not every:
        raise WorkspaceError("no_match", _ambiguous(text, spans, name))
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts += [text[position:start], new if exact else _fitted(text, (start, end), old, new)]
        position = end
    return Replaced("".join([*parts, text[position:]]), len(spans))


def lines_split(text: str) -> list[str]:
    """The text between line ends; one more piece than there are ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _overlapping(pattern: re.Pattern[str], text: str) -> list[Span]:
    spans: list[Span] = []
    match = pattern.search(text)
    while match and len(spans) < _MAX_COUNTED:
        spans.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return spans


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
    ends = _ANY_END if "\r\n" in old else _BARE_END
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
    more = ", ..." if len(spans) > _MAX_LISTED else ""
    count = f"{len(spans)}{'+' if len(spans) >= _MAX_COUNTED else ''}"
    return (
        f"old_string occurs {count} times in '{name}', at lines {', '.join(numbers)}{more}. Nothing was "
        "changed. Add lines around it so that it occurs once, or set replace_all to change every one."
    )


# --- why there is no match ------------------------------------------------------------------------


def _collapsed(line: str) -> str:
    return " ".join(line.split())


def _forgiving(text: str) -> str:
    """The lines without anything that the differences below are about."""
    composed = unicodedata.normalize("NFC", visible(text))
    return "\n".join(map(_collapsed, composed.translate(_QUOTES | _DASHES).casefold().split("\n")))


_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("bytes that are not valid UTF-8, which are shown as U+FFFD; leave them out of old_string", visible),
    ("whitespace at the ends of lines", str.rstrip),
    ("tabs against spaces", lambda line: line.expandtabs(4)),
    ("indentation", str.strip),
    ("whitespace", _collapsed),
    ("the form of quotes", lambda line: line.translate(_QUOTES)),
    ("the form of accents", lambda line: unicodedata.normalize("NFC", line)),
    ("the form of dashes", lambda line: line.translate(_DASHES)),
    ("upper and lower case", str.casefold),
    ("whitespace, quotes, dashes or case", _forgiving),
)


def _not_found(text: str, old: str, name: str) -> str:
    head = f"old_string was not found in '{name}'. Nothing was changed."
    lines, wanted = lines_split(text), lines_split(old)
    if not wanted[-1] and lines[-1] and lines[-len(wanted) + 1 :] == wanted[:-1]:
        return (
            f"{head} It ends with a newline, and the last line of the file does not; leave that newline out."
        )
    at = _find_forgiving(lines, wanted)
    if at is not None:
        region = lines[at : at + len(wanted)]
        difference = next(words for words, normal in _DIFFERENCES if _is_in(region, wanted, normal))
        return f"{head} This region differs from it only in {difference}:\n{_region(lines, at, len(wanted))}"
    nearest = _nearest(lines, wanted)
    if nearest is None:
        return f"{head} Nothing in the file is like it; read the file again."
    return f"{head} The nearest region is:\n{_region(lines, nearest, len(wanted))}"


def _find_forgiving(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The line where `wanted` begins when small differences are forgiven."""
    needle = _forgiving("\n".join(wanted))
    if not needle.strip():
        return None
    haystack = _forgiving("\n".join(lines))
    found = haystack.find(needle)
    return None if found < 0 else haystack.count("\n", 0, found)


def _is_in(lines: Sequence[str], wanted: Sequence[str], normalised: Callable[[str], str]) -> bool:
    return "\n".join(map(normalised, wanted)) in "\n".join(map(normalised, lines))


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where the region would begin whose line is most like the most telling line of `wanted`."""
    from difflib import SequenceMatcher  # only for a refusal

    offset, key = max(enumerate(wanted), key=lambda pair: len(pair[1].strip()))
    matcher = SequenceMatcher(None, b=key.strip()[:_MAX_COMPARED], autojunk=False)
    best, best_ratio = None, _SIMILAR
    for index, line in enumerate(lines[:_MAX_SCANNED]):
        matcher.set_seq1(line.strip()[:_MAX_COMPARED])
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = index, ratio
    return None if best is None else max(0, best - offset)


def _region(lines: Sequence[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, _MAX_REGION)]
    return "\n".join(
        f"{number:5d} | {visible(line[:_MAX_COMPARED])}" for number, line in enumerate(shown, start + 1)
    )
