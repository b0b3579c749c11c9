"""The processes that stand over commands: one keeper, and a warden for each command that runs.

Run by path as `python -I -S -E warden.py FD [OPEN_FILES]`, with an empty environment; standard library only,
never imported by the daemon. `OPEN_FILES` is how many a command may have open. A fresh interpreter costs tens
of milliseconds, a fork of one few, a warden that has nothing to do and takes the next command none:

    daemon ── socket FD ──> keeper ── fork ──> warden ── posix_spawn ──> a command and all it starts
       └──────── a socket for each warden ────────┘

Over `FD` the daemon sends one byte and the far end of a new socket, for which the keeper forks a warden. On
its socket the warden reads a job, then orders of one byte, and writes lines. A job is a length of 4 bytes
(big endian) with the write ends of the pipe for the output and, where it names a descriptor `aside`, of one
for that; then JSON, in which byte strings travel as Latin-1. The lines:

    failed WHAT ERRNO      nothing was started; WHAT is `fork`, `cwd`, `jail` or `exec`
    exit STATUS            the command's first process ended, with this wait status
    lost                   the keeper is gone, so the command is being stopped
    done KILLED SURVIVORS  all over: how many had to be killed, how many could not be

The warden adopts every orphan below it (PR_SET_CHILD_SUBREAPER, prctl(2)), so nothing a command does can
leave its tree: not `setsid`, not a double fork. At end of file on its socket (the daemon's order to kill, and
also what the daemon's own death looks like), or when the keeper is gone (end of file on the lifeline), it
stops all descendants, so that they fork no more, kills them, and looks again until none is left. The keeper
adopts too, and so gets what a killed warden leaves behind.

Where there is no such adoption (not Linux) only the command's process group is killed: a command that makes a
new session there escapes.
"""

import contextlib
import errno
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

TERMINATE = b"t"

# How long a kill is repeated before what is left counts as out of reach: another user's, stuck in the kernel.
PATIENCE_SECONDS = 2.0
LOOK_AGAIN_MS = 10
# The keeper waits for its wardens a little longer than they wait for their commands.
FAREWELL_SECONDS = PATIENCE_SECONDS + 1.0

PR_SET_CHILD_SUBREAPER = 36
SETTABLE_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


class Process(NamedTuple):
    """A process, told from a later one with the same number by its start time (proc(5), stat field 22)."""

    pid: int
    started: int


class Stat(NamedTuple):
    """What /proc/PID/stat says: state (field 3), parent (field 4), and which process it is."""

    process: Process
    parent: int
    state: bytes


def adopt_orphans() -> bool:
    """Make this process the parent of every orphan below it; whether the system can."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes
    except ImportError:  # an interpreter built without it can still kill process groups
        return False
    arguments = [ctypes.c_ulong(number) for number in (1, 0, 0, 0)]
    return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, *arguments) == 0)


def read_stat(pid: int) -> Stat | None:
    """What /proc says of this process, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before it may hold blanks and parentheses
    return Stat(Process(pid, int(fields[19])), int(fields[1]), fields[0])


def descendants(spare: set[int]) -> list[Process]:
    """The living processes below this one, parents first, leaving out `spare` and all below those."""
    children: dict[int, list[Stat]] = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := read_stat(int(name))):
            children[stat.parent].append(stat)
    found = []
    parents = [os.getpid()]
    while parents:
        for stat in children[parents.pop()]:
            if stat.process.pid in spare:
                continue
            parents.append(stat.process.pid)
            if stat.state not in b"ZX":  # a zombie is dead already
                found.append(stat.process)
    return found


def send(process: Process, number: signal.Signals) -> None:
    """Signal this process, and never another that got its number since."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        try:
            handle = os.pidfd_open(process.pid)
        except OSError as error:
            if isinstance(error, ProcessLookupError):
                return
            os.kill(process.pid, number)  # no pidfd here (before Linux 5.3, or filtered out)
            return
        try:
            stat = read_stat(process.pid)
            if stat and stat.process == process:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


class ChildExits:
    """A descriptor that can be read after a child has ended."""

    def __init__(self) -> None:
        self.fd, write_end = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLIN)

    def clear(self) -> None:
        """Forget the exits so far; the next one is a new event."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def wait(self, milliseconds: int) -> None:
        """Wait for an exit, at most this long."""
        self._poll.poll(milliseconds)
        self.clear()


def ended_children() -> Iterator[tuple[int, int]]:
    """Number and wait status of each child that has ended, taking them off the system's list."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def freeze(spare: set[int], deadline: float) -> set[Process]:
    """Stop all descendants, again and again, until no new one turns up; those that were stopped."""
    frozen: set[Process] = set()
    while (fresh := set(descendants(spare)) - frozen) and time.monotonic() < deadline:
        for process in fresh:
            send(process, signal.SIGSTOP)
        frozen |= fresh
    return frozen


def destroy(reap: Callable[[], None], exits: ChildExits, spare: set[int]) -> tuple[int, int]:
    """Kill all descendants but `spare` and theirs. How many had to be killed, and how many live on."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    killed: set[Process] = set()
    while left := set(descendants(spare)):
        if time.monotonic() > deadline:
            return len(killed - left), len(left)
        frozen = freeze(spare, deadline)
        for process in frozen:
            send(process, signal.SIGKILL)
        killed |= frozen
        exits.wait(LOOK_AGAIN_MS)
        reap()
    reap()
    return len(killed), 0


def load_jail() -> Any:
    """The module that puts commands into jails, from the file beside this one."""
    if "agentd_jail" not in sys.modules:
        from importlib.util import module_from_spec, spec_from_file_location

        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jail.py")
        spec = spec_from_file_location("agentd_jail", path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["agentd_jail"] = module
    return sys.modules["agentd_jail"]


class Warden:
    """Runs commands, one after the other, and goes on to the next only when nothing is left of the last."""

    def __init__(self, control: socket.socket, lifeline: int) -> None:
        self._control = control
        self._lifeline = lifeline
        self._adopts = adopt_orphans()
        self._exits = ChildExits()
        self._poll = select.poll()
        for source in (control, lifeline, self._exits.fd):
            self._poll.register(source, select.POLLIN)
        self._leader = 0
        self._leader_ended = False
        self._monitor: int | None = None
        self._killed = self._survivors = 0

    def run(self) -> None:
        """Serve until the daemon or the keeper is gone, or what cannot be killed makes the tree unclean."""
        with contextlib.suppress(ConnectionError):  # the daemon has let go of this warden
            while not self._survivors and (received := self._receive_job()):
                job, pipes = received
                try:
                    started = self._start(pipes, **job)
                finally:
                    for pipe in pipes:  # else the daemon would never see the end of the output
                        os.close(pipe)
                if started:
                    self._see_through()
                os.chdir("/")  # nobody's folder is held by a warden that waits

    def _receive_job(self) -> tuple[dict[str, Any], list[int]] | None:
        """What to run, and the pipes that it writes to; None when there will be nothing more."""
        while True:
            ready = {source for source, _ in self._poll.poll()}
            if self._lifeline in ready:
                return None
            if self._control.fileno() in ready:
                break
            self._exits.clear()
        header, pipes, _, _ = socket.recv_fds(self._control, 4, 2, socket.MSG_WAITALL)
        size = int.from_bytes(header, "big")
        text = self._control.recv(size, socket.MSG_WAITALL) if len(header) == 4 else b""
        if not pipes or not text or len(text) < size:
            return None
        for pipe in pipes:
            os.set_inheritable(pipe, False)
        job = json.loads(text)
        if len(pipes) < 1 + (job["aside"] is not None):  # no descriptor was free for it
            return None
        return job, pipes

    def _start(
        self,
        pipes: list[int],
        program: str,
        argv: list[str],
        cwd: str,
        env: dict[str, str],
        aside: int | None,
        jail: Any,
    ) -> bool:
        """Start the command with nothing of ours: no descriptor, signal setting or terminal."""
        step = "cwd"
        try:
            os.chdir(cwd.encode("latin-1"))
            step = "exec"
            start = os.posix_spawn if jail is None else load_jail().spawner(jail)
            self._leader = start(
                program.encode("latin-1"),
                [argument.encode("latin-1") for argument in argv],
                {name.encode("latin-1"): value.encode("latin-1") for name, value in env.items()},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, pipes[0], 1),
                    (os.POSIX_SPAWN_DUP2, pipes[0], 2),
                    *([] if aside is None else [(os.POSIX_SPAWN_DUP2, pipes[1], aside)]),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=SETTABLE_SIGNALS,
            )
        except (OSError, ValueError) as error:
            step = getattr(error, "step", step)  # a jail that could not be set up says so
            self._tell(f"failed {step} {getattr(error, 'errno', errno.EINVAL)}")
            return False
        self._leader_ended = False
        self._monitor = self._leader if jail is not None and jail.get("monitor") else None
        self._killed = 0
        return True

    def _see_through(self) -> None:
        """Watch the command until nothing of it lives, doing as the daemon says."""
        while self._has_children() and not self._survivors:
            for source, _ in self._poll.poll():
                if source == self._exits.fd:
                    self._exits.clear()
                    self._reap()
                elif source == self._lifeline:
                    self._tell("lost")
                    self._destroy()
                else:
                    self._obey()
        self._tell(f"done {self._killed} {self._survivors}")

    def _has_children(self) -> bool:
        """Whether anything of the command lives, or is still to be waited for."""
        if not self._adopts:
            # Whether the killed are gone from the group cannot be seen: others than this process reap them.
            return not self._leader_ended or (not self._killed and self._signal_group(0))
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _reap(self) -> None:
        for pid, status in ended_children():
            if pid == self._leader:
                self._leader_ended = True
                self._tell(f"exit {status}")

    def _obey(self) -> None:
        orders = b""
        with contextlib.suppress(ConnectionError):  # the daemon went without reading all
            orders = self._control.recv(64)
        if not orders:
            self._destroy()
        elif TERMINATE in orders:
            self._terminate()

    def _terminate(self) -> None:
        if not self._adopts:
            self._signal_group(signal.SIGTERM)
            return
        # Parents first: a shell that waits for its child must not take the child's end for its own good end.
        for process in descendants(set()):
            if process.pid != self._monitor:  # with it the kernel would kill all that it stands over
                send(process, signal.SIGTERM)

    def _destroy(self) -> None:
        if not self._adopts:
            self._killed += self._signal_group(signal.SIGKILL)
            if not self._leader_ended:
                self._exits.wait(int(PATIENCE_SECONDS * 1000))
                self._reap()
            return
        killed, self._survivors = destroy(self._reap, self._exits, spare=set())
        self._killed += killed

    def _signal_group(self, number: int) -> bool:
        """Signal the command's process group, all there is to name without adoption. Whether there is one."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)
            return True
        return False

    def _tell(self, line: str) -> None:
        with contextlib.suppress(ConnectionError):  # the daemon is gone: nobody is left to be told
            self._control.sendall(line.encode() + b"\n")


class Keeper:
    """Forks a warden for each command, until the daemon's end of the socket closes."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._wardens: set[int] = set()
        self._orphaned = False
        self._adopts = adopt_orphans()
        self._exits = ChildExits()
        # Nothing is ever written: wardens hold the read end, and see it end when the keeper does.
        self._lifeline, self._lifeline_end = os.pipe()

    def run(self) -> None:
        """Serve until end of file, then wait until nothing is left below."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._exits.fd, select.POLLIN)
        serving = True
        while serving:
            for source, _ in poll.poll():
                if source == self._exits.fd:
                    self._exits.clear()
                    self._tidy()
                else:
                    serving = self._serve()
        os.close(self._lifeline_end)
        deadline = time.monotonic() + FAREWELL_SECONDS
        while self._wardens and time.monotonic() < deadline:
            self._exits.wait(LOOK_AGAIN_MS)
            self._tidy()

    def _serve(self) -> bool:
        """Fork one warden. Whether there may be more to do."""
        word, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        for (
            fd
        ) in fds:  # none where there is no room for one: the daemon sees its end close, and calls it lost
            os.set_inheritable(fd, False)
            self._fork(socket.socket(fileno=fd))
        return bool(word)

    def _fork(self, control: socket.socket) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            with contextlib.suppress(ConnectionError):
                control.sendall(f"failed fork {error.errno}\n".encode())
        else:
            if pid == 0:
                self._become_warden(control)
            self._wardens.add(pid)
        control.close()

    def _become_warden(self, control: socket.socket) -> None:
        """Never returns: the keeper's own loop is none of the warden's business."""
        code = 1
        try:
            self._control.close()
            os.close(self._lifeline_end)
            Warden(control, self._lifeline).run()
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _tidy(self) -> None:
        """Reap, and kill what a warden that was killed has left to the keeper."""
        self._reap()
        while self._orphaned and self._adopts:
            self._orphaned = False
            destroy(self._reap, self._exits, spare=self._wardens)

    def _reap(self) -> None:
        for pid, status in ended_children():
            if pid in self._wardens:
                self._wardens.remove(pid)
                self._orphaned |= status != 0


def main() -> None:
    """Be the keeper, on the socket whose number is the first argument."""
    fd = int(sys.argv[1])
    for open_files in map(int, sys.argv[2:]):
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (open_files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
    os.set_inheritable(fd, False)
    keeper = Keeper(socket.socket(fileno=fd))
    gc.freeze()  # a collection in a warden would copy the pages it shares with the keeper
    keeper.run()


if __name__ == "__main__":
    main()
