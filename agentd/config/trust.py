"""Which folders the user trusts, apart from what the client says of its own workspace.

Trust is the user's word, given to `agentd trust add` or written as `trusted` into the user's configuration.
It is never read from a workspace. A folder is trusted as the nearest folder above it is of which the user has
spoken. What is too wide to be meant (`/`, the home folder and what holds it) cannot be trusted at all.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentd.config.folders import data_dir
from agentd.config.state_file import StateError, StateFile
from agentd.protocol.methods import Problem


class TrustRefused(Exception):
    """A folder that cannot be trusted, said for the user."""


class Trust:
    """The user's trust. Blocks on the disk, for a look at one file's status as a rule."""

    def __init__(self, file: Path, configured: Iterable[Path] = (), home: Path | None = None) -> None:
        """`configured` are the folders of the user's configuration, resolved."""
        self._file = StateFile(file)
        self._configured = tuple(configured)
        self._home = home

    @classmethod
    def of_user(cls, environ: Mapping[str, str], configured: Iterable[Path] = ()) -> "Trust":
        """The trust of the user whose variables these are."""
        return cls(data_dir(environ) / "trust.json", configured, home_of(environ))

    def trusts(self, root: Path) -> bool:
        """Whether the user trusts this folder, which is resolved. A store that is damaged trusts nothing."""
        if self._file.path.is_relative_to(root) or _too_wide(root, self._home) is not None:
            return False  # whoever works in it could write the answer
        try:
            said = {**dict.fromkeys(self._configured, True), **self._said()}
        except StateError:
            return False
        near = [folder for folder in (root, *root.parents) if folder in said]
        return bool(near) and said[near[0]] and _too_wide(near[0], self._home) is None

    def folders(self) -> dict[Path, bool]:
        """What was said to `agentd trust`: each folder, and whether it is trusted. Raises StateError."""
        return self._said()

    def add(self, folder: Path) -> Path:
        """Trust a folder and what is in it. Gives the folder, resolved. Raises TrustRefused, StateError."""
        real = Path(os.path.realpath(folder))
        if not real.is_dir():
            raise TrustRefused(f"{folder} is no folder.")
        if (why := _too_wide(real, self._home)) is not None:
            raise TrustRefused(f"{real} cannot be trusted: {why}. Trust the folders in it that you work in.")
        self._say(real, True)
        return real

    def remove(self, folder: Path) -> bool:
        """Trust a folder no longer, also in a trusted one. False: it was not trusted. Raises StateError."""
        real = Path(os.path.realpath(folder))
        was = self.trusts(real) or self._said().get(real) is not None
        self._say(real, None)
        if self.trusts(real):
            self._say(real, False)
        return was

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the store."""
        try:
            self._said()
        except StateError as error:
            return (Problem(severity="error", message=str(error), uri=self._file.path.as_uri()),)
        return ()

    def _said(self) -> dict[Path, bool]:
        folders = self._file.read().get("folders", {})
        if not isinstance(folders, dict) or not all(_is_entry(*entry) for entry in folders.items()):
            raise StateError(f"{self._file.path} is damaged; nothing in it counts. Repair it or remove it.")
        return {Path(folder): trusted for folder, trusted in folders.items()}

    def _say(self, folder: Path, trusted: bool | None) -> None:
        with self._file.change() as document:
            folders = document.setdefault("folders", {})
            folders.pop(str(folder), None)
            if trusted is not None:
                folders[str(folder)] = trusted


def _is_entry(folder: Any, trusted: Any) -> bool:
    return isinstance(folder, str) and folder.startswith("/") and isinstance(trusted, bool)


def home_of(environ: Mapping[str, str]) -> Path | None:
    """The user's home folder, resolved, where there is one."""
    named = environ.get("HOME", "").strip() or os.path.expanduser("~")
    return Path(os.path.realpath(named)) if named.startswith("/") else None


def _too_wide(folder: Path, home: Path | None) -> str | None:
    """Why trust in this folder would be trust in too much."""
    if folder == Path("/"):
        return "everything is in it"
    if home is not None and home.is_relative_to(folder) and home != Path("/"):
        return "it is your home folder" if folder == home else "your home folder is in it"
    return None


def too_wide(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Why a folder cannot be trusted; None where it can."""
    return _too_wide(folder, home_of(environ))
