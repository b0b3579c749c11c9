"""What a sandbox is, and a command put inside one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from agentd.workspace import bubblewrap, landlock
from agentd.workspace.guarded import Guarded, Snapshot, look, snapshot
from agentd.workspace.policy import Policy

Backend = Literal["bubblewrap", "landlock", "none"]

# Where tools keep caches. They are new and empty in the sandbox, and live as long as this process.
_CACHES = {"XDG_CACHE_HOME": "", "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build",
           "npm_config_cache": "npm", "YARN_CACHE_FOLDER": "yarn", "CCACHE_DIR": "ccache"}  # fmt: skip


class SandboxError(Exception):
    """A command cannot be put into the sandbox. The message says why."""


@dataclass(frozen=True)
class Status:
    """What the sandbox of this process is.

    `reason` says why it is not better, or not there at all; empty for bubblewrap. `gaps` are what this kind
    leaves open. `program` and `user_namespace` say how bubblewrap is started.
    """

    backend: Backend
    reason: str = ""
    gaps: tuple[str, ...] = ()
    program: Path | None = None
    user_namespace: bool = False

    @property
    def works(self) -> bool:
        """Whether there is a sandbox."""
        return self.backend != "none"


@dataclass(frozen=True)
class Jailed:
    """A command to be given to `Processes.run` as it stands; without a `jail` it runs in no sandbox."""

    argv: Sequence[str]
    env: Mapping[str, str]
    jail: Mapping[str, Any] | None = None


def jail_of(status: Status, policy: Policy) -> Mapping[str, Any]:
    """What the command's own process has to do first. May look at folders, and block."""
    return bubblewrap.jail(policy) if status.backend == "bubblewrap" else landlock.jail(policy)


def wrap(
    status: Status,
    policy: Policy,
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    jail: Mapping[str, Any] | None = None,
) -> Jailed:
    """The same command inside the sandbox. Raises `SandboxError` where there is none.

    `jail` is the policy's, where it was made before; making it may block.
    """
    if status.backend == "bubblewrap":
        assert status.program is not None
        line = bubblewrap.command_line(
            status.program, policy, argv, cwd, user_namespace=status.user_namespace
        )
        place = Path("/tmp") if policy.temporary is not None else None
        return Jailed(line, _environment(env, policy, place), jail or jail_of(status, policy))
    if status.backend == "landlock":
        environment = _environment(env, policy, policy.temporary)
        return Jailed(list(argv), environment, jail or jail_of(status, policy))
    raise SandboxError(f"There is no sandbox: {status.reason}")


def _environment(env: Mapping[str, str], policy: Policy, temporary: Path | None) -> dict[str, str]:
    """The environment with its temporary folder and caches where they can be written to."""
    if temporary is None:
        return dict(env)
    result = {**env, "TMPDIR": str(temporary)}
    for name in ("TEMP", "TMP"):
        result.pop(name, None)
    home_cache = Path(env.get("HOME", "/"), ".cache")
    if any(home_cache.is_relative_to(each) for each in policy.writable):
        return result
    for name, folder in _CACHES.items():
        if name not in env or not any(Path(env[name]).is_relative_to(each) for each in policy.writable):
            result[name] = str(temporary / ".cache" / folder)
    return result


@dataclass(frozen=True)
class Enclosure:
    """The sandbox as it stands around one command in one workspace folder."""

    root: Path
    status: Status
    policy: Policy
    jail: Mapping[str, Any]
    before: Snapshot

    def wrap(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Jailed:
        """The same command inside."""
        return wrap(self.status, self.policy, argv, cwd, env, self.jail)

    async def changes(self) -> list[Path]:
        """Protected paths that came, went or changed since, relative to the workspace folder."""
        return await anyio.to_thread.run_sync(self._changes)

    def _changes(self) -> list[Path]:
        after = snapshot_of(look(self.root), self.status)
        return sorted({Path(os.path.relpath(path, self.root)) for path in self.before.changes(after)})


def enclosed(enclosure: Enclosure | None, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Jailed:
    """A command inside an enclosure; as it stands where there is none."""
    return Jailed(argv, env) if enclosure is None else enclosure.wrap(argv, cwd, env)


def snapshot_of(found: Guarded, status: Status) -> Snapshot:
    """Contents are looked at only where the sandbox does not keep them."""
    return snapshot(found, contents=status.backend != "bubblewrap")
