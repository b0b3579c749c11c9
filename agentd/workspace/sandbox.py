"""The sandbox in which mode `auto` runs commands: what it is made of here, and what a command finds in it.

bubblewrap where it works, else Landlock with seccomp, else nothing; then nobody calls anything a sandbox.
What works is found out by really running a command in it, once, when it is first needed: a program that is
installed may still be forbidden to make namespaces.

Everything can be read but secrets, agentd's own files and `/run` with its sockets. The workspace can be
written to, but for repositories' own folders and what editors run, and a temporary folder that all commands
of this process share. There is no network unless the user's configuration gives it.

Missing protected names are not reserved, as that would leave empty files in the user's folder: they are
compared before and after, and what is new is told.
"""

import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from agentd.config.sandbox_settings import SandboxSettings
from agentd.workspace import bpf, bubblewrap, landlock
from agentd.workspace.command import CommandError
from agentd.workspace.enclosure import Enclosure, SandboxError, Status, jail_of, snapshot_of, wrap
from agentd.workspace.guarded import MOST_ENTRIES, Guarded, look, protect
from agentd.workspace.own_program import program_places
from agentd.workspace.policy import Policy
from agentd.workspace.process import Processes
from agentd.workspace.secrets import IN_HOME, is_secret
from agentd.workspace.temporary_folder import TemporaryFolder

_PROBE_SECONDS = 10.0
_PROBE = ": > inside/made && ! (: > outside/made) 2>/dev/null && echo works"
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
_SYSTEM = ("/proc", "/sys", "/dev")
# Below /run, but no door to anything: programs of NixOS, graphics drivers.
_HARMLESS_RUNTIME = ("/run/current-system", "/run/booted-system", "/run/opengl-driver")
_SYSTEM_SECRETS = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private",
                   "/etc/krb5.keytab")  # fmt: skip


class Sandbox:
    """The sandbox for commands of this process, found out about when it is first asked for.

    `own` are agentd's files and folders, which commands do not see; `home` is the user's home folder;
    `program` is where agentd itself lies, which commands cannot change.
    """

    def __init__(
        self,
        processes: Processes,
        settings: SandboxSettings | None = None,
        own: Sequence[Path] = (),
        home: Path | None = None,
        program: Sequence[Path] | None = None,
    ) -> None:
        self.settings = settings or SandboxSettings()
        self._program = program_places() if program is None else tuple(program)
        self._processes = processes
        self._own = tuple(own)
        self._home = home
        self._probing = anyio.Lock()
        self._status: Status | None = None
        self._found: dict[Path, Guarded] = {}
        self._temporary: TemporaryFolder | None = None

    @property
    def known(self) -> Status | None:
        """What was found out, None where nobody has asked yet."""
        return self._status

    async def status(self) -> Status:
        """What the sandbox is. The first call tries it out, which takes a tenth of a second or so."""
        if self._status is None:
            async with self._probing:
                if self._status is None:
                    self._status = await self._probe()
        return self._status

    async def enclose(self, root: Path) -> Enclosure:
        """The sandbox around a command in this workspace folder. Raises `SandboxError`."""
        status = await self.status()
        if not status.works:
            raise SandboxError(f"There is no sandbox: {status.reason}")
        assert self._temporary is not None
        return await anyio.to_thread.run_sync(self.enclosure, root, status, self._temporary.path)

    async def read_only(self, root: Path, scratch: Path) -> tuple[Status, Policy]:
        """A sandbox in which only `scratch` can be written to, without network. Raises `SandboxError`."""
        status = await self.status()
        if not status.works:
            raise SandboxError(f"There is no sandbox: {status.reason}")
        return status, await anyio.to_thread.run_sync(self._read_only, root, scratch)

    def close(self) -> None:
        """Remove the temporary folder. Blocks."""
        if self._temporary is not None:
            self._temporary.remove()
            self._temporary = None

    # --- finding out ------------------------------------------------------------------------------

    async def _probe(self) -> Status:
        if sys.platform != "linux":
            return Status("none", "agentd has a sandbox for commands on Linux only, so far.")
        try:
            if self._temporary is None:  # there is one already where an earlier try was cancelled
                self._temporary = await anyio.to_thread.run_sync(TemporaryFolder)
            with tempfile.TemporaryDirectory(prefix="probe-", dir=self._temporary.path) as folder:
                return await self._try_all(Path(folder))
        except OSError as error:
            return Status("none", f"no temporary folder can be made: {error.strerror}.")

    async def _try_all(self, folder: Path) -> Status:
        for name in ("inside", "outside"):
            (folder / name).mkdir()
        policy = Policy(
            writable=(folder / "inside",),
            network=self.settings.network,
            unix_sockets=self.settings.unix_sockets,
        )
        reasons: dict[str, None] = {}  # each once, in order
        for candidate in self._candidates():
            if isinstance(candidate, str):
                reasons[candidate] = None
            elif failure := await self._try(candidate, policy, folder):
                reasons[f"{candidate.program or 'Landlock'} does not work here ({failure})"] = None
            else:
                return replace(candidate, reason="; ".join(reasons) if candidate.gaps else "")
        return Status("none", f"{'; '.join(reasons)}.")

    def _candidates(self) -> Iterator[Status | str]:
        """What may work, the best first, and why others cannot."""
        if self.settings.backend != "landlock":
            programs = list(bubblewrap.programs())
            # Root needs no user namespace, but may be without the right to make the others.
            shapes = (False, True) if os.geteuid() == 0 else (True,)
            for program in programs:
                yield from (Status("bubblewrap", "", (), program, shape) for shape in shapes)
            if not programs:
                yield "bubblewrap is not installed (the system's, or that of agentd-lsp[sandbox])"
        if self.settings.backend == "bubblewrap":
            yield 'backend = "bubblewrap" in the configuration allows nothing else'
        elif (version := landlock.version()) < landlock.OLDEST:
            yield f"this kernel's Landlock will not do (version {version}, needed is {landlock.OLDEST})"
        elif not bpf.is_known():
            yield f"Landlock cannot close the network on {os.uname().machine}"
        else:
            yield Status("landlock", gaps=landlock.gaps(version))

    async def _try(self, candidate: Status, policy: Policy, folder: Path) -> str:
        """Run a command in it that writes where it may and where it may not; what went wrong, if anything."""
        try:
            jailed = wrap(candidate, policy, ["/bin/sh", "-c", _PROBE], folder, {"PATH": os.defpath})
            result = await self._processes.run(
                jailed.argv, cwd=folder, env=jailed.env, timeout=_PROBE_SECONDS, jail=jailed.jail
            )
        except CommandError as error:
            return str(error).rstrip(".")
        inside, outside = (folder / name / "made" for name in ("inside", "outside"))
        confined = inside.exists() and not outside.exists()
        for made in (inside, outside):
            made.unlink(missing_ok=True)
        if result.text.strip() == "works" and confined:
            return ""
        said = " ".join(result.text.split())
        return said or ("no answer in time" if result.timed_out else "a trial command failed")

    # --- what a command finds ---------------------------------------------------------------------

    def enclosure(self, root: Path, status: Status, temporary: Path) -> Enclosure:
        """The same for a sandbox that is known to work, with this temporary folder. Blocks."""
        if _is_system(root):
            raise SandboxError(f"The workspace folder {root} is the system itself.")
        found = self._look(root)
        extra = self._extra_writable()
        all_found = [found, *(look(each, MOST_ENTRIES // 10) for each in extra)]
        self._close_program(dict(zip((root, *extra), all_found, strict=True)), status)
        hidden = self._hidden().union(*(each.secrets for each in all_found))
        shown = [*self._shown(), *_replaced(root, found.outside, hidden)]
        policy = Policy(
            writable=(root, *extra),
            protected=tuple(path for each in all_found for path in each.protected),
            pinned=tuple(path for each in all_found for path in each.pinned),
            hidden=tuple(hidden),
            shown=tuple(shown if status.backend == "bubblewrap" else self._shown()),
            temporary=temporary,
            network=self.settings.network,
            unix_sockets=self.settings.unix_sockets,
        )
        mounts = sum(map(len, (policy.protected, policy.pinned, policy.hidden)))
        if mounts > bubblewrap.MOST_MOUNTS:
            raise SandboxError(
                f"{root} holds {mounts} repositories and files with secrets, more than can be closed."
            )
        return Enclosure(root, status, policy, jail_of(status, policy), snapshot_of(found, status))

    def _look(self, root: Path) -> Guarded:
        """What a look finds; where it cannot see all, with what earlier ones have found.

        Else a command could fill the workspace with names until the next one's look misses what is there.
        """
        found = look(root)
        if not found.complete and (earlier := self._found.get(root)) is not None:
            found.recall(earlier)
        self._found[root] = found
        return found

    def _close_program(self, writable: Mapping[Path, Guarded], status: Status) -> None:
        """Have agentd's own program protected as far as it lies in folders that commands may write to."""
        for folder, found in writable.items():
            for place in self._program:
                if place == folder or not place.is_relative_to(folder) or not place.exists():
                    continue
                if status.backend != "bubblewrap":
                    raise SandboxError(
                        f"agentd itself lies in {folder} ({place}), where commands in this sandbox could "
                        "change it. Install it elsewhere, or ask for the command to run outside the sandbox."
                    )
                protect(place, folder, found)

    def _extra_writable(self) -> list[Path]:
        paths = [path for each in self.settings.writable if (path := _resolved(each))]
        return [path for path in paths if path.is_dir() and not _is_system(path)]

    def _read_only(self, root: Path, scratch: Path) -> Policy:
        hidden = (path for path in self._hidden() if not root.is_relative_to(path))
        return Policy(
            writable=(scratch,), hidden=tuple(hidden), shown=tuple(self._shown()), unix_sockets=False
        )

    def _hidden(self) -> set[Path]:
        """What no command sees, as far as it exists."""
        places = [*map(Path, (*_SYSTEM_SECRETS, "/run", "/var/run")), *self._own]
        for home in self._homes():
            places += [home / name for name in IN_HOME]
            places += [path for folder in (home, home / ".config") for path in _secrets_in(folder)]
        return {path for place in places if (path := _resolved(place))} - {Path("/")}

    def _homes(self) -> list[Path]:
        homes = [self._home] if self._home is not None else []
        if os.geteuid() == 0:  # who may read everybody's
            homes.append(Path("/root"))
            with suppress(OSError):
                homes += [Path("/home", name) for name in os.listdir("/home")]
        return homes

    def _shown(self) -> Iterator[Path]:
        """What lies in a folder that is hidden, and is needed all the same."""
        for place in map(Path, _HARMLESS_RUNTIME):  # some are links to outside, and needed by this name
            if place.exists():
                yield place
        names = _resolved(Path("/etc/resolv.conf"))  # systemd keeps the addresses of name servers below /run
        if self.settings.network and names is not None and names.is_relative_to("/run"):
            yield names


def _replaced(root: Path, outside: Collection[Path], hidden: Collection[Path]) -> Iterator[Path]:
    """What is in `/tmp`, which in bubblewrap is another folder: the workspace's repositories, and agentd.

    Where a repository is, the workspace says: it cannot have anything shown that is hidden.
    """
    around = [parent for parent in root.parents if parent not in _TEMPORARY and (parent / ".git").exists()]
    for path in (*around, *outside, Path(os.path.realpath(__file__)).parent):
        in_temporary = any(path.is_relative_to(each) for each in _TEMPORARY)
        if in_temporary and not any(path.is_relative_to(each) for each in hidden):
            yield path


def _is_system(path: Path) -> bool:
    """A folder that cannot be mounted anew without undoing what was mounted before."""
    return str(path) == "/" or any(path.is_relative_to(each) for each in _SYSTEM)


def _resolved(path: Path) -> Path | None:
    """Where a path leads; None where nothing is."""
    real = Path(os.path.realpath(path))
    return real if os.path.lexists(real) else None


def _secrets_in(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            parts = (entry.name, "any") if entry.is_dir() else (entry.name,)
            if is_secret(parts):
                yield Path(entry.path)
