"""Looks around commands: what has not changed is not read again, and what is too large not at all."""

import os
import threading
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from agentd.workspace import command_changes, files
from agentd.workspace.checkpoints import Checkpoints
from agentd.workspace.command_changes import Looks, TooLarge, look
from agentd.workspace.file_states import state_of
from agentd.workspace.paths import Place
from agentd.workspace.prompt_checkpoint import PromptCheckpoint
from agentd.workspace.wants import wanted


class Counted:
    """How often files are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        read = command_changes._read

        def counted(root: Path, parts: tuple[str, ...]) -> object:
            self.names.append("/".join(parts))
            return read(root, parts)

        monkeypatch.setattr(command_changes, "_read", counted)

    def taken(self) -> list[str]:
        names, self.names = self.names, []
        return sorted(names)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "kept")


def until_settled(folder: Path) -> None:
    """Wait until no change of these files can be taken for another one of the same moment."""
    newest = max(path.stat().st_ctime_ns for path in folder.iterdir())
    while time.time_ns() < newest + 2 * command_changes._TICK_NS:
        time.sleep(0.01)


def test_the_second_look_reads_only_what_has_changed(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, looks = Counted(monkeypatch), Looks()
    until_settled(root)
    looks.last = look(checkpoints, root, looks)
    assert read.taken() == ["a", "b", "c"]
    status = (root / "b").stat()
    (root / "b").write_text("B")
    os.utime(root / "b", ns=(status.st_atime_ns, status.st_mtime_ns))
    (root / "d").write_text("d")
    (root / "c").unlink()
    second = look(checkpoints, root, looks)
    assert read.taken() == ["b", "d"]
    contents = {parts[0]: known.data for parts, known in second.found.items()}
    assert contents == {"a": b"a", "b": b"B", "d": b"d"}


def test_what_was_written_in_the_very_moment_of_a_look_is_read_again(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, looks = Counted(monkeypatch), Looks()
    looks.last = look(checkpoints, root, looks)
    read.taken()
    newest = max(path.stat().st_ctime_ns for path in root.iterdir())
    object.__setattr__(looks.last, "began", newest + command_changes._TICK_NS // 2)
    look(checkpoints, root, looks)
    assert read.taken() == ["a", "b", "c"]


@pytest.mark.parametrize(("bound", "value"), [("MOST_FILES", 2), ("MOST_BYTES", 2)])
def test_nothing_of_a_workspace_that_is_too_large_is_read(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    read = Counted(monkeypatch)
    monkeypatch.setattr(command_changes, bound, value)
    with pytest.raises(TooLarge):
        look(checkpoints, root, Looks())
    assert read.taken() == []


async def test_a_workspace_that_is_too_large_is_walked_for_the_first_command_of_a_prompt_only(
    root: Path, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_changes, "MOST_FILES", 2)
    told: list[str] = []
    checkpoint = PromptCheckpoint(checkpoints, "p", Looks(), told.append)
    async with checkpoint.watching(root):
        pass
    assert told == [command_changes.UNSEEN]

    def walked_again(*_: object) -> None:
        raise AssertionError("it was walked again")

    monkeypatch.setattr(command_changes, "look", walked_again)
    async with checkpoint.watching(root):
        pass
    assert told == [command_changes.UNSEEN]


async def test_a_change_in_the_midst_of_being_made_is_not_taken_for_one_of_a_command_beside_it(
    root: Path, checkpoints: Checkpoints
) -> None:
    """The tool has had its change kept and not made it yet when the command beside it ends."""
    checkpoint = PromptCheckpoint(checkpoints, "p")
    place = Place(root, ("a",), "a")
    is_kept, has_looked = threading.Event(), threading.Event()

    def edit() -> None:
        before = files.read(place)
        with checkpoint.changing(place, before, b"new"):
            is_kept.set()
            has_looked.wait(0.5)  # it must not: a look waits for us
            (root / "a").write_bytes(b"new")

    async with anyio.create_task_group() as tasks:
        async with checkpoint.watching(root):
            (root / "b").write_text("of the command")
            tasks.start_soon(anyio.to_thread.run_sync, edit)
            await anyio.to_thread.run_sync(is_kept.wait)
        has_looked.set()
    changes = [("/".join(change.parts), change.before, change.after) for change in checkpoints.changes()]
    assert [name for name, _, _ in changes] == ["a", "b"]
    assert checkpoints.content(changes[0][2]) == b"new"


@pytest.mark.parametrize("is_over", [False, True])
async def test_what_a_command_did_to_a_file_is_kept_though_a_tool_was_about_to_change_it_and_could_not(
    root: Path, checkpoints: Checkpoints, is_over: bool
) -> None:
    """The tool finds that the command was quicker, before the look behind that is kept, or behind it."""
    checkpoint = PromptCheckpoint(checkpoints, "p")
    place = Place(root, ("a",), "a")
    change = checkpoint.changing(place, files.read(place), b"never written")

    def fails() -> None:
        change.__exit__(OSError, OSError("too late"), None)

    async with checkpoint.watching(root):
        await anyio.to_thread.run_sync(change.__enter__)
        (root / "a").write_text("of the command")
        if is_over:
            await anyio.to_thread.run_sync(fails)
    if not is_over:
        await anyio.to_thread.run_sync(fails)
    (want,) = wanted(checkpoints.changes(), {"p"})
    assert (want.is_whole, want.expects(state_of(files.read(place)))) == (True, True)
    assert want.before is not None
    assert checkpoints.content(want.before) == b"a"
