"""What a hostile command tries, one function each. Run by path inside a sandbox, with the places as JSON:
prints what came of each as JSON, `worked` or the name of the error. Standard library only.
"""

import ctypes
import errno
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PLACES: dict[str, Any] = {}
ATTACKS: list[Callable[[], object]] = []

LIBC = ctypes.CDLL(None, use_errno=True)
MACHINE = {"x86_64": {"keyctl": 250}, "aarch64": {"keyctl": 219}}[os.uname().machine]
IO_URING_SETUP = 425
PTRACE_SEIZE = 0x4206
MS_REMOUNT, MS_BIND = 32, 4096
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
AF_VSOCK = 40


def attack(function: Callable[[], object]) -> Callable[[], object]:
    ATTACKS.append(function)
    return function


def place(name: str) -> Path:
    return Path(PLACES[name])


def call(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# --- files outside the workspace ------------------------------------------------------------------


@attack
def write_outside() -> None:
    (place("outside") / "file").write_text("x")


@attack
def append_outside() -> None:
    with (place("outside") / "file").open("a") as file:
        file.write("x")


@attack
def truncate_outside() -> None:
    os.truncate(place("outside") / "file", 0)


@attack
def create_outside() -> None:
    (place("outside") / "new").touch()


@attack
def make_a_folder_outside() -> None:
    (place("outside") / "folder").mkdir()


@attack
def link_outside() -> None:
    (place("outside") / "link").symlink_to("/etc/passwd")


@attack
def unlink_outside() -> None:
    (place("outside") / "victim").unlink()


@attack
def rename_to_outside() -> None:
    source = place("root") / "mine"
    source.touch()
    source.rename(place("outside") / "moved")


@attack
def rename_from_outside() -> None:
    (place("outside") / "second victim").rename(place("root") / "taken")


@attack
def write_through_a_symlink() -> None:
    link = place("root") / "way out"
    link.symlink_to(place("outside") / "file")
    link.write_text("x")


@attack
def write_through_a_hard_link() -> None:
    link = place("root") / "hard"
    os.link(place("outside") / "file", link)
    link.write_text("x")


@attack
def change_mode_outside() -> None:
    (place("outside") / "file").chmod(0o777)


@attack
def change_times_outside() -> None:
    os.utime(place("outside") / "file", (1, 1))


@attack
def set_an_attribute_outside() -> None:
    os.setxattr(place("outside") / "file", "user.attack", b"x")


@attack
def write_the_profile() -> None:
    with (place("home") / ".profile").open("a") as file:
        file.write("touch /tmp/owned\n")


@attack
def leave_a_file_in_shared_memory() -> None:
    path = Path(PLACES["shared_memory"])
    path.touch()


# --- what runs later ------------------------------------------------------------------------------


@attack
def write_git_config() -> None:
    with (place("root") / ".git" / "config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = touch {place('canary')}\n")


@attack
def write_a_git_hook() -> None:
    hook = place("root") / ".git" / "hooks" / "post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch {place('canary')}\n")
    hook.chmod(0o755)


@attack
def point_git_elsewhere() -> None:
    own = place("root") / "own"
    shutil.copytree(place("root") / ".git", own)
    with (own / "config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = touch {place('canary')}\n")
    (place("root") / ".git" / "commondir").write_text("../own")


@attack
def write_the_hook_of_a_nested_repository() -> None:
    (place("root") / "a" / "b" / "nested" / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")


@attack
def replace_a_nested_repository() -> None:
    nested = place("root") / "a" / "b" / "nested"
    nested.rename(nested.with_name("moved"))


@attack
def replace_a_folder_above_a_nested_repository() -> None:
    above = place("root") / "a"
    above.rename(above.with_name("moved"))


@attack
def write_the_pointer_of_a_worktree() -> None:
    (place("root") / "tree" / ".git").write_text("gitdir: ../own\n")


@attack
def replace_the_pointer_of_a_worktree() -> None:
    (place("root") / "tree" / ".git").unlink()


@attack
def write_the_editors_tasks() -> None:
    (place("root") / ".vscode" / "tasks.json").write_text("{}")


# --- secrets --------------------------------------------------------------------------------------


@attack
def read_a_private_key() -> None:
    (place("home") / ".ssh" / "id_ed25519").read_text()


@attack
def read_cloud_credentials() -> None:
    (place("home") / ".aws" / "credentials").read_text()


@attack
def read_the_sessions_of_agentd() -> None:
    (place("own") / "session.jsonl").read_text()


@attack
def read_a_secret_of_the_workspace() -> None:
    assert "secret" in (place("root") / ".env").read_text()


@attack
def read_a_secret_of_the_workspace_by_another_name() -> None:
    folder = place("root") / "deploy"
    folder.rename(folder.with_name("renamed"))
    assert "secret" in (place("root") / "renamed" / "server.key").read_text()


# --- network --------------------------------------------------------------------------------------


@attack
def connect_by_tcp() -> None:
    socket.create_connection(("127.0.0.1", PLACES["tcp"]), timeout=5).close()


@attack
def send_by_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"attack", ("127.0.0.1", PLACES["udp"]))


@attack
def connect_to_a_socket_with_a_path() -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(PLACES["socket"])


@attack
def connect_to_a_socket_with_a_name() -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + PLACES["abstract"])


@attack
def open_a_socket_to_the_virtual_machines_host() -> None:
    socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()


# --- processes and the kernel ---------------------------------------------------------------------


@attack
def signal_the_daemon() -> None:
    os.kill(PLACES["daemon"], 0)


@attack
def read_the_daemons_environment() -> None:
    assert b"CANARY" in Path(f"/proc/{PLACES['daemon']}/environ").read_bytes()


@attack
def open_the_daemons_memory() -> None:
    with Path(f"/proc/{PLACES['daemon']}/mem").open("rb"):
        pass


@attack
def trace_the_daemon() -> None:
    arguments = [ctypes.c_long(number) for number in (PTRACE_SEIZE, PLACES["daemon"], 0, 0)]
    call(LIBC.ptrace(*arguments))


@attack
def write_a_setting_of_the_kernel() -> None:
    path = Path("/proc/sys/kernel/core_pattern")
    path.write_text(path.read_text())


@attack
def use_io_uring() -> None:
    parameters = ctypes.create_string_buffer(120)
    os.close(call(LIBC.syscall(ctypes.c_long(IO_URING_SETUP), ctypes.c_uint(1), parameters)))


@attack
def make_everything_writable() -> None:
    flags = ctypes.c_ulong(MS_REMOUNT | MS_BIND)
    tops = (b"/", os.fsencode(place("outside").parent))  # what is outside may be mounted by itself
    call(max(LIBC.mount(b"none", top, None, flags, None) for top in tops))
    (place("outside") / "remounted").touch()


@attack
def take_the_protection_off_in_a_namespace_of_its_own() -> None:
    call(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    git = os.fsencode(place("root") / ".git")
    if LIBC.umount2(git, 2) and ctypes.get_errno() != errno.EINVAL:  # EINVAL: nothing is mounted there
        raise OSError(ctypes.get_errno(), "umount")
    (place("root") / ".git" / "unprotected").touch()


@attack
def leave_a_program_that_runs_as_its_owner() -> None:
    """By any of the ways to make one. What it comes to is what the first of them came to."""
    failures = []
    for number, way in enumerate(_WAYS_TO_SETUID):
        program = place("root") / f"setuid-{number}"
        try:
            way(program)
        except OSError as error:
            failures.append(error)
        if program.exists() and program.stat().st_mode & 0o4000:
            return
    raise failures[0]


def _by_chmod(program: Path) -> None:
    program.touch()
    program.chmod(0o4755)


def _by_fchmod(program: Path) -> None:
    with program.open("w") as file:
        os.fchmod(file.fileno(), 0o4711)


def _by_fchmodat(program: Path) -> None:
    program.touch()
    folder = os.open(program.parent, os.O_RDONLY)
    os.chmod(program.name, 0o6755, dir_fd=folder)


def _by_fchmodat2(program: Path) -> None:
    program.touch()
    call(LIBC.syscall(ctypes.c_long(452), -100, os.fsencode(program), 0o4755, 0))


def _by_open(program: Path) -> None:
    os.open(program, os.O_WRONLY | os.O_CREAT, 0o4755)


def _by_a_nameless_file(program: Path) -> None:
    fd = os.open(program.parent, os.O_WRONLY | os.O_TMPFILE, 0o4755)
    os.link(f"/proc/self/fd/{fd}", program, src_dir_fd=fd, follow_symlinks=True)


def _by_mknod(program: Path) -> None:
    os.mknod(program, 0o104755)


def _by_openat2(program: Path) -> None:
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_CREAT, 0o4755, 0)
    call(LIBC.syscall(ctypes.c_long(437), -100, os.fsencode(program), how, ctypes.c_size_t(24)))


def _by_the_calls_of_another_architecture(program: Path) -> None:
    program.touch()
    if os.uname().machine == "x86_64":  # x32
        call(LIBC.syscall(ctypes.c_long(0x40000000 | 90), os.fsencode(program), 0o4755))


_WAYS_TO_SETUID = (
    _by_chmod, _by_fchmod, _by_fchmodat, _by_fchmodat2, _by_open, _by_a_nameless_file, _by_mknod, _by_openat2,
    _by_the_calls_of_another_architecture,
)  # fmt: skip


# --- the frame ------------------------------------------------------------------------------------


def outcome(function: Callable[[], object]) -> str:
    """What comes of it in a process of its own, so that none changes what the next one is."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        word = "worked"
        try:
            function()
        except OSError as error:
            word = errno.errorcode.get(error.errno or 0, str(error))
        except AssertionError:
            word = "empty"
        finally:
            os.write(write_end, word.encode())
            os._exit(0)
    os.close(write_end)
    os.waitpid(pid, 0)
    with os.fdopen(read_end) as pipe:
        return pipe.read()


def main() -> None:
    PLACES.update(json.loads(sys.argv[1]))
    print(json.dumps({each.__name__: outcome(each) for each in ATTACKS}))


if __name__ == "__main__":
    main()
