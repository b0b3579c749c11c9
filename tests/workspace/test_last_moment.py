"""Another program that writes between the last look at a file and the moment in which ours comes."""

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from agentd.workspace import files, replacing, swapping
from agentd.workspace.paths import WorkspaceError, resolve

needs_exchange = pytest.mark.skipif(
    swapping._system_call() is None, reason="needs renameat2(2) to exchange names"
)

THEIRS = b"theirs, of the same size"
OLD = b"what was there at first."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "f").write_bytes(OLD)
    return tmp_path / "f"


def before_the_exchange(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], None]) -> None:
    """Do one act right before each exchange of names, after every other look at the file."""
    exchange, rest = swapping.exchange, list(acts)

    def late(parent: int, name: str, other: str) -> bool:
        if rest:
            rest.pop(0)()
        return exchange(parent, name, other)

    monkeypatch.setattr(replacing, "exchange", late)


def write_ours(path: Path) -> None:
    place = resolve(path.parent, path.name)
    files.write(place, b"ours", files.read(place))


def in_place(path: Path, data: bytes = THEIRS) -> None:
    """As `open(path, "w")` does, with the times put back."""
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def by_rename(path: Path, data: bytes = THEIRS) -> None:
    new = path.with_name("new")
    new.write_bytes(data)
    new.rename(path)


def as_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere")


@needs_exchange
@pytest.mark.parametrize("act", [in_place, by_rename])
def test_what_another_program_wrote_in_the_last_moment_is_seen_and_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]
) -> None:
    before_the_exchange(monkeypatch, lambda: act(path))
    with pytest.raises(WorkspaceError, match="changed since it was read"):
        write_ours(path)
    assert path.read_bytes() == THEIRS
    assert os.listdir(path.parent) == ["f"]


@needs_exchange
@pytest.mark.parametrize("act", [as_a_folder, as_a_link])
def test_what_took_the_files_place_in_the_last_moment_stays_what_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], None]
) -> None:
    before_the_exchange(monkeypatch, lambda: act(path))
    with pytest.raises(WorkspaceError):
        write_ours(path)
    assert path.is_dir() or path.is_symlink()
    assert os.listdir(path.parent) == ["f"]


@needs_exchange
def test_a_change_of_mode_or_a_new_hard_link_in_the_last_moment_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_exchange(monkeypatch, lambda: path.chmod(0o600))
    with pytest.raises(WorkspaceError):
        write_ours(path)
    assert path.stat().st_mode & 0o777 == 0o600
    before_the_exchange(monkeypatch, lambda: os.link(path, path.with_name("g")))
    with pytest.raises(WorkspaceError):
        write_ours(path)
    assert path.samefile(path.with_name("g"))


@needs_exchange
def test_a_file_that_is_removed_in_the_last_moment_stays_away(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_exchange(monkeypatch, path.unlink)
    with pytest.raises(WorkspaceError, match="changed since"):
        write_ours(path)
    assert os.listdir(path.parent) == []


@needs_exchange
@pytest.mark.parametrize("later", [in_place, by_rename])
def test_of_two_programs_in_the_last_moment_the_later_one_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch, later: Callable[[Path, bytes], None]
) -> None:
    before_the_exchange(monkeypatch, lambda: in_place(path), lambda: later(path, b"the latest"))
    with pytest.raises(WorkspaceError):
        write_ours(path)
    assert path.read_bytes() == b"the latest"
    assert os.listdir(path.parent) == ["f"]


@needs_exchange
def test_a_file_that_is_removed_while_it_is_put_back_stays_away(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_the_exchange(monkeypatch, lambda: in_place(path), path.unlink)
    with pytest.raises(WorkspaceError):
        write_ours(path)
    assert os.listdir(path.parent) == []


def test_where_names_cannot_be_exchanged_the_file_is_renamed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "_system_call", lambda: None)
    write_ours(path)
    assert path.read_bytes() == b"ours"
    assert os.listdir(path.parent) == ["f"]


@needs_exchange
def test_a_file_system_that_knows_no_exchange_is_told_from_a_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "_system_call", lambda: lambda *call: 22)  # EINVAL
    write_ours(path)
    assert path.read_bytes() == b"ours"
    monkeypatch.setattr(swapping, "_system_call", lambda: lambda *call: 5)  # EIO
    with pytest.raises(WorkspaceError) as caught:
        write_ours(path)
    assert caught.value.kind == "storage"
    assert path.read_bytes() == b"ours"
    assert os.listdir(path.parent) == ["f"]


@needs_exchange
def test_a_file_that_is_mounted_by_itself_is_written_in_place(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = path.stat().st_ino
    monkeypatch.setattr(swapping, "_system_call", lambda: lambda *call: 16)  # EBUSY
    write_ours(path)
    assert (path.read_bytes(), path.stat().st_ino) == (b"ours", inode)
    assert os.listdir(path.parent) == ["f"]


@needs_exchange
def test_a_watcher_of_the_folder_is_told_last_that_the_file_is_there(path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    watcher = libc.inotify_init1(os.O_NONBLOCK)
    try:
        moved_from, moved_to = 0x40, 0x80  # sys/inotify.h
        assert libc.inotify_add_watch(watcher, os.fsencode(path.parent), moved_from | moved_to) > 0
        write_ours(path)
        data, about_the_file = os.read(watcher, 1 << 16), []
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            if data[16 : 16 + length].rstrip(b"\0") == b"f":
                about_the_file.append(mask)
            data = data[16 + length :]
    finally:
        os.close(watcher)
    assert about_the_file[-1] == moved_to
