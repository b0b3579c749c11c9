"""`kill -9` in the midst of writes: no file is torn, and what lies around is found and removed."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from wire.processes import DEADLINE

from agentd.workspace import files
from agentd.workspace.ignore import Walk
from agentd.workspace.paths import resolve
from agentd.workspace.temporaries import is_temporary
from agentd.workspace.write_notes import WriteNotes

KILLS = 100
SIZE = 4_500_000

# Forks a writer again and again, kills it at a random moment, and looks at the file.
_KILLER = f"""
import json, os, random, signal, sys, time
from pathlib import Path
from agentd.workspace import files
from agentd.workspace.paths import resolve
from agentd.workspace.write_notes import WriteNotes

root, notes = Path(sys.argv[1]), Path(sys.argv[2])
random.seed(4)
contents = [letter * {SIZE} for letter in (b"a", b"b")]
place = resolve(root, "sub/f")
files.write(place, contents[0], None)
torn = 0
for _ in range({KILLS}):
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        mine = WriteNotes(notes)
        while True:
            before = files.read(place)
            os.write(tell, b"x")
            files.write(place, contents[before.data == contents[0]], before, mine)
    os.read(ready, 1)
    time.sleep(random.random() / 40)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(tell)
    torn += files.read(place).data not in contents
print(json.dumps(torn))
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """A workspace after many killed writes, the notes, and how often the file was torn."""
    root, notes = tmp_path_factory.mktemp("ws"), tmp_path_factory.mktemp("data") / "writes"
    (root / "sub").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, str(root), str(notes)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20 * DEADLINE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return root, notes, json.loads(done.stdout)


def test_none_of_100_killed_writes_leaves_a_torn_file(killed: tuple[Path, Path, int]) -> None:
    assert killed[2] == 0


def test_what_killed_writes_left_is_not_part_of_the_workspace_and_swept_by_the_next_daemon(
    killed: tuple[Path, Path, int],
) -> None:
    root, notes, _ = killed
    left = [name for name in os.listdir(root / "sub") if name != "f"]
    assert left, "no kill hit a write: nothing was shown"
    assert all(is_temporary(name) for name in left)
    root_fd = os.open(root, os.O_RDONLY)
    try:
        assert list(Walk(root_fd).files(())) == [("sub", "f")]
    finally:
        os.close(root_fd)
    assert WriteNotes(notes).sweep() == len(left)
    assert os.listdir(root / "sub") == ["f"]
    assert os.listdir(notes) == []


_WRITER = """
import sys
from pathlib import Path
from agentd.workspace.write_notes import WriteNotes

notes = WriteNotes(Path(sys.argv[2]))
notes.note(Path(sys.argv[1]), ())
(Path(sys.argv[1]) / notes.temporary_name("f")).write_text("half")
print("go", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws", tmp_path / "writes"


def writer(root: Path, notes: Path) -> "subprocess.Popen[bytes]":
    """Another daemon, which has a write in flight in `root`."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(root), str(notes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"go\n"
    return process


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=DEADLINE)


def test_the_temporaries_of_a_living_daemon_are_left_alone(places: tuple[Path, Path]) -> None:
    root, notes = places
    dead, living = writer(root, notes), writer(root, notes)
    try:
        kill(dead)
        assert len(os.listdir(root)) == 2
        assert WriteNotes(notes).sweep() == 1
        assert len(os.listdir(root)) == 1
        assert WriteNotes(notes).sweep() == 0
    finally:
        kill(living)
    assert WriteNotes(notes).sweep() == 1
    assert os.listdir(root) == []


def test_only_files_that_are_ours_by_name_are_swept(places: tuple[Path, Path]) -> None:
    root, notes = places
    kill(writer(root, notes))
    others = [".f.0123456789abcdef-1.agentd~", "f.agentd~", ".f~", "f"]
    for name in others:
        (root / name).write_text("theirs")
    assert WriteNotes(notes).sweep() == 1
    assert sorted(os.listdir(root)) == sorted(others)


def test_a_folder_that_is_a_link_by_now_is_not_swept(places: tuple[Path, Path]) -> None:
    root, notes = places
    (root / "sub").mkdir()
    mine = WriteNotes(notes)
    mine.note(root, ("sub",))
    name = mine.temporary_name("f")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / name).write_text("outside")
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    os.close(mine._fd)  # as when its process ends
    WriteNotes(notes).sweep()
    assert os.listdir(outside) == [name]
    assert os.listdir(notes) == [], "and not tried for ever"


def test_a_note_that_is_removed_before_it_is_locked_is_begun_again(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, folder = places
    notes, flock, swept = WriteNotes(folder), fcntl.flock, []

    def late(fd: int, operation: int) -> None:
        if not swept:
            swept.append(True)
            assert WriteNotes(folder).sweep() == 0
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    notes.note(root, ("sub",))
    (note,) = folder.iterdir()
    assert json.loads(note.read_text()) == [str(root), "sub"]
    assert WriteNotes(folder).sweep() == 0
    assert note.exists(), "now it is locked"
    os.close(notes._fd)


def test_a_folder_is_noted_once_and_before_the_write(places: tuple[Path, Path]) -> None:
    root, folder = places
    notes = WriteNotes(folder)
    for number in range(3):
        files.write(resolve(root, f"a/f{number}"), b"x", None, notes)
    (note,) = folder.iterdir()
    assert [json.loads(line) for line in note.read_text().splitlines()] == [[str(root.resolve()), "a"]]
    assert note.stat().st_mode & 0o777 == 0o600
    os.close(notes._fd)


def test_a_write_goes_on_where_no_note_can_be_kept(places: tuple[Path, Path]) -> None:
    root, folder = places
    folder.write_text("no folder")
    files.write(resolve(root, "f"), b"x", None, WriteNotes(folder))
    assert (root / "f").read_bytes() == b"x"
    assert WriteNotes(folder).sweep() == 0


def test_a_damaged_note_costs_its_broken_line_only(places: tuple[Path, Path]) -> None:
    root, notes = places
    kill(writer(root, notes))
    (note,) = notes.iterdir()
    note.write_bytes(b'garbage\n5\n[]\n["/nowhere", ".."]\n["/nowhere"]\n' + note.read_bytes() + b'["/half')
    assert WriteNotes(notes).sweep() == 1
