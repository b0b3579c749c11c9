"""What a command's template says with its arguments: `$ARGUMENTS`, `$1` to `$9`, and `$$` for a dollar sign.

A template is text and nothing else: nothing in it is run, and nothing in an argument is read again.
"""

import re
import shlex

MAX_LENGTH = 4 * 1024 * 1024
"""Characters of what a template may come to: a large argument, said often, would fill the memory."""

_PLACE = re.compile(r"\$(\$|ARGUMENTS\b|[1-9])")
_QUOTED_MENTION = re.compile(r'(?<!\S)(@"[^"\n]+"(?::\d+(?:-\d+)?)?)(?!\S)')


class TooLong(ValueError):
    """A template that would come to more than `MAX_LENGTH`."""


def split(arguments: str) -> tuple[str, ...]:
    """The arguments one by one, quoted as in a shell.

    `@"a name with spaces"` stays as it is, so that it still refers to a file. Where quotes do not match they
    are ordinary characters, as in `don't`.
    """
    found: list[str] = []
    for number, piece in enumerate(_QUOTED_MENTION.split(arguments)):
        if number % 2:
            found.append(piece)
            continue
        try:
            found += shlex.split(piece)
        except ValueError:
            found += piece.split()
    return tuple(found)


def filled_in(template: str, arguments: str) -> str:
    """The template with its arguments. A template without a place for them has them at its end.

    `$1` to `$9` are single arguments, empty where there are fewer. Raises TooLong.
    """
    arguments = arguments.strip()
    singles = split(arguments)
    pieces = _PLACE.split(template)
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
