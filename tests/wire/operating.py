"""A simulated editor that makes, renames and removes files, or fails at it as editors do."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wire.editing import CAPABILITIES, SimulatedEditor
from wire.editing import honest as edits_honestly
from wire.harness import Daemon, Json
from wire.home import Home

from agentd.workspace.paths import path_of

OPERATES: Json = {
    **CAPABILITIES,
    "workspace": {
        **CAPABILITIES["workspace"],
        "workspaceEdit": {
            **CAPABILITIES["workspace"]["workspaceEdit"],
            "resourceOperations": ["create", "rename", "delete"],
        },
    },
}


class OperatingEditor(SimulatedEditor):
    """An editor whose window follows what it does to the file of its document.

    `on_operation` is what it does about an operation; see `done` and below. `operations` are their kinds, and
    `undone` brings the files back as its undo does."""

    def __init__(self, daemon: Daemon, home: Home, text: str = "one\n", **more: Any) -> None:
        super().__init__(daemon, home, text, **more)
        self.on_operation: Callable[[OperatingEditor, Json], None] = done
        self.operations: list[Json] = []
        self.is_open = True
        self.on_edit = self._dispatch

    def is_of_us(self, params: Json) -> bool:
        return self.root.as_uri() in str(params["edit"])

    def close(self) -> None:
        super().close()
        self.is_open = False

    def _dispatch(self, editor: SimulatedEditor, request: Json) -> None:
        (change,) = request["params"]["edit"]["documentChanges"]
        if "kind" not in change:
            edits_honestly(editor, request)
            return
        self.operations.append(request)
        self.on_operation(self, request)

    @property
    def kinds(self) -> list[str]:
        """The kinds of operations that came."""
        return [each["params"]["edit"]["documentChanges"][0]["kind"] for each in self.operations]

    def operate(self, request: Json) -> bool:
        """Do it as LSP says; False where its options forbid it."""
        (change,) = request["params"]["edit"]["documentChanges"]
        options = change["options"]
        assert not options.get("overwrite"), "nothing is to be written over"
        if change["kind"] == "create":
            return self._create(path_of(change["uri"]), options)
        if change["kind"] == "delete":
            path = path_of(change["uri"])
            if not path.exists():
                return bool(options["ignoreIfNotExists"])
            path.unlink()
            if change["uri"] == self.uri and self.is_open:
                self.close()
            return True
        return self._rename(change["oldUri"], change["newUri"])

    def _create(self, path: Path, options: Json) -> bool:
        if path.exists():
            return bool(options["ignoreIfExists"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return True

    def _rename(self, old: str, new: str) -> bool:
        if path_of(new).exists() or not path_of(old).exists():
            return False
        shutil.move(path_of(old), path_of(new))
        if old == self.uri and self.is_open:
            self.close()
            self.uri, self.path = new, path_of(new)
            self.open(self.text)
        return True

    def open(self, text: str) -> None:
        """The user, or the editor, opens the document."""
        self.version, self.text, self.is_open = 0, text, True
        item = {"uri": self.uri, "languageId": "plaintext", "version": 0, "text": text}
        self.daemon.notify("textDocument/didOpen", {"textDocument": item})


def done(editor: OperatingEditor, request: Json) -> None:
    """Does it and says so."""
    editor.daemon.answer(request, {"applied": editor.operate(request)})


def done_without_an_answer(editor: OperatingEditor, request: Json) -> None:
    editor.operate(request)


def done_and_denied(editor: OperatingEditor, request: Json) -> None:
    editor.operate(request)
    editor.daemon.answer(request, {"applied": False})


def answered_before(editor: OperatingEditor, request: Json) -> None:
    """Says that it has done it, and does it then; its documents tell."""
    editor.daemon.answer(request, {"applied": True})
    editor.daemon.wait_until_read()
    editor.operate(request)


def refused(editor: OperatingEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": False, "failureReason": "no"})


def refused_with_an_error(editor: OperatingEditor, request: Json) -> None:
    editor.daemon.answer(request, error={"code": -32603, "message": "no such operation"})


def answered_and_not_done(editor: OperatingEditor, request: Json) -> None:
    editor.daemon.answer(request, {"applied": True})


def ignored(editor: OperatingEditor, request: Json) -> None:
    """Does nothing, and answers nothing."""
