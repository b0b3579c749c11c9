import errno
import os
import socket
import stat
import struct
from pathlib import Path

import pytest

from agentd.workspace import files, replacing
from agentd.workspace.files import Snapshot
from agentd.workspace.names import MissingFile
from agentd.workspace.paths import Place, WorkspaceError, resolve


def replace(root: Path, name: str, data: bytes) -> None:
    place = resolve(root, name)
    files.write(place, data, files.read_if_present(place))


def leftovers(root: Path) -> list[str]:
    return [name for _, _, names in os.walk(root) for name in names if name.endswith("~")]


def kind_of(error: pytest.ExceptionInfo[WorkspaceError]) -> str:
    return error.value.kind


@pytest.mark.parametrize("name", ["fifo", "socket", "folder", "fifo-link"])
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "fifo-link").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(WorkspaceError) as caught:
            files.read(resolve(tmp_path, name))
        assert kind_of(caught) == "not_a_file"
        with pytest.raises(WorkspaceError) as caught:
            replace(tmp_path, name, b"x")
        assert kind_of(caught) == "not_a_file"


@pytest.mark.parametrize("name", ["zero", "tty", "null"])
def test_a_device_is_refused(name: str) -> None:
    with pytest.raises(WorkspaceError, match="a device"):
        files.read(resolve(Path("/dev"), name))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", ["cpuinfo", "self/environ", "self/mem", "self/pagemap", "kmsg"])
def test_a_file_in_proc_is_refused_also_where_the_workspace_holds_it(name: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        files.read(resolve(Path("/proc"), name))
    assert kind_of(caught) in ("not_a_file", "denied")


def test_an_empty_file_is_not_taken_for_one_of_proc(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert files.read(resolve(tmp_path, "empty")).data == b""


def test_a_huge_sparse_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(50 * 2**30)
    with pytest.raises(WorkspaceError, match=r"53,687,091,200 bytes.*Use bash") as caught:
        files.read(resolve(tmp_path, "huge"))
    assert kind_of(caught) == "too_large"


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(WorkspaceError):
        files.read(resolve(tmp_path, "a/x"))


def test_a_missing_file_is_named_as_given(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        files.read(resolve(tmp_path, "./no/such"))
    assert str(caught.value) == "File not found: './no/such'"
    (tmp_path / "plain").write_text("")
    with pytest.raises(WorkspaceError) as other:
        files.read(resolve(tmp_path, "plain/x"))
    assert kind_of(other) == "not_found"


def test_a_new_file_gets_its_folders_and_the_usual_mode(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        replace(tmp_path, "a/b/new", b"data")
    finally:
        os.umask(old)
    assert (tmp_path / "a/b/new").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "a/b/new").stat().st_mode) == 0o640
    assert (tmp_path / "a/b/new").stat().st_nlink == 1
    assert leftovers(tmp_path) == []


def test_a_new_file_never_replaces_one_that_came_in_between(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("theirs")
    with pytest.raises(WorkspaceError) as caught:
        files.write(resolve(tmp_path, "f"), b"mine", None)
    assert kind_of(caught) == "stale"
    assert (tmp_path / "f").read_text() == "theirs"
    assert leftovers(tmp_path) == []


def test_a_new_file_can_be_made_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", no_link)
    replace(tmp_path, "f", b"mine")
    assert (tmp_path / "f").read_bytes() == b"mine"
    with pytest.raises(WorkspaceError):
        files.write(resolve(tmp_path, "f"), b"again", None)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o644, 0o640])
def test_replacing_keeps_the_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(mode)
    replace(tmp_path, "f", b"new")
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755])
def test_replacing_does_not_keep_setuid_and_setgid(tmp_path: Path, mode: int, linked: bool) -> None:
    (tmp_path / "f").write_text("old")
    if linked:
        os.link(tmp_path / "f", tmp_path / "g")
    (tmp_path / "f").chmod(mode)
    replace(tmp_path, "f", b"new")
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o755


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_replacing_keeps_a_posix_acl(tmp_path: Path) -> None:
    # linux/posix_acl_xattr.h: version 2, then (tag, permissions, id); user 1234 may read and write.
    nobody = 0xFFFFFFFF
    entries = ((0x01, 6, nobody), (0x02, 6, 1234), (0x04, 4, nobody), (0x10, 6, nobody), (0x20, 0, nobody))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    (tmp_path / "f").write_text("old")
    try:
        os.setxattr(tmp_path / "f", "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"this file system has no ACLs: {error.strerror}")
    mode = (tmp_path / "f").stat().st_mode
    replace(tmp_path, "f", b"new")
    assert os.getxattr(tmp_path / "f", "system.posix_acl_access") == acl
    assert (tmp_path / "f").stat().st_mode == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_file_of_another_owner_is_written_in_place_and_stays_theirs(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o666)
    tmp_path.chmod(0o777)
    inode = (tmp_path / "f").stat().st_ino
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(tmp_path)
            folder = os.open(".", os.O_RDONLY)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            before = files.read_in(folder, Place(tmp_path, ("f",), "f"))
            written = replacing.replace_file(folder, "f", before, b"a new text", ".f.agentd~")
            status = 0 if written else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    now = (tmp_path / "f").stat()
    assert ((tmp_path / "f").read_text(), now.st_ino, now.st_uid) == ("a new text", inode, 0)
    assert leftovers(tmp_path) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_replacing_keeps_the_owner(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    os.chown(tmp_path / "f", 1234, 2345)
    replace(tmp_path, "f", b"new")
    status = (tmp_path / "f").stat()
    assert (status.st_uid, status.st_gid) == (1234, 2345)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_replacing_keeps_extended_attributes(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    try:
        os.setxattr(tmp_path / "f", "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    replace(tmp_path, "f", b"new")
    assert os.getxattr(tmp_path / "f", "user.note") == b"kept"


def test_replacing_through_a_link_leaves_the_link_and_changes_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/cfg").write_text("old")
    (tmp_path / "cfg").symlink_to("real/cfg")
    replace(tmp_path, "cfg", b"new")
    assert os.readlink(tmp_path / "cfg") == "real/cfg"
    assert (tmp_path / "real/cfg").read_text() == "new"


@pytest.mark.parametrize("data", [b"a longer new text", b"x", b""])
def test_all_names_of_a_file_see_the_new_content(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(b"old text")
    os.link(tmp_path / "f", tmp_path / "g")
    replace(tmp_path, "f", data)
    assert (tmp_path / "g").read_bytes() == data
    assert (tmp_path / "f").samefile(tmp_path / "g")


def test_a_read_only_file_is_refused_also_for_root(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o444)
    with pytest.raises(WorkspaceError, match=r"read-only.*0444"):
        replace(tmp_path, "f", b"new")
    assert (tmp_path / "f").read_text() == "old"


def test_a_change_in_the_last_moment_is_seen_though_time_and_size_are_put_back(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"aaaa")
    before = files.read(resolve(tmp_path, "f"))
    path.write_bytes(b"bbbb")
    os.utime(path, ns=(before.status.st_atime_ns, before.status.st_mtime_ns))
    with pytest.raises(WorkspaceError) as caught:
        files.write(resolve(tmp_path, "f"), b"cccc", before)
    assert kind_of(caught) == "stale"
    assert path.read_bytes() == b"bbbb"
    assert leftovers(tmp_path) == []


def test_a_file_that_was_removed_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    before = files.read(resolve(tmp_path, "f"))
    (tmp_path / "f").unlink()
    with pytest.raises(WorkspaceError):
        files.write(resolve(tmp_path, "f"), b"new", before)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("linked", [False, True])
def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old content")
    if linked:
        os.link(path, tmp_path / "g")
    real_write, new = os.write, b"N" * 100

    def full(fd: int, data: bytes) -> int:
        if bytes(data[:1]) == b"N":
            if len(data) < 100:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real_write(fd, data[:50])
        return real_write(fd, data)

    monkeypatch.setattr(replacing.os, "write", full)
    with pytest.raises(WorkspaceError, match="No space left") as caught:
        replace(tmp_path, "f", new)
    assert kind_of(caught) == "storage"
    assert path.read_bytes() == b"old content"
    assert leftovers(tmp_path) == []


def test_in_a_folder_that_takes_no_new_file_the_file_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    inode = path.stat().st_ino
    real_open = os.open

    def no_new_files(name: str, flags: int, *args: int, **kwargs: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real_open(name, flags, *args, **kwargs)

    monkeypatch.setattr(replacing.os, "open", no_new_files)
    replace(tmp_path, "f", b"new and longer")
    assert path.read_bytes() == b"new and longer"
    assert path.stat().st_ino == inode


def test_a_name_that_is_too_long_is_refused_by_that_reason(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="too long") as caught:
        replace(tmp_path, "x" * 256, b"1")
    assert kind_of(caught) == "invalid_path"
    assert os.listdir(tmp_path) == []


def test_a_name_as_long_as_names_may_be_can_be_written(tmp_path: Path) -> None:
    name = "é" * 127
    replace(tmp_path, name, b"1")
    replace(tmp_path, name, b"2")
    assert (tmp_path / name).read_bytes() == b"2"


def test_a_lock_is_one_for_a_file_and_goes_when_nobody_holds_it(tmp_path: Path) -> None:
    place = resolve(tmp_path, "f")
    with files.changing(place):
        assert files._locks[place.path].locked()
        with files.changing(resolve(tmp_path, "g")):
            pass
    assert place.path not in files._locks


def test_the_snapshot_holds_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data\r\n\xff")
    snapshot = files.read(resolve(tmp_path, "f"))
    assert isinstance(snapshot, Snapshot)
    assert snapshot.data == b"data\r\n\xff"
    assert files.read_if_present(resolve(tmp_path, "g")) is None
