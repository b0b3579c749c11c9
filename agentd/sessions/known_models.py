"""What is known of models: what the user says, what a server has told, what the catalogue holds."""

from agentd.config.builtin import BUILT_IN
from agentd.config.settings import ModelSettings, ProviderSettings
from agentd.protocol.methods import ModelInfo
from agentd.providers import catalog
from agentd.providers.base import Model
from agentd.providers.image_limits import limits_of
from agentd.providers.prices import Prices, Rates

_MOST_OUTPUT = 32_000
"""The most tokens of an answer to ask for unless the user says otherwise: servers count them as if used."""


class KnownModels:
    """What is known of the models of configured providers, and what is learnt of them while agentd runs."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], int] = {}

    def model(self, provider: ProviderSettings, name: str, told_window: int | None = None) -> Model:
        """A model: the user's word goes first, then what its server said, then the catalogue's.

        `told_window` is the context window that a list of the server's models tells. What an error told goes
        before it: that was the window in use.
        """
        said, known = provider.models.get(name, ModelSettings(name)), _facts(provider, name)
        limit = min(known.max_output, _MOST_OUTPUT) if provider.asks_limit and known.max_output else None
        learnt = self._windows.get((provider.name, name))
        return Model(
            provider.name,
            name,
            context_window=said.context_window or learnt or told_window or known.context_window,
            max_output=said.max_output or limit,
            images=known.images if said.images is None else said.images,
            reasoning=known.reasoning if said.reasoning is None else said.reasoning,
            efforts=known.efforts if said.efforts is None else said.efforts,
            prices=known.prices if said.prices is None else Prices(Rates(**said.prices)),
            thinking_tag=said.thinking_tag,
            cuts_prompts=bool(provider.dialect.get("cuts_prompts", False)),
            image_limits=limits_of(provider.name, provider.api, name),
        )

    def learn_window(self, provider: str, name: str, tokens: int) -> None:
        """A server has said how large a model's context window is; it counts until the daemon ends."""
        self._windows[provider, name] = tokens

    def info(
        self, provider: ProviderSettings, name: str, lack: str | None, told_window: int | None = None
    ) -> ModelInfo:
        """A model as `agentd/models` tells it; `lack` is what keeps it from being used."""
        model = self.model(provider, name, told_window)
        return ModelInfo(
            id=model.id,
            provider=provider.name,
            name=name,
            context_window=model.context_window,
            max_output=model.max_output or _facts(provider, name).max_output,
            images=model.images,
            reasoning=model.reasoning,
            efforts=model.efforts,
            available=lack is None,
            reason=lack,
        )


def is_in_catalog(provider: ProviderSettings) -> bool:
    """Whether the catalogue speaks of a provider's models. A server of one's own may serve them otherwise."""
    return provider.name in BUILT_IN and not provider.is_local


def _facts(provider: ProviderSettings, name: str) -> catalog.Facts:
    return catalog.facts_of(provider.name, name) if is_in_catalog(provider) else catalog.UNKNOWN
