"""What sub-agents may take, as the user's configuration says."""

from dataclasses import dataclass

from agentd.config.provider_settings import MODEL_ID, not_known
from agentd.config.toml_table import Table, shown

_KNOWN = ("max_turns", "max_tokens", "model")


@dataclass(frozen=True)
class SubagentSettings:
    """The budget of one sub-agent, and its model: that of its parent where it is None.

    `max_tokens` counts what is sent and answered, without what a provider finds in its cache.
    """

    max_turns: int = 50
    max_tokens: int = 1_000_000
    model: str | None = None


def subagent_settings(table: Table | None) -> SubagentSettings:
    """What the table `[subagents]` says."""
    plain = SubagentSettings()
    if table is None:
        return plain
    for name, _ in table.unknown(_KNOWN):
        table.complain(name, not_known(name, _KNOWN))
    model = table.text("model")
    if model is not None and not MODEL_ID.fullmatch(model):
        table.complain("model", f'{shown(model)} has to be "provider/model", as in "local/qwen3-coder"')
        model = None
    return SubagentSettings(
        table.count("max_turns") or plain.max_turns, table.count("max_tokens") or plain.max_tokens, model
    )
