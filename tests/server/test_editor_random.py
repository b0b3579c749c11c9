"""A user and an agent type in one document: what the daemon takes for its text is the editor's, always."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentd.daemon.door import ClientError, Door
from agentd.server.editor import ClientEditor
from agentd.server.language_server import LanguageServer
from agentd.workspace.buffer import Encoding
from agentd.workspace.editor import Applied, BufferEdit, NotApplied

Json = dict[str, Any]
PATH = Path("/nowhere/a.txt")
TEXT = st.text(alphabet="ab\n\r😀é€\u2028\x0c", max_size=20)
_LINES = re.compile("[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+$")


@dataclass
class Typist:
    """An editor and its user, with positions the long way round; stands for the door as well."""

    server: LanguageServer
    encoding: Encoding
    data: st.DataObject
    text: str = ""
    version: int = 0
    made: int = 0
    untold: list[Json] = field(default_factory=list)

    def spots(self) -> dict[tuple[int, int], int]:
        """Every position and its index."""
        found, start = {}, 0
        for line, piece in enumerate([*_LINES.findall(self.text), ""]):
            content = piece.rstrip("\r\n")
            for length in range(len(content) + 1):
                data = content[:length].encode("utf-8" if self.encoding == "utf-8" else "utf-16-le")
                found[line, len(data) // (1 if self.encoding == "utf-8" else 2)] = start + length
            start += len(piece)
        return found

    def replace(self, start: tuple[int, int], end: tuple[int, int], new: str) -> None:
        spots = self.spots()
        self.text = self.text[: spots[start]] + new + self.text[spots[end] :]
        ends = {"start": dict(zip(("line", "character"), start, strict=True))}
        ends["end"] = dict(zip(("line", "character"), end, strict=True))
        self.untold.append({"range": ends, "text": new})

    def type(self) -> None:
        """The user does something; the word of it may wait for the next one (editors gather changes)."""
        spots = sorted(self.spots())
        start, end = sorted(self.data.draw(st.sampled_from(spots)) for _ in range(2))
        self.replace(start, end, self.data.draw(TEXT))
        self.version += 1
        if self.data.draw(st.booleans()):
            self.tell()

    def tell(self) -> None:
        changes, self.untold = self.untold, []
        if changes:
            named = {"uri": PATH.as_uri(), "version": self.version}
            self.server.take("textDocument/didChange", {"textDocument": named, "contentChanges": changes})

    async def ask(self, method: str, params: Json) -> Json:
        """The door: `workspace/applyEdit`, while the user types on."""
        assert method == "workspace/applyEdit"
        for _ in range(self.data.draw(st.integers(0, 1))):
            self.type()
        (change,) = params["edit"]["documentChanges"]
        if change["textDocument"]["version"] != self.version:
            self.tell()
            if self.data.draw(st.booleans()):
                raise ClientError("stale")
            return {"applied": False}
        for edit in reversed(change["edits"]):
            start, end = edit["range"]["start"], edit["range"]["end"]
            self.replace(
                (start["line"], start["character"]), (end["line"], end["character"]), edit["newText"]
            )
        self.version += 1
        self.made += 1
        for _ in range(self.data.draw(st.integers(0, 1))):
            self.type()
        self.tell()
        return {"applied": True}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@settings(max_examples=60)
@given(st.data())
def test_the_daemons_text_is_the_editors(encoding: Encoding, data: st.DataObject) -> None:
    anyio.run(_type_together, encoding, data)


async def _type_together(encoding: Encoding, data: st.DataObject) -> None:
    server = LanguageServer(lambda: encoding)
    typist = Typist(server, encoding, data, data.draw(TEXT))
    capabilities = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
    editor = ClientEditor(server, cast(Door, typist), encoding, capabilities)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run)
        item = {"uri": PATH.as_uri(), "languageId": "x", "version": 0, "text": typist.text}
        server.take("textDocument/didOpen", {"textDocument": item})
        for who in data.draw(st.lists(st.sampled_from(["user", "agent"]), max_size=6)):
            if who == "user":
                typist.type()
                continue
            await _edit(editor, typist, data.draw(TEXT))
            document = await server.document(PATH)
            assert document is not None
            assert (document.text, typist.untold) == (typist.text, [])
        typist.tell()
        document = await server.document(PATH)
        assert document is not None
        assert (document.text, document.version) == (typist.text, typist.version)
        tasks.cancel_scope.cancel()


async def _edit(editor: ClientEditor, typist: Typist, piece: str) -> None:
    """The agent puts a piece somewhere, and is told the truth about it."""
    document = await editor.document(PATH)
    assert document is not None
    middle = len(document.text) // 2
    after = document.text[:middle] + piece + document.text[middle + 1 :]
    made = typist.made
    if after == document.text:
        return typist.tell()
    outcome = await editor.apply(BufferEdit(PATH, document.text, after, "agentd"))
    if isinstance(outcome, Applied):
        assert typist.made == made + 1
        assert outcome.text == after
    else:
        assert isinstance(outcome, NotApplied)
        assert typist.made == made
    typist.tell()
