"""A stand-in for Sublime Text's module `sublime_plugin`."""

from types import ModuleType
from typing import Any

import standin_plugins as plugins


class TextCommand:
    def __init__(self, view: Any) -> None:
        self.view = view

    def is_enabled(self) -> bool:
        return True

    def description(self, **_: Any) -> str | None:
        return None


class WindowCommand:
    def __init__(self, window: Any) -> None:
        self.window = window


class EventListener:
    pass


class ViewEventListener:
    def __init__(self, view: Any) -> None:
        self.view = view


class TextChangeListener:
    def attach(self, buffer: Any) -> None:
        self.buffer = buffer

    def detach(self) -> None:
        pass


def load(module: ModuleType) -> None:
    """Register what a plugin's module defines or imports, as Sublime Text does, and tell it of it."""
    for kind in list(vars(module).values()):
        if not isinstance(kind, type) or kind.__module__ == __name__:
            continue
        if issubclass(kind, TextCommand):
            plugins.text_commands[plugins.command_name(kind)] = kind
        elif issubclass(kind, EventListener):
            plugins.event_listeners.append(kind())
        elif issubclass(kind, ViewEventListener):
            plugins.view_listeners.append(kind)
        elif issubclass(kind, TextChangeListener):
            plugins.text_listeners.append(kind)
    module.plugin_loaded()
