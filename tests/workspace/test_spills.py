"""Files for long output: whose they are, what is left of a killed daemon, and lines read from the middle."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.workspace import spills
from agentd.workspace.paths import WorkspaceError
from agentd.workspace.spills import Spill, SpilledLines, Spills, sweep

OWNER = """
import sys
sys.path.insert(0, sys.argv[1])
import anyio
from pathlib import Path
from agentd.workspace.spills import Spills

async def main():
    spill = Spills(Path(sys.argv[2])).new()
    await spill.write(b"kept")
    print(spill.path, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


def new(owner: Spills) -> Spill:
    spill = owner.new()
    assert spill is not None
    return spill


async def kept(owner: Spills, data: bytes) -> Path:
    spill = new(owner)
    await spill.write(data)
    assert spill.path is not None
    return spill.path


def owner_process(parent: Path) -> "tuple[subprocess.Popen[str], Path]":
    """Another daemon that keeps output below `parent`, and the file."""
    root = str(Path(spills.__file__).parents[2])
    arguments = [sys.executable, "-c", OWNER, root, str(parent)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_daemon_left_is_swept_and_what_a_living_one_has_is_not(tmp_path: Path):
    process, path = owner_process(tmp_path)
    try:
        sweep(tmp_path)
        assert path.read_text() == "kept"
    finally:
        process.kill()
        process.communicate()
    sweep(tmp_path)
    assert os.listdir(tmp_path) == []


def test_only_what_is_ours_by_name_is_swept(tmp_path: Path):
    (tmp_path / "0123456789abcdef").write_text("a file")
    (tmp_path / "notes").mkdir()
    (tmp_path / "fedcba9876543210").symlink_to(tmp_path / "notes")
    (tmp_path / "notes" / "mine").touch()
    (tmp_path / ("a" * 16)).mkdir()
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["0123456789abcdef", "fedcba9876543210", "notes"]
    assert (tmp_path / "notes" / "mine").exists()
    sweep(tmp_path / "nothing here")


async def test_a_folder_that_a_sweep_takes_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lock = fcntl.flock
    swept = []

    def late(fd: int, operation: int) -> None:
        if not swept:
            swept.append(True)
            monkeypatch.setattr(fcntl, "flock", lock)
            sweep(tmp_path)
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    owner = Spills(tmp_path)
    path = await kept(owner, b"kept")
    assert swept
    assert path.read_bytes() == b"kept"
    sweep(tmp_path)
    assert path.exists()
    await owner.close()


async def test_closing_removes_the_folder_and_lets_go_of_its_lock(tmp_path: Path):
    before = len(os.listdir("/proc/self/fd"))
    owner = Spills(tmp_path)
    await kept(owner, b"a")
    await owner.close()
    assert os.listdir(tmp_path) == []
    assert len(os.listdir("/proc/self/fd")) == before
    assert owner.new() is None


async def test_writes_from_many_commands_at_once_make_one_folder(tmp_path: Path):
    owner = Spills(tmp_path)
    files = [new(owner) for _ in range(20)]
    async with anyio.create_task_group() as tasks:
        for number, spill in enumerate(files):
            tasks.start_soon(spill.write, b"%d" % number)
    assert len(os.listdir(tmp_path)) == 1
    assert [spill.path and spill.path.read_bytes() for spill in files] == [b"%d" % n for n in range(20)]
    await owner.close()


async def test_a_file_that_was_given_up_takes_nothing_more(tmp_path: Path):
    owner = Spills(tmp_path)
    spill = new(owner)
    await spill.write(b"one")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await spill.write(b"two")
    await spill.write(b"three")
    assert (spill.path, spill.flaw) == (None, "the disk did not take it in time")
    await owner.close()


async def test_a_disk_that_hangs_holds_a_command_for_a_while_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hung, released = threading.Event(), threading.Event()

    def hang(fd: int, data: bytes) -> None:
        hung.set()
        released.wait(30)

    monkeypatch.setattr(spills, "write_all", hang)
    monkeypatch.setattr(spills, "PATIENCE_SECONDS", 0.1)
    owner = Spills(tmp_path)
    spill = new(owner)
    with anyio.fail_after(20):
        await spill.write(b"one")
    assert hung.is_set()
    assert (spill.path, spill.flaw) == (None, "the disk did not take it in time")
    released.set()
    await owner.close()


def lines_of(path: Path, line_bytes: int = 100) -> SpilledLines:
    owner = Spills(path.parent)
    owner.folder, owner._files = path.parent, {path.name: Spill(owner, path.name)}
    place = owner.find(str(path))
    assert place is not None
    return SpilledLines(place, line_bytes)


@given(
    st.lists(st.text("ab\n", max_size=6), max_size=20).map("\n".join), st.integers(0, 30), st.integers(0, 30)
)
def test_any_part_is_what_the_text_has_there(
    tmp_path_factory: pytest.TempPathFactory, text: str, first: int, count: int
):
    path = tmp_path_factory.getbasetemp() / "spilled.txt"
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spills, "_CHUNK", 3)
        lines = lines_of(path)
        expected = text.split("\n")[: None if text and not text.endswith("\n") else -1]
        assert len(lines) == len(expected)
        assert lines[first : first + count] == expected[first : first + count]


def test_an_overlong_line_is_cut_between_characters(tmp_path: Path):
    (tmp_path / "a").write_text("€" * 1000 + "\nb\n")
    assert lines_of(tmp_path / "a")[0:5] == ["€" * 33, "b"]


def test_a_file_that_is_gone_or_another_is_no_output_any_more(tmp_path: Path):
    path = tmp_path / "a"
    path.write_text("a\n")
    lines = lines_of(path)
    path.unlink()
    for replace in (lambda: None, lambda: os.mkfifo(path)):
        replace()
        with pytest.raises(WorkspaceError, match="is not kept any more"):
            lines[0:1]
