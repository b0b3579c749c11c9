"""What a command's own process does to itself between fork and exec: the child's side of the sandbox.

Standard library only, as the warden loads this file by path. A jail is plain data, made by `sandbox.py`, in
which byte strings travel as Latin-1. Each part may be missing:

    landlock   {"attribute": the `struct landlock_ruleset_attr`, "rules": [[path, rights], ...]}
    filter     a seccomp program; with `filterFd` not installed but left for bubblewrap to read at that number
    drop       true: give up all capabilities for good
    monitor    true: the process only stands over the command, so a request to end is not for it

Landlock rules are added before capabilities are dropped, as opening the paths may need them; the seccomp
filter comes last, as it may forbid what the other steps do. Whatever fails, nothing is executed.

Sources: landlock(7) and linux/landlock.h, seccomp(2), prctl(2), capset(2).
"""

import ctypes
import errno
import fcntl
import os
import signal
import stat
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

# landlock_create_ruleset, landlock_add_rule, landlock_restrict_self: the same on every architecture.
SYS_CREATE_RULESET, SYS_ADD_RULE, SYS_RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 24, 22, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64

_OWN_FD = 64  # beyond those that commands are given

# What a rule for anything but a folder may name (landlock.h): execute, write, read, truncate, ioctl.
FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15


class JailError(OSError):
    """The jail could not be set up; nothing was executed."""

    step = "jail"


def spawner(jail: Mapping[str, Any]) -> Callable[..., int]:
    """What stands in for `os.posix_spawn`, with the same arguments, to start programs inside this jail.

    It raises `JailError` where the jail could not be set up, OSError where the program could not be executed.
    """

    def spawn(
        program: bytes,
        argv: list[bytes],
        environment: Mapping[bytes, bytes],
        *,
        file_actions: Sequence[tuple[Any, ...]] = (),
        setsid: bool = False,
        setsigmask: Iterable[int] = (),
        setsigdef: Iterable[int] = (),
    ) -> int:
        def become() -> None:
            if setsid:
                os.setsid()
            for number in setsigdef:
                signal.signal(number, signal.SIG_DFL)
            for action in file_actions:
                _act(*action)
            enter(jail)

        def execute() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, setsigmask)
            os.execve(program, argv, environment)

        return _fork(become, execute)

    return spawn


def _fork(become: Callable[[], None], execute: Callable[[], None]) -> int:
    """A child that first becomes what it should be and then executes; its process id once it has."""
    told, tell = os.pipe()  # both close at exec, which so says that all went well
    try:
        pid = os.fork()
    except OSError:
        os.close(told)
        os.close(tell)
        raise
    if pid == 0:
        step = b"jail"
        try:
            tell = fcntl.fcntl(tell, fcntl.F_DUPFD_CLOEXEC, _OWN_FD)
            become()
            step = b"exec"
            execute()
        except BaseException as error:
            reason = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
            os.write(tell, b"%b %d" % (step, reason))
        finally:
            os._exit(127)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        failure = pipe.read()
    if not failure:
        return pid
    os.waitpid(pid, 0)
    said, number = failure.split()
    raise (JailError if said == b"jail" else OSError)(int(number), os.strerror(int(number)))


def _act(kind: int, fd: int, *rest: Any) -> None:
    """One of the file actions of `posix_spawn`."""
    if kind == os.POSIX_SPAWN_CLOSE:
        os.close(fd)
    elif kind == os.POSIX_SPAWN_DUP2:
        os.dup2(fd, rest[0])
    else:
        path, flags, mode = rest
        opened = os.open(path, flags, mode)
        if opened != fd:
            os.dup2(opened, fd)
            os.close(opened)
        os.set_inheritable(fd, True)


def enter(jail: Mapping[str, Any]) -> None:
    """Put this process into the jail, for good. Raises OSError; then it must not go on."""
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = _ruleset(libc, **jail["landlock"]) if "landlock" in jail else None
    program = jail["filter"].encode("latin-1") if "filter" in jail else None
    if program is not None and "filterFd" in jail:
        _leave(program, jail["filterFd"])
        program = None
    if jail.get("drop"):
        _drop_capabilities(libc)
    if ruleset is not None or program is not None:
        _call(libc.prctl, _PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    if ruleset is not None:
        _call(libc.syscall, ctypes.c_long(SYS_RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint32(0))
        os.close(ruleset)
    if program is not None:
        _install(libc, program)


def _ruleset(libc: Any, attribute: str, rules: Sequence[tuple[str, int]]) -> int:
    wanted = attribute.encode("latin-1")
    ruleset = _call(
        libc.syscall,
        ctypes.c_long(SYS_CREATE_RULESET),
        ctypes.c_char_p(wanted),
        ctypes.c_size_t(len(wanted)),
        ctypes.c_uint32(0),
    )
    for path, rights in rules:
        _add_rule(libc, ruleset, path.encode("latin-1"), rights)
    return ruleset


def _add_rule(libc: Any, ruleset: int, path: bytes, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return  # what cannot be named cannot be granted
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= FILE_RIGHTS
        if rights:
            rule = struct.pack("=Qi", rights, fd)  # landlock_path_beneath_attr is packed
            _call(
                libc.syscall,
                ctypes.c_long(SYS_ADD_RULE),
                ctypes.c_int(ruleset),
                ctypes.c_int(_RULE_PATH_BENEATH),
                ctypes.c_char_p(rule),
                ctypes.c_uint32(0),
            )
    finally:
        os.close(fd)


def _drop_capabilities(libc: Any) -> None:
    """All sets are emptied, the bounding set first: else executing anything as root would fill them again."""
    nothing = [ctypes.c_ulong(0)] * 3
    for capability in range(_CAPABILITIES):
        if libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), *nothing):
            if ctypes.get_errno() == errno.EINVAL:
                break  # beyond the last that this kernel knows
            if ctypes.get_errno() != errno.EPERM:  # without CAP_SETPCAP: no_new_privs lets none come back
                _raise()
            break
    libc.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), *nothing)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _call(libc.capset, ctypes.c_char_p(header), ctypes.c_char_p(bytes(24)))


def _leave(program: bytes, number: int) -> None:
    """Leave the program where bubblewrap will read it, at a descriptor that survives exec."""
    fd = os.memfd_create("seccomp", 0)
    os.write(fd, program)
    os.lseek(fd, 0, os.SEEK_SET)
    if fd != number:
        os.dup2(fd, number)
        os.close(fd)


def _install(libc: Any, program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))  # struct sock_fprog
    nothing = [ctypes.c_ulong(0)] * 2
    _call(libc.prctl, _PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.c_char_p(head), *nothing)


def _call(function: Any, *arguments: Any) -> int:
    """The result of a system call. Raises OSError where it failed."""
    result: int = function(*arguments)
    if result < 0:
        _raise()
    return result


def _raise() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
