"""Landlock: the sandbox where bubblewrap does not work. What is granted; `jail.py` enforces it.

Landlock only ever grants: what is granted for a folder holds for all below it, and nothing can be taken out
again. So what is hidden is left out by granting its neighbours one by one, and what lies inside a writable
folder cannot be protected at all; `GAPS` says so in words. Source: landlock(7), linux/landlock.h.
"""

import os
import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentd.workspace import bpf
from agentd.workspace.policy import Policy

OLDEST = 4
"""The first version of Landlock's interface that can close TCP (Linux 6.7)."""

_SCOPES = 6
"""The first version that knows scopes: signals and sockets with a name in the abstract (landlock(7))."""

GAPS = (
    "inside the workspace .git, editor settings and files with secrets are open: changes are only reported",
    "mode, times and attributes of your own files elsewhere can be changed",
    "sockets that have a path can be connected to",
    "servers on localhost do not work, unless the network is on",
)
"""What this sandbox does not do that bubblewrap's does."""

OLDER_GAPS = ("your other processes can be ended", "sockets that have a name can be connected to")
"""What kernels before Linux 6.12 (version 6 of the interface) leave open beside that."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_FIRST_RIGHTS = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_BIND_TCP, _CONNECT_TCP = 1, 2
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2
_VERSION_FLAG = 1

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


def version() -> int:
    """The version of the kernel's interface, 0 where there is none."""
    import ctypes

    from agentd.workspace.jail import SYS_CREATE_RULESET

    libc = ctypes.CDLL(None, use_errno=True)
    said: int = libc.syscall(
        ctypes.c_long(SYS_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)
    )
    return max(said, 0)


def gaps(abi: int) -> tuple[str, ...]:
    """What the sandbox leaves open with this version of the kernel's interface."""
    return GAPS if abi >= _SCOPES else GAPS + OLDER_GAPS


def jail(policy: Policy, abi: int | None = None) -> dict[str, Any]:
    """The jail that enforces a policy, as far as Landlock can. Looks at folders; blocks.

    Raises KeyError on an architecture for which there is no seccomp program: the network would stay open.
    """
    abi = version() if abi is None else abi
    handled = _handled(abi)
    network = 0 if policy.network or abi < OLDEST else _BIND_TCP | _CONNECT_TCP
    scope = _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL if abi >= _SCOPES else 0
    size = 8 if abi < 4 else 16 if abi < _SCOPES else 24  # bytes of the attribute that this kernel knows
    return {
        "landlock": {
            "attribute": struct.pack("QQQ", handled, network, scope)[:size].decode("latin-1"),
            "rules": list(_rules(policy, handled)),
        },
        "filter": _filter(policy).decode("latin-1"),
        "drop": True,
    }


def _filter(policy: Policy) -> bytes:
    unix = () if policy.unix_sockets else (bpf.AF_UNIX,)
    if policy.network:
        return bpf.program(without=unix)
    return bpf.program(only=() if unix else (bpf.AF_UNIX,))


def _handled(abi: int) -> int:
    """The rights that are refused unless granted."""
    newer = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV))
    return _FIRST_RIGHTS | sum(right for first, right in newer if abi >= first)


def _rules(policy: Policy, handled: int) -> Iterator[tuple[str, int]]:
    writable = handled & ~(_MAKE_CHAR | _MAKE_BLOCK)
    device = (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) & handled
    yield "/", _READ_DIR  # names are shown everywhere
    for path in readable(Path("/"), policy.hidden):
        yield os.fsencode(path).decode("latin-1"), _READ_FILE | _EXECUTE
    temporary = (policy.temporary,) if policy.temporary is not None else ()
    for path in (*policy.writable, *temporary):
        yield os.fsencode(path).decode("latin-1"), writable
    for path in policy.shown:
        yield os.fsencode(path).decode("latin-1"), _READ_FILE | _EXECUTE
    for name in _DEVICES:
        yield name, device


def readable(folder: Path, hidden: Sequence[Path] | Collection[Path]) -> Iterator[Path]:
    """The fewest paths that together hold all below a folder but what is hidden."""
    concerned = [path for path in hidden if path.is_relative_to(folder)]
    if not concerned:
        yield folder
    elif folder not in concerned:
        try:
            children = list(os.scandir(folder))
        except OSError:
            return  # what cannot be listed is not needed
        for child in children:
            if not child.is_symlink():  # where it leads is granted, or not, in its own place
                yield from readable(Path(child.path), concerned)
