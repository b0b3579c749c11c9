"""What has to be written whole, and what has to be on the disk by name."""

import os
from pathlib import Path


def write_all(fd: int, data: bytes) -> None:
    """Write all of it, in as many pieces as the system takes. Raises OSError. Blocks."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk. Raises OSError. Blocks."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
