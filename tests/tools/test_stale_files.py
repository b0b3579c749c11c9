"""A write over a file needs a fresh read of this very content, however well a change hides itself."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from file_calls import Calls, said
from wire.processes import DEADLINE

TRIALS = 200
STALE = "'f' changed since it was read. Read it again with read_file, then repeat the change."


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # hundreds of writes, none of which is about the disk
    return Calls(tmp_path)


def same_size_and_time(path: Path, data: bytes) -> None:
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def same_size_by_rename(path: Path, data: bytes) -> None:
    status = path.stat()
    new = path.with_name("new")
    new.write_bytes(data)
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.rename(path)


def one_byte(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(len(data) - 1)
        file.write(b"#")


def longer(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"more\n")


def removed_and_made(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


@pytest.mark.parametrize("when", ["before the call", "between question and answer"])
@pytest.mark.parametrize(
    "change", [same_size_and_time, same_size_by_rename, one_byte, longer, removed_and_made]
)
async def test_none_of_200_changes_by_others_is_missed_and_each_is_overcome_by_reading(
    calls: Calls, change: Callable[[Path, bytes], None], when: str
) -> None:
    path = calls.root / "f"
    path.write_bytes(b"mine 0\n")
    for number in range(TRIALS):
        await calls.text("read_file", file_path="f")
        attempt = {
            "edit_file": {"old_string": "mine", "new_string": "MINE"},
            "write_file": {"content": "MINE\n"},
        }
        tool = ("edit_file", "write_file")[number % 2]
        before = path.read_bytes()
        theirs = before.replace(b"mine", b"them")
        if when == "before the call":
            change(path, theirs)
            result = await calls.run(tool, file_path="f", **attempt[tool])
        else:
            action = await calls.prepare(tool, file_path="f", **attempt[tool])
            change(path, theirs)
            result = await action.run()
        assert (result.is_error, said(result)) == (True, STALE)
        left = path.read_bytes()
        assert left != before
        assert b"MINE" not in left
        await calls.text("read_file", file_path="f")
        await calls.text("write_file", file_path="f", content=f"mine {number}\n")
    assert os.listdir(calls.root) == ["f"]


async def test_a_touch_or_a_change_of_mode_is_no_change_of_content(calls: Calls) -> None:
    path = calls.root / "f"
    path.write_text("one")
    await calls.text("read_file", file_path="f")
    os.utime(path, ns=(1, 1))
    path.chmod(0o755)
    await calls.text("edit_file", file_path="f", old_string="one", new_string="two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o755


async def test_a_file_that_was_never_read_is_told_apart_from_one_that_changed(calls: Calls) -> None:
    (calls.root / "f").write_text("one")
    arguments = {"file_path": "f", "old_string": "one", "new_string": "two"}
    assert "was not read in this session. Read it with read_file first" in await calls.error(
        "edit_file", **arguments
    )


async def test_none_of_100_saves_of_an_editor_during_edits_is_lost(calls: Calls) -> None:
    path = calls.root / "f"
    path.write_text("save 0\nedit 0\n")
    lost: list[int] = []
    edited = threading.Event()

    def save() -> None:
        for number in range(1, 101):
            new = calls.root / "saved"
            new.write_text(f"save {number}\nedit 0\n")
            new.rename(path)
            edited.clear()
            edited.wait(DEADLINE)  # an edit comes through, beside this save or after it
            if not path.read_text().startswith(f"save {number}\n"):
                lost.append(number)

    saver = threading.Thread(target=save)
    saver.start()
    refused = 0
    while saver.is_alive():
        content = (await calls.text("read_file", file_path="f")).split("\n")[2].split(" | ")[1]
        result = await calls.run(
            "edit_file", file_path="f", old_string=content, new_string=f"edit {int(content.split()[1]) + 1}"
        )
        refused += result.is_error
        if not result.is_error:
            edited.set()
    saver.join()
    assert lost == []


_COUNT = """
import asyncio, os, sys
from pathlib import Path
from file_calls import Calls, said

os.fsync = lambda fd: None

async def main():
    calls = Calls(Path(sys.argv[1]))
    sys.stdin.readline()
    done = 0
    while done < 100:
        number = int((await calls.text("read_file", file_path="f")).split(" | ")[1])
        result = await calls.run("write_file", file_path="f", content=f"{number + 1}\\n")
        done += not result.is_error
        assert not result.is_error or "changed since it was read" in said(result), said(result)

asyncio.run(main())
"""


def test_of_the_changes_of_two_daemons_to_one_file_none_is_lost(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("0\n")
    daemons = [
        subprocess.Popen(
            [sys.executable, "-c", _COUNT, str(tmp_path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        )
        for _ in range(2)
    ]  # fmt: skip
    for daemon in daemons:
        assert daemon.stdin is not None
        daemon.stdin.write(b"go\n")
        daemon.stdin.flush()
    for daemon in daemons:
        _, errors = daemon.communicate(timeout=5 * DEADLINE)
        assert daemon.returncode == 0, errors.decode()
    assert (tmp_path / "f").read_text() == "200\n"
    assert os.listdir(tmp_path) == ["f"]
