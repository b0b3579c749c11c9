"""What lies in a workspace that sandboxed commands must not touch: repositories, settings that run, secrets.

What git or an editor runs by itself is protected: whoever writes `.git/config` or `.vscode/tasks.json` runs
code outside the sandbox later. Only the whole of `.git` will do (a `.git/commondir` alone runs code), and the
folders above a nested repository or a secret must keep their names, or a copy could take its place.
"""

import hashlib
import os
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from agentd.workspace.secrets import is_secret

MOST_ENTRIES = 50_000
"""After how many names no further folder is looked into, the uppermost first."""

_MOST_OF_ONE = 1000
"""As how many names a folder counts at most: one that was filled must not keep others from being seen."""

REPOSITORIES = frozenset({".git", ".hg", ".jj", ".svn"})
SETTINGS = frozenset({".vscode", ".idea", ".mcp.json", ".agentd"})
"""Names, directly in the workspace folder, of what editors and agents run."""

# Other people's files: tools put them there anew, and the certificates among them are no secrets.
_DEPENDENCIES = frozenset(
    {
        "node_modules",
        "site-packages",
        "dist-packages",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        "__pycache__",
        "target",
    }
)
GITDIR = b"gitdir: "
"""How a `.git` begins that is a file: the path of the repository's folder follows."""

# What of a repository makes git run something, or look elsewhere.
_CONTROL = ("config", "config.worktree", "commondir", "gitdir", "info/attributes", "objects/info/alternates")
_MOST_HOOKS = 200
_MOST_BYTES = 1024 * 1024


@dataclass
class Guarded:
    """What was found. All paths are resolved, but for those in `named`.

    `named` are the protected names as they stand in the workspace, links too. `protected` is what they are,
    and where they lead as far as that is inside the workspace; `pinned` the folders above. `outside` is where
    they lead else. `secrets` is to be hidden. `complete`: all names of the workspace were looked at.
    """

    named: list[Path] = field(default_factory=list)
    protected: set[Path] = field(default_factory=set)
    pinned: set[Path] = field(default_factory=set)
    outside: set[Path] = field(default_factory=set)
    secrets: set[Path] = field(default_factory=set)
    complete: bool = True

    def recall(self, earlier: "Guarded") -> None:
        """Add what an earlier look has found and this one may have missed, as far as it is still there."""
        for name in ("protected", "pinned", "secrets"):
            paths: set[Path] = getattr(earlier, name)
            getattr(self, name).update(path for path in paths if path.exists() and _is_resolved(path))


def _is_resolved(path: Path) -> bool:
    return os.path.realpath(path) == str(path)


def look(root: Path, most: int = MOST_ENTRIES) -> Guarded:
    """Look through a workspace folder, from the top down. Blocks."""
    found = Guarded()
    seen = 0
    top: tuple[str, ...] = ()
    folders = deque([(str(root), top)])  # with the names of the folder and the one above, as far as inside
    while folders:
        if seen > most:
            found.complete = False
            break
        folder, parents = folders.popleft()
        entries = _entries(folder)
        seen += min(len(entries), _MOST_OF_ONE)
        for entry in entries:
            name = entry.name
            if name in REPOSITORIES or (not parents and name in SETTINGS):
                _protect(Path(entry.path), root, found)
            elif _holds_secrets((*parents, name), is_folder := _is_folder(entry)):
                _hide(Path(entry.path), root, found)
            elif is_folder and name not in _DEPENDENCIES:
                folders.append((entry.path, (*parents, name)[-2:]))
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []  # gone, or not ours to look into: then no command of ours can either


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _holds_secrets(parts: tuple[str, ...], is_folder: bool) -> bool:
    """By its name. A folder is judged by what any file in it would be: `.env` may be a Python environment."""
    return is_secret((*parts, "any") if is_folder else parts)


def _hide(path: Path, root: Path, found: Guarded) -> None:
    target = Path(os.path.realpath(path))
    if target.exists():
        found.secrets.add(target)
        # A command that runs already could move them away in the moment in which the next one's are hidden.
        _pin_above(target, root, found)


def _protect(path: Path, root: Path, found: Guarded) -> None:
    found.named.append(path)
    for place in (path, *repository_folders(path)):
        target = Path(os.path.realpath(place))
        if not target.exists() or root.is_relative_to(target):
            continue  # nowhere, or the workspace itself: no repository
        if not target.is_relative_to(root):
            found.outside.add(target)
        else:
            protect(target, root, found)


def protect(target: Path, root: Path, found: Guarded) -> None:
    """Have a resolved path below `root` protected, and the folders above it keep their names."""
    found.protected.add(target)
    _pin_above(target, root, found)


def _pin_above(target: Path, root: Path, found: Guarded) -> None:
    found.pinned.update(each for each in target.parents if each != root and each.is_relative_to(root))


def repository_folders(dot_git: Path) -> Iterator[Path]:
    """The folders that a `.git` leads to: its own where it is a file, and the one that worktrees share.

    See gitrepository-layout(5).
    """
    folder = dot_git
    if dot_git.is_file():
        said = _content(dot_git)
        if not said.startswith(GITDIR):
            return
        folder = dot_git.parent / pointed_to(said.removeprefix(GITDIR))
        yield folder
    if said := _content(folder / "commondir"):
        yield folder / pointed_to(said)


def is_git_folder(folder: Path) -> bool:
    """Whether git takes a folder for a repository's own, whatever its name."""
    return (folder / "HEAD").exists() and all((folder / name).is_dir() for name in ("objects", "refs"))


def pointed_to(said: bytes) -> str:
    """The path that a file of git's speaks of, read as git does: a blank may be part of a folder's name."""
    return os.fsdecode(said.rstrip(b"\r\n").partition(b"\0")[0])


def _content(path: Path) -> bytes:
    file = _open_plain(path)
    if file is None:
        return b""
    with file:
        return file.read(8192)


def _open_plain(path: Path) -> BinaryIO | None:
    """A file that can be read without waiting; None where it is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    return None


# --- before and after -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Snapshot:
    """What stood at protected places at one moment: for each path what it was."""

    marks: dict[Path, str]

    def changes(self, later: "Snapshot") -> list[Path]:
        """The paths that came, went or changed, in order."""
        paths = self.marks.keys() | later.marks.keys()
        return sorted(path for path in paths if self.marks.get(path) != later.marks.get(path))


def snapshot(found: Guarded, *, contents: bool) -> Snapshot:
    """The protected names, and with `contents` also what in them can make git run something. Blocks."""
    marks = {}
    for path in found.named:
        marks[path] = _identity(path)
        if contents:
            marks[path] += _digest(path)
            marks |= {inner: _digest(inner) for inner in _control_files(path)}
    return Snapshot({path: mark for path, mark in marks.items() if mark})


def _control_files(path: Path) -> Iterator[Path]:
    if path.name in SETTINGS:
        yield from sorted(path.glob("*"))[:_MOST_HOOKS]
        return
    for folder in (path, *repository_folders(path)):
        yield from (folder / name for name in _CONTROL)
        hooks = sorted((folder / "hooks").glob("*"))[:_MOST_HOOKS]
        yield from (hook for hook in hooks if hook.suffix != ".sample")


def _identity(path: Path) -> str:
    try:
        status = os.lstat(path)
        leads = os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}:{stat.S_IFMT(status.st_mode)}:{leads}"


def _digest(path: Path) -> str:
    file = _open_plain(path)
    if file is None:
        return ""
    with file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        return f"{mode:o}:{hashlib.sha256(file.read(_MOST_BYTES)).hexdigest()}"
