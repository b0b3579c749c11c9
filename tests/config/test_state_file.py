"""Documents that several processes change: nothing is lost, and what is damaged or foreign does not count."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentd.config.state_file import StateError, StateFile


def put(path: Path, **fields: object) -> None:
    with StateFile(path).change() as document:
        document.update(fields)


def test_a_change_is_there_for_every_reader_and_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.json"
    reader = StateFile(path)
    assert reader.read() == {}
    put(path, a=[1])
    assert reader.read()["a"] == [1]
    put(path, a=[1, 2])
    assert reader.read()["a"] == [1, 2]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(each.name for each in path.parent.iterdir()) == ["state.json", "state.lock"]
    path.unlink()
    assert reader.read() == {}


ADDING = """
import sys
from pathlib import Path
from agentd.config.state_file import StateFile
for number in range(25):
    with StateFile(Path(sys.argv[1])).change() as document:
        document["all"] = [*document.get("all", []), f"{sys.argv[2]}-{number}"]
"""


def test_processes_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    writers = [subprocess.Popen([sys.executable, "-c", ADDING, str(path), name]) for name in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert sorted(StateFile(path).read()["all"]) == sorted(f"{w}-{n}" for w in "abcd" for n in range(25))


DAMAGED = {
    "empty": b"",
    "cut": b'{"version": 1, "rules": [',
    "list": b"[]",
    "version": b'{"version": 2}',
    "no-version": b"{}",
    "bytes": b"\xff\xfe",
    "deep": b"[" * 100_000,
    "null": b"null",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_does_not_count_and_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"state\.json .*Repair it or remove it"):
        StateFile(path).read()
    with pytest.raises(StateError):
        put(path, a=1)
    assert path.read_bytes() == content


def test_what_others_may_write_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    put(path, a=1)
    path.chmod(0o620)
    with pytest.raises(StateError, match="others"):
        StateFile(path).read()
    path.chmod(0o600)
    real = tmp_path / "real.json"
    path.rename(real)
    path.symlink_to(real)
    with pytest.raises(StateError):
        StateFile(path).read()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StateError):
        StateFile(path).read()


def test_a_change_that_fails_leaves_the_old_document(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    put(path, a=1)

    def fail() -> None:
        with StateFile(path).change() as document:
            document["a"] = 2
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert StateFile(path).read()["a"] == 1
