"""Where agentd's own files live on this system: the user's configuration and the sessions."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

CONFIG_VARIABLE = "AGENTD_CONFIG"
DATA_VARIABLE = "AGENTD_DATA"

_NOWHERE = Path("/dev/null/no-home-folder")
"""Where a user without a home folder keeps things (as in many containers): nobody can, not even root."""


def config_file(environ: Mapping[str, str]) -> Path:
    """The configuration file, absolute, whether it exists or not.

    `AGENTD_CONFIG` names it, or else it is `config.toml` in the user's configuration folder of this system
    (on Linux `$XDG_CONFIG_HOME/agentd`, as the XDG Base Directory Specification has it).
    """
    if named := _named(environ, CONFIG_VARIABLE):
        return named
    import platformdirs

    try:
        return platformdirs.user_config_path("agentd", appauthor=False) / "config.toml"
    except RuntimeError:
        return _NOWHERE / "config.toml"


def data_dir(environ: Mapping[str, str]) -> Path:
    """The folder that sessions are kept in, absolute, whether it exists or not.

    `AGENTD_DATA` names it, or else it is the user's data folder of this system (on Linux
    `$XDG_DATA_HOME/agentd`).
    """
    if named := _named(environ, DATA_VARIABLE):
        return named
    import platformdirs

    try:
        return platformdirs.user_data_path("agentd", appauthor=False)
    except RuntimeError:
        return _NOWHERE


def is_nowhere(path: Path) -> bool:
    """Whether this is what `data_dir` and `config_file` give for want of a place."""
    return path.is_relative_to(_NOWHERE)


def own_places(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """What of the file system is agentd's own and nobody else's: sessions and configuration."""
    file = config_file(environ)
    return data_dir(environ), file.parent if file.parent.name == "agentd" else file


def home_dir() -> Path | None:
    """The user's home folder; None for a user without one."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def skill_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where the user's own skills are: agentd's configuration folder, then the one that agents share."""
    home = home_dir()
    return (config_file(environ).parent / "skills", *((home / ".agents" / "skills",) if home else ()))


def _named(environ: Mapping[str, str], variable: str) -> Path | None:
    """The path in a variable; one that is empty counts as not set, and `~` is the user's home."""
    value = environ.get(variable, "").strip()
    if not value:
        return None
    path = Path(value)
    with suppress(RuntimeError):  # `~name` of a user who does not exist is a name like any other
        path = path.expanduser()
    with suppress(FileNotFoundError):  # the working directory is gone; opening the path will say so
        path = path.absolute()
    return path
