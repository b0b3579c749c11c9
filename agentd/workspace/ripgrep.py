"""Which ripgrep to use: the one that `agentd-lsp[fast]` brings along, else the system's, else none.

It runs outside the sandbox and without a question, so the workspace must have no say in which program it is:
neither a folder of PATH in the workspace nor a relative one counts, nor a program that anyone may change.
"""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_NAME = "rg"
_FIRST_VERSION = 13  # tried; 12 is the first that knows `--encoding none`
_PROBE_SECONDS = 5
_VERSION = re.compile(r"ripgrep ((\d+)\.\d+\S*)")


@dataclass(frozen=True)
class Ripgrep:
    """A program that said it is ripgrep."""

    path: str
    version: str


def find_ripgrep(root: Path, path: str) -> Ripgrep | None:
    """The ripgrep for a workspace at `root`; `path` is what PATH says. Blocks."""
    real_root = Path(os.path.realpath(root))
    for candidate in _candidates(path):
        if not _is_trusted(candidate, real_root):
            continue
        status = candidate.stat()
        version = _version(str(candidate), status.st_ino, status.st_mtime_ns)
        if version is not None:
            return Ripgrep(str(candidate), version)
    return None


def _candidates(path: str) -> Iterator[Path]:
    if (installed := _installed()) is not None:
        yield installed
    for folder in path.split(os.pathsep):
        if os.path.isabs(folder):
            yield Path(folder, _NAME)


@cache
def _installed() -> Path | None:
    """The program of the package `ripgrep`, from where the daemon itself imports."""
    from importlib.metadata import PackageNotFoundError, distributions  # only a search by content needs it

    places = [entry for entry in sys.path if os.path.isabs(entry)]
    try:
        for package in distributions(name="ripgrep", path=places):
            for file in package.files or ():
                if file.name == _NAME:
                    return Path(os.path.abspath(str(package.locate_file(file))))
    except (PackageNotFoundError, OSError, ValueError):  # a broken installation is none
        return None
    return None


def _is_trusted(program: Path, root: Path) -> bool:
    """Whether it is a program, and neither the workspace nor everyone can change it."""
    real = Path(os.path.realpath(program))
    if any(place.is_relative_to(root) for place in (program, real, Path(os.path.realpath(program.parent)))):
        return False
    try:
        status, folder = real.stat(), real.parent.stat()
    except OSError:
        return False
    return (
        stat.S_ISREG(status.st_mode)
        and not status.st_mode & stat.S_IWOTH
        and not (folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX)
        and os.access(real, os.X_OK)
    )


@cache
def _version(program: str, inode: int, changed_ns: int) -> str | None:
    """What the program says it is; None when it is no ripgrep, or one too old. Asked once for each file."""
    try:
        said = subprocess.run(
            [program, "--no-config", "--version"], cwd="/", env={}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_PROBE_SECONDS, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.match(said.decode("ascii", "replace"))
    return match[1] if match and int(match[2]) >= _FIRST_VERSION else None
