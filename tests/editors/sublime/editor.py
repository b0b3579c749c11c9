"""The stand-in with the package LSP on it, as a program: what a user does comes as lines of JSON on stdin.

`editor.py LSP-FOLDER WORKSPACE SETTINGS FILE`. Each line is `[name, ...arguments]` of a function below; it is
answered by a line with what that gives. All that the program prints else goes to stderr.
"""

import importlib
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import standin_plugins as plugins
import sublime
import sublime_plugin
from standin_loop import main
from standin_text import Region, Step
from standin_windows import reload


def active() -> sublime.View:
    view = sublime.active_window().active_view()
    assert view is not None
    return view


def see() -> dict[str, Any]:
    """All that is on the screen."""
    window = sublime.active_window()
    view, panel = window.active_view(), window.quick_panel
    shown = [] if view is None else view.regions.items()
    return {
        "file": view and view.file_name(),
        "text": view and view.substr(Region(0, view.size())),
        "dirty": [each.file_name() for each in window.views() if each.is_dirty()],
        "status": {} if view is None else dict(view.status),
        "popup": view.popup.content if view is not None and view.popup is not None else None,
        "regions": {key: [[each.a, each.b] for each in regions] for key, (regions, _) in shown},
        "annotations": [each for _, (_, annotations) in shown for each in annotations],
        "panel": None if panel is None else [item.trigger for item in panel.items],
        "said": sublime.said,
        "dialogs": sublime.dialogs,
        "served": bool(view and view.settings().get("lsp_active")),
        "undo": [] if view is None else [step.description for step in view.buffer().text.steps],
    }


def write(text: str) -> None:
    """Type at the caret: one step of undo."""
    view = active()
    step = Step(None)
    with view.changing():
        view.replace(sublime.Edit(step), view.sel()[0], text)
        end = view.sel()[0].end()
        view.sel()[:] = [Region(end)]
    view.buffer().text.steps.append(step)


def select(begin: int, end: int) -> None:
    view = active()
    view.sel()[:] = [Region(begin, end)]
    view.selection_modified()


def undo() -> None:
    view = active()
    with view.changing():
        view.buffer().text.undo()


def press(binding: dict[str, Any]) -> None:
    """A key that is bound so."""
    active().run_command(binding["command"], json.loads(json.dumps(binding["args"])))


def palette(command: str) -> None:
    """A text command of the command palette."""
    active().run_command(command)


def choose(title: str) -> None:
    """An item of the quick panel."""
    window = sublime.active_window()
    assert window.quick_panel is not None
    panel, window.quick_panel = window.quick_panel, None
    panel.on_select(next(n for n, item in enumerate(panel.items) if title in item.trigger))


def click(href: str) -> None:
    """A link of the popup. Assumed: that alone does not hide it."""
    popup = active().popup
    assert popup is not None
    assert popup.on_navigate is not None
    popup.on_navigate(href)


def click_annotation(href: str) -> None:
    (navigate,) = active().navigates.values()
    navigate(href)


def escape() -> None:
    active().hide_popup()


def visit(path: str) -> None:
    """Go to a file's tab, or open one."""
    sublime.active_window().open_file(path)


def close() -> None:
    active().close()


def save() -> None:
    view = active()
    text = view.buffer().text
    Path(view.file_name() or "").write_text(text.text)
    text.saved = text.text
    plugins.tell_async(view, "on_post_save_async")


def look_again() -> None:
    """The window gets the focus: files that changed meanwhile are loaded anew."""
    for view in sublime.active_window().views():
        reload(view)


SERVED = {
    function.__name__: function
    for function in (
        see,
        write,
        select,
        undo,
        press,
        palette,
        choose,
        click,
        click_annotation,
        escape,
        visit,
        look_again,
        save,
        close,
    )
}


def run(package: Path, workspace: Path, settings: str, file: str) -> None:
    out, sys.stdout = sys.stdout, sys.stderr
    sys.path.insert(0, str(package))
    for path in (package / "LSP").glob("*.sublime-settings"):
        sublime.resources[f"Packages/LSP/{path.name}"] = path.read_text()
    sublime.resources["Packages/User/LSP.sublime-settings"] = settings
    sublime.opened.append(sublime.Window(workspace, sublime.status_message))
    plugin = importlib.import_module("LSP.plugin.main")
    main.do(lambda: sublime_plugin.load(plugin))
    main.do(lambda: visit(file))
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(main.do(partial(SERVED[name], *arguments))), file=out, flush=True)
    main.do(plugin.plugin_unloaded)
    for process in list(importlib.import_module("LSP.plugin.core.transports")._subprocesses):
        process.wait(10)
    os._exit(0)  # threads of LSP still wait for what can no more come


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
