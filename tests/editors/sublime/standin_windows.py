"""Windows of the stand-in; see `sublime.py`."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import standin_plugins as plugins
from standin_loop import main, other
from standin_views import Sheet, View

_ids = itertools.count(1)


@dataclass
class QuickPanel:
    items: list[Any]
    on_select: Callable[[int], None]


class Window:
    """A window with one folder and one group of tabs."""

    def __init__(self, folder: Path, status_message: Callable[[str], None]) -> None:
        self._id = next(_ids)
        self._folder = folder
        self._views: list[View] = []
        self._active: View | None = None
        self.status_message = status_message
        self.quick_panel: QuickPanel | None = None

    def id(self) -> int:
        return self._id

    def is_valid(self) -> bool:
        return True

    def folders(self) -> list[str]:
        return [str(self._folder)]

    def project_data(self) -> dict[str, Any]:
        return {"folders": [{"path": str(self._folder)}]}

    def extract_variables(self) -> dict[str, str]:
        file = Path(self._active.file_name() or "") if self._active is not None else Path()
        return {"folder": str(self._folder), "file": str(file), "file_name": file.name, "platform": "Linux"}

    def views(self) -> list[View]:
        return list(self._views)

    def sheets(self) -> list[Sheet]:
        return [view.sheet() for view in self._views]

    def num_groups(self) -> int:
        return 1

    def active_group(self) -> int:
        return 0

    def active_view(self) -> View | None:
        return self._active

    def active_view_in_group(self, group: int) -> View | None:
        return self._active

    def active_sheet(self) -> Sheet | None:
        return self._active.sheet() if self._active is not None else None

    def selected_sheets(self) -> list[Sheet]:
        return [self._active.sheet()] if self._active is not None else []

    def selected_sheets_in_group(self, group: int) -> list[Sheet]:
        return self.selected_sheets()

    def get_view_index(self, view: View) -> tuple[int, int]:
        return 0, self._views.index(view)

    def find_open_file(self, name: str, group: int = -1) -> View | None:
        return next((view for view in self._views if view.file_name() == name), None)

    def open_file(self, name: str, flags: int = 0, group: int = -1) -> View:
        """It is brought to the front; a file that was not open is loaded a moment later."""
        view = self.find_open_file(name)
        if view is None:
            view = View(self, name)
            self._views.append(view)
            opened = view
            main.later(lambda: self._load(opened))
        self.focus_view(view)
        return view

    def _load(self, view: View) -> None:
        path = Path(view.file_name() or "")
        view.buffer().text.load(path.read_text("utf-8-sig") if path.exists() else "")
        view.loading = False
        plugins.attach(view)
        plugins.tell_all("on_load", view)
        plugins.tell_async(view, "on_load_async")
        if view is self._active:
            plugins.tell_async(view, "on_activated_async")

    def focus_view(self, view: View) -> None:
        self._active = view
        if not view.is_loading():
            plugins.tell_async(view, "on_activated_async")

    def focus_sheet(self, sheet: Sheet) -> None:
        self.focus_view(sheet.view())

    def close(self, view: View) -> None:
        self._views.remove(view)
        plugins.tell(view, "on_close")
        plugins.detach(view)
        view.closed()
        if self._active is view:
            self._active = self._views[-1] if self._views else None

    def show_quick_panel(
        self,
        items: list[Any],
        on_select: Callable[[int], None],
        flags: int = 0,
        selected_index: int = -1,
        on_highlight: Callable[[int], None] | None = None,
        placeholder: str | None = None,
    ) -> None:
        self.quick_panel = QuickPanel(items, on_select)


def reload(view: View) -> None:
    """The file was changed by another program: what is not dirty is loaded anew, without text changes."""
    path = Path(view.file_name() or "")
    if not view.is_dirty() and path.read_text("utf-8-sig") != view.buffer().text.text:
        view.buffer().text.load(path.read_text("utf-8-sig"))
        view.buffer().text.change_count += 1
        for listener in view.buffer().listeners:
            other.later(listener.on_reload_async)
