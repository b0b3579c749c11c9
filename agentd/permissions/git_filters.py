"""Whether looking at a repository's files may run a program that its own configuration names.

`git status` and `git diff` pass changed files through the clean filters of the repository (gitattributes(5)),
and no option turns those off. So where the configuration in the repository speaks of filters, or takes in
another file that may, git is asked about. The user's own configuration is the user's word.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from agentd.workspace.guarded import GITDIR, pointed_to

# Anywhere: a header may stand behind another one, as in `[core][filter "x"]`, or behind a byte order mark.
_FILTERS = re.compile(rb"\[\s*(?:filter|include)", re.IGNORECASE)
_MAX_BYTES = 1024 * 1024


def may_run(cwd: Path) -> bool:
    """Whether git, run in this folder, may run a filter; also where that cannot be told.

    Git goes on upwards from a `.git` that is no repository, so all of them count.
    """
    repositories = [path for folder in (cwd, *cwd.parents) if (path := folder / ".git").exists()]
    try:
        return any(_speaks_of_filters(file) for each in repositories for file in _configuration(each))
    except (OSError, ValueError):
        return True


def _configuration(dot_git: Path) -> Iterator[Path]:
    """The files of a repository's configuration: git-config(1), gitrepository-layout(5). Raises OSError."""
    own = dot_git
    if dot_git.is_file():  # of a linked worktree or a submodule
        own = dot_git.parent / pointed_to(_small(dot_git).removeprefix(GITDIR))
    common = own / "commondir"
    yield (own / pointed_to(_small(common)) if common.exists() else own) / "config"
    if (own / "config.worktree").exists():
        yield own / "config.worktree"


def _speaks_of_filters(file: Path) -> bool:
    return _FILTERS.search(_small(file)) is not None


def _small(file: Path) -> bytes:
    if not file.is_file() or file.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{file} is no small file")
    return file.read_bytes()
