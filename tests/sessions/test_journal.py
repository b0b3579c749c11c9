"""The journal under everything that can happen to a file: real files, real processes, real signals."""

import errno
import json
import os
import random
import subprocess
import sys
import textwrap
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentd.protocol.messages import TextContent, UserMessage
from agentd.sessions.journal import (
    Journal,
    JournalError,
    JournalLocked,
    JournalTooNew,
    holder,
    read,
    read_ends,
    remove,
)

HEADER = {"sessionId": "s1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions" / "s1.jsonl"


def record(number: int, size: int = 0) -> dict[str, Any]:
    return {"seq": number, "text": "x" * size}


def seqs(records: list[dict[str, Any]]) -> list[int]:
    return [each["seq"] for each in records]


def write(path: Path, *records: dict[str, Any]) -> None:
    journal = Journal.create(path, HEADER)
    for each in records:
        journal.append(each)
    journal.close()


def line(record: dict[str, Any]) -> bytes:
    """The form of a line, spelled out a second time: the file must be readable without our code."""
    body = json.dumps(record, separators=(",", ":")).encode()
    return b'{"crc":%d,"record":%s}\n' % (zlib.crc32(body), body)


def run_python(source: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


# --- form -----------------------------------------------------------------------------------------


def test_records_come_back_in_order_behind_a_versioned_header(path: Path) -> None:
    write(path, record(1), record(2))
    assert path.read_bytes() == b"".join(
        map(line, [{"sessionId": "s1", "schema": 1, "minReader": 1}, record(1), record(2)])
    )
    contents = read(path)
    assert contents.header == {"schema": 1, "minReader": 1, "sessionId": "s1"}
    assert seqs(contents.records) == [1, 2]
    assert contents.damage == ()


def test_the_file_and_its_folders_are_the_users_alone(path: Path) -> None:
    journal = Journal.create(path, HEADER)
    assert [each.stat().st_mode & 0o777 for each in (path.parent, path.parent.parent)] == [0o700, 0o700]
    assert [each.stat().st_mode & 0o777 for each in (path, path.with_name("s1.jsonl.pid"))] == [0o600] * 2
    journal.close()
    with path.open("ab") as file:
        file.write(b"half a li")
    Journal.open(path)[0].close()
    assert path.with_name("s1.jsonl.torn").stat().st_mode & 0o777 == 0o600


def test_the_name_of_a_new_journal_is_on_the_disk_behind_its_header(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    path.parent.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(os, "fsync", note)
    Journal.create(path, {"sessionId": "s"}).close()
    assert synced == [str(path), str(path.parent)]


def test_an_existing_journal_is_not_created_again(path: Path) -> None:
    write(path, record(1))
    with pytest.raises(JournalError, match="File exists"):
        Journal.create(path, HEADER)
    assert seqs(read(path).records) == [1]


def test_a_symbolic_link_is_neither_written_nor_read_through(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "other"
    write(target, record(1))
    before = target.read_bytes()
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    for access in (lambda: Journal.create(path, HEADER), lambda: Journal.open(path), lambda: read(path)):
        with pytest.raises(JournalError):
            access()
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c\u0085d", "two\nlines\r\n", '"}\n{"crc":1,"record":{}}', "\0", "🙂"]
)
def test_any_text_keeps_to_its_line(path: Path, text: str) -> None:
    write(path, {"seq": 1, "text": text}, record(2))
    assert [each["text"] for each in read(path).records] == [text, ""]
    assert path.read_bytes().count(b"\n") == 3


def test_a_record_may_hold_models(path: Path) -> None:
    message = UserMessage(message_id="m1", content=(TextContent(text="hi"),), timestamp="t")
    write(path, {"seq": 1, "message": message})
    assert UserMessage.model_validate(read(path).records[0]["message"]) == message


@pytest.mark.parametrize("depth", [10, 199, 201, 240])
def test_what_can_be_written_can_be_read_however_deep(path: Path, depth: int) -> None:
    deep: dict[str, Any] = {}
    for _ in range(depth):
        deep = {"a": deep}
    write(path, {"seq": 1, "deep": deep}, record(2))
    contents = read(path)
    assert contents.records[0]["deep"] == deep
    assert contents.damage == ()


@pytest.mark.parametrize("value", ["\ud800", object()])
def test_what_is_no_json_is_refused_before_a_byte_is_written(path: Path, value: object) -> None:
    journal = Journal.create(path, HEADER)
    with pytest.raises(ValueError, match=r"JSON|serialize"):
        journal.append({"seq": 1, "value": value})
    journal.append(record(2))
    journal.close()
    assert seqs(read(path).records) == [2]


# --- damage ---------------------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_opens_and_goes_on_without_the_cut_record(path: Path) -> None:
    write(path, record(1), record(2, 20), {"seq": 3, "text": "é\u2028"})
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == 0x0A]
    for cut in range(ends[0] - 1, len(whole) + 1):  # from the header's end on, which `create` put on the disk
        path.write_bytes(whole[:cut])
        path.with_name("s1.jsonl.torn").unlink(missing_ok=True)
        kept = sum(1 for end in ends[1:] if cut >= end - 1)  # the line end itself is not missed
        torn = 0 if cut in ends or cut + 1 in ends else cut - max(end for end in ends if end <= cut)
        assert seqs(read(path).records) == [1, 2, 3][:kept]
        assert read(path).damage == ()
        journal, contents = Journal.open(path)
        assert seqs(contents.records) == [1, 2, 3][:kept]
        assert [(each.bytes, each.reason) for each in contents.damage] == ([(torn, "torn")] if torn else [])
        assert path.with_name("s1.jsonl.torn").exists() is bool(torn)
        if torn:
            assert path.with_name("s1.jsonl.torn").read_bytes() == whole[cut - torn : cut] + b"\n"
        journal.append(record(9))
        journal.close()
        again = read(path)
        assert seqs(again.records) == [*[1, 2, 3][:kept], 9]
        assert again.damage == ()


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_a_journal_without_a_whole_header_says_so(path: Path, cut: int) -> None:
    write(path)
    path.write_bytes(path.read_bytes()[:cut])
    for access in (lambda: Journal.open(path), lambda: read(path), lambda: read_ends(path)):
        with pytest.raises(JournalError, match="no header"):
            access()
    assert path.stat().st_size == cut


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda bad: bad.replace(b"xx", b"xy"), "check"),
        (lambda bad: b"garbage\n", "form"),
        (lambda bad: b"\n", "form"),
        (lambda bad: b"\xff\xfe\n", "form"),
        (lambda bad: bad[:20] + b"\0" * 20 + bad[40:], "nul"),
        (lambda bad: b"\0" * (len(bad) - 1) + b"\n", "nul"),
        (lambda bad: b'{"crc":%d,"record":[]}\n' % zlib.crc32(b"[]"), "form"),
        (lambda bad: bad[:-2] + b"\n", "check"),
        (lambda bad: bad[:-20] + b"\n", "form"),
    ],
)
def test_a_bad_line_in_the_middle_costs_that_line_only_and_is_reported(
    path: Path, harm: Any, reason: str
) -> None:
    write(path, record(1), record(2, 60), record(3))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = harm(lines[2])
    path.write_bytes(b"".join(lines))
    journal, contents = Journal.open(path)
    assert seqs(contents.records) == seqs(read(path).records) == [1, 3]
    assert [(each.line, each.bytes, each.reason) for each in contents.damage] == [(3, len(lines[2]), reason)]
    assert read(path).damage == contents.damage
    journal.append(record(4))
    journal.close()
    assert path.read_bytes() == b"".join(lines) + line(record(4))


def test_a_record_right_behind_a_block_of_nul_bytes_is_kept(path: Path) -> None:
    write(path, record(1), record(2))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0" * 4096 + lines[2])
    contents = read(path)
    assert seqs(contents.records) == [2]
    assert [(each.line, each.bytes, each.reason) for each in contents.damage] == [(2, 4096, "nul")]
    assert seqs(read_ends(path)[1]) == [2]


def test_nul_bytes_at_the_end_are_set_aside_and_reported(path: Path) -> None:
    write(path, record(1))
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 4096)
    assert [each.reason for each in read(path).damage] == ["nul"]
    journal, contents = Journal.open(path)
    journal.close()
    assert seqs(contents.records) == [1]
    assert [(each.bytes, each.reason) for each in contents.damage] == [(4096, "nul")]
    assert path.read_bytes() == whole


def test_a_damaged_header_costs_the_header_only(path: Path) -> None:
    write(path, record(1))
    path.write_bytes(path.read_bytes().replace(b"minReader", b"minReaper"))
    journal, contents = Journal.open(path)
    journal.close()
    assert (contents.header, seqs(contents.records)) == ({}, [1])
    assert [(each.line, each.reason) for each in contents.damage] == [(1, "check")]
    assert read_ends(path) == ({}, [record(1)])


def test_torn_ends_add_up_in_their_file(path: Path) -> None:
    write(path, record(1))
    for torn in (b"first", b"second"):
        with path.open("ab") as file:
            file.write(torn)
        Journal.open(path)[0].close()
    assert path.with_name("s1.jsonl.torn").read_bytes() == b"first\nsecond\n"


def test_a_newer_form_is_read_but_not_opened_to_write(path: Path) -> None:
    path.parent.mkdir(parents=True)
    newer = line({"schema": 99, "minReader": 99, "sessionId": "s1"}) + line(record(1)) + b"half"
    path.write_bytes(newer)
    with pytest.raises(JournalTooNew, match="newer agentd") as caught:
        Journal.open(path)
    assert caught.value.needed == 99
    assert path.read_bytes() == newer
    assert seqs(read(path).records) == [1]
    assert read_ends(path)[0]["minReader"] == 99


def test_a_newer_form_that_this_reader_understands_is_opened(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(line({"schema": 2, "minReader": 1}) + line({"seq": 1, "news": [1]}))
    journal, contents = Journal.open(path)
    journal.close()
    assert contents.records == [{"seq": 1, "news": [1]}]


# --- both ends ------------------------------------------------------------------------------------


def test_both_ends_of_a_small_journal_are_all_of_it_once(path: Path) -> None:
    for count, size in [(0, 0), (1, 0), (5, 3000), (20, 1000), (3, 30_000), (1, 300_000)]:
        path.unlink(missing_ok=True)
        write(path, *(record(number, size) for number in range(1, count + 1)))
        header, records = read_ends(path, tail_bytes=400_000)
        assert header["sessionId"] == "s1"
        assert seqs(records) == list(range(1, count + 1)), (count, size)


def test_the_middle_of_a_big_journal_is_not_read(path: Path) -> None:
    write(path, *(record(number, 1000) for number in range(1, 1001)))
    before = _bytes_read()
    header, records = read_ends(path, tail_bytes=10_000)
    assert _bytes_read() - before < 100_000 < path.stat().st_size
    assert header["sessionId"] == "s1"
    got = seqs(records)
    assert got[0] == 1
    assert got[-1] == 1000
    assert got == sorted(set(got))
    assert len(got) < 40


def test_the_tail_begins_at_a_whole_line_wherever_it_falls(path: Path) -> None:
    write(path, record(1, 20_000), *(record(number, 7) for number in range(2, 10)))
    lengths = {
        number: sum(len(line(record(each, 7))) for each in range(number, 10)) for number in range(2, 10)
    }
    for tail_bytes in range(lengths[9], lengths[2] + 1):
        expected = [number for number, length in lengths.items() if length <= tail_bytes]
        assert seqs(read_ends(path, tail_bytes)[1]) == expected


def test_the_tail_is_widened_until_it_holds_a_record(path: Path) -> None:
    write(path, *(record(number, 1000) for number in range(1, 100)), record(100, 200_000))
    with path.open("ab") as file:
        file.write(b'{"crc":1,"rec')
    assert seqs(read_ends(path, 500)[1])[-1] == 100


def _bytes_read() -> int:
    """How much this process has read with system calls so far."""
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


# --- failing disks --------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system needs root and the right to mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Add to a file until its disk is full."""
    with path.open("ab", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    assert os.statvfs(path).f_bavail == 0


def test_a_full_disk_costs_the_record_that_did_not_fit_and_nothing_else(small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 128 * 1024)
    path = small_disk / "s1.jsonl"
    journal = Journal.create(path, HEADER)
    number = 1
    while os.statvfs(small_disk).f_bavail > 1:
        journal.append(record(number, 3000))
        number += 1
    with pytest.raises(JournalError, match=r"written: No space left on device. Free some disk") as caught:
        journal.append(record(number, 30_000))
    assert caught.value.errno == errno.ENOSPC
    assert str(small_disk) not in str(caught.value)
    assert seqs(read(path).records) == list(range(1, number))
    assert path.read_bytes().endswith(b"}\n")
    with pytest.raises(JournalError):
        journal.append(record(number, 30_000))
    filler.unlink()
    journal.append(record(number, 30_000))
    journal.close()
    contents = read(path)
    assert (seqs(contents.records), contents.damage) == (list(range(1, number + 1)), ())


def test_a_session_cannot_begin_on_a_full_disk_and_leaves_nothing_in_its_way(small_disk: Path) -> None:
    filler = small_disk / "filler"
    fill(filler)
    path = small_disk / "s1.jsonl"
    with pytest.raises(JournalError, match="created: No space left"):
        Journal.create(path, HEADER)
    filler.unlink()
    Journal.create(path, HEADER).close()


def test_a_torn_end_that_cannot_be_kept_is_not_cut(small_disk: Path) -> None:
    path = small_disk / "s1.jsonl"
    write(path, record(1))
    fill(path)
    size = path.stat().st_size
    with pytest.raises(JournalError, match="repaired: No space left"):
        Journal.open(path)
    assert path.stat().st_size == size
    assert seqs(read(path).records) == [1]


def test_the_file_size_limit_rolls_a_half_written_record_back(path: Path) -> None:
    writer = run_python(
        """
        import resource, sys
        from pathlib import Path
        from agentd.sessions.journal import Journal, JournalError
        journal = Journal.create(Path(sys.argv[1]), {})
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        journal.append({"seq": 1, "text": "x" * 5000})
        try:
            journal.append({"seq": 2, "text": "x" * 50_000})
        except JournalError as error:
            print(error)
        journal.append({"seq": 3, "text": "x" * 2000})
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        journal.append({"seq": 4, "text": "x" * 50_000})
        """,
        path,
    )
    said, _ = writer.communicate(timeout=60)
    assert "File too large. Raise the file size limit" in said
    contents = read(path)
    assert (seqs(contents.records), contents.damage) == ([1, 3, 4], ())


@pytest.mark.parametrize("cutting_fails_too", [False, True])
def test_a_write_that_fails_halfway_is_never_glued_to_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch, cutting_fails_too: bool
) -> None:
    journal = Journal.create(path, HEADER)
    journal.append(record(1))

    def half(fd: int, data: bytes, offset: int, write: Any = os.pwrite) -> int:
        write(fd, data[: len(data) // 2], offset)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def broken(fd: int, length: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        if cutting_fails_too:
            patch.setattr(os, "ftruncate", broken)
        for _ in range(2):
            with pytest.raises(JournalError, match="Input/output error"):
                journal.append(record(2, 500))
    journal.append(record(3))
    journal.close()
    assert path.read_bytes().endswith(line(record(1)) + line(record(3)))


def test_a_short_write_is_completed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(fd: int, data: bytes, offset: int, write: Any = os.pwrite) -> int:
        return write(fd, data[:7], offset)

    journal = Journal.create(path, HEADER)
    monkeypatch.setattr(os, "pwrite", short)
    journal.append(record(1, 100))
    journal.close()
    assert seqs(read(path).records) == [1]


def test_a_missing_journal_and_a_folder_in_its_place_are_storage_errors(path: Path) -> None:
    for access in (lambda: Journal.open(path), lambda: read(path), lambda: read_ends(path)):
        with pytest.raises(JournalError, match="No such file"):
            access()
    path.mkdir(parents=True)
    for access in (lambda: Journal.open(path), lambda: read(path), lambda: read_ends(path)):
        with pytest.raises(JournalError, match="Is a directory"):
            access()


def test_an_append_costs_its_own_bytes_however_long_the_journal_is(path: Path) -> None:
    def counts() -> tuple[int, ...]:
        """Bytes read and written, and system calls that read and write, by this process."""
        fields = dict(each.split(": ") for each in Path("/proc/self/io").read_text().splitlines())
        return tuple(int(fields[name]) for name in ("rchar", "wchar", "syscr", "syscw"))

    def cost(of: Any) -> tuple[int, ...]:
        before = counts()
        of()
        return tuple(after - earlier for earlier, after in zip(before, counts(), strict=True))

    journal = Journal.create(path, HEADER)
    looking = cost(lambda: None)
    first = cost(lambda: journal.append(record(10_000, 100)))
    for number in range(10_001, 20_000):
        journal.append(record(number, 100))
    last = cost(lambda: journal.append(record(20_000, 100)))
    journal.close()
    for each in (first, last):
        spent = [whole - base for whole, base in zip(each, looking, strict=True)]
        assert abs(spent[0]) < 20  # reading the counters again: their own digits
        assert spent[1:] == [len(line(record(10_000, 100))), 0, 1]


# --- sync -----------------------------------------------------------------------------------------


class Disk:
    """Stands in for fdatasync: counts, can be made to wait or fail, and knows the size it brought down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.size = 0
        self.failure: OSError | None = None
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)

    def fdatasync(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        self.calls += 1
        self.started.set()
        assert self.go_on.wait(30)
        os.fstat(fd)  # still ours, whatever happened meanwhile
        if self.failure:
            raise self.failure
        self.size = size


def size(path: Path) -> int:
    return path.stat().st_size


def content(path: Path) -> bytes:
    return path.read_bytes()


async def begun(disk: Disk) -> None:
    assert await anyio.to_thread.run_sync(disk.started.wait, 30)


async def test_sync_goes_to_the_disk_only_when_something_is_new(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = Journal.create(path, HEADER)
    await journal.sync()
    assert disk.calls == 0
    journal.append(record(1))
    await journal.sync()
    await journal.sync()
    assert (disk.calls, disk.size) == (1, size(path))
    journal.close()
    journal, _ = Journal.open(path)  # what an earlier process left may not be down yet
    await journal.sync()
    assert disk.calls == 2
    journal.close()


async def test_callers_share_a_sync_but_each_waits_for_its_own_records(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = Journal.create(path, HEADER)

    async def append_and_sync(number: int) -> None:
        journal.append(record(number, 100))
        end = size(path)
        await journal.sync()
        assert disk.size >= end

    disk.go_on.clear()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(append_and_sync, 0)
            await begun(disk)  # what follows is appended too late for the first flush
            for number in range(1, 100):
                group.start_soon(append_and_sync, number)
            await anyio.wait_all_tasks_blocked()
            disk.go_on.set()
    assert disk.calls == 2
    journal.close()


async def test_a_cancelled_sync_ends_at_once_and_the_next_one_is_true(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = Journal.create(path, HEADER)
    journal.append(record(1))
    disk.go_on.clear()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(journal.sync)
            await begun(disk)
            group.cancel_scope.cancel()
        assert disk.size == 0
        async with anyio.create_task_group() as group:
            group.start_soon(journal.sync)
            await anyio.wait_all_tasks_blocked()
            assert disk.size == 0
            disk.go_on.set()
    assert disk.size == size(path)
    journal.close()


async def test_closing_during_a_sync_frees_the_lock_and_not_the_descriptor_under_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = Journal.create(path, HEADER)
    journal.append(record(1))
    disk.go_on.clear()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(journal.sync)
            await begun(disk)
            journal.close()
            journal.close()
            Journal.open(path)[0].close()
            disk.go_on.set()
    assert disk.size == size(path)


async def test_a_closed_journal_says_so(path: Path) -> None:
    journal = Journal.create(path, HEADER)
    journal.append(record(1))
    journal.close()
    with pytest.raises(JournalError, match="It was closed"):
        await journal.sync()
    with pytest.raises(JournalError, match="It was closed"):
        journal.append(record(2))


async def test_after_a_failed_flush_the_bytes_in_doubt_are_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    journal = Journal.create(path, HEADER)
    start = size(path)
    journal.append(record(1, 5000))
    disk.failure = OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(JournalError, match=r"flushed to the disk: Input/output error. Check the disk"):
        await journal.sync()
    disk.failure = None
    whole = content(path)
    written = bytearray()

    def noted(fd: int, data: bytes, offset: int, write: Any = os.pwrite) -> int:
        assert offset == start + len(written)
        written.extend(data)
        return write(fd, data, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", noted)
        await journal.sync()
    assert bytes(written) == whole[start:]
    assert content(path) == whole
    journal.append(record(2))
    await journal.sync()
    assert disk.size == size(path)
    journal.close()


# --- processes ------------------------------------------------------------------------------------


def test_nothing_that_was_acknowledged_is_lost_to_fifty_kills(path: Path) -> None:
    """A nursery forks the writers, so that fifty of them start in the time of one."""
    nursery = run_python(
        """
        import os, random, signal, sys
        from pathlib import Path
        from agentd.sessions.journal import Journal

        path, dice = Path(sys.argv[1]), random.Random(7)
        Journal.create(path, {}).close()
        acknowledged = torn = 0
        for round in range(50):
            out, into = os.pipe()
            child = os.fork()
            if child == 0:
                journal, contents = Journal.open(path)
                number = len(contents.records)
                while True:
                    number += 1
                    journal.append({"seq": number, "text": "x" * dice.choice((1, 100, 5_000, 200_000))})
                    os.write(into, b"%10d" % number)
            os.close(into)
            for _ in range(dice.randrange(1, 12)):
                acknowledged = int(os.read(out, 10))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            while rest := os.read(out, 10):
                acknowledged = int(rest)
            os.close(out)
            journal, contents = Journal.open(path)
            journal.close()
            seqs = [record["seq"] for record in contents.records]
            assert seqs == list(range(1, len(seqs) + 1)), seqs
            assert len(seqs) >= acknowledged, (len(seqs), acknowledged)
            assert [each.reason for each in contents.damage] in ([], ["torn"]), contents.damage
            torn += len(contents.damage)
        print(acknowledged, torn)
        """,
        path,
    )
    said, _ = nursery.communicate(timeout=120)
    assert nursery.returncode == 0
    acknowledged = int(said.split()[0])
    assert acknowledged > 50
    assert len(read(path).records) >= acknowledged


def test_a_second_process_is_refused_with_the_pid_and_welcome_after_a_kill(path: Path) -> None:
    write(path, record(1))
    holder = run_python(
        """
        import sys
        from pathlib import Path
        from agentd.sessions.journal import Journal
        journal, _ = Journal.open(Path(sys.argv[1]))
        print("open", flush=True)
        sys.stdin.read()
        """,
        path,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(JournalLocked, match=f"session locked by pid {holder.pid}$") as caught:
            Journal.open(path)
        assert caught.value.pid == holder.pid
        assert seqs(read(path).records) == [1]
    finally:
        holder.kill()
        holder.communicate()
    journal, contents = Journal.open(path)
    assert seqs(contents.records) == [1]
    with pytest.raises(JournalLocked) as own:
        Journal.open(path)
    assert own.value.pid == os.getpid()
    journal.close()
    assert not path.with_name("s1.jsonl.pid").exists()


def test_a_note_of_a_killed_writer_whose_number_is_anothers_by_now_holds_nothing(path: Path) -> None:
    """The number of a process is used again: the lock tells whether somebody writes, not the note."""
    write(path, record(1))
    note = path.with_name(path.name + ".pid")
    note.write_text(f"{os.getpid()}\n")
    assert holder(path) is None
    journal, _ = Journal.open(path)
    assert holder(path) == os.getpid()
    with pytest.raises(JournalLocked):
        Journal.open(path)
    journal.close()
    assert holder(path) is None


def test_who_only_asks_for_the_holder_keeps_no_writer_out(path: Path) -> None:
    write(path, record(1))
    path.with_name(path.name + ".pid").write_text(f"{os.getpid()}\n")
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            holder(path)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(300):
            Journal.open(path)[0].close()
    finally:
        done.set()
        asking.join()


def test_a_journal_is_removed_with_all_that_lies_beside_it(path: Path) -> None:
    write(path, record(1))
    with path.open("ab") as file:
        file.write(b"torn")
    journal, _ = Journal.open(path)
    with pytest.raises(JournalLocked):
        remove(path)
    assert path.exists()
    journal.close()
    remove(path)
    assert list(path.parent.iterdir()) == []
    with pytest.raises(JournalError):
        remove(path)


@pytest.mark.parametrize("note", ["", "nonsense", "99999999999999999999", "4194304999"])
def test_a_note_that_names_no_living_process_is_not_believed(path: Path, note: str) -> None:
    journal = Journal.create(path, HEADER)
    path.with_name("s1.jsonl.pid").write_text(note)
    with pytest.raises(JournalLocked, match="session locked by another process") as caught:
        Journal.open(path)
    assert caught.value.pid is None
    journal.close()


def test_a_child_command_does_not_hold_the_lock(path: Path) -> None:
    journal = Journal.create(path, HEADER)
    child = run_python("import sys; sys.stdin.read()")
    journal.close()
    Journal.open(path)[0].close()
    child.communicate(timeout=60)


def test_a_journal_deleted_while_it_is_opened_is_not_written_to(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    write(path, record(1))

    def delete_first(fd: int, operation: int, flock: Any = fcntl.flock) -> None:
        path.unlink(missing_ok=True)
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", delete_first)
    with pytest.raises(JournalError, match="moved or deleted"):
        Journal.open(path)


def test_readers_beside_a_writer_see_whole_records_only(path: Path) -> None:
    journal = Journal.create(path, HEADER)
    dice = random.Random(3)
    done = threading.Event()

    def append() -> None:
        for number in range(1, 300):
            journal.append(record(number, dice.choice((1, 3000, 60_000))))
        done.set()

    writer = threading.Thread(target=append)
    writer.start()
    while not done.is_set():
        contents = read(path)
        assert seqs(contents.records) == list(range(1, len(contents.records) + 1))
        assert contents.damage == ()
        header, ends = read_ends(path, 1000)
        assert header["sessionId"] == "s1"
        assert seqs(ends) == sorted(set(seqs(ends)))
    writer.join(30)
    journal.close()
    assert len(read(path).records) == 299
