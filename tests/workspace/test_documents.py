"""Open documents: whose text counts, the editor's or the disk's."""

import os
from pathlib import Path

import anyio
import pytest

from agentd.workspace.documents import Documents

DIRTY, CLEAN = True, False


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
    documents = Documents()
    await documents.open(file, "saved\r\n", 1)
    assert await is_dirty(documents, file) is CLEAN
    documents.change(file, "typed\r\n", 2)
    assert await is_dirty(documents, file) is DIRTY
    assert await documents.dirty_paths() == (file,)
    file.write_bytes(b"typed\r\n")
    documents.save(file)
    assert await is_dirty(documents, file) is CLEAN
    assert await documents.dirty_paths() == ()


async def test_a_clean_document_stays_clean_when_its_file_changes_on_disk(file: Path) -> None:
    """An edit of ours or a formatter changed it; the editor will reload. Its old text must not come back."""
    documents = Documents()
    await documents.open(file, "saved\r\n", 1)
    file.write_bytes(b"edited\r\n")
    assert await is_dirty(documents, file) is CLEAN
    documents.change(file, "edited\r\n", 2)  # the editor reloads, and says no word of saving
    assert await is_dirty(documents, file) is CLEAN
    documents.change(file, "typed\r\n", 3)
    assert await is_dirty(documents, file) is DIRTY


async def test_text_that_was_never_saved_is_dirty_when_it_is_opened(file: Path) -> None:
    documents = Documents()
    await documents.open(file, "restored after a crash", 1)
    assert await is_dirty(documents, file) is DIRTY


async def test_a_document_without_a_file_is_dirty(tmp_path: Path) -> None:
    documents = Documents()
    await documents.open(tmp_path / "new.py", "", 1)
    assert await is_dirty(documents, tmp_path / "new.py") is DIRTY


async def test_a_file_that_became_a_pipe_holds_up_nobody(file: Path) -> None:
    documents = Documents()
    await documents.open(file, "saved\r\n", 1)
    documents.change(file, "typed", 2)
    file.unlink()
    os.mkfifo(file)
    with anyio.fail_after(10):
        assert await is_dirty(documents, file) is DIRTY


async def test_what_is_not_open_is_not_there(file: Path) -> None:
    documents = Documents()
    documents.change(file, "x", 1)
    documents.save(file)
    assert await documents.read(file) is None
    await documents.open(file, "x", 1)
    documents.close(file)
    assert await documents.read(file) is None


@pytest.mark.parametrize(("data", "shown"), [(b"a\r\nb\r\n", "a\nb\n"), (b"caf\xe9\n", "caf\u00e9\n")])
async def test_an_editor_may_show_line_ends_and_old_encodings_its_own_way(
    file: Path, data: bytes, shown: str
) -> None:
    file.write_bytes(data)
    documents = Documents()
    await documents.open(file, shown, 1)
    assert await is_dirty(documents, file) is CLEAN
    documents.change(file, f"{shown}typed", 2)
    assert await is_dirty(documents, file) is DIRTY
