"""Documents of the editor that are no file yet (`untitled:Untitled-1`), named by URI as files are by path.

The editor alone holds their text, so they are read and changed there and nowhere else. Their place has a path
of its own kind, the URI as a relative path: those of files are absolute, so no file is ever taken for one.
"""

from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from agentd.workspace.paths import Place, WorkspaceError, shown

_SCHEME = "untitled:"
_MOST_NAMED = 10


class Untitled(Place):
    """The place of such a document. Its `parts` are none that a file could have."""

    @cached_property
    def path(self) -> Path:
        """What tells it from others."""
        return Path(self.uri)

    @property
    def relative(self) -> str:
        """Its URI, which is its name."""
        return self.uri

    @property
    def uri(self) -> str:
        """As the editor spells it."""
        return self.parts[1]

    @property
    def names(self) -> tuple[str, ...]:
        """The components of the name under which it would be saved, where its URI holds one."""
        return PurePosixPath(unquote(self.uri.removeprefix(_SCHEME))).parts


def is_untitled(name: str) -> bool:
    """Whether a name is the URI of such a document."""
    return name.startswith(_SCHEME)


def untitled(root: Path, uri: str) -> Untitled:
    """The place of the document with this URI, which the sessions of a workspace folder may change."""
    return Untitled(root, ("", uri), uri)


def place_at(root: Path, parts: tuple[str, ...]) -> Place:
    """The place that was kept by its parts: of a file, or of such a document."""
    return Untitled(root, parts, parts[1]) if is_of_untitled(parts) else Place(root, parts, "/".join(parts))


def is_of_untitled(parts: tuple[str, ...]) -> bool:
    """Whether parts are those of such a document."""
    return len(parts) == 2 and not parts[0] and is_untitled(parts[1])


def not_open(uri: str, others: tuple[str, ...]) -> WorkspaceError:
    """The refusal of a document that is not open (any more); `others` are."""
    listed = ", ".join(shown(each) for each in others[:_MOST_NAMED])
    there = f" Open are: {listed}." if others else " No document without a file is open."
    return WorkspaceError("not_found", f"'{shown(uri)}' is not open in the editor.{there}")
