"""A world to attack, and what became of it: `python attacked.py BACKEND UID FOLDER` prints it as JSON.

The process plays the daemon: it is started with a CANARY in its environment, keeps servers that should not be
reached, and starts `attacks.py` in the sandbox. With another UID than its own it first becomes that user for
good; so all that it needs is imported before. BACKEND is `bubblewrap`, `landlock`, or `none` to see that the
attacks are real.
"""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentd.config.sandbox_settings import SandboxSettings
from agentd.workspace import bubblewrap, landlock
from agentd.workspace.enclosure import Enclosure, Jailed, Status
from agentd.workspace.jail import spawner
from agentd.workspace.process import Processes
from agentd.workspace.sandbox import Sandbox

ATTACKS = Path(__file__).with_name("attacks.py")
GIT_ENVIRONMENT = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
DEADLINE = 120
BUBBLEWRAP = next(bubblewrap.programs(), None)


def main() -> None:
    backend, uid, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if uid != os.geteuid():
        become(uid)
    world = World(folder)
    before = world.outside()
    results, enclosure = world.attack(backend)
    print(
        json.dumps(
            {
                "attacks": results,
                "the world outside is as it was": world.outside() == before,
                "a datagram has arrived": world.datagrams > 0,
                "git of the host has run a program": world.git_runs_something(),
                "the user's folder has files that nobody made": world.strange_files(),
                "reported": sorted(map(str, enclosure._changes())) if enclosure else [],
            }
        )
    )


def become(uid: int) -> None:
    """Be another user, with nothing of root's left."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def python() -> str:
    """An interpreter that this user may execute."""
    own = os.path.realpath(sys.executable)
    return own if os.access(own, os.X_OK) else "/usr/bin/python3"


class World:
    """A workspace, a home and things outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root, self.home, self.out = folder / "workspace", folder / "home", folder / "outside"
        self.own = folder / "home" / "agentd"
        self.temporary = folder / "temporary"
        self.canary = folder / "canary"
        self.shared_memory = Path(f"/dev/shm/agentd-test-{os.getpid()}")
        self.datagrams = 0
        self._make()
        self._serve()

    def _make(self) -> None:
        for path in (self.out, self.home / ".ssh", self.home / ".aws", self.own, self.temporary):
            path.mkdir(parents=True)
        (self.temporary / ".cache").mkdir()
        for name in ("file", "victim", "second victim"):
            (self.out / name).write_text("untouched")
        (self.home / ".profile").write_text("")
        (self.home / ".ssh" / "id_ed25519").write_text("secret")
        (self.home / ".aws" / "credentials").write_text("secret")
        (self.own / "session.jsonl").write_text("secret")
        self._make_workspace()

    def _make_workspace(self) -> None:
        for repository in (self.root, self.root / "a" / "b" / "nested"):
            git("init", "-q", str(repository))
        (self.root / "file").write_text("text")
        git("-C", str(self.root), "add", "file")
        commit = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "first")
        git("-C", str(self.root), *commit)
        git("-C", str(self.root), "worktree", "add", "-q", str(self.root / "tree"))
        (self.root / ".git" / "info" / "exclude").write_text("*\n")
        (self.root / ".vscode").mkdir()
        (self.root / ".vscode" / "tasks.json").write_text('{"version": "2.0.0"}')
        (self.root / ".env").write_text("secret")
        (self.root / "deploy").mkdir()
        (self.root / "deploy" / "server.key").write_text("secret")

    def _serve(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(str(self.folder / "socket"))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0agentd-test-{os.getpid()}")
        for server in (self.tcp, self.unix, self.abstract):
            server.listen()

    def places(self) -> str:
        paths = {"root": self.root, "outside": self.out, "home": self.home, "own": self.own}
        paths |= {
            "canary": self.canary,
            "socket": self.folder / "socket",
            "shared_memory": self.shared_memory,
        }
        numbers = {"tcp": self.tcp.getsockname()[1], "udp": self.udp.getsockname()[1], "daemon": os.getpid()}
        name = {"abstract": f"agentd-test-{os.getpid()}"}
        return json.dumps({**{key: str(path) for key, path in paths.items()}, **numbers, **name})

    def attack(self, backend: str) -> tuple[dict[str, str], Enclosure | None]:
        # The file is handed over as text: the sandbox has another /tmp, where the sources may be.
        argv = [python(), "-I", "-c", ATTACKS.read_text(), self.places()]
        environment = {"PATH": os.defpath}
        enclosure = None
        jailed = Jailed(argv, environment)
        if backend != "none":
            enclosure = self.enclosure(backend)
            jailed = enclosure.wrap(argv, self.root, environment)
        said = run(jailed, self.root)
        self.udp.settimeout(0.5)
        try:
            while self.udp.recv(100):
                self.datagrams += 1
        except TimeoutError:
            pass
        try:
            return json.loads(said), enclosure
        except ValueError:
            raise SystemExit(f"the attacks did not run: {said}") from None

    def enclosure(self, backend: str) -> Enclosure:
        """As `Sandbox.enclose` makes it; only that this world can be seen although it lies in /tmp."""
        sandbox = Sandbox(Processes(), SandboxSettings(), own=[self.own], home=self.home)
        if backend == "landlock":
            return sandbox.enclosure(self.root, Status("landlock", gaps=landlock.GAPS), self.temporary)
        status = Status("bubblewrap", program=BUBBLEWRAP, user_namespace=os.geteuid() != 0)
        enclosure = sandbox.enclosure(self.root, status, self.temporary)
        shown = (*enclosure.policy.shown, self.folder)
        return replace(enclosure, policy=replace(enclosure.policy, shown=shown))

    def outside(self) -> str:
        """All that a command must not change, as one hash; times of folders aside."""
        digest = hashlib.sha256()
        for top in (self.out, self.home):
            for path in sorted(top.rglob("*")):
                status = path.lstat()
                times = 0 if path.is_dir() else status.st_mtime_ns
                content = path.read_bytes() if path.is_file() else b""
                digest.update(repr((str(path), status.st_mode, times, content, attributes(path))).encode())
        digest.update(repr(self.shared_memory.exists()).encode())
        self.shared_memory.unlink(missing_ok=True)
        return digest.hexdigest()

    def git_runs_something(self) -> bool:
        """Whether the user's own git, run afterwards, runs what the attacks have left."""
        for arguments in (("status",), ("add", "-f", "file"), ("log", "-p")):
            subprocess.run(
                ["git", "-C", str(self.root), *arguments],
                env={**GIT_ENVIRONMENT, "HOME": str(self.home)},
                capture_output=True,
                check=False,
            )
        return self.canary.exists()

    def strange_files(self) -> list[str]:
        """Protected names that were not there and now are, as empty files or folders that hold places."""
        names = (".hg", ".svn", ".jj", ".idea", ".mcp.json", ".agentd", ".envrc")
        return [name for name in names if os.path.lexists(self.root / name)]


def attributes(path: Path) -> list[str]:
    return os.listxattr(path, follow_symlinks=False)


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], env=GIT_ENVIRONMENT, check=True, capture_output=True)


def run(jailed: Jailed, cwd: Path) -> str:
    """Start it as the warden does; what it printed."""
    read_end, write_end = os.pipe()
    os.chdir(cwd)
    start: Any = os.posix_spawn if jailed.jail is None else spawner(jailed.jail)
    pid = start(
        os.fsencode(shutil.which(jailed.argv[0]) or jailed.argv[0]),
        [os.fsencode(each) for each in jailed.argv],
        {os.fsencode(name): os.fsencode(value) for name, value in jailed.env.items()},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_DUP2, write_end, 2),
        ],
        setsid=True,
    )
    os.close(write_end)
    alarm = threading.Timer(DEADLINE, os.kill, (pid, 9))
    alarm.start()
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    alarm.cancel()
    return said


if __name__ == "__main__":
    main()
