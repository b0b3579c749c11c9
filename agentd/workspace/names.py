"""Finding the file that a name means.

Exact bytes win. Else one sibling may differ only in what people and models cannot see or type: the kind of a
space, composed or decomposed accents, bytes shown escaped. Two such siblings are a question, not a guess.
"""

import os
import re
import unicodedata
from dataclasses import dataclass

from agentd.workspace.beneath import directory
from agentd.workspace.paths import PathError, Place, WorkspaceError, resolve, shown
from agentd.workspace.temporaries import is_temporary

_MAX_SIBLINGS = 20_000  # beyond that a directory is not searched for near names
_MAX_SUGGESTIONS = 5
_DRIVE = re.compile(r"[A-Za-z]:($|[/\\\\])")


class MissingFile(WorkspaceError):
    """No such file; `ambiguous` when several names could be meant."""

    def __init__(self, given: str, hint: str = "", names: tuple[str, ...] = ()) -> None:
        listed = [hint, *(f"  {name}" for name in names)] if names else []
        super().__init__("not_found", "\n".join([f"File not found: '{shown(given)}'", *listed]))
        self.ambiguous = hint == _AMBIGUOUS and bool(names)


_AMBIGUOUS = "Several names differ from it only in spaces, accents or escaped characters; give one exactly:"
_NEAR = "Did you mean:"


@dataclass(frozen=True)
class Found:
    """The place meant. `renamed` when its name is not the one given."""

    place: Place
    renamed: bool


def find(place: Place) -> Found:
    """The existing file or directory that `place` means. Raises MissingFile with near names. Blocks."""
    if _exists(place):
        return Found(place, renamed=False)
    _suggest_slashes(place)
    known: list[str] = []
    for part in place.parts:
        siblings = _siblings(place, known)
        if part not in siblings:
            known.append(_single_match(place, known, part, siblings))
        else:
            known.append(part)
    found = resolve(place.root, "/".join(known))  # a matched name may be a link
    if not _exists(found):
        raise MissingFile(place.given)
    return Found(Place(found.root, found.parts, place.given), renamed=True)


def _suggest_slashes(place: Place) -> None:
    if "\\" not in place.given:
        return
    try:
        meant = resolve(place.root, place.given.replace("\\", "/"))
    except PathError:
        return
    if meant.parts and _exists(meant):
        raise MissingFile(place.given, _NEAR, (meant.shown,))


def check_new(place: Place) -> None:
    """Refuse to make a file whose name was meant for Windows: here it would be one odd name in one folder.

    Raises PathError. An existing file of such a name is a file like any other.
    """
    if _DRIVE.match(place.given):
        raise PathError(
            "invalid_path",
            f'Path "{shown(place.given)}" names a Windows drive. Give the path from the workspace, with /.',
        )
    if any("\\" in part for part in place.parts):
        raise PathError(
            "invalid_path",
            f'Path "{shown(place.given)}" holds a backslash, which separates no folders here. Write '
            f'"{shown(place.given.replace(chr(92), "/"))}".',
        )


def folded(name: str) -> str:
    """What a name is to the most forgiving file system, on which several names lead to one file.

    Those take upper and lower case for the same (APFS, NTFS), leave out what is invisible (HFS+, which git
    had to learn: CVE-2014-9390), or drop dots and blanks at the end and take `git~1` for `.git` (NTFS).
    """
    seen = "".join(c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) != "Cf")
    plain = seen.casefold().partition(":")[0].rstrip(". ")
    return ".git" if plain == "git~1" else plain


def _single_match(place: Place, known: list[str], part: str, siblings: list[str]) -> str:
    same = [name for name in siblings if _same(name, part)]
    if len(same) == 1:
        return same[0]
    if same:
        raise MissingFile(place.given, _AMBIGUOUS, _listed(known, same))
    import difflib  # only for a name that is wrong

    by_fold = {name.casefold(): name for name in siblings}
    near = difflib.get_close_matches(part.casefold(), by_fold, n=_MAX_SUGGESTIONS, cutoff=0.6)
    raise MissingFile(place.given, _NEAR, _listed(known, [by_fold[name] for name in near]))


def _listed(known: list[str], names: list[str]) -> tuple[str, ...]:
    # Two names that look alike can only be told apart by escapes.
    paths = ["/".join([*known, name]) for name in names[:_MAX_SUGGESTIONS]]
    alike = len({_key(path) for path in paths}) < len(paths)
    return tuple(ascii(path) if alike else shown(path) for path in paths)


def _same(name: str, given: str) -> bool:
    return _key(name) == _key(given) or shown(name) == given


def _key(name: str) -> str:
    spaced = "".join(" " if unicodedata.category(character) == "Zs" else character for character in name)
    return unicodedata.normalize("NFC", spaced)


def _siblings(place: Place, known: list[str]) -> list[str]:
    try:
        with directory(place.root, known) as fd:
            names = [name for name in os.listdir(fd) if not is_temporary(name)]
    except OSError:
        return []  # not a directory, or not ours to list: no names to offer
    return sorted(names) if len(names) <= _MAX_SIBLINGS else []


def _exists(place: Place) -> bool:
    try:
        with directory(place.root, place.parts[:-1]) as fd:
            os.stat(place.parts[-1] if place.parts else ".", dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True
