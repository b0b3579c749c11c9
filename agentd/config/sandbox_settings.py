"""What the user says of the sandbox for commands: the table `[sandbox]` of the configuration file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from agentd.config.provider_settings import not_known
from agentd.config.toml_table import Table

Wanted = Literal["auto", "bubblewrap", "landlock"]
_NAMES = ("network", "unix_sockets", "writable", "backend")


@dataclass(frozen=True)
class SandboxSettings:
    """`network`: commands may reach it. `unix_sockets`: they may use sockets that have a path or a name.

    `writable` are folders beside the workspace that they may write to, absolute; `backend` is what the
    sandbox is made of, `auto` the best that works.
    """

    network: bool = False
    unix_sockets: bool = True
    writable: tuple[Path, ...] = ()
    backend: Wanted = "auto"


def sandbox_settings(table: Table | None) -> SandboxSettings:
    """The settings of a `[sandbox]` table; what is wrong in it is complained of and as if not there."""
    if table is None:
        return SandboxSettings()
    for name, _ in table.unknown(_NAMES):
        table.complain(name, not_known(name, _NAMES))
    sockets = table.choice("unix_sockets", ("allow", "deny"))
    return SandboxSettings(
        network=table.flag("network") or False,
        unix_sockets=sockets != "deny" and not ("unix_sockets" in table and sockets is None),
        writable=tuple(path for each in table.texts("writable") or () if (path := _folder(table, each))),
        backend=cast(Wanted, table.choice("backend", get_args(Wanted)) or "auto"),
    )


def _folder(table: Table, given: str) -> Path | None:
    """A folder that may be opened for writing; None with a complaint where it may not."""
    try:
        path = Path(given).expanduser()
    except RuntimeError:
        path = Path(given)
    if not path.is_absolute():
        table.complain("writable", f'"{given}" has to be an absolute path or begin with "~/"')
    elif path == Path(path.anchor):
        table.complain("writable", f'"{given}" is everything there is; name the folders that commands need')
    else:
        return path
    return None
