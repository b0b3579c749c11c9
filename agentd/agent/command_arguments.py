"""What a command's template says with its arguments: `$ARGUMENTS`, `$1` to `$9`, and `$$` for a dollar sign.

A template is text and nothing else: nothing in it is run, and nothing in an argument is read again.
"""

import re
from collections.abc import Iterator
from itertools import islice

MAX_LENGTH = 4 * 1024 * 1024
"""Characters of what a template may come to: a large argument, said often, would fill the memory."""

_PLACE = re.compile(r"\$(\$|ARGUMENTS\b|[1-9])")
_QUOTED_MENTION = re.compile(r'(?<!\S)(@"[^"\n]+"(?::\d+(?:-\d+)?)?)(?!\S)')
_SINGLES = set("123456789")
_MOST = len(_SINGLES)  # arguments that have a place of their own

_PART = re.compile(
    r"""
      (?P<blank>[ \t\r\n]++)
    | (?P<plain>[^ \t\r\n'"\\]++)
    | \\(?P<escaped>.)
    | '(?P<single>[^']*+)'
    | "(?P<double>(?:[^"\\]++|\\.)*+)"
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\(["\\])')


class TooLong(ValueError):
    """A template that would come to more than `MAX_LENGTH`."""


def split(arguments: str) -> tuple[str, ...]:
    """The arguments one by one, quoted as in a shell: the first nine, as no more have a place.

    `@"a name with spaces"` stays as it is, so that it still refers to a file. Where quotes do not match they
    are ordinary characters, as in `don't`.
    """
    found: list[str] = []
    for number, piece in enumerate(_QUOTED_MENTION.split(arguments)):
        if len(found) >= _MOST:
            break
        if number % 2:
            found.append(piece)
            continue
        try:
            found += list(islice(_words(piece), _MOST))
        except ValueError:
            found += piece.split(maxsplit=_MOST)[:_MOST]
    return tuple(found[:_MOST])


def _words(text: str) -> Iterator[str]:
    """The words that `shlex.split` finds; that takes time with the square of their length, for all to wait.

    Raises ValueError where quotes do not match.
    """
    word: list[str] | None = None
    place = 0
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            raise ValueError("quotes do not match")
        place = part.end()
        if part["blank"] is None:
            word = [] if word is None else word
            word.append(_unquoted(part))
        elif word is not None:
            yield "".join(word)
            word = None
    if word is not None:
        yield "".join(word)


def _unquoted(part: re.Match[str]) -> str:
    if part["double"] is not None:
        return _ESCAPED.sub(r"\1", part["double"])
    return part["plain"] or part["escaped"] or part["single"] or ""


def filled_in(template: str, arguments: str) -> str:
    """The template with its arguments. A template without a place for them has them at its end.

    `$1` to `$9` are single arguments, empty where there are fewer. Raises TooLong.
    """
    arguments = arguments.strip()
    pieces = _PLACE.split(template)
    singles = split(arguments) if set(pieces[1::2]) & _SINGLES else ()
    has_place = False
    for number in range(1, len(pieces), 2):
        place = pieces[number]
        has_place = has_place or place != "$"
        if place == "$":
            pieces[number] = "$"
        elif place == "ARGUMENTS":
            pieces[number] = arguments
        else:
            pieces[number] = singles[int(place) - 1] if int(place) <= len(singles) else ""
    if arguments and not has_place:
        pieces.append(f"\n\nArguments: {arguments}")
    if sum(map(len, pieces)) > MAX_LENGTH:
        raise TooLong(f"With these arguments it comes to more than {MAX_LENGTH:,} characters.")
    return "".join(pieces)
