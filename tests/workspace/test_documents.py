"""Open documents: whose text counts, the editor's or the disk's."""

import os
from pathlib import Path

import anyio
import pytest

from agentd.workspace.buffer import Buffer
from agentd.workspace.documents import Documents

DIRTY, CLEAN = True, False


class OneDocument(Documents):
    """Documents whose one file is told of by its text."""

    async def show(self, path: Path, text: str, version: int) -> None:
        self.buffer = Buffer(text, "utf-16")
        await self.open(path.as_uri(), path, self.buffer, version)

    def type(self, path: Path, text: str, version: int) -> None:
        self.buffer.replace_all(text)
        self.change(path.as_uri(), version)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_bytes(b"saved\r\n")
    return path


async def is_dirty(documents: Documents, path: Path) -> bool:
    document = await documents.read(path)
    assert document is not None
    return document.dirty


async def test_a_document_is_dirty_from_a_change_to_its_save(file: Path) -> None:
    documents = OneDocument()
    await documents.show(file, "saved\r\n", 1)
    assert await is_dirty(documents, file) is CLEAN
    documents.type(file, "typed\r\n", 2)
    assert await is_dirty(documents, file) is DIRTY
    assert await documents.dirty_paths() == (file,)
    file.write_bytes(b"typed\r\n")
    documents.save(file.as_uri())
    assert await is_dirty(documents, file) is CLEAN
    assert await documents.dirty_paths() == ()


async def test_a_clean_document_stays_clean_when_its_file_changes_on_disk(file: Path) -> None:
    """An edit of ours or a formatter changed it; the editor will reload. Its old text must not come back."""
    documents = OneDocument()
    await documents.show(file, "saved\r\n", 1)
    file.write_bytes(b"edited\r\n")
    assert await is_dirty(documents, file) is CLEAN
    documents.type(file, "edited\r\n", 2)  # the editor reloads, and says no word of saving
    assert await is_dirty(documents, file) is CLEAN
    documents.type(file, "typed\r\n", 3)
    assert await is_dirty(documents, file) is DIRTY


@pytest.mark.parametrize("looked_at", [True, False])
async def test_what_was_there_before_a_reload_is_dirty_when_it_comes_back(
    file: Path, looked_at: bool
) -> None:
    """The user undoes the reload, or agentd what a command did: the disk holds what the command left."""
    documents = OneDocument()
    await documents.show(file, "saved\r\n", 1)
    file.write_bytes(b"by a command\r\n")
    documents.type(file, "by a command\r\n", 2)
    if looked_at:
        assert await is_dirty(documents, file) is CLEAN
    documents.type(file, "saved\r\n", 3)
    assert await is_dirty(documents, file) is DIRTY
    documents.type(file, "by a command\r\n", 4)
    assert await is_dirty(documents, file) is CLEAN


@pytest.mark.parametrize(("data", "shown"), [(b"a\r\nb\r\n", "a\nb\n"), (b"caf\xe9\n", "caf\u00e9\n")])
async def test_what_was_typed_and_undone_is_clean(file: Path, data: bytes, shown: str) -> None:
    file.write_bytes(data)
    documents = OneDocument()
    await documents.show(file, shown, 1)
    documents.type(file, f"{shown}typed", 2)
    documents.type(file, shown, 3)
    assert await is_dirty(documents, file) is CLEAN
    file.write_bytes(b"by a command\n")
    assert await is_dirty(documents, file) is CLEAN


async def test_text_that_was_never_saved_is_dirty_when_it_is_opened(file: Path) -> None:
    documents = OneDocument()
    await documents.show(file, "restored after a crash", 1)
    assert await is_dirty(documents, file) is DIRTY


async def test_a_document_without_a_file_is_dirty(tmp_path: Path) -> None:
    documents = OneDocument()
    await documents.show(tmp_path / "new.py", "", 1)
    assert await is_dirty(documents, tmp_path / "new.py") is DIRTY


async def test_a_file_that_became_a_pipe_holds_up_nobody(file: Path) -> None:
    documents = OneDocument()
    await documents.show(file, "saved\r\n", 1)
    documents.type(file, "typed", 2)
    file.unlink()
    os.mkfifo(file)
    with anyio.fail_after(10):
        assert await is_dirty(documents, file) is DIRTY


async def test_what_is_not_open_is_not_there(file: Path) -> None:
    documents = OneDocument()
    documents.change(file.as_uri(), 1)
    documents.save(file.as_uri())
    assert await documents.read(file) is None
    await documents.show(file, "x", 1)
    documents.close(file.as_uri())
    assert await documents.read(file) is None


@pytest.mark.parametrize(("data", "shown"), [(b"a\r\nb\r\n", "a\nb\n"), (b"caf\xe9\n", "caf\u00e9\n")])
async def test_an_editor_may_show_line_ends_and_old_encodings_its_own_way(
    file: Path, data: bytes, shown: str
) -> None:
    file.write_bytes(data)
    documents = OneDocument()
    await documents.show(file, shown, 1)
    assert await is_dirty(documents, file) is CLEAN
    documents.type(file, f"{shown}typed", 2)
    assert await is_dirty(documents, file) is DIRTY


async def test_of_two_documents_of_one_file_the_latest_counts_until_it_is_closed(file: Path) -> None:
    documents = Documents()
    own, linked = Buffer("saved\r\n", "utf-16"), Buffer("saved\r\n", "utf-16")
    await documents.open("file:///own", file, own, 1)
    await documents.open("file:///link", file, linked, 1)
    own.replace_all("typed")
    documents.change("file:///own", 2)
    assert documents.text(file) == "typed"
    documents.close("file:///own")
    assert documents.text(file) == "saved\r\n"
    assert await is_dirty(documents, file) is CLEAN


async def test_a_document_that_is_no_file_is_known_by_its_uri_alone() -> None:
    documents = Documents()
    await documents.open("untitled:Untitled-1", None, Buffer("draft", "utf-16"), 3)
    draft = documents.other("untitled:Untitled-1")
    assert draft is not None
    assert (draft.text, draft.version, draft.dirty) == ("draft", 3, DIRTY)
    assert await documents.dirty_paths() == ()
    documents.close("untitled:Untitled-1")
    assert documents.other("untitled:Untitled-1") is None


async def test_watchers_hear_of_every_change_as_long_as_they_watch(file: Path) -> None:
    documents = OneDocument()
    await documents.show(file, "a", 1)
    heard: list[str | None] = []
    with documents.watched(lambda: heard.append(documents.text(file))):
        documents.type(file, "b", 2)
        documents.close(file.as_uri())
    await documents.show(file, "c", 1)
    assert heard == ["b", None]
