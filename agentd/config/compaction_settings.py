"""When the history of a session is made shorter by itself, as the user's configuration says."""

from dataclasses import dataclass

from agentd.config.provider_settings import not_known
from agentd.config.toml_table import Table

_KNOWN = ("at", "auto")
_LEAST = 0.1


@dataclass(frozen=True)
class CompactionSettings:
    """`at`: from which share of a model's context window on. `auto`: whether it happens unasked."""

    at: float = 0.85
    auto: bool = True


def compaction_settings(table: Table | None) -> CompactionSettings:
    """What the table `[compaction]` says."""
    plain = CompactionSettings()
    if table is None:
        return plain
    for name, _ in table.unknown(_KNOWN):
        table.complain(name, not_known(name, _KNOWN))
    at, auto = table.number("at"), table.flag("auto")
    if at is not None and not _LEAST <= at <= 1:
        table.complain("at", f"is {at}; it has to be a share of the context window, from {_LEAST} to 1")
        at = None
    return CompactionSettings(plain.at if at is None else at, plain.auto if auto is None else auto)
