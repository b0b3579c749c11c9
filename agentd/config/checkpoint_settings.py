"""How much is kept of what files were, as the user's configuration says."""

from dataclasses import dataclass

from agentd.config.provider_settings import not_known
from agentd.config.toml_table import Table

_KNOWN = ("max_mb",)


@dataclass(frozen=True)
class CheckpointSettings:
    """`max_mb`: how much room the contents of one session may take, in MiB."""

    max_mb: int = 512


def checkpoint_settings(table: Table | None) -> CheckpointSettings:
    """What the table `[checkpoints]` says."""
    if table is None:
        return CheckpointSettings()
    for name, _ in table.unknown(_KNOWN):
        table.complain(name, not_known(name, _KNOWN))
    return CheckpointSettings(table.count("max_mb") or CheckpointSettings.max_mb)
