"""An editor that tells of changes, its own edits too, only once its user does not type any more."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.from_thread
import pytest

from agentd.daemon.door import Door
from agentd.server import editor as module
from agentd.server.client_profile import Quirks
from agentd.server.editor import ClientEditor
from agentd.server.language_server import LanguageServer
from agentd.workspace.editor import Applied, BufferEdit, ChangedOtherwise, EditOutcome, NotApplied

PATH = Path("/nowhere/a.txt")
BEFORE, AFTER = "one\ntwo\n", "one\nTWO\n"
EDITED = {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}, "text": "TWO"}
TYPED = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "xxx"}
SAME = "its text was the same after 0 s"
STILL = Quirks(tells_when_still=True)


class Silent:
    """The door to an editor that says that it made the edit, and tells of nothing before it is told to."""

    def __init__(self, server: LanguageServer) -> None:
        self.server = server
        self.asked = anyio.Event()

    async def ask(self, method: str, params: Any) -> Any:
        self.asked.set()
        return {"applied": True}

    def tell(self, *changes: Any) -> None:
        named = {"uri": PATH.as_uri(), "version": 2}
        self.server.take("textDocument/didChange", {"textDocument": named, "contentChanges": list(changes)})


@asynccontextmanager
async def edited(quirks: Quirks) -> AsyncIterator[tuple[Silent, list[EditOutcome]]]:
    """An edit that was sent; its outcome is there at the end."""
    server = LanguageServer(lambda: "utf-16")
    door = Silent(server)
    capabilities = {"workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
    editor = ClientEditor(server, cast(Door, door), "utf-16", capabilities, quirks=quirks)
    outcomes: list[EditOutcome] = []

    async def apply() -> None:
        outcomes.append(await editor.apply(BufferEdit(PATH, BEFORE, AFTER, "agentd")))
        tasks.cancel_scope.cancel()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run)
            item = {"uri": PATH.as_uri(), "languageId": "x", "version": 1, "text": BEFORE}
            server.take("textDocument/didOpen", {"textDocument": item})
            tasks.start_soon(apply)
            await door.asked.wait()
            yield door, outcomes
            await anyio.sleep_forever()


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wait is over at once."""
    monkeypatch.setattr(module, "EDIT_SECONDS", 0.0)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("changes", [(EDITED,), (EDITED, TYPED)])
async def test_it_has_made_the_edit_that_it_tells_of_when_the_user_rests(changes: tuple[Any, ...]) -> None:
    async with edited(STILL) as (door, outcomes):
        await anyio.wait_all_tasks_blocked()
        assert not outcomes
        door.tell(*changes)
    (outcome,) = outcomes
    assert isinstance(outcome, Applied)
    assert outcome.text == AFTER
    assert outcome.now == ("xxx" * (len(changes) - 1)) + AFTER


@pytest.mark.usefixtures("patience")
async def test_it_has_skipped_the_edit_where_it_then_tells_of_other_text_alone() -> None:
    async with edited(STILL) as (door, outcomes):
        await anyio.wait_all_tasks_blocked()
        door.tell(TYPED)
    assert outcomes == [ChangedOtherwise("xxx" + BEFORE)]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("quirks", [Quirks(), STILL])
async def test_one_that_never_tells_has_not_made_it(monkeypatch: pytest.MonkeyPatch, quirks: Quirks) -> None:
    monkeypatch.setattr(module, "STILL_SECONDS", 0.0)
    async with edited(quirks) as (_, outcomes):
        pass
    (outcome,) = outcomes
    assert isinstance(outcome, NotApplied)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("quirks", [Quirks(), STILL])
async def test_what_was_typed_and_undone_before_it_was_sent_is_no_word_of_it(
    monkeypatch: pytest.MonkeyPatch, quirks: Quirks
) -> None:
    monkeypatch.setattr(module, "STILL_SECONDS", 0.0)
    workspace_edit = ClientEditor._workspace_edit

    def meanwhile(editor: ClientEditor, *arguments: Any) -> Any:
        anyio.from_thread.run(type_and_undo, editor.door)
        return workspace_edit(editor, *arguments)

    async def type_and_undo(door: Any) -> None:
        door.tell(EDITED)
        door.tell({**EDITED, "text": "two"})
        await door.server.settled()

    monkeypatch.setattr(ClientEditor, "_workspace_edit", meanwhile)
    async with edited(quirks) as (_, outcomes):
        pass
    assert outcomes == [NotApplied(f"the editor says that it made the edit, but {SAME}")]
