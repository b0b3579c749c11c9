"""Why a text that should be replaced is not in a file: where it nearly is, and what the difference is.

The file may have ten megabytes, or all of that in one line. So nothing here takes more than a few passes over
it, and difflib sees only lines that have a word in common with what is looked for.
"""

import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentd.workspace.text import lines_split, visible

_MAX_LINES = 1_000_000  # lines of a file that are looked at
_MAX_REGION = 20  # lines of the region that are shown
_MAX_WIDTH = 400  # characters of a line that are shown, and compared by difflib
_BEFORE = 100  # of them before the place, in a line that is longer
_MAX_COMPARED = 2_000  # lines compared one by one with difflib
_MAX_ANCHORS = 100  # places where the same line is looked at
_MAX_WORDS = 4  # words of a line that a line like it is looked for by
_SIMILAR = 0.5

_QUOTES = str.maketrans("‘’‚‛“”„‟«»`´", "''''\"\"\"\"\"\"''")
_DASHES = str.maketrans("‐‑‒–—−", "------")
_NUMBERED = re.compile(r" *\d+ \| ?")
_ESCAPE = re.compile(r"\\([nrt\"'\\])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_WORD = re.compile(r"\w{3,}")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def why_not_found(text: str, old: str, name: str) -> str:
    """What the model is told: `old` is not in `text`, the file `name`, and why that is."""
    head = f"old_string was not found in '{name}'. Nothing was changed."
    lines, wanted = lines_split(text), lines_split(old)
    if not wanted[-1] and lines[-1] and lines[-len(wanted) + 1 :] == wanted[:-1]:
        return (
            f"{head} It ends with a newline, and the last line of the file does not; leave that newline out."
        )
    del lines[_MAX_LINES:]
    miswritten = _miswritten(lines, old)
    if miswritten is not None:
        return f"{head} {miswritten}"
    near = _near(lines, wanted)
    if near is not None:
        return f"{head} This region differs from it only in {near.difference}:\n{_region(lines, near)}"
    nearest = _nearest(lines, wanted)
    if nearest is None:
        return f"{head} Nothing in the file is like it; read the file again."
    return f"{head} The nearest region is:\n{_region(lines, nearest)}"


@dataclass(frozen=True)
class _Near:
    """`count` lines from `start` on, which are like the wanted text, and in what they are not."""

    start: int
    count: int
    words: tuple[str, ...]
    difference: str = ""


# --- the text was written in another way than it stands -------------------------------------------


def _unnumbered(old: str) -> str:
    """Without the line numbers of read_file, where each line has one."""
    lines = old.split("\n")
    numbered = all(_NUMBERED.match(line) for line in lines if line)
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in lines) if numbered else old


def _unescaped(old: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), old)


def _escaped(old: str) -> str:
    return old.replace("\r\n", "\n").replace("\n", "\\n").replace("\t", "\\t")


_WAYS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("It holds the line numbers of read_file, which are not part of the file; leave them out.", _unnumbered),
    (
        'It holds escapes such as \\n, \\t or \\" where the file has the characters themselves; write these.',
        _unescaped,
    ),
    (
        "It holds line breaks or tabs where the file has the escapes \\n or \\t, a backslash and a letter; "
        "write these.",
        _escaped,
    ),
    ("It holds HTML escapes such as &lt; where the file has the characters themselves.", html.unescape),
)


def _miswritten(lines: Sequence[str], old: str) -> str | None:
    """The way in which `old` was written wrong, when written right it is in the file."""
    whole = "\n".join(lines)
    for words, right in _WAYS:
        meant = "\n".join(lines_split(right(old)))
        at = whole.find(meant) if meant.strip() and meant != "\n".join(lines_split(old)) else -1
        if at >= 0:
            near = _Near(whole.count("\n", 0, at), meant.count("\n") + 1, _words(meant))
            return f"{words} The text meant is:\n{_region(lines, near)}"
    return None


# --- the text stands there with small differences -------------------------------------------------


def _collapsed(line: str) -> str:
    return " ".join(line.split())


def _without_invisible(line: str) -> str:
    return _INVISIBLE.sub("", line)


def _forgiving(text: str) -> str:
    """The lines without anything that the differences below are about."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _without_invisible(visible(text.translate(_QUOTES | _DASHES))))
    return "\n".join(map(_collapsed, text.translate(_QUOTES).casefold().split("\n")))


_DIFFERENCES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("bytes that are not valid UTF-8, which are shown as U+FFFD; leave them out of old_string", visible),
    ("whitespace at the ends of lines", str.rstrip),
    ("tabs against spaces", lambda line: line.expandtabs(4)),
    ("indentation", str.strip),
    ("whitespace", _collapsed),
    ("invisible characters", _without_invisible),
    ("the form of quotes", lambda line: line.translate(_QUOTES)),
    ("the form of accents", lambda line: unicodedata.normalize("NFC", line)),
    ("the form of dashes", lambda line: line.translate(_DASHES)),
    ("the form of characters (Unicode NFKC)", lambda line: unicodedata.normalize("NFKC", line)),
    ("upper and lower case", str.casefold),
    ("whitespace, quotes, dashes, case or the form of characters", _forgiving),
)


def _near(lines: Sequence[str], wanted: Sequence[str]) -> _Near | None:
    """The first region that is the wanted text when small differences are forgiven."""
    needle = _forgiving("\n".join(wanted))
    if not needle.strip():
        return None
    haystack = _forgiving("\n".join(lines))
    found = haystack.find(needle)
    if found < 0:
        return _near_but_blank_lines(lines, wanted)
    start = haystack.count("\n", 0, found)
    region = lines[start : start + len(wanted)]
    difference = next(words for words, normal in _DIFFERENCES if _is_in(region, wanted, normal))
    return _Near(start, len(wanted), _words("\n".join(wanted)), difference)


def _is_in(lines: Sequence[str], wanted: Sequence[str], normalised: Callable[[str], str]) -> bool:
    return "\n".join(map(normalised, wanted)) in "\n".join(map(normalised, lines))


def _near_but_blank_lines(lines: Sequence[str], wanted: Sequence[str]) -> _Near | None:
    told = [line.strip() for line in wanted if line.strip()]
    kept = [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]
    starts = [index for index, (_, line) in enumerate(kept) if line == told[0]]
    for index in starts[:_MAX_ANCHORS]:
        region = kept[index : index + len(told)]
        if [line for _, line in region] == told:
            first, last = region[0][0], region[-1][0]
            return _Near(first, last - first + 1, _words(told[0]), "blank lines or indentation")
    return None


# --- something like it ----------------------------------------------------------------------------


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> _Near | None:
    """The region with the most of the wanted lines, else the one with the line most like the longest."""
    start = _by_equal_lines(lines, wanted)
    offset, key = max(enumerate(wanted), key=lambda pair: len(pair[1].strip()))
    if start is None:
        start = _by_similar_line(lines, key, offset)
    return None if start is None else _Near(start, len(wanted), _words(key))


def _by_equal_lines(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    places: defaultdict[str, list[int]] = defaultdict(list)
    told = {line.strip() for line in wanted if len(line.strip()) > 3}
    for number, line in enumerate(lines):
        if (stripped := line.strip()) in told and len(places[stripped]) < _MAX_ANCHORS:
            places[stripped].append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        for number in places.get(line.strip(), ()):
            votes[max(0, number - offset)] += len(line.strip())
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _by_similar_line(lines: Sequence[str], key: str, offset: int) -> int | None:
    from difflib import SequenceMatcher  # only for a refusal

    words = _words(key)
    matcher = SequenceMatcher(None, b=_cut(key.strip(), words), autojunk=False)
    best, best_ratio = None, _SIMILAR
    for index in _candidates(lines, words):
        matcher.set_seq1(_cut(lines[index].strip(), words))
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = index, ratio
    return None if best is None else max(0, best - offset)


def _candidates(lines: Sequence[str], words: Sequence[str]) -> Sequence[int]:
    """The lines worth comparing: those with most of the words, else the first ones."""
    counts = [(sum(word in line for word in words), index) for index, line in enumerate(lines)]
    sharing = sorted((-count, index) for count, index in counts if count)
    return [index for _, index in sharing[:_MAX_COMPARED]] or range(min(len(lines), _MAX_COMPARED))


def _words(text: str) -> tuple[str, ...]:
    """The most telling words of a text."""
    return tuple(sorted(set(_WORD.findall(text[: 10 * _MAX_WIDTH])), key=len, reverse=True)[:_MAX_WORDS])


def _cut(line: str, words: Sequence[str]) -> str:
    """A line, or of an over-long one the part around the first of the words that is in it."""
    if len(line) <= _MAX_WIDTH:
        return line
    at = next((found for found in map(line.find, words) if found >= 0), 0)
    start = max(0, at - _BEFORE)
    return line[start : start + _MAX_WIDTH]


def _region(lines: Sequence[str], near: _Near) -> str:
    shown = lines[near.start : near.start + min(near.count, _MAX_REGION)]
    return "\n".join(
        f"{number:5d} | {visible(_cut(line, near.words))}"
        for number, line in enumerate(shown, near.start + 1)
    )
