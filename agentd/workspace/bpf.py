"""Seccomp programs, put together by hand: a short list of system calls that are refused with EPERM.

Refused is, too, what makes a program that runs as its owner whoever starts it (setuid): what a command
leaves in the workspace must not give another user of the machine the rights of the one who runs agentd.
chmod(2) does not tell a folder from a file, and on folders setgid only passes the group on; so setgid is
refused where a file is made, and let be where a mode is changed. `openat2` takes its mode from memory, which
no filter sees: it is said not to exist, as on kernels before Linux 5.6, and programs take `openat`.

Written for x86_64 and aarch64; elsewhere there is no program, and what needs one is not offered. Sources:
seccomp(2), linux/filter.h, and the system call tables of both architectures.
"""

import platform
import struct
from collections.abc import Collection
from socket import AddressFamily

# What reaches past the walls of a sandbox: io_uring opens sockets that no filter sees, the rest touches other
# processes, the kernel's keys or its inside.
_ALWAYS = ("io_uring_setup", "io_uring_enter", "io_uring_register", "process_vm_readv", "process_vm_writev",
           "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd")  # fmt: skip

_NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "socket": 41, "process_vm_readv": 310, "process_vm_writev": 311, "io_uring_setup": 425,
        "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 250, "add_key": 248, "request_key": 249,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "creat": 85, "mknod": 133,
        "mknodat": 259, "open": 2, "openat": 257, "openat2": 437,
    },
    "aarch64": {
        "socket": 198, "process_vm_readv": 270, "process_vm_writev": 271, "io_uring_setup": 425,
        "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 219, "add_key": 217, "request_key": 218,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "mknodat": 33, "openat": 56, "openat2": 437,
    },
}  # fmt: skip
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000  # calls of the x32 ABI have the numbers of x86_64 with this bit set

# Which argument is the mode of what changes one, and of what makes a file; `open` looks at it only with one
# of two flags (asm-generic/fcntl.h).
_MODE_CHANGED = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_MODE_MADE = {"creat": 1, "mknod": 1, "mknodat": 2}
_MODE_OPENED = {"open": 2, "openat": 3}  # the flags come just before
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_SETUID, _SETGID = 0o4000, 0o2000

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _EPERM, _ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # offsets in struct seccomp_data

AF_UNIX, AF_VSOCK = int(AddressFamily.AF_UNIX), 40
"""AF_VSOCK reaches the host of a virtual machine and knows no network namespaces."""

_Instruction = tuple[int, int, int, int]  # what to do, how far to go on if so and if not, with which value


def is_known(machine: str | None = None) -> bool:
    """Whether programs can be made for this architecture."""
    return (machine or platform.machine()) in _NUMBERS


def program(
    *, only: Collection[int] | None = None, without: Collection[int] = (), machine: str | None = None
) -> bytes:
    """A filter. `socket()` makes sockets of the families in `only`, or else all but those in `without`.

    Raises KeyError for an architecture that is not known.
    """
    machine = machine or platform.machine()
    numbers = _NUMBERS[machine]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _KILL),  # the numbers of another architecture mean other calls
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        code += [(_IF_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _EPERM)]
    for name in _ALWAYS:
        code += [(_IF_EQUAL, 0, 1, numbers[name]), (_RETURN, 0, 0, _EPERM)]
    code += [(_IF_EQUAL, 0, 1, numbers["openat2"]), (_RETURN, 0, 0, _ENOSYS)]
    for calls, refused in ((_MODE_CHANGED, _SETUID), (_MODE_MADE, _SETUID | _SETGID)):
        for name in filter(numbers.__contains__, calls):
            code += _when(numbers[name], _modes(calls[name], refused))
    for name in filter(numbers.__contains__, _MODE_OPENED):
        mode = _modes(_MODE_OPENED[name], _SETUID | _SETGID)
        makes = [
            _argument(_MODE_OPENED[name] - 1),
            (_IF_ANY_BIT, 1, 0, _O_CREAT | _O_TMPFILE),
            (_RETURN, 0, 0, _ALLOW),
        ]
        code += _when(numbers[name], makes + mode)
    families = sorted(without if only is None else only)
    at_match, at_end = (_ALLOW, _EPERM) if only is not None else (_EPERM, _ALLOW)
    code += [(_IF_EQUAL, 1, 0, numbers["socket"]), (_RETURN, 0, 0, _ALLOW), _argument(0)]
    for family in families:
        code += [(_IF_EQUAL, 0, 1, family), (_RETURN, 0, 0, at_match)]
    code += [(_RETURN, 0, 0, at_end)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def _when(number: int, code: list[_Instruction]) -> list[_Instruction]:
    """What is done for one call only; it has to return."""
    return [(_IF_EQUAL, 0, len(code), number), *code]


def _modes(argument: int, refused: int) -> list[_Instruction]:
    return [
        _argument(argument),
        (_IF_ANY_BIT, 0, 1, refused),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _argument(index: int) -> _Instruction:
    """Load the lower half of an argument: the kernel looks at no more of a mode, of flags and of a family."""
    return (_LOAD, 0, 0, _FIRST_ARGUMENT_AT + 8 * index)
