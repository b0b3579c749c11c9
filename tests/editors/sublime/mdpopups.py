"""A stand-in for the library mdpopups, which LSP shows popups with: here they are HTML already."""

from types import SimpleNamespace
from typing import Any

markdown = SimpleNamespace(__version__="3.2.2")


def show_popup(view: Any, content: str, *, md: bool, css: Any, wrapper_class: Any, **shown: Any) -> None:
    assert not md
    view.show_popup(content, **shown)
