"""A stand-in for Sublime Text's module `sublime`: what the package LSP needs of it to hold a session.

It follows the public API reference (sublimetext.com/docs/api_reference.html); where that leaves a
behaviour open, a comment says what is assumed.
"""

import enum
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from standin_loop import main, other
from standin_text import HistoricPosition, Region, Selection, TextChange
from standin_views import Buffer, Edit, Settings, Sheet, Syntax, View
from standin_windows import Window

__all__ = [
    "Buffer",
    "Edit",
    "HistoricPosition",
    "Region",
    "Selection",
    "Settings",
    "Sheet",
    "Syntax",
    "TextChange",
    "View",
    "Window",
]


class NewFileFlags(enum.IntFlag):
    NONE = 0
    TRANSIENT = 4
    FORCE_GROUP = 8
    SEMI_TRANSIENT = 16
    ADD_TO_SELECTION = 32
    REPLACE_MRU = 64
    CLEAR_TO_RIGHT = 128


class PopupFlags(enum.IntFlag):
    NONE = 0
    COOPERATE_WITH_AUTO_COMPLETE = 2
    HIDE_ON_MOUSE_MOVE = 4
    HIDE_ON_MOUSE_MOVE_AWAY = 8
    KEEP_ON_SELECTION_MODIFIED = 16
    HIDE_ON_CHARACTER_EVENT = 32


class RegionFlags(enum.IntFlag):
    NONE = 0
    DRAW_EMPTY = 1
    HIDE_ON_MINIMAP = 2
    DRAW_EMPTY_AS_OVERWRITE = 4
    DRAW_NO_FILL = 32
    DRAW_NO_OUTLINE = 256
    DRAW_SOLID_UNDERLINE = 512
    DRAW_STIPPLED_UNDERLINE = 1024
    DRAW_SQUIGGLY_UNDERLINE = 2048
    NO_UNDO = 8192


KIND_AMBIGUOUS = (0, "", "")


class QuickPanelItem:
    """An entry of a quick panel."""

    def __init__(self, trigger: str, details: str = "", annotation: str = "", kind: Any = None) -> None:
        self.trigger, self.details, self.annotation, self.kind = trigger, details, annotation, kind


# --- what the editor shows, for the test to read ------------------------------------------------------

opened: list[Window] = []
said: list[str] = []
"""Messages in the status bar."""
dialogs: list[str] = []
resources: dict[str, str] = {}
"""Packages' files, by name."""
_settings: dict[str, Settings] = {}


def windows() -> list[Window]:
    return list(opened)


def active_window() -> Window:
    return opened[0]


def set_timeout(callback: Callable[[], object], delay: float = 0) -> None:
    main.later(callback, delay)


def set_timeout_async(callback: Callable[[], object], delay: float = 0) -> None:
    other.later(callback, delay)


def status_message(message: str) -> None:
    said.append(message)


def message_dialog(message: str) -> None:
    dialogs.append(message)


def error_message(message: str) -> None:
    dialogs.append(message)


def ok_cancel_dialog(message: str, ok_title: str = "") -> bool:
    """Nobody is there to press OK."""
    dialogs.append(message)
    return False


def load_settings(base_name: str) -> Settings:
    """The same object for the same name; what packages say is overridden by what the user says."""
    if base_name not in _settings:
        layers = (resources.get(f"Packages/{of}/{base_name}") for of in ("LSP", "User"))
        values: dict[str, Any] = {}
        for layer in layers:
            values.update(json.loads(layer) if layer else {})
        _settings[base_name] = Settings(values)
    return _settings[base_name]


def load_resource(name: str) -> str:
    return resources.get(name, "")


def platform() -> str:
    return "linux"


def version() -> str:
    return "4200"


def _data(name: str) -> str:
    return str(Path(os.environ["HOME"]) / ".config" / "sublime-text" / name)


def packages_path() -> str:
    return _data("Packages")


def installed_packages_path() -> str:
    return _data("Installed Packages")


def cache_path() -> str:
    return _data("Cache")


def score_selector(scope: str, selector: str) -> int:
    """How well a selector of alternatives fits a scope: the longest that begins it counts."""
    parts = (part.strip() for part in re.split(r"[|,]", selector))
    return max((len(part) for part in parts if part and f"{scope}.".startswith(f"{part}.")), default=0)


_VARIABLE = re.compile(r"\\(?P<escaped>[$\\}])|\$(?P<bare>\w+)|\$\{(?P<braced>\w+)(?::(?P<default>[^}]*))?\}")


def expand_variables(value: Any, variables: dict[str, str]) -> Any:
    """By the syntax of snippets, through lists and objects; what no variable is named becomes its default.

    Assumed, as the reference does not say it: without a default that is nothing, as in snippets.
    """

    def expanded(found: re.Match[str]) -> str:
        if found["escaped"]:
            return found["escaped"]
        return variables.get(found["bare"] or found["braced"], found["default"] or "")

    if isinstance(value, str):
        return _VARIABLE.sub(expanded, value)
    if isinstance(value, list):
        return [expand_variables(each, variables) for each in value]
    if isinstance(value, dict):
        return {key: expand_variables(each, variables) for key, each in value.items()}
    return value
