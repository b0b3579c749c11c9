"""Making of a Python pattern one for bytes that ripgrep understands and that matches at least as much.

Python's regular expressions and ripgrep's differ in syntax, in what letters and digits are, in what a line
is, and in what they make of text that is not UTF-8. So ripgrep never judges a user's pattern: it is given a
looser one, which only tells in which files it is worth looking, and Python looks there. Each rule below may
let through more, never less:

- a character beyond ASCII is one to four bytes above 0x7F, and so is a stray byte of another encoding;
- anchors and lookarounds demand nothing, a back reference is any text;
- what is known of ASCII is kept: most patterns hold some, and it is what makes the search fast.

The parse tree is that of Python's own `re`, whose form is not documented. Anything that is not known here, in
a later Python perhaps, means that there is no such pattern, and every file is looked at.
"""

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

# Byte order marks and NUL: the files with them are no plain UTF-8, so Python has to look at them.
UNUSUAL = r"\x00|\xff\xfe|\xfe\xff|\xef\xbb\xbf"

_ANY = r"[^\n]{1,4}"
_ANYTHING = r"[^\n]*"
_HIGH = r"[\x80-\xff]{1,4}"
_MAX_REPEATS = 16  # beyond that, "so many or more": ripgrep bounds the size of what it compiles
_MAX_LENGTH = 50_000  # of a pattern; the system bounds an argument to 128 KiB

_ASCII = frozenset(range(128))
_LETTERS = frozenset(map(ord, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
_WORD = _LETTERS | frozenset(map(ord, "0123456789_"))
_LINE_END = 10
_FOLDED_BEYOND_ASCII = frozenset(map(ord, "iIkKsS"))  # without case these equal U+0130, U+212A, U+017F too
_DEMANDS_LITTLE = {
    "ANY": _ANY, "GROUPREF": _ANYTHING, "AT": "", "ASSERT": "", "ASSERT_NOT": "", "FAILURE": "",
}  # fmt: skip


def _category(pattern: str) -> tuple[frozenset[int], frozenset[int]]:
    """The ASCII characters that a class may match, and those that it matches under any flags."""
    found = [
        frozenset(code for code in _ASCII if re.match(pattern, chr(code), flags)) for flags in (0, re.ASCII)
    ]
    return found[0] | found[1], found[0] & found[1]


_CATEGORIES = {
    "CATEGORY_DIGIT": _category(r"\d"),
    "CATEGORY_NOT_DIGIT": _category(r"\D"),
    "CATEGORY_SPACE": _category(r"\s"),
    "CATEGORY_NOT_SPACE": _category(r"\S"),
    "CATEGORY_WORD": _category(r"\w"),
    "CATEGORY_NOT_WORD": _category(r"\W"),
}


class _Unknown(Exception):
    """Something in a pattern of which nothing is known here."""


def loosened(pattern: str, *, ignore_case: bool) -> str | None:
    """A pattern for ripgrep that matches in each line in which the valid Python pattern does.

    None when there is none, or none that would tell files apart: the pattern may match nothing at all.
    """
    try:
        tree = import_module("re._parser").parse(pattern, re.IGNORECASE if ignore_case else 0)
        if tree.getwidth()[0] == 0:
            return None
        found = "(?-u)" + _sequence(tree, bool(tree.state.flags & re.IGNORECASE))
    except (_Unknown, ImportError, AttributeError, TypeError, ValueError, RecursionError):
        return None
    return found if len(found) <= _MAX_LENGTH else None


def _sequence(nodes: Iterable[tuple[Any, Any]], fold: bool) -> str:
    return "".join(_node(str(kind), value, fold) for kind, value in nodes)


def _node(kind: str, value: Any, fold: bool) -> str:
    match kind:
        case "LITERAL":
            return _literal(value, fold)
        case "NOT_LITERAL":
            return _class(_ASCII - {value}, high=True)
        case "IN":
            return _set(value, fold)
        case _:
            return _DEMANDS_LITTLE[kind] if kind in _DEMANDS_LITTLE else _compound(kind, value, fold)


def _compound(kind: str, value: Any, fold: bool) -> str:
    match kind:
        case "BRANCH":
            return _choice(_sequence(branch, fold) for branch in value[1])
        case "SUBPATTERN":
            _, added, removed, nodes = value
            inner = (fold or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
            return _choice([_sequence(nodes, inner)])
        case "ATOMIC_GROUP":
            return _choice([_sequence(value, fold)])
        case "GROUPREF_EXISTS":
            _, there, missing = value
            return _choice([_sequence(there, fold), _sequence(missing or (), fold)])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, nodes = value
            return _repeat(_sequence(nodes, fold), min(int(least), _MAX_REPEATS), int(most))
        case _:
            raise _Unknown(kind)


def _choice(branches: Iterable[str]) -> str:
    return f"(?:{'|'.join(branches)})"


def _repeat(what: str, least: int, most: int) -> str:
    bound = str(most) if most <= _MAX_REPEATS else ""
    if what == _ANY and not bound:
        return f"[^\\n]{{{least},}}"
    return f"(?:{what}){{{least},{bound}}}"


def _literal(code: int, fold: bool) -> str:
    if code > 127:
        if fold:
            return _class(_LETTERS, high=True)
        try:
            return "".join(f"\\x{byte:02x}" for byte in chr(code).encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            return _ANY
    if code == _LINE_END:
        return _ANY  # no line holds one, and ripgrep refuses it
    if fold and code in _LETTERS:
        return _class({code, code ^ 0x20}, high=code in _FOLDED_BEYOND_ASCII)
    return chr(code) if code in _WORD else f"\\x{code:02x}"


def _set(items: Sequence[tuple[Any, Any]], fold: bool) -> str:
    negated = str(items[0][0]) == "NEGATE"
    codes: set[int] = set()
    beyond = category = False
    for kind, value in items[negated:]:
        match str(kind):
            case "LITERAL":
                codes.add(value)
                beyond = beyond or value > 127
            case "RANGE":
                codes.update(range(value[0], min(value[1], 127) + 1))
                beyond = beyond or value[1] > 127
            case "CATEGORY":
                codes |= _CATEGORIES[str(value)][1 if negated else 0]
                category = True
            case other:
                raise _Unknown(other)
    if negated:
        return _class(_ASCII - codes, high=True)
    if fold:
        codes |= _LETTERS if beyond else {code ^ 0x20 for code in codes & _LETTERS}
    return _class(codes & _ASCII, high=beyond or category or fold)


def _class(codes: Iterable[int], *, high: bool) -> str:
    kept = sorted(set(codes) - {_LINE_END})
    escaped = "".join(f"\\x{code:02x}" for code in kept)
    low = f"[{escaped}]" if kept else ""
    if low and high:
        return _choice([low, _HIGH])
    return low or (_HIGH if high else _ANY)
