"""A power cut: what was synced is there afterwards, and nothing that comes out is half of a record.

`EXT4_IOC_SHUTDOWN` makes a file system forget what it has not written, as a cut of the power does
(linux/fs/ext4/ext4.h). It needs root and a file system of its own.
"""

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from wire.processes import until

from agentd.sessions.journal import Journal, read

_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
_WITHOUT_LOG_FLUSH = 2
_PROGRAMS = ("mkfs.ext4", "mount", "umount", "losetup")
CUTS = 15
RECORDS = 40


def lacking() -> str | None:
    """What is missing for it here."""
    if os.geteuid() != 0:
        return "a power cut needs root and a file system of its own"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"a power cut needs {', '.join(missing)}" if missing else None


def made(image: Path) -> Path:
    """An empty file system."""
    image.write_bytes(b"")
    os.truncate(image, 32 * 1024 * 1024)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    return image


@contextlib.contextmanager
def mounted(image: Path, place: Path) -> Iterator[None]:
    done = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)
        until(lambda: not attached(image), "nobody holds the file system any more")


def attached(image: Path) -> bool:
    """Whether the file system is mounted still, perhaps in a sandbox that another test made meanwhile."""
    return bool(subprocess.run(["losetup", "-j", image], capture_output=True, check=True).stdout)


def cut_power(place: Path) -> None:
    fd = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG_FLUSH))
    finally:
        os.close(fd)


@pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
async def test_what_was_synced_survives_a_power_cut(tmp_path: Path) -> None:
    image, place = made(tmp_path / "disk"), tmp_path / "mounted"
    place.mkdir()
    for number in range(CUTS):
        path = place / "sessions" / f"s{number}.jsonl"
        synced = number * RECORDS // CUTS
        with mounted(image, place):
            journal = Journal.create(path, {"sessionId": f"s{number}"})
            for seq in range(1, RECORDS + 1):
                journal.append({"seq": seq, "text": "x" * 600})
                if seq == synced:
                    await journal.sync()
            cut_power(place)
            with contextlib.suppress(OSError):
                journal.close()
        with mounted(image, place):
            found = [record["seq"] for record in read(path).records]
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= synced
