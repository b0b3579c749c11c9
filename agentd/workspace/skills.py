"""Skills: folders with a `SKILL.md` that says how to do one kind of work, and files beside it that help.

The form is that of https://agentskills.io/specification: YAML front matter with `name` and `description`, the
name that of the folder. The user's own lie in agentd's configuration folder and in `~/.agents/skills`, a
project's in its workspace. What is wrong with one is a `Problem` and stands in the way of no other. Nothing
here runs anything; whether a project's skills count is for others to say.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agentd.config import front_matter
from agentd.config.front_matter import FrontMatterError
from agentd.protocol.methods import Problem
from agentd.protocol.text import clean_text, without_unseen
from agentd.workspace import files
from agentd.workspace.beneath import directory
from agentd.workspace.names import MissingFile
from agentd.workspace.paths import OutsideWorkspace, Place, WorkspaceError, resolve, shown, uri_of

FILE = "SKILL.md"
PROJECT_FOLDERS = (".agentd/skills", ".agents/skills", ".claude/skills")
"""Where a workspace keeps its skills: agentd's own place, the one that agents share, and another's."""
MAX_BYTES = 64 * 1024
MAX_SKILLS = 200
"""How many entries of one folder are looked at."""
MAX_DESCRIPTION = 1024  # characters, as the specification has it

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")

Owner = Literal["user", "project"]


@dataclass(frozen=True)
class Skill:
    """A skill that can be loaded. `folder` is resolved; `shown` is how people and models are told of it."""

    name: str
    description: str
    owner: Owner
    folder: Path
    shown: str


@dataclass(frozen=True)
class Skills:
    """What was found: the user's and the project's, each by name, and what is wrong with others."""

    users: tuple[Skill, ...] = ()
    projects: tuple[Skill, ...] = ()
    users_problems: tuple[Problem, ...] = ()
    projects_problems: tuple[Problem, ...] = ()

    def loadable(self, *, trusted: bool) -> tuple[Skill, ...]:
        """Those that count in a workspace that is trusted, or not."""
        return (*self.users, *(self.projects if trusted else ()))

    def problems(self, *, trusted: bool) -> tuple[Problem, ...]:
        """What the user should know of them."""
        if trusted:
            return (*self.users_problems, *self.projects_problems)
        unheeded = len(self.projects)
        if not unheeded:
            return self.users_problems
        what = f"{unheeded} skill{'' if unheeded == 1 else 's'}"
        message = f"{what} of the workspace: not loaded, as the workspace is not trusted."
        return (*self.users_problems, Problem(severity="info", message=message))


NO_SKILLS = Skills()


class SkillText(Exception):
    """A skill's file that cannot be read; the message says why. `line` is 0-based."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


@dataclass
class SkillFolders:
    """Finds skills. `users` are the folders of the user's own, in the order in which they count.

    What was read of a file is kept until the file changes: one that did not is only looked at again.
    """

    users: tuple[Path, ...] = ()
    _known: dict[Path, tuple[tuple[int, ...], dict[str, object] | SkillText]] = field(default_factory=dict)

    def find(self, root: Path | None) -> Skills:
        """The skills for work in a workspace folder, where there is one. Blocks on the disk; never raises."""
        taken: dict[str, Skill] = {}
        seen: set[Path] = set()
        users_problems: list[Problem] = []
        for base in self.users:
            for folder in _users_folders(base, users_problems):
                self._add("user", folder, str(folder), taken, seen, users_problems)
        users = tuple(sorted(taken.values(), key=lambda skill: skill.name))
        problems: list[Problem] = []
        for base_name in PROJECT_FOLDERS if root is not None else ():
            assert root is not None
            for folder, name in _project_folders(root, base_name, problems):
                self._add("project", folder, name, taken, seen, problems)
        projects = (skill for skill in taken.values() if skill.owner == "project")
        return Skills(
            users,
            tuple(sorted(projects, key=lambda skill: skill.name)),
            tuple(users_problems),
            tuple(problems),
        )

    def _add(
        self,
        owner: Owner,
        folder: Path,
        name: str,
        taken: dict[str, Skill],
        seen: set[Path],
        problems: list[Problem],
    ) -> None:
        """Take up the skill of a folder, unless another place led to the same folder before."""
        if (real := Path(os.path.realpath(folder))) in seen:
            return
        seen.add(real)
        path = folder / FILE
        try:
            values = self._values(real)
            if values is None:
                return
            skill, remark = _skill(values, folder.name, owner, real, shown(name))
        except SkillText as error:
            problems.append(_problem(f"{path} is not loaded: {error}", path, error.line))
            return
        if remark:
            problems.append(_problem(f"{path}: {remark}", path, None))
        if skill is None:
            return
        if (other := taken.get(skill.name)) is not None:
            why = f'{other.folder / FILE} has the same name, "{skill.name}", and goes first'
            problems.append(_problem(f"{path} is not loaded: {why}.", path, None))
            return
        taken[skill.name] = skill

    def _values(self, folder: Path) -> dict[str, object] | None:
        """The front matter of a skill's file; None where there is no file. Raises `SkillText`."""
        try:
            place = _file(folder)
            status = os.stat(place.path, follow_symlinks=False)
        except FileNotFoundError:
            self._known.pop(folder, None)
            return None
        except (WorkspaceError, OSError) as error:
            raise SkillText(_reason(error)) from error
        key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
        known = self._known.get(folder)
        if known is None or known[0] != key:
            try:
                values: dict[str, object] | SkillText = text_of(folder)[0]
            except SkillText as error:
                values = error
            known = self._known[folder] = (key, values)
        if isinstance(known[1], SkillText):
            raise known[1]
        return known[1]


def text_of(folder: Path) -> tuple[dict[str, object], str]:
    """What a skill's file says of itself, and its text. Blocks on the disk. Raises `SkillText`."""
    try:
        place = _file(folder)
        if os.stat(place.path, follow_symlinks=False).st_size > MAX_BYTES:
            raise SkillText(f"it is larger than {MAX_BYTES // 1024} KB; move parts of it to files beside it.")
        data = files.read(place).data
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillText(f"it is not UTF-8 text (byte {error.start}).") from error
    except (WorkspaceError, OSError) as error:
        raise SkillText(_reason(error)) from error
    try:
        values, body = front_matter.read(text)
    except FrontMatterError as error:
        raise SkillText(f"{error}.", error.line) from error
    if not values:
        raise SkillText("it does not begin with front matter, lines between --- with name and description.")
    return values, clean_text(body).strip()


def _file(folder: Path) -> Place:
    """Where a skill's file is. Raises WorkspaceError where it leads out of the folder."""
    place = resolve(folder, FILE)
    if place.root != folder:
        raise WorkspaceError("not_found", "its folder leads elsewhere by now.")
    return place


def _skill(
    values: dict[str, object], folder_name: str, owner: Owner, folder: Path, name_shown: str
) -> tuple[Skill | None, str]:
    """The skill, and what there is to say of it; no skill where it is not for models. Raises `SkillText`."""
    name, description = values.get("name"), values.get("description")
    for key, value in (("name", name), ("description", description)):
        if value is None:
            raise SkillText(f'it has no "{key}" in its front matter.')
        if not isinstance(value, str) or not value.strip():
            raise SkillText(f'its "{key}" has to be text.')
    assert isinstance(name, str)
    assert isinstance(description, str)
    if not _NAME.fullmatch(name):
        raise SkillText(f"its name {name[:80]!r} has to be 1 to 64 letters, digits, hyphens, dots or _.")
    if name != folder_name:
        raise SkillText(f'its name "{name}" is not that of its folder, "{shown(folder_name)}".')
    if values.get("disable-model-invocation") is True:
        return None, ""
    line = shown(" ".join(without_unseen(clean_text(description)).split()))
    remark = ""
    if len(line) > MAX_DESCRIPTION:
        remark = f"its description is cut after {MAX_DESCRIPTION} characters."
    return Skill(name, line[:MAX_DESCRIPTION].rstrip(), owner, folder, name_shown), remark


def _users_folders(base: Path, problems: list[Problem]) -> Iterator[Path]:
    """The folders in one of the user's own. Where they are links the user has put them there."""
    try:
        names = os.listdir(base)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        problems.append(_problem(f"{base} cannot be read: {error.strerror}.", base, None))
        return
    for name in _first(base, names, problems):
        if os.path.isdir(base / name):
            yield base / name


def _project_folders(root: Path, base: str, problems: list[Problem]) -> Iterator[tuple[Path, str]]:
    """The folders in one of a workspace's, and their names in it; none that leads out of the workspace."""
    path = root / base
    try:
        place = resolve(root, base)
        with directory(place.root, place.parts) as fd:
            names = os.listdir(fd)
    except (FileNotFoundError, NotADirectoryError, MissingFile):
        return
    except (WorkspaceError, OSError) as error:
        problems.append(_problem(f"{path} is not looked at: {_reason(error)}", path, None))
        return
    for name in _first(path, names, problems):
        try:
            folder = resolve(root, f"{base}/{name}")
            is_folder = stat.S_ISDIR(os.stat(folder.path, follow_symlinks=False).st_mode)
        except (WorkspaceError, OSError) as error:
            problems.append(_problem(f"{path / name} is not looked at: {_reason(error)}", path / name, None))
            continue
        if is_folder:
            yield path / name, f"{base}/{name}"


def _first(base: Path, names: Sequence[str], problems: list[Problem]) -> list[str]:
    """The names that are looked at, in order."""
    found = sorted(name for name in names if not name.startswith("."))
    if len(found) > MAX_SKILLS:
        problems.append(_problem(f"{base}: only the first {MAX_SKILLS} of {len(found)} count.", base, None))
    return found[:MAX_SKILLS]


def _reason(error: WorkspaceError | OSError) -> str:
    if isinstance(error, OutsideWorkspace):
        return "it leads out of the folder that it may be in."
    return f"{error.strerror}." if isinstance(error, OSError) else str(error)


def _problem(message: str, path: Path, line: int | None) -> Problem:
    return Problem(severity="warning", message=clean_text(shown(message)), uri=uri_of(path), line=line)
