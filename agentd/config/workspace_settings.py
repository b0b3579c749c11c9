"""What a workspace may set for itself: `.agentd/config.toml`, read only where the user trusts the workspace.

A cloned repository brings this file along, so it can make agentd stricter and nothing else: which model works
here, how hard and how long, a stricter mode, commands that are denied or asked about. Where requests go and
with which key, what is allowed and trusted, what commands see: none of that is a workspace's to say. What it
tries is ignored and named as a problem.
"""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from agentd.config.command_rules import NO_RULES, UNKNOWN_RULES, CommandRules, command_rules
from agentd.config.provider_settings import MODEL_ID, not_known
from agentd.config.settings import COUNTS_NOT, USER_KEYS, parsed
from agentd.config.toml_table import Document, Table, shown
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.methods import Problem

FOLDER, FILE = ".agentd", "config.toml"

_KNOWN = ("model", "effort", "mode", "max_turns", "permissions", "checkers")
_NOT_YOURS = "may not be set by a workspace, so it is ignored; set it in your own configuration"
_IS_LINK = "it is a link, or its folder is one, which could lead out of the workspace"
_MAX_BYTES = 256 * 1024
_MODES: tuple[Mode, ...] = get_args(Mode)  # the strictest first

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class WorkspaceSettings:
    """What the file says that counts. `mode` has still to be compared with the user's: the stricter one
    holds. `checkers` names those of the user's that it wants.
    """

    model: str | None = None
    effort: Effort | None = None
    mode: Mode | None = None
    max_turns: int | None = None
    rules: CommandRules = NO_RULES
    problems: tuple[Problem, ...] = ()
    checkers: tuple[str, ...] | None = None

    def stricter_mode(self, mode: Mode) -> Mode:
        """The stricter one of the user's mode and the workspace's."""
        return mode if self.mode is None else min(mode, self.mode, key=_MODES.index)


UNSAID = WorkspaceSettings()


def is_there(root: Path) -> bool:
    """Whether a workspace has such a file."""
    return os.path.lexists(root / FOLDER / FILE)


class WorkspaceFile:
    """The file of one workspace; read anew when it has changed. Blocks on the disk; never raises."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._status: tuple[int, ...] | None = None
        self._settings = UNSAID

    def settings(self, user_mode: Mode) -> WorkspaceSettings:
        """What it says now. A mode looser than `user_mode` is a problem."""
        try:
            file = self._open()
        except FileNotFoundError:
            self._status = None
            return UNSAID
        except OSError as error:
            return self._unreadable(_IS_LINK if error.errno == errno.ELOOP else error.strerror)
        try:
            return self._of(file, user_mode)
        except (UnicodeDecodeError, OSError):
            return self._unreadable("it is no file of UTF-8 text")
        finally:
            os.close(file)

    def _of(self, file: int, user_mode: Mode) -> WorkspaceSettings:
        """What an open file says. Raises OSError, UnicodeDecodeError."""
        status = os.fstat(file)
        changed = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        key = (*changed, _MODES.index(user_mode))
        if key == self._status:
            return self._settings
        if not stat.S_ISREG(status.st_mode):
            return self._unreadable("it is no file")
        if status.st_size > _MAX_BYTES:
            return self._unreadable(f"it is larger than {_MAX_BYTES} bytes")
        with open(file, "rb", closefd=False) as source:
            text = source.read(_MAX_BYTES).decode("utf-8-sig")
        self._status, self._settings = key, _read(self._root / FOLDER / FILE, text, user_mode)
        return self._settings

    def _open(self) -> int:
        folder = os.open(self._root / FOLDER, _DIRECTORY)
        try:
            return os.open(FILE, _PLAIN, dir_fd=folder)
        finally:
            os.close(folder)

    def _unreadable(self, why: str | None) -> WorkspaceSettings:
        self._status = None
        document = Document(self._root / FOLDER / FILE)
        document.complain(f"cannot be read: {why}; {COUNTS_NOT}")
        return WorkspaceSettings(problems=tuple(document.problems), rules=UNKNOWN_RULES)


def _read(path: Path, text: str, user_mode: Mode) -> WorkspaceSettings:
    document, values = parsed(path, text)
    top = Table(document, (), values)
    for name, _ in top.unknown(_KNOWN):
        top.complain(name, _NOT_YOURS if name in USER_KEYS else not_known(name, _KNOWN))
    model = top.text("model")
    if model is not None and not MODEL_ID.fullmatch(model):
        top.complain("model", f'{shown(model)} has to be "provider/model"')
        model = None
    if model is not None and model.startswith("scripted/"):
        top.complain("model", "a script is no model of a workspace's choice")
        model = None
    mode = cast(Mode | None, top.choice("mode", _MODES))
    if mode is not None and _MODES.index(mode) > _MODES.index(user_mode):
        top.complain("mode", f'{shown(mode)} is looser than your "{user_mode}", so it is ignored')
        mode = None
    permissions = top.table("permissions") if isinstance(values.get("permissions"), dict) else None
    if permissions is not None and "allow" in permissions:
        permissions.complain("allow", _NOT_YOURS)
    checkers = top.texts("checkers")
    return WorkspaceSettings(
        model,
        cast(Effort | None, top.choice("effort", get_args(Effort))),
        mode,
        top.count("max_turns"),
        command_rules(top, ("deny", "ask")) if document.is_understood else UNKNOWN_RULES,
        tuple(document.problems),
        checkers,
    )
