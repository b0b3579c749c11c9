"""Commands: prompts that users and projects keep as files, and those that agentd has itself.

A command is a Markdown file below `commands` in the user's configuration folder, or below `.agentd/commands`
of a workspace that the user trusts: `commands/git/fix.md` is `/git:fix`. What it says becomes the prompt. Its
front matter may have `description`, `argument-hint`, `model` and `mode`; a mode can only be stricter than the
one that holds anyway. Nothing in it is run. Built-in commands go before the user's, those before the
project's.
"""

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

from agentd.config import front_matter
from agentd.config.front_matter import FrontMatterError
from agentd.config.provider_settings import MODEL_ID
from agentd.config.toml_table import shown
from agentd.config.workspace_settings import FOLDER as WORKSPACE_FOLDER
from agentd.protocol.messages import Mode
from agentd.protocol.methods import CommandInfo, Problem
from agentd.protocol.text import clean_text, one_line, without_unseen
from agentd.workspace import files
from agentd.workspace.beneath import directory, open_directory
from agentd.workspace.names import MissingFile
from agentd.workspace.paths import Place, WorkspaceError, resolve
from agentd.workspace.secrets import is_secret
from agentd.workspace.text import BinaryContent, decode

BUILT_IN: dict[str, tuple[str, str | None]] = {
    "compact": ("Sum up the conversation, so that requests become short again", "[what to keep]"),
    "cost": ("What this session has used", None),
    "diff": ("What this session has changed in files", None),
    "export": ("This session as Markdown", None),
    "help": ("The commands that there are", None),
    "mode": ("Show the permission mode, or change it", "[plan|ask|edit|auto|full]"),
    "model": ("Show the model, or change it", "[provider/model]"),
    "undo": ("Bring back the files that the last prompt has changed", None),
}
"""The commands that agentd has itself: what they do, and their arguments."""

FOLDER = "commands"
MAX_BYTES = 64 * 1024
MAX_FILES = 500

_MAX_DEPTH = 4
_PART = re.compile(r"\w[\w.-]{0,63}")
_KNOWN = ("description", "argument-hint", "model", "mode")
_DESCRIPTION_LENGTH = 100
_MODES: tuple[Mode, ...] = get_args(Mode)  # the strictest first

Source = Literal["user", "workspace"]


@dataclass(frozen=True)
class Command:
    """A command that was read. `text` is its template; `problems` are what of it does not count."""

    name: str
    description: str
    source: Source
    text: str
    argument_hint: str | None = None
    model: str | None = None
    mode: Mode | None = None
    problems: tuple[Problem, ...] = ()


class CommandError(Exception):
    """A command that there is not, or that cannot be used. `problem` is what is wrong with its file."""

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True)
class Catalogue:
    """All commands of files that can be used, and what is wrong with the others."""

    commands: tuple[Command, ...]
    problems: tuple[Problem, ...]

    def infos(self) -> tuple[CommandInfo, ...]:
        """What a client is told of them, the built-in ones among them."""
        built_in = [
            CommandInfo(name=name, description=said, argument_hint=hint, source="built-in")
            for name, (said, hint) in BUILT_IN.items()
        ]
        own = [
            CommandInfo(
                name=each.name,
                description=each.description,
                argument_hint=each.argument_hint,
                source=each.source,
            )
            for each in self.commands
        ]
        return tuple(sorted([*built_in, *own], key=lambda info: info.name))


class Commands:
    """The commands of files that count in one workspace folder. Blocks on the disk; nothing is kept."""

    def __init__(self, root: Path, config_folder: Path | None, *, trusted: bool) -> None:
        """`config_folder` is the user's; the workspace's commands count only where it is `trusted`."""
        users = [_Shelf("user", config_folder / FOLDER, ())] if config_folder is not None else []
        self._workspaces = _Shelf("workspace", root, (WORKSPACE_FOLDER, FOLDER))
        self._trusted = trusted
        self._shelves = [*users, *([self._workspaces] if trusted else [])]

    def find(self, name: str) -> Command:
        """The command of that name, which is no built-in one. Raises CommandError."""
        for shelf in self._shelves:
            try:
                return shelf.read(name)
            except MissingFile:
                continue
        known = {*BUILT_IN, *(each for shelf in self._shelves for each in shelf.names([]))}
        where = f"commands/{name.replace(':', '/')}.md"
        more = ""
        if not self._trusted and self._workspaces.has(name):
            more = f" The workspace has one ({WORKSPACE_FOLDER}/{where}), which counts once you trust it."
        raise CommandError(f"There is no command {shown('/' + name)}.{_meant(name, known)}{more}")

    def catalogue(self) -> Catalogue:
        """All of them, by name, and what is wrong. One broken file stands in the way of no other."""
        found: dict[str, Command] = {}
        problems: list[Problem] = []
        for shelf in self._shelves:
            for name in shelf.names(problems):
                if name in BUILT_IN:
                    problems.append(
                        shelf.problem(name, f"/{name} is a built-in command; this one never runs")
                    )
                elif name in found:
                    whose = f"your own /{name} ({FOLDER}/{name.replace(':', '/')}.md) goes before this one"
                    problems.append(shelf.problem(name, whose))
                else:
                    _add(found, problems, shelf, name)
        if not self._trusted and self._workspaces.exists:
            path = self._workspaces.path
            message = f"{path} is not read: the workspace is not trusted."
            problems.append(Problem(severity="info", message=message, uri=path.as_uri()))
        return Catalogue(tuple(found[name] for name in sorted(found)), tuple(problems))


def _meant(name: str, known: Collection[str]) -> str:
    """The names near a wrong one, in words."""
    import difflib  # only for a name that is wrong

    near = difflib.get_close_matches(name.casefold(), sorted(known), n=3)
    return f" Did you mean {' or '.join(f'/{each}' for each in near)}?" if near else ""


def _add(found: dict[str, Command], problems: list[Problem], shelf: "_Shelf", name: str) -> None:
    try:
        found[name] = shelf.read(name)
    except MissingFile:
        return  # removed just now
    except CommandError as error:
        problems += [error.problem] if error.problem is not None else []
    else:
        problems += found[name].problems


@dataclass(frozen=True)
class _Shelf:
    """One folder of commands: `parts` below `root`, out of which no link in it may lead."""

    source: Source
    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.root.joinpath(*self.parts)

    @property
    def exists(self) -> bool:
        return os.path.isdir(self.path)

    def file(self, name: str) -> Path:
        """The file of a command, whether it exists or not."""
        return self.path.joinpath(*name.split(":")[:-1], f"{name.split(':')[-1]}.md")

    def has(self, name: str) -> bool:
        return _is_name(name) and os.path.lexists(self.file(name))

    def problem(self, name: str, why: str, line: int | None = None) -> Problem:
        """What is wrong with a file."""
        path = self.file(name)
        place = f"{path}:{line + 1}" if line is not None else str(path)
        uri = path.as_uri() if path.is_absolute() else None
        return Problem(severity="warning", message=clean_text(f"{place}: {why}."), uri=uri, line=line)

    def names(self, problems: list[Problem]) -> list[str]:
        """The names of what lies there; what cannot be a command is a problem."""
        try:
            place = resolve(self.root, "/".join(self.parts))
            with directory(place.root, place.parts) as fd:
                found = sorted(islice(_walk(fd, ()), MAX_FILES + 1))
        except FileNotFoundError:
            return []
        except (OSError, WorkspaceError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            message = clean_text(f"{self.path} cannot be read: {why}")
            problems.append(Problem(severity="warning", message=message))
            return []
        if len(found) > MAX_FILES:
            message = f"{self.path} holds more than {MAX_FILES} commands; the others are left out."
            problems.append(Problem(severity="warning", message=clean_text(message)))
        names = [":".join(parts) for parts in found[:MAX_FILES]]
        for name in names:
            if not _is_name(name):
                why = "its name cannot be typed: letters, digits, `_`, `-` and `.` are taken"
                problems.append(self.problem(name, why))
        return [name for name in names if _is_name(name)]

    def read(self, name: str) -> Command:
        """The command of a name. Raises MissingFile, or CommandError where it cannot be used."""
        if not _is_name(name):
            raise MissingFile(name)
        try:
            place = resolve(self.root, "/".join((*self.parts, *name.split(":"))) + ".md")
            return self._parsed(name, _text(place))
        except MissingFile:
            if os.path.lexists(self.file(name)):
                raise self._broken(name, "it is a link that leads nowhere") from None
            raise
        except BinaryContent:
            raise self._broken(name, "it is no text") from None
        except FrontMatterError as error:
            raise self._broken(name, str(error), error.line) from error
        except WorkspaceError as error:
            raise self._broken(name, str(error).rstrip(".")) from error

    def _broken(self, name: str, why: str, line: int | None = None) -> CommandError:
        problem = self.problem(name, why, line)
        return CommandError(f"The command /{name} cannot be used: {problem.message}", problem)

    def _parsed(self, name: str, text: str) -> Command:
        said, body = front_matter.read(text)
        if not body.strip():
            raise FrontMatterError("it says nothing")
        ignored = [key for key in said if key not in _KNOWN]
        problems = [self.problem(name, f"{shown(key)} is not known, so it is ignored") for key in ignored]
        return Command(
            name,
            _one_line(said.get("description")) or _first_line(body),
            self.source,
            body.strip(),
            _hint(said.get("argument-hint")) or None,
            self._model(said.get("model")),
            _mode(said.get("mode")),
            tuple(each.model_copy(update={"severity": "info"}) for each in problems),
        )

    def _model(self, value: Any) -> str | None:
        """The model that a command wants. Raises FrontMatterError for what is none."""
        if value is None:
            return None
        if not isinstance(value, str) or not MODEL_ID.fullmatch(value):
            raise FrontMatterError(f'model: {shown(str(value))} has to be "provider/model"')
        if self.source == "workspace" and value.startswith("scripted/"):
            raise FrontMatterError("model: a script is no model of a workspace's choice")
        return value


def _walk(fd: int, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The files of commands in an open folder and below, without their ending. Linked folders are passed."""
    with os.scandir(fd) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                if len(above) < _MAX_DEPTH and not entry.name.startswith("."):
                    below = open_directory(fd, (entry.name,))
                    try:
                        yield from _walk(below, (*above, entry.name))
                    finally:
                        os.close(below)
            elif entry.name.endswith(".md") and not entry.name.startswith("."):
                yield (*above, entry.name.removesuffix(".md"))


def _text(place: Place) -> str:
    """The text of a command's file. Raises WorkspaceError, BinaryContent."""
    if is_secret(place.parts):
        raise WorkspaceError("denied", "it leads to a file that holds secrets")
    with suppress(OSError):  # reading says why it cannot be looked at
        if os.path.getsize(place.path) > MAX_BYTES:
            raise WorkspaceError("too_large", f"it is longer than {MAX_BYTES // 1024} KB")
    return without_unseen(clean_text(decode(files.read(place).data).text))


def _is_name(name: str) -> bool:
    parts = name.split(":")
    return len(parts) <= _MAX_DEPTH + 1 and all(_PART.fullmatch(part) for part in parts)


def _mode(value: Any) -> Mode | None:
    if value is not None and value not in _MODES:
        raise FrontMatterError(f"mode: {shown(str(value))} has to be one of {', '.join(_MODES)}")
    return cast(Mode | None, value)


def stricter(mode: Mode, wanted: Mode | None) -> Mode:
    """The stricter one of the mode that holds and the one that a command wants."""
    return mode if wanted is None else min(mode, wanted, key=_MODES.index)


def _hint(value: Any) -> str:
    """The hint as it is shown; YAML reads `[file]` as a list."""
    if isinstance(value, list):
        return f"[{', '.join(map(_one_line, value))}]"
    return _one_line(value)


def _one_line(value: Any) -> str:
    said = "" if value is None or isinstance(value, list | dict) else one_line(str(value))
    return said if len(said) <= _DESCRIPTION_LENGTH * 3 else said[: _DESCRIPTION_LENGTH * 3] + "…"


def _first_line(text: str) -> str:
    lines = (one_line(line).lstrip("# ") for line in text.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= _DESCRIPTION_LENGTH else line[: _DESCRIPTION_LENGTH - 1] + "…"
