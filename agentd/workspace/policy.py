"""What a sandboxed command may touch, in terms that every sandbox can be built from."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Policy:
    """All paths are absolute and resolved, and exist; everything that is not named can be read.

    `writable` folders can be written to; `protected` paths inside them cannot, and `pinned` folders inside
    them cannot be renamed. `hidden` files and folders cannot be read; `shown` are exceptions from that,
    and may be links.
    `temporary` is a folder that stands in for `/tmp`, None where `/tmp` stays what it is. Without `network`
    nothing outside can be reached, and without `unix_sockets` no socket that has a name.
    """

    writable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    temporary: Path | None = None
    network: bool = False
    unix_sockets: bool = True
