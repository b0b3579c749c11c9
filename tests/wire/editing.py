"""A simulated editor with one document: it follows the protocol to the letter, or fails as editors do."""

import re
import threading
from collections.abc import Callable
from typing import Any

from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.scripts import reply, tool

CAPABILITIES: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
    },
}
UTF_8 = {**CAPABILITIES, "general": {"positionEncodings": ["utf-8", "utf-16"]}}

_LINES = re.compile("[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")


class SimulatedEditor:
    """The user's editor, with a document of a file that holds the same, something else, or is not there.

    `on_edit` is what it does about `workspace/applyEdit`; see `HONEST` and below."""

    def __init__(
        self,
        daemon: Daemon,
        home: Home,
        text: str,
        *,
        on_disk: str | bool | None = None,
        encoding: str = "utf-16",
        uri: str | None = None,
    ) -> None:
        self.daemon = daemon
        self.home = home
        self.encoding = encoding
        self.root = home.workspace()
        self.path = self.root / "a.txt"
        if on_disk is not False:
            self.path.write_bytes((on_disk if isinstance(on_disk, str) else text).encode())
        self.uri = self.path.as_uri() if uri is None else uri
        self.text = text
        self.version = 0
        self.undo: list[str] = []
        self.requests: list[Json] = []
        self.on_edit: Callable[[SimulatedEditor, Json], None] = honest
        self.runs_anyway = False
        """Whether commands are to run beside what is not saved, where that is asked."""
        self._since = len(daemon.messages)
        self._stop = False
        self.failure: BaseException | None = None
        self.is_over = False
        """Whether the daemon has ended, after which nothing comes any more."""
        document = {"uri": self.uri, "languageId": "plaintext", "version": 0, "text": text}
        daemon.notify("textDocument/didOpen", {"textDocument": document})
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "SimulatedEditor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        if self.is_over:
            self._thread.join(10)
            return
        self.daemon.request("agentd/status")  # something comes, so that the thread sees that it may end
        self._thread.join(10)
        if self.failure is not None:
            raise self.failure

    def _serve(self) -> None:
        """Do about each edit what this editor does."""
        try:
            while not self._stop:
                message = self.daemon.wait(lambda message: True, self._since)
                self._since += 1
                params = message.get("params") or {}
                if message.get("method") == "workspace/applyEdit" and self.is_of_us(params):
                    self.requests.append(message)
                    self.on_edit(self, message)
                elif message.get("method") == "window/showMessageRequest" and self.runs_anyway:
                    self.daemon.answer(message, {"title": "Run anyway"})
        except BaseException as error:  # told by whoever ends us
            self.failure = error

    def is_of_us(self, params: Json) -> bool:
        """Whether an edit is of this document; the daemon may have others."""
        return self.uri in str(params["edit"])

    # --- the user ---

    def type(self, start: int, end: int, new: str, *, tell: bool = True) -> Json:
        """The user replaces a part by index; gives the change that tells of it."""
        change = {"range": self.range_of(start, end), "text": new}
        self.text = self.text[:start] + new + self.text[end:]
        if tell:
            self.tell(change)
        return change

    def tell(self, *changes: Json) -> None:
        """Tell the daemon of changes, in one notification."""
        self.version += 1
        named = {"uri": self.uri, "version": self.version}
        self.daemon.notify("textDocument/didChange", {"textDocument": named, "contentChanges": list(changes)})

    def save(self) -> None:
        """The user saves."""
        self.path.write_bytes(self.text.encode())
        self.daemon.notify("textDocument/didSave", {"textDocument": {"uri": self.uri}})

    def close(self) -> None:
        """The user closes the document."""
        self.daemon.notify("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    # --- edits ---

    def edits_of(self, request: Json) -> list[Json]:
        """The text edits of a request."""
        edit = request["params"]["edit"]
        if "documentChanges" in edit:
            (change,) = edit["documentChanges"]
            edits: list[Json] = change["edits"]
            return edits
        found: list[Json] = edit["changes"][self.uri]
        return found

    def is_stale(self, request: Json) -> bool:
        """Whether the edit was made for another version."""
        edit = request["params"]["edit"]
        return (
            "documentChanges" in edit
            and edit["documentChanges"][0]["textDocument"]["version"] != self.version
        )

    def make(self, request: Json) -> list[Json]:
        """Make the edit, as one step of undo; gives the changes that tell of it."""
        self.undo.append(self.text)
        spots = [
            (self.index_of(each["range"]["start"]), self.index_of(each["range"]["end"]), each["newText"])
            for each in self.edits_of(request)
        ]
        return [self.type(start, end, new, tell=False) for start, end, new in sorted(spots, reverse=True)]

    # --- positions, the long way round ---

    def units(self, text: str) -> int:
        return len(text.encode(self.encoding if self.encoding == "utf-8" else "utf-16-le")) // (
            1 if self.encoding == "utf-8" else 2
        )

    def range_of(self, start: int, end: int) -> Json:
        return {"start": self.spot_of(start), "end": self.spot_of(end)}

    def spot_of(self, index: int) -> Json:
        before = re.split("\r\n|\n|\r", self.text[:index])
        return {"line": len(before) - 1, "character": self.units(before[-1])}

    def index_of(self, spot: Json) -> int:
        lines = [*_LINES.findall(self.text), ""]
        start = sum(map(len, lines[: spot["line"]]))
        content = lines[spot["line"]].rstrip("\r\n")
        for length in range(len(content) + 1):
            if self.units(content[:length]) == spot["character"]:
                return start + length
        raise AssertionError(f"{spot} is no position of {self.text!r}")

    # --- the agent ---

    def chat(self, *calls: Json, **settings: Any) -> Chat:
        """A session in which the model makes these calls, each in a turn of its own."""
        model = self.home.script(*map(reply, calls), reply("done"))
        return Chat(self.daemon, self.root, model=model, **{"mode": "full", **settings})

    def results(self, *calls: Json, **settings: Any) -> list[str]:
        """The texts of the results of these calls; errors begin with `error: `."""
        chat = self.chat(*calls, **settings)
        assert chat.run()["text"] == "done"
        return results_of(chat)

    def agent_reads(self) -> str:
        """The document as the model reads it."""
        (text,) = self.results(READ)
        return "\n".join(line.split(" | ", 1)[1] for line in text.split("\n")[1:])


READ = tool("read_file", {"file_path": "a.txt"})


def replace(old: str, new: str) -> Json:
    return tool("edit_file", {"file_path": "a.txt", "old_string": old, "new_string": new})


def write(content: str) -> Json:
    return tool("write_file", {"file_path": "a.txt", "content": content})


def results_of(chat: Chat) -> list[str]:
    events = [params["event"] for params in chat.notifications()]
    results = [event["result"] for event in events if event["type"] == "tool_execution_end"]
    return [("error: " if each["isError"] else "") + each["content"][0]["text"] for each in results]


# --- what editors do about an edit ---


def honest(editor: SimulatedEditor, request: Json) -> None:
    """Refuses what is stale (VS Code), else makes it, tells of it and says so."""
    if editor.is_stale(request):
        editor.daemon.answer(request, {"applied": False})
        return
    editor.tell(*editor.make(request))
    editor.daemon.answer(request, {"applied": True})
