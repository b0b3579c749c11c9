"""Another machine, made of namespaces: its own files, users, processes and name. And ways onto it.

Its root is a small Debian that can only be read, as `fetch machine` unpacks it; its user's home and /tmp are
its own. What is in them is seen from here in a folder, at other paths. Only the network is this machine's, so
that loopback reaches both ways, as with a container on its host's network.
"""

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest
from editors.places import CACHE
from editors.workbench import END_SECONDS, START_SECONDS, die_with_us, ended, fetched

from agentd.workspace import bubblewrap

HOME = "/home/dev"
PATH = "/usr/local/bin:/usr/bin:/bin"
INDEX = "/opt/index"
VSIX = "/opt/agentd.vsix"
PIP = f"""[global]
no-index = true
find-links = {INDEX}/needed {INDEX}/agentd
"""
"""Has the machine's pip find what there is, in place of an index."""

# What container runtimes refuse by default to processes without CAP_SYS_ADMIN, as far as sandboxes need it.
# Older ones refuse Landlock as well.
_LANDLOCK = (444, 445, 446)
_NUMBERS = {
    "x86_64": {"clone": 56, "unshare": 272, "mount": 165},
    "aarch64": {"clone": 220, "unshare": 97, "mount": 40},
}
_CLONE3 = 435
_CLONE_NEWUSER = 0x10000000
_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38


def closed() -> bytes:
    """A seccomp program that leaves no way to make a sandbox."""
    numbers = _NUMBERS[os.uname().machine]
    code = [(_LOAD, 0, 0, 0)]
    for number in (*_LANDLOCK, numbers["unshare"], numbers["mount"]):
        code += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    code += [
        (_IF_EQUAL, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ENOSYS),
    ]  # its flags are out of sight: `clone` is taken
    code += [(_IF_EQUAL, 0, 3, numbers["clone"]), (_LOAD, 0, 0, 16), (_IF_ANY_BIT, 0, 1, _CLONE_NEWUSER)]
    code += [(_RETURN, 0, 0, _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


@cache
def _root() -> Path:
    """All files of such a machine; skips the test where they are not here."""
    root = CACHE / "machine" / "root"
    if not root.is_dir():
        pytest.skip("another machine's files are not here; `tests/editors/fetch machine` gets them")
    return root


@cache
def _shape() -> tuple[str, ...]:
    """How namespaces can be had here: with users of their own, or, for root, without; else skips the test."""
    program = next(bubblewrap.programs(), None)
    if program is None:
        pytest.skip("bubblewrap is not here, so there can be no other machine")
    shapes: list[tuple[str, ...]] = [
        ("--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL")
    ]
    if os.geteuid() == 0:
        shapes.append(("--cap-drop", "CAP_SYS_ADMIN"))
    reasons = []
    for shape in shapes:
        line = [str(program), *shape, "--unshare-pid", "--ro-bind", str(_root()), "/"]
        line += ["--proc", "/proc", "--dev", "/dev"]
        ran = subprocess.run(
            [*line, "--", "/bin/true"], capture_output=True, text=True, timeout=START_SECONDS, check=False
        )
        if ran.returncode == 0:
            return str(program), *shape
        reasons.append(ran.stderr.strip())
    pytest.skip(f"no namespaces can be had, so there can be no other machine: {'; '.join(reasons)}")


class Machine:
    """One such machine. What is in `binds` is seen there, by its path there, and can only be read."""

    def __init__(self, folder: Path, binds: Mapping[str, Path], *, sandboxes: bool = True) -> None:
        self.folder = folder
        self.home = folder / "home"
        """What is HOME there."""
        self._shape = _shape()
        self._binds = dict(binds)
        self._filter = b"" if sandboxes else closed()
        self.etc = folder / "etc"
        self.home.mkdir(parents=True)
        (folder / "tmp").mkdir()
        shutil.copytree(_root() / "etc", self.etc, symlinks=True)
        self.user, number = ("dev", 1000) if "--unshare-user" in self._shape else ("root", 0)
        users = [
            f"{self.user}:x:{number}:{number}::{HOME}:/bin/bash",
            "sshd:x:100:65534::/run/sshd:/bin/false",
        ]
        users += ["root:x:0:0::/root:/bin/bash"] if number else []
        (self.etc / "passwd").write_text("\n".join([*users, ""]))
        (self.etc / "group").write_text("root:x:0:\ndev:x:1000:\nnogroup:x:65534:\n")
        (self.etc / "pip.conf").write_text(PIP)
        (self.etc / "hosts").write_text("127.0.0.1 localhost elsewhere\n")

    def start(self, *command: str, log: IO[bytes] | int | None = None) -> subprocess.Popen[bytes]:
        """Start the machine with this as its first program: it is up as long as that runs."""
        with self._passed() as number:
            line = [*self._shape, *self._mounts(), *(("--seccomp", str(number)) if number >= 0 else ())]
            return subprocess.Popen(
                [*line, "--", *command],
                env={},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log if log is None else subprocess.STDOUT,
                pass_fds=(number,) if number >= 0 else (),
                preexec_fn=die_with_us,
            )

    def run(self, *command: str) -> str:
        """Start it for one program, and give what that says."""
        with (self.folder / "run.log").open("w+b") as log:
            process = self.start(*command, log=log)
            try:
                code = process.wait(START_SECONDS)
            finally:
                ended(process)
            log.seek(0)
            said = log.read().decode(errors="replace")
        assert code == 0, f"{' '.join(command)}: {code}\n{said}"
        return said

    def install_agentd(self, where: str) -> None:
        """Have agentd as it is now in an environment of its own and its program in a folder, as pipx does."""
        self.run(
            "/bin/sh",
            "-ec",
            'python3 -m venv --without-pip ~/.local/share/agentd-environment; mkdir -p "$1"\n'
            "python=~/.local/share/agentd-environment/bin/python\n"
            "pip=$(echo /usr/share/python-wheels/pip-*.whl)\n"  # as it is run before it is installed
            "$python $pip/pip install --no-compile --disable-pip-version-check agentd-lsp\n"
            'ln -s ~/.local/share/agentd-environment/bin/agentd "$1"/',
            "install",
            where,
        )

    def _mounts(self) -> list[str]:
        line = [
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
            "--hostname",
            "elsewhere",
        ]
        line += [
            "--die-with-parent",
            "--new-session",
            "--clearenv",
            "--setenv",
            "PATH",
            PATH,
            "--setenv",
            "HOME",
            HOME,
        ]
        line += [
            "--ro-bind",
            str(_root()),
            "/",
            "--ro-bind",
            str(self.etc),
            "/etc",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ]
        line += [
            "--tmpfs",
            "/run",
            "--dir",
            "/run/sshd",
            "--chmod",
            "0755",
            "/run/sshd",
            "--tmpfs",
            "/opt",
            "--tmpfs",
            "/home",
        ]
        line += ["--bind", str(self.folder / "tmp"), "/tmp", "--bind", str(self.home), HOME, "--chdir", HOME]
        for there, here in self._binds.items():
            line += ["--ro-bind", str(here), there]
        return line

    @contextlib.contextmanager
    def _passed(self) -> Iterator[int]:
        """A descriptor from which bubblewrap reads the filter; -1 where there is none."""
        if not self._filter:
            yield -1
            return
        number = os.memfd_create("filter")
        try:
            os.write(number, self._filter)
            os.lseek(number, 0, os.SEEK_SET)
            yield number
        finally:
            os.close(number)


def index() -> dict[str, Path]:
    """What to bind for `pip install agentd-lsp`, as it is now; skips the test where it cannot be had."""
    otherwise = "what agentd needs cannot be had from PyPI"
    return {
        f"{INDEX}/needed": Path(fetched("needed-wheels", otherwise)),
        f"{INDEX}/agentd": Path(fetched("agentd-wheel", otherwise)),
    }


class Login:
    """A machine's SSH server on loopback, and what a client has to know to log in."""

    def __init__(self, machine: Machine) -> None:
        if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
            pytest.skip("there is no SSH client here")
        self.machine = machine
        self._keys = machine.folder / "ssh"
        self._keys.mkdir()
        self.config = self._keys / "client"
        self._make_keys()
        self.process = self._started()

    def close(self) -> None:
        ended(self.process)

    def command(self, *options: str) -> list[str]:
        """`ssh` to it, up to where the command for it stands."""
        return [shutil.which("ssh") or "ssh", "-F", str(self.config), *options, "elsewhere", "--"]

    def run(self, command: str) -> str:
        """What a command says that a login runs."""
        ran = subprocess.run(
            [*self.command(), command],
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def _make_keys(self) -> None:
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self._keys / name],
                stdin=subprocess.DEVNULL,
                check=True,
            )
        own = self.machine.etc / "ssh" / "own"
        own.mkdir()
        shutil.copy(self._keys / "host", own)
        (self.machine.home / ".ssh").mkdir(0o700)
        shutil.copy(self._keys / "user.pub", self.machine.home / ".ssh" / "authorized_keys")

    def _started(self) -> subprocess.Popen[bytes]:
        own = self.machine.etc / "ssh" / "own"
        log = self._keys / "server.log"
        for _ in range(5):  # another one may take the port that was free
            port = free_port()
            (own / "config").write_text(
                f"ListenAddress 127.0.0.1\nPort {port}\nHostKey /etc/ssh/own/host\nPidFile none\n"
                "StrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            )
            with log.open("wb") as stream:
                process = self.machine.start(
                    "/usr/sbin/sshd", "-D", "-e", "-f", "/etc/ssh/own/config", log=stream
                )
            try:
                if _is_listening(process, port):
                    self._write_config(port)
                    return process
            except BaseException:
                ended(process)
                raise
        raise AssertionError(f"the SSH server did not start:\n{log.read_text()}")

    def _write_config(self, port: int) -> None:
        known = self._keys / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {(self._keys / 'host.pub').read_text()}")
        self.config.write_text(
            f"Host elsewhere\nHostName 127.0.0.1\nPort {port}\nUser {self.machine.user}\n"
            f'IdentityFile "{self._keys / "user"}"\nIdentitiesOnly yes\nIdentityAgent none\n'
            f'UserKnownHostsFile "{known}"\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n'
            "BatchMode yes\nExitOnForwardFailure yes\n"
        )


def free_port() -> int:
    """A port of loopback that nobody has at the moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _is_listening(process: subprocess.Popen[Any], port: int) -> bool:
    """Wait until somebody answers at a port; False where the process ended instead."""
    end = time.monotonic() + END_SECONDS
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        assert time.monotonic() < end, "the SSH server does not listen"
        time.sleep(0.02)
    return False
