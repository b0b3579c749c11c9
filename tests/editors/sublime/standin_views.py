"""Views of the stand-in; see `sublime.py`."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import standin_plugins as plugins
from standin_loop import main
from standin_text import Region, Selection, Step, Text

if TYPE_CHECKING:
    from standin_windows import Window

_KEEP_ON_SELECTION_MODIFIED = 16
_ids = itertools.count(1)


class Settings:
    """Values by name, with those who are told that one has changed."""

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        self._values = dict(values or {})
        self._listeners: dict[str, Callable[[], None]] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def has(self, key: str) -> bool:
        return key in self._values

    def set(self, key: str, value: Any) -> None:
        self._values[key] = value
        self._tell()

    def erase(self, key: str) -> None:
        self._values.pop(key, None)
        self._tell()

    def add_on_change(self, tag: str, callback: Callable[[], None]) -> None:
        self._listeners[tag] = callback

    def clear_on_change(self, tag: str) -> None:
        self._listeners.pop(tag, None)

    def _tell(self) -> None:
        for listener in list(self._listeners.values()):
            listener()


@dataclass(frozen=True)
class Syntax:
    name: str
    scope: str


class Edit:
    """What a text command gets to change a buffer with: one step of undo."""

    def __init__(self, step: Step) -> None:
        self.step = step


class Buffer:
    def __init__(self) -> None:
        self.buffer_id = next(_ids)
        self.text = Text()
        self.all_views: list[View] = []
        self.listeners: list[Any] = []

    def primary_view(self) -> "View | None":
        return self.all_views[0] if self.all_views else None

    def views(self) -> list["View"]:
        return list(self.all_views)


@dataclass
class Popup:
    content: str
    flags: int
    on_navigate: Callable[[str], None] | None
    on_hide: Callable[[], None] | None


class View:
    def __init__(self, window: "Window", path: str | None) -> None:
        self._id = next(_ids)
        self._window: Window | None = window
        self._path = path
        self._name = ""
        self._buffer = Buffer()
        self._buffer.all_views.append(self)
        self._settings = Settings({"syntax": "Packages/Text/Plain text.tmLanguage"})
        self._sel = Selection([Region(0)])
        self.status: dict[str, str] = {}
        self.regions: dict[str, tuple[list[Region], list[str]]] = {}
        self.navigates: dict[str, Callable[[str], None]] = {}
        self.popup: Popup | None = None
        self.loading = path is not None
        self.scratch = False

    # --- what it is

    def id(self) -> int:
        return self._id

    def buffer_id(self) -> int:
        return self._buffer.buffer_id

    def buffer(self) -> Buffer:
        return self._buffer

    def is_primary(self) -> bool:
        return True

    def is_valid(self) -> bool:
        return self._window is not None

    def is_loading(self) -> bool:
        return self.loading

    def is_dirty(self) -> bool:
        return not self.scratch and self._buffer.text.text != self._buffer.text.saved

    def set_scratch(self, scratch: bool) -> None:
        self.scratch = scratch

    def element(self) -> None:
        return None

    def window(self) -> "Window | None":
        return self._window

    def sheet(self) -> "Sheet":
        return Sheet(self)

    def file_name(self) -> str | None:
        return self._path

    def name(self) -> str:
        return self._name

    def set_name(self, name: str) -> None:
        self._name = name

    def settings(self) -> Settings:
        return self._settings

    def syntax(self) -> Syntax:
        is_python = (self._path or "").endswith(".py")
        return Syntax("Python", "source.python") if is_python else Syntax("Plain Text", "text.plain")

    def score_selector(self, point: int, selector: str) -> int:
        return 1

    def style_for_scope(self, scope: str) -> dict[str, str]:
        return {"foreground": "#ffffff"}

    def em_width(self) -> float:
        return 8.0

    def line_height(self) -> float:
        return 16.0

    # --- text

    def size(self) -> int:
        return len(self._buffer.text.text)

    def substr(self, region: Region) -> str:
        return self._buffer.text.text[region.begin() : region.end()]

    def change_count(self) -> int:
        return self._buffer.text.change_count

    def rowcol(self, point: int) -> tuple[int, int]:
        return self._buffer.text.rowcol(point)

    def rowcol_utf16(self, point: int) -> tuple[int, int]:
        return self._buffer.text.rowcol_utf16(point)

    def text_point_utf16(self, row: int, col_utf16: int, *, clamp_column: bool = False) -> int:
        return self._buffer.text.point(row, col_utf16, in_utf16=True, clamp=clamp_column)

    def text_point(self, row: int, col: int, *, clamp_column: bool = False) -> int:
        return self._buffer.text.point(row, col, in_utf16=False, clamp=clamp_column)

    def split_by_newlines(self, region: Region) -> list[Region]:
        return list(self._buffer.text.lines(region))

    def sel(self) -> Selection:
        return self._sel

    def insert(self, edit: Edit, pt: int, text: str) -> int:
        self._change(edit, Region(pt), text)
        return len(text)

    def erase(self, edit: Edit, region: Region) -> None:
        self._change(edit, region, "")

    def replace(self, edit: Edit, region: Region, text: str) -> None:
        self._change(edit, region, text)

    def _change(self, edit: Edit, region: Region, new: str) -> None:
        begin, end = region.begin(), region.end()
        self._buffer.text.replace(begin, end, new, edit.step)

        def moved(point: int) -> int:  # a caret goes with the text around it
            if point <= begin and not (point == begin == end):
                return point
            return point + len(new) - (end - begin) if point >= end else begin + len(new)

        self._sel[:] = [Region(moved(each.a), moved(each.b)) for each in self._sel]

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Tell the listeners afterwards of what was changed: once, of all of it, as the reference says."""
        selection = list(self._sel)
        yield
        untold, self._buffer.text.untold = self._buffer.text.untold, []
        if untold:
            for listener in self._buffer.listeners:
                listener.on_text_changed(untold)
        if selection != list(self._sel):
            self.selection_modified()

    def selection_modified(self) -> None:
        if self.popup is not None and not self.popup.flags & _KEEP_ON_SELECTION_MODIFIED:
            self.hide_popup()
        plugins.tell_async(self, "on_selection_modified_async")

    def run_command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Run a text command in the main thread, as one step of undo, and wait until it has run."""
        main.do(lambda: self._run_command(name, args or {}))

    def _run_command(self, name: str, args: dict[str, Any]) -> None:
        command = plugins.text_command(name, self)
        if command is None or not command.is_enabled(**plugins.asked_by(command.is_enabled, args)):
            return
        step = Step(command.description(**args))
        with self.changing():
            command.run(Edit(step), **args)
            if step.changes:
                self._buffer.text.steps.append(step)
        plugins.tell(self, "on_post_text_command", name, args)

    def show_at_center(self, point: int, animate: bool = True) -> None:
        pass

    def close(self) -> None:
        if self._window is not None:
            self._window.close(self)

    def closed(self) -> None:
        self._window = None

    # --- what is shown in it

    def set_status(self, key: str, value: str) -> None:
        self.status[key] = value

    def erase_status(self, key: str) -> None:
        self.status.pop(key, None)

    def add_regions(  # noqa: PLR0917 - as Sublime Text has them
        self,
        key: str,
        regions: list[Region],
        scope: str = "",
        icon: str = "",
        flags: int = 0,
        annotations: list[str] | None = None,
        annotation_color: str = "",
        on_navigate: Callable[[str], None] | None = None,
    ) -> None:
        self.regions[key] = (list(regions), list(annotations or []))
        if on_navigate is not None:
            self.navigates[key] = on_navigate

    def erase_regions(self, key: str) -> None:
        self.regions.pop(key, None)
        self.navigates.pop(key, None)

    def show_popup(
        self,
        content: str,
        flags: int = 0,
        location: int = -1,
        max_width: int = 320,
        max_height: int = 240,
        on_navigate: Callable[[str], None] | None = None,
        on_hide: Callable[[], None] | None = None,
    ) -> None:
        """Assumed: a popup that another one takes the place of is hidden, and its `on_hide` called."""
        main.do(lambda: self._show(Popup(content, flags, on_navigate, on_hide)))

    def _show(self, popup: Popup) -> None:
        self._hide()
        self.popup = popup

    def _hide(self) -> None:
        gone, self.popup = self.popup, None
        if gone is not None and gone.on_hide is not None:
            gone.on_hide()

    def hide_popup(self) -> None:
        main.do(self._hide)

    def is_popup_visible(self) -> bool:
        return self.popup is not None

    def is_auto_complete_visible(self) -> bool:
        return False


class Sheet:
    """The tab of a view."""

    def __init__(self, view: View) -> None:
        self._view = view

    def view(self) -> View:
        return self._view

    def group(self) -> int:
        return 0

    def is_transient(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sheet) and self._view is other._view

    def __hash__(self) -> int:
        return self._view.id()
