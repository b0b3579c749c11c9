"""What plugins have registered: commands by name, listeners by view."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from standin_loop import other

text_commands: dict[str, type[Any]] = {}
event_listeners: list[Any] = []
view_listeners: list[type[Any]] = []
text_listeners: list[type[Any]] = []
_of_view: dict[int, list[Any]] = {}


def command_name(kind: type[Any]) -> str:
    """`LspExecuteCommand` is called `lsp_execute`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__.removesuffix("Command")).lower()


def text_command(name: str, view: Any) -> Any | None:
    return text_commands[name](view) if name in text_commands else None


def asked_by(function: Callable[..., Any], args: dict[str, Any]) -> dict[str, Any]:
    """Of the arguments of a command, those that this function takes."""
    return {key: value for key, value in args.items() if key in inspect.signature(function).parameters}


def attach(view: Any) -> None:
    """A view is loaded: it and its buffer get their listeners."""
    _of_view[view.id()] = [kind(view) for kind in view_listeners]
    for kind in text_listeners:
        if kind.is_applicable(view.buffer()):
            listener = kind()
            listener.attach(view.buffer())
            view.buffer().listeners.append(listener)


def detach(view: Any) -> None:
    """A view is closed."""
    _of_view.pop(view.id(), None)
    for listener in view.buffer().listeners:
        listener.detach()
    view.buffer().listeners.clear()


def tell(view: Any, event: str, *arguments: Any) -> None:
    for listener in _of_view.get(view.id(), ()):
        if hasattr(listener, event):
            getattr(listener, event)(*arguments)


def tell_async(view: Any, event: str) -> None:
    other.later(lambda: tell(view, event))


def tell_all(event: str, view: Any) -> None:
    for listener in event_listeners:
        if hasattr(listener, event):
            getattr(listener, event)(view)
