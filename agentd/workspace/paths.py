"""Where a path may lead: confinement to the workspace, and file URIs.

A path is judged by the components it resolves to, links included, never by its spelling or by the process's
working directory. What was resolved here is opened by `beneath`, which accepts no link any more: a link put
in between makes the opening fail, it never leads outside.
"""

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote_to_bytes

WorkspaceErrorKind = Literal[
    "outside", "invalid_path", "uri", "not_found", "not_a_file", "too_large", "binary", "encoding",
    "denied", "unseen", "stale", "no_match", "storage", "search",
]  # fmt: skip

# C0 and C1 controls, line separators, marks that reorder text, and what UTF-8 cannot carry.
_UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ATTEMPTS = 16
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WINDOWS_DRIVE = re.compile(rb"/[A-Za-z][:|](/|$)")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class WorkspaceError(Exception):
    """What cannot be done in the workspace, said for the model: the thing, the reason, the way out."""

    def __init__(self, kind: WorkspaceErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class PathError(WorkspaceError):
    """A path that names nothing one may use."""


class OutsideWorkspace(PathError):
    """A path that leads out of the workspace."""

    def __init__(self, given: str) -> None:
        super().__init__("outside", f'Path "{shown(given)}" is outside the working directory.')


class UriError(WorkspaceError):
    """A URI that names no file of this machine."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__("uri", f'URI "{shown(uri)}" {reason}')


@dataclass(frozen=True)
class Place:
    """A place beneath a workspace root; it need not exist.

    `root` is resolved. `parts` are the components below it, none of which was a link when it was resolved;
    none at all is the root itself. `given` is the path as the model wrote it.
    """

    root: Path
    parts: tuple[str, ...]
    given: str

    @cached_property
    def path(self) -> Path:
        """The absolute, resolved path."""
        return self.root.joinpath(*self.parts)

    @property
    def relative(self) -> str:
        """The path from the root, with `/`; `.` for the root."""
        return "/".join(self.parts) or "."

    @property
    def names(self) -> tuple[str, ...]:
        """The components that tell what kind of file it is."""
        return self.parts

    @property
    def shown(self) -> str:
        """The path from the root, fit to be read."""
        return shown(self.relative)

    @property
    def uri(self) -> str:
        """The `file:` URI."""
        return uri_of(self.path)


def shown(name: str) -> str:
    """A name fit to be read by people and models: controls and stray bytes escaped, on one line.

    A byte that is not UTF-8 (a lone surrogate of Python's `surrogateescape`) becomes `\\xNN`.
    """
    return _UNSHOWABLE.sub(lambda match: _escaped(match[0]), name)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    short = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return _SHORT_ESCAPES.get(character, short)


def resolve(root: Path, given: str) -> Place:
    """The place that a path means, relative ones from `root`.

    Raises OutsideWorkspace when it leads out, be it by `..`, absolutely or through a link (a dangling one
    too), and PathError when it cannot be a path at all. Links are followed as the system does. Blocks on the
    disk.
    """
    if "\0" in given:
        raise PathError("invalid_path", f'Path "{shown(given)}" holds a NUL character.')
    try:
        real_root = Path(os.path.realpath(root))
        real = Path(_real(real_root, given))
    except UnicodeEncodeError as error:
        raise PathError(
            "invalid_path", f'Path "{shown(given)}" holds a character that no name can have.'
        ) from error
    if not real.is_relative_to(real_root):
        raise OutsideWorkspace(given)
    return Place(real_root, real.relative_to(real_root).parts, given)


def _real(root: Path, given: str) -> str:
    for _ in range(_ATTEMPTS):
        try:
            return os.path.realpath(root / given)
        except OSError:  # a component was a link when it was looked at, and none when it was read
            continue
    raise PathError("invalid_path", f'Path "{shown(given)}" kept changing while it was looked at. Try again.')


def lexical_uri(root: Path, given: str) -> str | None:
    """The URI that a path seems to mean, without a look at the disk; None when it seems to lead outside."""
    if "\0" in given:
        return None
    path = Path(os.path.normpath(root / given))
    try:
        return uri_of(path) if path.is_relative_to(root) else None
    except UnicodeEncodeError:
        return None


def uri_of(path: Path) -> str:
    """The `file:` URI of an absolute path (RFC 8089), its bytes percent-encoded."""
    if not path.is_absolute():
        raise ValueError(f"{shown(str(path))!r} is not an absolute path")
    return "file://" + quote(os.fsencode(path))


def path_of(uri: str) -> Path:
    """The path that a `file:` URI names, decoded once, on bytes. Not resolved: the disk is not looked at.

    Takes the forms of RFC 8089 (`file:///x`, `file://localhost/x`, `file:/x`) and a plain absolute path.
    Raises UriError for other schemes, other hosts, Windows drives, a query or fragment, and broken escapes.
    """
    if uri.startswith("/"):
        return _absolute(uri, os.fsencode(uri))
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "file":
        raise UriError(uri, "is not supported: only file: URIs are.")
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            raise UriError(uri, f'names the host "{shown(host)}"; only files of this machine can be used.')
        rest = slash + tail
    if "?" in rest or "#" in rest:
        raise UriError(uri, 'has a query or a fragment. In a name, write "?" as %3F and "#" as %23.')
    if _BROKEN_ESCAPE.search(rest):
        raise UriError(uri, 'has a "%" that begins no escape. In a name, write it as %25.')
    try:
        name = unquote_to_bytes(os.fsencode(rest))
    except UnicodeEncodeError as error:
        raise UriError(uri, "holds a character that no name can have.") from error
    if _WINDOWS_DRIVE.match(name):
        raise UriError(uri, "names a Windows drive, which this system does not have.")
    return _absolute(uri, name)


def _absolute(uri: str, name: bytes) -> Path:
    if not name.startswith(b"/"):
        raise UriError(uri, "names no absolute path.")
    if b"\0" in name:
        raise UriError(uri, "holds a NUL character.")
    return Path(os.fsdecode(b"/" + name.lstrip(b"/")))
